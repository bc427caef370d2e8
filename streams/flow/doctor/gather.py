"""Asks all services, each independently and within a time limit; writes nothing anywhere.

Where a service does not answer, a `Failure` takes the place of its facts.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TypeVar

from contextgauge.errors import ConfigError, ContextgaugeError, VersionError
from streams.flow.doctor.facts import (
    Conversations,
    Expected,
    Facts,
    KafkaFacts,
    Services,
    UnknownFactError,
    Unsettled,
    Views,
    WorkerProgress,
    known,
)
from streams.flow.doctor.log_facts import LogFacts
from streams.ports import NO_ID, ViewPosition, ViewReader
from streams.ports.inspection import (
    BrokerInspector,
    ClusterFacts,
    Failure,
    Group,
    IngestFacts,
    StoreFacts,
    TranscriptFacts,
)

_T = TypeVar("_T")

_INSPECTION_S = 12.0
"""For all of a service's own answers: giving up on a broker that is down takes 4 s."""

_READING_S = 8.0
"""For what is read from the topics, which ends with a part of it a little before."""


_KAFKA_FACTS = len(fields(KafkaFacts))
_NO_BROKER = Failure("away", "no broker answers")


async def gather(services: Services, expected: Expected) -> Facts:
    """Return all facts. Raises nothing that a service does."""
    kafka, (store, views), ingest, transcripts = await asyncio.gather(
        _kafka(services, expected),
        _redis(services, expected),
        _ingest(services),
        _transcripts(services),
    )
    # These need to know the cluster, and where the views are.
    project, conversations = await asyncio.gather(
        within(_READING_S, _project(services, expected, kafka.cluster, views)),
        within(_READING_S, _conversations(services, expected, kafka.cluster)),
    )
    now_ms = services.clock.now_ms()
    return Facts(now_ms, kafka, project, conversations, store, views, ingest, transcripts)


async def within(seconds: float, answer: Awaitable[_T]) -> _T | Failure:
    """Wait for an answer, at most so long; an error becomes a Failure."""
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        return Failure("away", f"no answer within {seconds:.0f} s")
    except UnknownFactError as error:
        return error.failure
    except ConfigError as error:
        return Failure("refused", str(error))
    except VersionError as error:
        return Failure("unsupported", str(error))
    except ContextgaugeError as error:
        return Failure("away", str(error))


async def _kafka(services: Services, expected: Expected) -> KafkaFacts:
    brokers = services.brokers
    if isinstance(brokers, Failure):
        # One failure in the place of each fact.
        return KafkaFacts(*[brokers] * _KAFKA_FACTS)
    try:
        bootstrap = await within(_INSPECTION_S, brokers.bootstrap())
        if isinstance(bootstrap, Failure) or all(item.failure for item in bootstrap):
            return KafkaFacts(bootstrap, *[_NO_BROKER] * (_KAFKA_FACTS - 1))
        names = [topic.name for topic in expected.topics]
        cluster = await within(_INSPECTION_S, brokers.cluster(names))
        if isinstance(cluster, Failure):
            return KafkaFacts(bootstrap, *[cluster] * (_KAFKA_FACTS - 1))
        own = (expected.derive_group, expected.project_group)
        groups = await _groups(brokers, (*own, *expected.control_groups, *expected.readers))
        derive_group, project_group = (groups[name] for name in own)
        log = LogFacts(services, expected, cluster)
        keying, dead, newest_record_ms, derive, commands, readers = await asyncio.gather(
            within(_READING_S, log.keying()),
            within(_READING_S, log.dead()),
            within(_READING_S, log.newest_record_ms()),
            within(_READING_S, log.derive(derive_group)),
            within(_READING_S, log.commands()),
            within(_READING_S, log.readers({name: groups[name] for name in expected.readers})),
        )
        others, unsettled = await asyncio.gather(
            _others(brokers, expected, derive), _unsettled(brokers, log, names)
        )
    finally:
        await within(_INSPECTION_S, brokers.stop())
    return KafkaFacts(
        bootstrap,
        cluster,
        derive_group,
        project_group,
        keying,
        dead,
        newest_record_ms,
        derive,
        commands,
        others,
        {name: groups[name] for name in expected.control_groups},
        unsettled,
        list(log.unreadable.values()),
        readers,
    )


async def _groups(brokers: BrokerInspector, names: Iterable[str]) -> Mapping[str, Group | Failure]:
    asked = {name: within(_INSPECTION_S, brokers.group(name)) for name in dict.fromkeys(names)}
    return dict(zip(asked, await asyncio.gather(*asked.values()), strict=True))


async def _unsettled(
    brokers: BrokerInspector, log: LogFacts, topics: Sequence[str]
) -> Mapping[tuple[str, int], Unsettled] | Failure:
    """Return where transactions are open, and whose they are."""
    looks = await asyncio.gather(*[within(_READING_S, log.unsettled(topic)) for topic in topics])
    ends = {
        topic: look
        for topic, look in zip(topics, looks, strict=True)
        if not isinstance(look, Failure) and look
    }
    if not ends:
        failures = [look for look in looks if isinstance(look, Failure)]
        return failures[0] if len(failures) == len(topics) else {}
    places = {topic: sorted(look) for topic, look in ends.items()}
    transactions = await within(_INSPECTION_S, brokers.transactions(places))
    return {
        (topic, number): Unsettled(
            at.stable,
            at.high,
            transactions
            if isinstance(transactions, Failure)
            else transactions.get((topic, number), ()),
        )
        for topic, look in ends.items()
        for number, at in look.items()
    }


async def _others(
    brokers: BrokerInspector, expected: Expected, derive: Mapping[int, WorkerProgress] | Failure
) -> Mapping[str, Group | Failure] | Failure:
    """Return the other groups that have derived the same topics."""
    if isinstance(derive, Failure):
        return derive
    names = sorted({name for part in derive.values() for name in part.groups})
    return {
        name: await within(_INSPECTION_S, brokers.group(name))
        for name in names
        if name != expected.derive_group
    }


async def _redis(
    services: Services, expected: Expected
) -> tuple[StoreFacts | Failure, Views | Failure]:
    if isinstance(services.store, Failure):
        return services.store, services.store
    try:
        store = await within(_INSPECTION_S, services.store.look())
    finally:
        await within(_INSPECTION_S, services.store.stop())
    reader = store if isinstance(store, Failure) else services.views
    if isinstance(reader, Failure):
        return store, reader
    try:
        return store, await within(_READING_S, _views(reader, expected.partitions))
    finally:
        await within(_INSPECTION_S, reader.stop())


async def _ingest(services: Services) -> IngestFacts | Failure:
    if isinstance(services.ingest, Failure):
        return services.ingest
    return await within(_INSPECTION_S, services.ingest.look())


async def _transcripts(services: Services) -> TranscriptFacts | Failure:
    if isinstance(services.transcripts, Failure):
        return services.transcripts
    return await within(_INSPECTION_S, services.transcripts.look())


async def _views(reader: ViewReader, partitions: int) -> Views:
    await reader.start()
    generations = await reader.generations()
    active = await _positions(reader, generations.active, partitions)
    newest_ms: list[int] = []
    sessions = 0
    if generations.active is not None:
        for partition in active:
            ranked = await reader.ranked(generations.active, partition, "recent", 1)
            newest_ms += [int(score) for _, score in ranked if score > 0]
            sessions += await reader.session_count(generations.active, partition)
    building = await _positions(reader, generations.next, partitions)
    return Views(generations, active, building, sessions, max(newest_ms, default=None))


async def _positions(
    reader: ViewReader, generation: int | None, partitions: int
) -> dict[int, ViewPosition | None]:
    """Return a generation's positions. The first one holds the number of partitions."""
    if generation is None:
        return {}
    first = await reader.position(generation, 0)
    count = partitions if first is None else first.partitions
    others = await asyncio.gather(
        *[reader.position(generation, partition) for partition in range(1, count)]
    )
    return dict(enumerate([first, *others]))


async def _project(
    services: Services, expected: Expected, cluster: ClusterFacts | Failure, views: Views | Failure
) -> Mapping[int, WorkerProgress]:
    """Return how far records are projected: the positions in Redis compared to the log."""
    log = LogFacts(services, expected, known(cluster))
    positions = {
        partition: None if position is None else position.offset
        for partition, position in known(views).active.items()
    }
    return await log.progress(expected.events.name, positions)


async def _conversations(
    services: Services, expected: Expected, cluster: ClusterFacts | Failure
) -> Conversations:
    """Return how far conversations are kept, and of which topic. Raises where none are."""
    reader, name = known(services.conversations), expected.messages.name
    log = LogFacts(services, expected, known(cluster))
    try:
        await reader.start()
        marks = {number: await reader.mark(number) for number in log.partitions(name)}
    finally:
        await within(_INSPECTION_S, reader.stop())
    if not any(marks.values()):
        raise UnknownFactError("no conversations are kept")
    current = (await known(services.log).topic_ids([name]))[name]
    ids = {number: mark.topic_id for number, mark in marks.items() if mark is not None}
    progress = await log.progress(
        name, {number: mark and mark.position for number, mark in marks.items()}
    )
    now = "" if current is None or current == NO_ID else current.hex
    former = {number for number, each in ids.items() if each and now and each != now}
    return Conversations(progress, frozenset(former))
