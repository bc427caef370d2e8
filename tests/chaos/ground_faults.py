"""Disasters: topics recreated, cut, deleted up to a place, with other partitions or compacted.

What is lost by nature, and what the workers have to say and the operator to do, is in
docs/RUNBOOK.md; each fault names the section, expects it, and does it.
"""

import asyncio
from functools import partial
from pathlib import Path
from typing import Final

from aiokafka.admin import NewPartitions, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.structs import TopicPartition

from contextgauge.units import MIB
from streams.ports import started
from tests.chaos.brokers import until_answers
from tests.chaos.faults import fault
from tests.chaos.workers import STOPPED_S
from tests.chaos.world import ENDED, World
from tests.hostile_batches import WRITERS, bomb, put

_CONFIG_ERROR: Final = 2
_POSITION_ERROR: Final = 4
_HOSTILE: Final = 2
_CUT_BYTES: Final = 6_000
"""Some transactions of the end of a partition."""

_BATCH_HEADER_BYTES: Final = 12
"""The offset and the length of a batch, which stand before it."""


async def _recreate(world: World, *names: str) -> None:
    """Delete topics, wait until they are gone, and create them."""
    # Where that takes seconds, workers that miss their topic end, and are started again.
    world.fleet.tolerated = frozenset({_CONFIG_ERROR})
    async with world.log.asking("deleting") as admin:
        await admin.delete_topics([world.topics[name] for name in names])

    async def are_gone() -> bool:
        counts = await world.log.partition_counts([world.topics[name] for name in names])
        return set(counts.values()) == {None}

    await world.until(are_gone, "the topics are gone")
    await world.kit.create_topics()
    world.note(f"recreated: {', '.join(names)}")


async def _stops(world: World, code: int, within_s: float = 60.0) -> None:
    """Wait until all derive workers have ended with this code."""
    try:
        async with asyncio.timeout(within_s):
            await world.until(
                lambda: world.fleet.have_ended("derive", code), f"derive workers end with {code}"
            )
    except TimeoutError:
        codes = {name: worker.code() for name, worker in world.fleet.workers.items()}
        raise AssertionError(f"not all ended with {code} in {within_s:.0f} s: {codes}") from None
    world.note(f"derive workers ended with {code}")


async def _begin_again(world: World) -> None:
    """Follow «A position is out of range: a topic that is not what it was»."""
    await world.stop_publishing()
    await _recreate(world, "context.events", "context.state")
    world.counts_dead = False  # those of the messages that are derived twice are there twice
    world.fleet.stopping = frozenset()
    for worker in world.fleet.of("derive"):
        worker.start_again()
    rebuild = world.fleet.add("rebuild-1")
    del world.fleet.workers["rebuild-1"]
    await world.until(lambda: rebuild.code() is not None, "the command rebuild ends")
    world.note(f"remedy: topics created, rebuild ended with {rebuild.code()}")


_AGAIN: Final = "derive workers end with 4; «A position is out of range»: start again"


async def _messages_recreated(world: World) -> None:
    await world.stop_publishing()
    world.fleet.stopping = frozenset({_POSITION_ERROR})
    await _recreate(world, "agent.messages")
    world.sent.clear()
    world.oracle.forget()
    await world.publish(world.dice.choice([200, 2_000]))
    await _stops(world, _POSITION_ERROR)
    await _begin_again(world)


async def _recreated(name: str, world: World) -> None:
    await world.stop_publishing()
    world.fleet.stopping = frozenset({_POSITION_ERROR})
    await _recreate(world, name)
    await world.publish(200)
    await _stops(world, _POSITION_ERROR)
    await _begin_again(world)


fault("agent.messages recreated", "ground", outcome=f"the old messages are lost. {_AGAIN}")(
    _messages_recreated
)
for _name in ("context.events", "context.state"):
    fault(f"{_name} recreated", "ground", outcome=_AGAIN)(partial(_recreated, _name))


@fault("agent.messages.dead recreated", "ground", outcome="the old dead letters are lost")
async def _dead_recreated(world: World) -> None:
    world.counts_dead = False
    await _recreate(world, "agent.messages.dead")
    await world.progress()


@fault(
    "partitions added to a topic",
    "ground",
    outcome="derive workers end with 2 within a minute; «Partition counts differ»: new prefixes",
)
async def _partitions(world: World) -> None:
    world.fleet.stopping = frozenset({_CONFIG_ERROR})
    topic = world.topics[world.dice.choice(["agent.messages", "context.events", "context.state"])]
    world.note(f"two more partitions of {topic}")
    async with world.log.asking("adding partitions") as admin:
        await admin.create_partitions({topic: NewPartitions(world.kit.partitions + 2)})
    await _stops(world, _CONFIG_ERROR)
    await world.move()


async def _delete_to_end(world: World, topic: str) -> None:
    async with world.log.asking("deleting records") as admin:
        ends = {
            TopicPartition(topic, partition): RecordsToDelete(before_offset=-1)
            for partition in range(world.kit.partitions)
        }
        await admin.delete_records(ends)
    world.note(f"all records of {topic} deleted")


@fault(
    "retention overtakes the derive workers",
    "ground",
    outcome="derive workers end with 4; «A position is out of range: expired»: new prefixes",
)
async def _overtaken(world: World) -> None:
    for worker in world.fleet.of("derive"):
        await worker.end()
    await world.pause(0.5, 1.0)
    await world.stop_publishing()
    await _delete_to_end(world, world.topics["agent.messages"])
    world.fleet.stopping = frozenset({_POSITION_ERROR})
    for worker in world.fleet.of("derive"):
        worker.start_again()
    await _stops(world, _POSITION_ERROR)
    await world.move()


@fault(
    "retention overtakes the project workers",
    "ground",
    outcome="«The log lacks records»: the views are those of the records that are left",
)
async def _views_overtaken(world: World) -> None:
    for worker in world.fleet.of("project"):
        await worker.end()
    await world.pause(0.5, 1.0)
    async with world.silence():
        await _delete_to_end(world, world.topics["context.events"])
    await world.publish(200)  # so that each partition has records again
    world.to_end = True
    for worker in world.fleet.of("project"):
        worker.start_again()


@fault("state compacted during restores", "ground")
async def _compacted(world: World) -> None:
    topic = world.topics["context.state"]
    configs = {
        "cleanup.policy": "compact",
        "segment.ms": "200",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "200",
        "delete.retention.ms": "0",
        "file.delete.delay.ms": "100",
    }
    async with world.log.asking("setting") as admin:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)
        await admin.alter_configs([resource])
    world.note("context.state is compacted all the time")
    for _ in range(4):
        await world.progress()
        await world.pause(0.5, 1.5)
        for worker in world.fleet.of("derive"):
            worker.kill()
        world.note("both derive workers killed")
    left = [len(await world.kit.read(topic, p)) for p in range(world.kit.partitions)]
    async with started(world.log.reader(topic, range(world.kit.partitions))) as reader:
        ends = [(await reader.bounds(p))[1] for p in range(world.kit.partitions)]
    world.note(f"{sum(left)} entries are left of {sum(ends)}")


@fault(
    "hostile batches",
    "ground",
    outcome="each is one dead letter, with its bytes as they are; all else goes on",
)
async def _hostile_batches(world: World) -> None:
    kafka, topic = world.services.options, world.topics["agent.messages"]
    for codec in world.dice.sample(list(WRITERS), _HOSTILE):
        partition = world.dice.randrange(world.kit.partitions)
        batch = bomb(codec, kafka.batch_limit_bytes // MIB + 8, MIB)
        offset = await put(kafka.bootstrap_servers, topic, partition, batch)
        world.note(f"{len(batch)} bytes of {codec} beyond the limit at {partition}:{offset}")
        await world.progress()


def _cut(file: Path, size: int) -> int:
    """Cut whole batches off the end of a segment, at least `size` bytes; return how many."""
    data, places, offset = file.read_bytes(), [], 0
    while offset + _BATCH_HEADER_BYTES <= len(data):
        places.append(offset)
        offset += _BATCH_HEADER_BYTES + int.from_bytes(data[offset + 8 : offset + 12])
    left = max((place for place in places if place <= len(data) - size), default=0)
    with file.open("r+b") as target:
        target.truncate(left)
    return len(data) - left


async def _truncated(name: str, world: World) -> None:
    """Cut the end off all replicas of a partition, as a cluster that lost power does."""
    topic = world.topics[name]
    await world.stop_publishing()
    await world.arrived()
    brokers = world.services.brokers.nodes.values()
    for worker in world.fleet.of("derive") + world.fleet.of("project"):
        worker.freeze()
    for broker in brokers:
        broker.kill()
    partition = max(range(world.kit.partitions), key=lambda p: len(world.oracle.records[p]))
    for broker in brokers:
        folder = broker.data / f"{topic}-{partition}"
        (segment,) = folder.glob("*.log")
        cut = _cut(segment, _CUT_BYTES)
        for stale in (*folder.glob("*index"), *folder.glob("*.snapshot")):
            stale.unlink()
        world.note(f"{cut} bytes cut off {topic}-{partition} of broker {broker.node}")
        broker.start()
    for broker in brokers:
        await until_answers(world.services.brokers, broker.node)
    world.fleet.stopping = frozenset({_POSITION_ERROR})
    for worker in world.fleet.of("derive") + world.fleet.of("project"):
        worker.thaw()
    await asyncio.sleep(STOPPED_S)


@fault(
    "context.events cut at its end",
    "ground",
    needs_brokers=True,
    outcome=_AGAIN,
)
async def _events_cut(world: World) -> None:
    await _truncated("context.events", world)
    await world.publish(200)
    await _some_stop(world)
    await _begin_again(world)


@fault("context.state cut at its end", "ground", needs_brokers=True, outcome=_AGAIN)
async def _state_cut(world: World) -> None:
    await _truncated("context.state", world)
    await world.publish(200)
    await _some_stop(world)
    await _begin_again(world)


@fault(
    "agent.messages cut at its end",
    "ground",
    needs_brokers=True,
    outcome=f"the messages that were cut off are lost. {_AGAIN}",
)
async def _messages_cut(world: World) -> None:
    await _truncated("agent.messages", world)
    world.sent.clear()
    world.oracle.forget()
    await world.publish(200)
    await _some_stop(world)
    await _begin_again(world)


async def _some_stop(world: World) -> None:
    """Wait until the owner of the partition has ended, and end the others, as one has to."""

    def one() -> bool:
        return any(worker.code() == _POSITION_ERROR for worker in world.fleet.of("derive"))

    await world.until(one, "a derive worker ends with 4")
    world.note("a derive worker ended with 4")
    for worker in world.fleet.of("derive"):
        if worker.code() is None:
            await worker.end()
    world.fleet.stopping = ENDED | {_POSITION_ERROR}
