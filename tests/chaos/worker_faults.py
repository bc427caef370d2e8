"""Faults of the workers' own processes, of their group, and of their clocks."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Final

from tests.chaos.faults import fault
from tests.chaos.workers import STOPPED_S
from tests.chaos.world import ENDED, WORKERS, World

_KILLS: Final = 2
_FAKETIME: Final = (
    *Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"),
    *Path("/usr/local/lib").glob("faketime/libfaketimeMT.so.1"),
)
_JUMPS: Final = ("+50m", "-1d", "-40d")


@fault("none", "workers")
async def _none(world: World) -> None:
    await world.progress()


async def _killed(kind: str, world: World) -> None:
    for _ in range(_KILLS):
        await world.progress()
        await world.pause()
        worker = world.dice.choice(world.fleet.of(kind))
        world.note(f"kill {kind}")
        worker.kill()


async def _all_killed(kind: str, world: World) -> None:
    await world.pause()
    world.note(f"kill every {kind} worker at once")
    for worker in world.fleet.of(kind):
        worker.crash()
    await world.out_for(0.5, 2.0)
    for worker in world.fleet.of(kind):
        worker.start_again()


async def _paused(kind: str, world: World) -> None:
    await world.pause()
    worker = world.dice.choice(world.fleet.of(kind))
    world.note(f"pause {kind} for {STOPPED_S} s")
    await worker.sleep(STOPPED_S)


async def _rolled(kind: str, world: World) -> None:
    for worker in world.fleet.of(kind):
        await world.pause()
        world.note(f"restart {kind} in good order")
        code = await worker.end()
        assert code in ENDED, f"{kind} ended with {code}"
        worker.start_again()
        await world.progress()


async def _scaled(kind: str, world: World) -> None:
    world.note(f"{kind}: 1 worker")
    codes = await world.fleet.end(kind)
    assert set(codes.values()) <= ENDED, codes
    world.fleet.add(f"{kind}-3")
    await world.progress()
    world.note(f"{kind}: 3 workers")
    world.fleet.add(f"{kind}-4")
    world.fleet.add(f"{kind}-5")
    await world.progress()
    await world.pause()
    world.note(f"{kind}: 1 worker")
    for number in (3, 4):
        ending = world.fleet.workers.pop(f"{kind}-{number}")
        assert await ending.end() in ENDED


async def _second_group(kind: str, world: World) -> None:
    world.note(f"a second {kind} worker with a group of its own")
    other = world.fleet.add(f"{kind}-9", GROUP_PREFIX=f"other-{world.prefix}")
    await world.out_for(5.0, 8.0)
    assert other.code() is None, other.log()[-3_000:]
    world.note("end it")
    del world.fleet.workers[f"{kind}-9"]
    assert await other.end() in ENDED


for _kind in ("derive", "project"):
    for _name, _act in (
        ("worker killed", _killed),
        ("workers all killed", _all_killed),
        ("worker paused", _paused),
        ("workers restarted in turn", _rolled),
        ("workers scaled 1 to 3 to 1", _scaled),
        ("workers of a second group", _second_group),
    ):
        fault(f"{_kind} {_name}", "workers")(partial(_act, _kind))


@fault("everything killed and paused at random", "workers")
async def _mixture(world: World) -> None:
    for _ in range(6):
        await world.progress()
        await world.pause(0.05, 1.5)
        name = world.dice.choice([*WORKERS, "redis"])
        if name == "redis":
            world.note("kill Redis")
            world.services.kill_redis()
            await world.out_for(0.2, 2.0)
            await world.services.start_redis()
        elif world.dice.random() < 0.3:
            world.note(f"pause {name}")
            await world.fleet.workers[name].sleep(STOPPED_S)
        else:
            world.note(f"kill {name}")
            world.fleet.workers[name].kill()


def _lacks_faketime() -> str:
    return "" if _FAKETIME else "libfaketime is not installed (Debian: apt-get install libfaketime)"


async def _fake(world: World) -> Path:
    """Let one worker of each kind take the time that a file says; return the file."""
    file = world.folder / "clock"
    world.has_faked_clocks = True
    file.write_text("+0")
    faked = {
        "LD_PRELOAD": str(_FAKETIME[0]),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    for kind in ("derive", "project"):
        worker = world.fleet.of(kind)[0]
        worker.crash()
        worker.start_again(faked)
    await world.progress()
    return file


@fault("clocks of the workers jump", "workers", lacks=_lacks_faketime)
async def _clock(world: World) -> None:
    file = await _fake(world)
    for jump in world.dice.sample(_JUMPS, len(_JUMPS)):
        world.note(f"clocks of one derive and one project worker: {jump}")
        file.write_text(jump)
        await world.progress()
        await asyncio.sleep(1.0)
    file.write_text("+0")


@fault(
    "clock of a derive worker far ahead",
    "workers",
    lacks=_lacks_faketime,
    outcome="it ends with 2, as Kafka refuses such times (RUNBOOK, «Clocks differ»); others go on",
)
async def _far_ahead(world: World) -> None:
    file = await _fake(world)
    worker = world.fleet.of("derive")[0]
    world.fleet.stopping = frozenset({2})
    world.note("its clock: +40d")
    file.write_text("+40d")
    await world.until(lambda: worker.code() == 2, "it ends with 2")
    await world.progress()
    world.fleet.stopping = frozenset()
    world.note("its clock is right, and it is started again")
    file.write_text("+0")
    worker.start_again()
