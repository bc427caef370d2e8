"""Asks all services, each by itself and within a time limit; nothing here writes anything.

What one service does not tell hides nothing of the other: a `Failure` takes its place.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from contextgauge.errors import ConfigError, ContextgaugeError, VersionError
from streams.flow.doctor.facts import DeadLetters, Expected, Facts, Keying, Progress, Views
from streams.flow.doctor.topics import Topics
from streams.ports import Clock, Log, ViewPosition, ViewReader
from streams.ports.inspection import (
    Bootstrap,
    BrokerInspector,
    Cluster,
    Failure,
    Group,
    StoreFacts,
    StoreInspector,
)

_T = TypeVar("_T")

_INSPECTION_S = 12.0
"""For a service's own answers together: a broker that is away takes 4 s to give up on."""

_READING_S = 8.0
"""For what is read of the topics. Reading stops with what it has a little before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What is asked; a Failure where the settings name none, or not rightly."""

    brokers: BrokerInspector | Failure
    log: Log | Failure
    store: StoreInspector | Failure
    views: ViewReader | Failure
    clock: Clock
    partition_of: Callable[[str, int], int]


async def gather(services: Services, expected: Expected) -> Facts:
    """Return all facts. Raises nothing that a service does."""
    kafka, (store, views) = await asyncio.gather(
        _kafka(services, expected), _redis(services, expected)
    )
    return Facts(
        now_ms=services.clock.now_ms(),
        bootstrap=kafka.bootstrap,
        cluster=kafka.cluster,
        derive_group=kafka.derive_group,
        project_group=kafka.project_group,
        keying=kafka.keying,
        dead=kafka.dead,
        derive=kafka.derive,
        project=await _project(services, expected, kafka.cluster, views),
        newest_record_ms=kafka.newest_record_ms,
        store=store,
        views=views,
    )


async def within(seconds: float, asked: Awaitable[_T]) -> _T | Failure:
    """Wait for an answer, at most so long; what fails becomes a Failure."""
    try:
        async with asyncio.timeout(seconds):
            return await asked
    except TimeoutError:
        return Failure("away", f"no answer within {seconds:.0f} s")
    except ConfigError as error:
        return Failure("refused", str(error))
    except VersionError as error:
        return Failure("unsupported", str(error))
    except ContextgaugeError as error:
        return Failure("away", str(error))


@dataclass(slots=True)
class _Kafka:
    """What Kafka tells; the failures are those of before anything was asked."""

    bootstrap: Sequence[Bootstrap] | Failure
    cluster: Cluster | Failure
    derive_group: Group | Failure
    project_group: Group | Failure
    keying: Keying | Failure
    dead: DeadLetters | Failure
    derive: Mapping[int, Progress] | Failure
    newest_record_ms: int | Failure | None


async def _kafka(services: Services, expected: Expected) -> _Kafka:
    brokers = services.brokers
    if isinstance(brokers, Failure):
        return _Kafka(*[brokers] * 8)
    try:
        bootstrap = await within(_INSPECTION_S, brokers.bootstrap())
        if isinstance(bootstrap, Failure) or all(item.failure for item in bootstrap):
            return _Kafka(bootstrap, *[Failure("away", "no broker answers")] * 7)
        names = [topic.name for topic in expected.topics]
        cluster = await within(_INSPECTION_S, brokers.cluster(names))
        if isinstance(cluster, Failure):
            return _Kafka(bootstrap, *[cluster] * 7)
        groups = await asyncio.gather(
            *[
                within(_INSPECTION_S, brokers.group(name))
                for name in (expected.derive_group, expected.project_group)
            ]
        )
    finally:
        await within(_INSPECTION_S, brokers.stop())
    look = Topics(services.log, services.clock, services.partition_of, expected, cluster)
    keying, dead, newest, derive = await asyncio.gather(
        within(_READING_S, look.keying()),
        within(_READING_S, look.dead()),
        within(_READING_S, look.newest_record()),
        within(_READING_S, look.derive(groups[0])),
    )
    return _Kafka(bootstrap, cluster, groups[0], groups[1], keying, dead, derive, newest)


async def _redis(
    services: Services, expected: Expected
) -> tuple[StoreFacts | Failure, Views | Failure]:
    store = services.store
    if isinstance(store, Failure):
        return store, store
    try:
        found = await within(_INSPECTION_S, store.look())
    finally:
        await within(_INSPECTION_S, store.stop())
    if isinstance(found, Failure):
        return found, found
    views = services.views
    if isinstance(views, Failure):
        return found, views
    try:
        return found, await within(_READING_S, _views(views, expected.partitions))
    finally:
        await within(_INSPECTION_S, views.stop())


async def _views(reader: ViewReader, partitions: int) -> Views:
    """Read the generations' positions. The first partition's tells how many there are."""
    await reader.start()
    generations = await reader.generations()
    active = await _positions(reader, generations.active, partitions)
    newest: list[float] = []
    sessions = 0
    if generations.active is not None:
        for partition in active:
            ranked = await reader.ranked(generations.active, partition, "recent", 1)
            newest += [score for _, score in ranked]
            sessions += await reader.session_count(generations.active, partition)
    return Views(
        generations=generations,
        active=active,
        building=await _positions(reader, generations.next, partitions),
        sessions=sessions,
        newest_ms=max((int(score) for score in newest), default=None),
    )


async def _positions(
    reader: ViewReader, generation: int | None, partitions: int
) -> dict[int, ViewPosition | None]:
    if generation is None:
        return {}
    first = await reader.position(generation, 0)
    count = partitions if first is None else first.partitions
    others = await asyncio.gather(
        *[reader.position(generation, partition) for partition in range(1, count)]
    )
    return dict(enumerate([first, *others]))


async def _project(
    services: Services, expected: Expected, cluster: Cluster | Failure, views: Views | Failure
) -> Mapping[int, Progress] | Failure:
    """Return how far the records are folded: the positions in Redis against the log."""
    if isinstance(cluster, Failure):
        return cluster
    if isinstance(views, Failure):
        return views
    positions = {
        partition: None if position is None else position.offset
        for partition, position in views.active.items()
    }
    look = Topics(services.log, services.clock, services.partition_of, expected, cluster)
    return await within(_READING_S, look.progress(expected.events.name, positions))
