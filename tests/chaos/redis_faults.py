"""Faults of Redis: away, without its data, full, or refusing."""

import asyncio
import shutil
import signal
from functools import partial
from typing import Final

from streams.edge.local_stack.stack import LocalStack
from tests.chaos.faults import fault
from tests.chaos.wire import Direction
from tests.chaos.world import World
from tests.failover_kit import port_of, promote, replicate

_KEYS: Final = (
    "pos", "held", "stats", "live", "idle", "recent", "pressure", "s:*", "c:*", "e:*", "r:*", "a:*",
)  # fmt: skip
"""Ends of the names of a partition's keys: streams/edge/redis/keys.py."""


@fault("Redis killed", "redis")
async def _killed(world: World) -> None:
    for _ in range(2):
        await world.progress()
        await world.pause()
        world.note("kill Redis")
        world.services.kill_redis()
        await world.out_for(0.2, 3.0)
        await world.services.start_redis()


@fault("Redis paused", "redis")
async def _paused(world: World) -> None:
    world.note("pause Redis")
    world.services.signal_redis(signal.SIGSTOP)
    await world.out_for(3.0, 8.0)
    world.services.signal_redis(signal.SIGCONT)


@fault("Redis emptied", "redis")
async def _emptied(world: World) -> None:
    await world.pause()
    world.note("FLUSHALL")
    async with world.services.redis() as redis:
        await redis.flushall()


@fault("Redis set back to an older file", "redis")
async def _set_back(world: World) -> None:
    saved = world.folder / "redis-then"
    shutil.copytree(world.services.redis_data, saved)
    world.note("copy of Redis' files taken")
    await world.progress()
    await world.out_for(1.0, 3.0)
    world.services.kill_redis()
    shutil.rmtree(world.services.redis_data)
    shutil.copytree(saved, world.services.redis_data)
    world.note("Redis starts with them")
    await world.services.start_redis()


@fault("Redis failover behind a name that moves, and back", "redis")
async def _failover(world: World) -> None:
    wire, home = world.services.wire, world.services.redis_url
    stack = LocalStack(world.folder / "other-redis")
    other = (await asyncio.to_thread(stack.start, ["redis"]))["redis"].address
    try:
        for primary, replica in ((home, other), (other, home)):
            await replicate(primary, replica)
            await world.progress()
            world.note(f"promote the server on port {port_of(replica)}")
            await promote(replica, primary)
            await world.out_for(1.0, 5.0)
            world.note("the name leads there")
            wire.server_port = port_of(replica)
    finally:
        wire.server_port = port_of(home)
        await world.progress()
        await asyncio.to_thread(stack.stop)


@fault("Redis out of memory", "redis")
async def _full(world: World) -> None:
    async with world.services.redis() as redis:
        used = (await redis.info("memory"))["used_memory"]
        world.note("maxmemory is what is used, no eviction")
        await redis.config_set("maxmemory", used)
        await world.out_for(3.0, 6.0)
        await redis.config_set("maxmemory", 0)


@fault("Redis cannot write to its disk (MISCONF)", "redis")
async def _misconf(world: World) -> None:
    target = world.services.redis_data / "dump.rdb"
    target.unlink(missing_ok=True)
    (target / "in the way").mkdir(parents=True)
    async with world.services.redis() as redis:
        await redis.config_set("save", "3600 1000000")
        await redis.bgsave()

        async def refuses() -> bool:
            status: str = (await redis.info("persistence"))["rdb_last_bgsave_status"]
            return status != "ok"

        await world.until(refuses, "Redis fails to save")
        world.note("Redis refuses writes")
        await world.out_for(3.0, 6.0)
        shutil.rmtree(target)
        await redis.config_set("save", "")
        await redis.bgsave()


@fault("keys of each type lost, one by one", "redis")
async def _keys_lost(world: World) -> None:
    async with world.services.redis() as redis:
        for end in world.dice.sample(_KEYS, len(_KEYS)):
            active = (await world.views.generations()).active
            base = f"{world.key_prefix}:{{{active}:*}}:"
            keys = sorted([key async for key in redis.scan_iter(match=base + end, count=1_000)])
            if not keys:
                world.note(f"there is no key {end}")
                continue
            key = world.dice.choice(keys)
            world.note(f"unlink {key.decode(errors='replace')}")
            reports = world.fleet.warnings().total()
            await redis.unlink(key)
            await world.until(partial(_is_healed, world, active, reports), f"{end} heals")
            await world.pause(0.5, 1.0)


async def _is_healed(world: World, former: int | None, reports: int) -> bool:
    """Return whether a worker has reported the loss, and another generation is whole."""
    generations = await world.views.generations()
    is_another = generations.next is None and generations.active != former
    is_whole = is_another and -1 not in (await world.positions() or [-1])
    return is_whole and world.fleet.warnings().total() > reports


@fault("generation keys lost", "redis")
async def _generation_lost(world: World) -> None:
    async with world.services.redis() as redis:
        for name in ("active", "next"):
            world.note(f"unlink {name}")
            await redis.unlink(f"{world.key_prefix}:{name}")
            await world.pause(0.5, 1.5)


@fault("Redis emptied during a rebuild", "redis")
async def _emptied_during_rebuild(world: World) -> None:
    rebuild = world.fleet.add("rebuild-1")
    del world.fleet.workers["rebuild-1"]

    async def is_begun() -> bool:
        return (await world.views.generations()).next is not None or rebuild.code() is not None

    await world.until(is_begun, "the rebuild begins")
    async with world.services.redis() as redis:
        world.note("FLUSHALL during a rebuild")
        await redis.flushall()
    await world.until(lambda: rebuild.code() is not None, "the command ends")
    world.note(f"rebuild ended with {rebuild.code()}")


@fault("Redis forgets its scripts", "redis")
async def _scripts(world: World) -> None:
    async with world.services.redis() as redis:
        for _ in range(5):
            world.note("SCRIPT FLUSH")
            await redis.script_flush()
            await world.pause(0.1, 0.5)


@fault(
    "Redis takes the rights away",
    "redis",
    outcome="project workers end with 2 (RUNBOOK, exit codes); started again, they go on",
)
async def _rights(world: World) -> None:
    world.fleet.tolerated = frozenset({2})
    async with world.services.redis() as redis:
        world.note("ACL: no scripts")
        await redis.execute_command("ACL", "SETUSER", "default", "-eval", "-evalsha")
        await world.out_for(3.0, 6.0)
        await redis.execute_command("ACL", "SETUSER", "default", "+@all")


@fault("Redis behind a black hole", "redis")
async def _hole(world: World) -> None:
    world.note("nothing arrives in either direction")
    world.services.wire.weather.held = frozenset({"up", "down"})
    await world.out_for(5.0, 9.0)
    _clear(world)


@fault("Redis behind a one-way black hole", "redis")
async def _one_way(world: World) -> None:
    directions: list[Direction] = ["up", "down"]
    world.dice.shuffle(directions)
    for direction in directions:
        world.note(f"nothing arrives {direction}")
        world.services.wire.weather.held = frozenset({direction})
        await world.out_for(5.0, 9.0)
        _clear(world)
        await world.progress()


def _clear(world: World) -> None:
    """Let all arrive that is late, or cut the connections first."""
    if world.dice.random() < 0.5:
        world.services.wire.reset()
    world.services.wire.clear()


@fault("connections to Redis reset", "redis")
async def _resets(world: World) -> None:
    for _ in range(8):
        world.note("reset")
        world.services.wire.reset()
        await world.pause(0.05, 0.6)


@fault("Redis' answers to writes lost", "redis")
async def _lost(world: World) -> None:
    world.services.wire.weather.lost_answers = 6
    await world.until(lambda: world.services.wire.weather.lost_answers == 0, "answers are lost")
    world.note("6 answers lost")


@fault("slow link to Redis", "redis")
async def _slow(world: World) -> None:
    world.note("200 ms each way")
    world.services.wire.weather.delay_s = 0.2
    await world.out_for(5.0, 8.0)

    world.services.wire.clear()
