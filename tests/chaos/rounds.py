"""Runs rounds: each a world of its own on shared services, one fault, and a verdict."""

import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.chaos import broker_faults, edge_faults, ground_faults, redis_faults, worker_faults
from tests.chaos.faults import FAULTS, Fault, slug
from tests.chaos.oracle import ViolationError
from tests.chaos.services import Services
from tests.chaos.workers import EndedError
from tests.chaos.world import Outcome, World

LISTED = (worker_faults, redis_faults, broker_faults, ground_faults, edge_faults)
"""The modules that add to FAULTS."""

_AFTER = 120
"""Messages after a recovery: it really goes on."""


async def run_round(
    services: Services, fault: Fault, seed: int, show: Callable[[str], None] = lambda _: None
) -> Outcome:
    """Let one fault befall a new world; return what came of it."""
    outcome, began_s = Outcome(fault.name, seed), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="contextgauge-chaos-", dir=services.folder) as folder:
        world = World(services, seed, slug(fault.name), Path(folder))
        try:
            await _run(world, fault, outcome)
        except (ViolationError, EndedError, AssertionError) as error:
            outcome.violations.append(str(error))
        except Exception:  # noqa: BLE001 -- a fault that cannot be done is a failed round as well
            outcome.violations.append(traceback.format_exc())
        if outcome.violations:
            for name, worker in world.fleet.workers.items():
                show(f"--- {name} ({worker.code()})\n{worker.log()[-3_000:]}")
        outcome.schedule, outcome.messages = world.schedule, len(world.sent)
        await world.close()
        outcome.warnings = world.fleet.warnings()
    try:
        await services.heal()
    except Exception:  # noqa: BLE001 -- as above
        outcome.violations.append(f"the services do not come back: {traceback.format_exc()}")
    outcome.took_s = time.monotonic() - began_s
    return outcome


async def _run(world: World, fault: Fault, outcome: Outcome) -> None:
    await world.begin()
    await fault.act(world)
    world.note("healed")
    healed_s = time.monotonic()
    await world.stop_publishing()
    await world.arrived()
    outcome.recovery_s = time.monotonic() - healed_s
    world.note("everything has arrived")
    await world.publish(_AFTER)
    await world.arrived()
    outcome.violations += await world.check()


def chosen(names: str, *, has_brokers: bool) -> list[Fault]:
    """Return the faults whose names contain one of the words, separated by commas; all for none."""
    words = [word.strip() for word in names.split(",") if word.strip()]
    faults = [
        fault
        for fault in FAULTS.values()
        if (not words or any(_fits(word, fault) for word in words))
        and (has_brokers or not fault.needs_brokers)
    ]
    if not faults:
        raise SystemExit(f"no fault has a name with {names!r}: --list shows them")
    return faults


def _fits(word: str, fault: Fault) -> bool:
    if word in FAULTS:
        return word == fault.name
    return word in fault.name or word == fault.group
