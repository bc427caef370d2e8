"""A worker that dies at any step of a command, and two that own a partition at once.

Every command has one outcome, each boundary its effect, and no message is lost: `CommandKit.check`.
"""

import asyncio
import os
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from contextgauge.errors import RetryError
from schemas.commands import CommandCalled
from streams.flow.control.commands.command_worker import CommandWorker
from tests.conftest import LONG
from tests.flow.control.command_kit import SESSION, CommandKit
from tests.flow.control.mortal_log import Life, MortalLog

SEED = int(os.environ.get("CHAOS_SEED", "1"))
RUNS = 2_000 if LONG else 25
MOST_STEPS = 60

Act = Callable[[CommandKit], Coroutine[Any, Any, None]]


async def _nothing(kit: CommandKit) -> None:
    pass


async def _cancelled(kit: CommandKit) -> None:
    await kit.until(lambda: kit.summaries.calls)
    await kit.cancel()


async def _talking(kit: CommandKit) -> None:
    await kit.until(lambda: kit.summaries.calls)
    await kit.say(2)


async def _cleared(kit: CommandKit) -> None:
    await kit.until(lambda: kit.summaries.calls)
    await kit.publish({"type": "conversation_reset", "trigger": "clear"})
    await kit.say(12)


async def _failing(kit: CommandKit) -> None:
    kit.summaries.failures = 1


async def new_kit() -> CommandKit:
    return await CommandKit.created()


class MortalWorker:
    """A worker with a life, run until it is over or it is killed."""

    def __init__(self, kit: CommandKit, life: Life) -> None:
        self.life = life
        ports = kit.ports(asyncio.Event())
        log = MortalLog(kit.log, life)
        self.worker = CommandWorker(type(ports)(**{**vars(ports), "log": log}))
        self.running = asyncio.create_task(self.worker.run())

    async def bury(self) -> None:
        """Free what a dead process would not have any more."""
        self.life.end()
        self.running.cancel()
        while not self.running.done():
            self.life.let_go()
            await asyncio.wait([self.running], timeout=0.01)


@pytest.mark.extended
@pytest.mark.parametrize("act", [_nothing, _cancelled, _talking, _cleared, _failing])
async def test_a_worker_dies_at_each_step(act: Act) -> None:
    for dies_at in range(1, MOST_STEPS):
        kit = await new_kit()
        await kit.say(12)
        await kit.request()
        life = Life(dies_at)
        first = MortalWorker(kit, life)
        acting = asyncio.create_task(act(kit))
        done = asyncio.create_task(kit.outcome())
        over = asyncio.create_task(life.over.wait())
        await asyncio.wait({done, over}, return_when=asyncio.FIRST_COMPLETED)
        is_over = over.done()
        async with kit.worker():
            await kit.outcome()
            await acting
            # A late answer of the dead one has no effect.
            await asyncio.sleep(0.01)
        await done
        over.cancel()
        await first.bury()
        await kit.check()
        if not is_over:
            assert len(life.steps) < dies_at
            return
    pytest.fail("it never ends by itself")


async def test_a_cancellation_that_is_in_the_log_before_the_outcome_counts() -> None:
    kit = await new_kit()
    await kit.say(12)
    life = Life()
    life.before["swap"] = kit.cancel
    worker = MortalWorker(kit, life)
    await kit.request()
    assert (await kit.outcome()).outcome == "cancelled"
    assert not kit.boundaries()
    await kit.check()
    await worker.bury()


async def test_no_sign_of_life_follows_a_boundary() -> None:
    kit = await new_kit()
    await kit.say(12)
    life = Life()
    life.before["check"] = partial(asyncio.sleep, 0.2)
    worker = MortalWorker(kit, life)
    await kit.request()
    assert (await kit.outcome()).outcome == "completed"
    await asyncio.sleep(0.1)
    assert kit.lines()[-1].get("isCompactSummary")
    await worker.bury()


async def test_two_owners_at_once() -> None:
    for _ in range(5 if LONG else 2):
        kit = await new_kit()
        await kit.say(12)
        workers = [MortalWorker(kit, Life()) for _ in range(2)]
        for number in range(3):
            await kit.request(f"command-{number}")
            await kit.say(6)
            outcome = await kit.outcome(f"command-{number}")
            assert outcome.outcome in ("completed", "nothing_to_compact")
        await kit.check()
        for worker in workers:
            if worker.running.done():
                assert isinstance(worker.running.exception(), RetryError)
            await worker.bury()


async def test_a_broker_that_is_away() -> None:
    kit = await new_kit()
    await kit.say(12)
    kit.summaries.open.clear()
    await kit.request()
    async with kit.worker():
        await kit.until(lambda: len(kit.of(CommandCalled)) > 1)
        kit.log.away = True
        await asyncio.sleep(0.2)
        kit.log.away = False
        kit.summaries.open.set()
        outcome = await kit.outcome()
    assert outcome.outcome == "completed"
    await kit.check()


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(SEED, SEED + RUNS))
async def test_anything_may_happen(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 -- no secret
    kit = await new_kit()
    await kit.say(12)
    requested = 0
    living: list[MortalWorker] = []
    for _ in range(chance.randint(5, 12)):
        match chance.choice(
            ["request", "request", "cancel", "say", "clear", "fail", "cut", "kill"]
        ):
            case "request":
                requested += 1
                trigger = chance.choice(["manual", "auto"])
                await kit.request(f"{requested}", trigger=trigger, urgent=chance.random() < 0.2)  # type: ignore[arg-type]  # of the two
            case "cancel" if requested:
                await kit.cancel(f"{chance.randint(1, requested)}")
            case "say":
                await kit.say(chance.randint(1, 4))
            case "clear":
                await kit.publish({"type": "conversation_reset", "trigger": "clear"})
                await kit.say(chance.randint(1, 12))
            case "fail":
                kit.summaries.failures = chance.randint(1, 4)
            case "cut":
                kit.log.cut_commits = 1
            case _:
                living.append(MortalWorker(kit, Life(chance.randint(1, 40))))
        await asyncio.sleep(chance.random() * 0.02)
    kit.log.cut_commits = kit.summaries.failures = 0
    for worker in living:
        await worker.bury()
    async with kit.worker():
        for number in range(1, requested + 1):
            await kit.outcome(f"{number}")
    await kit.check(SESSION)
