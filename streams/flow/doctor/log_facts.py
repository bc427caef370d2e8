"""Reads facts from the topics: the newest messages and dead letters, and what waits.

Reads without a group and commits nothing, so no worker is affected.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from contextgauge.errors import VersionError
from contextgauge.normalise import normalise, session_of
from contextgauge.normalise.signals import InputMessage
from contextgauge.normalise.spellings import differing
from contextgauge.normalise.unread_lines import unread_line
from contextgauge.partitioner import partition_of
from schemas.commands import (
    CommandAccepted,
    CommandCalled,
    CommandFinished,
    CommandPlanned,
    CompactionDecided,
    CompactRequested,
)
from schemas.messages import DeadLetter
from streams import codec
from streams.codec.commands import read_entry
from streams.core.control.reasons import NO_DRIVER, NO_EFFECT
from streams.flow.common.unreadable import poll_past
from streams.flow.derive.deriver import text_of
from streams.flow.derive.stored_sessions import POSITION_KEY
from streams.flow.doctor.facts import (
    AHEAD_MS,
    DeadLetters,
    Expected,
    Keying,
    MiskeyedMessage,
    Miskeying,
    OpenCommands,
    ReaderFacts,
    Services,
    UnknownFactError,
    WorkerProgress,
    known,
)
from streams.ports import Batch, Ends, LogRecord, PartitionReader, UnreadableBatch, started
from streams.ports.inspection import (
    ClusterFacts,
    Failure,
    Group,
    TopicFacts,
)

_T = TypeVar("_T")

_SAMPLE_S = 5.0
"""For a topic's newest messages: some hundred take milliseconds, of 9 MiB each, seconds."""

_SAMPLED_RECORDS = 2_000
_SAMPLED_OF_PARTITION = 200
"""How many of the newest records are examined, in all and of a partition."""

_POLLED_RECORDS = 50
_POLL_S = 0.5
_FETCH_S = 0.05
"""A fetch at the end of a partition takes half of it."""

_LAST_OFFSETS = 32
"""Transaction markers take offsets: the newest record is this close to the end."""

_STATE_OFFSETS = (32, 500, 10_000)
"""Every transaction ends with the position, so it is just before the end, however many sessions
the topic holds. Only aborted transactions may follow it."""


_COMMAND_OFFSETS = 2_000
"""Of a partition: a command has a dozen entries, and one for each half minute that it takes."""

_HEADERS = 8
"""Header names of a wrongly keyed message that are shown."""

_HEADER_CHARACTERS = 40


class KeyingSample:
    """Counts messages by kind."""

    def __init__(self, partitions: int, limit: int, now_ms: int) -> None:
        self._partitions, self._limit, self._now_ms = partitions, limit, now_ms
        self.keying = Keying()

    def add(self, partition: int, record: LogRecord) -> None:
        """Count a message of a partition."""
        keying, time_ms = self.keying, record.timestamp_ms
        keying.looked += 1
        keying.newest_ms = max(keying.newest_ms or time_ms, time_ms)
        if record.created:
            ahead_ms = time_ms - self._now_ms
            keying.ahead += ahead_ms > AHEAD_MS
            keying.most_ahead_ms = max(keying.most_ahead_ms, ahead_ms)
        else:
            keying.newest_append_ms = max(keying.newest_append_ms or time_ms, time_ms)
        kind = self._kind(partition, record)
        if kind is None:
            return
        setattr(keying, kind, getattr(keying, kind) + 1)
        newest = keying.newest_wrong
        if newest is None or time_ms >= newest.timestamp_ms:
            names = {name[:_HEADER_CHARACTERS] for name, _ in record.headers[:_HEADERS]}
            keying.newest_wrong = MiskeyedMessage(
                partition, record.offset, time_ms, tuple(sorted(names))
            )

    def _kind(self, partition: int, record: LogRecord) -> Miskeying | None:
        """Return what is wrong with a message's key or partition."""
        value = record.value or b""
        body = codec.decode(value, self._limit)
        if isinstance(body, DeadLetter):
            return None  # it is dead for another reason, whatever its key
        if (unread := unread_line(body)) is not None:
            self.keying.unread[unread] = self.keying.unread.get(unread, 0) + 1
        for pair in differing(body):
            self.keying.differing[pair] = self.keying.differing.get(pair, 0) + 1
        key, own = text_of(record.key), session_of(body, None)
        session = session_of(body, key)
        if session is None:
            return None if normalise(body, InputMessage(value)) is None else "without_key"
        right = partition_of(session, self._partitions) == partition
        if key is not None and (own is None or key == own):
            return None if right else "other_partitioner"
        if right:
            return "right_by_chance"
        return "without_key" if key is None else "other_key"


class _Stored(NamedTuple):
    """A stored position, and who stored it."""

    position: int | None
    groups: frozenset[str]


def _stored(value: bytes) -> _Stored:
    document = codec.loads(value)
    if not isinstance(document, dict):
        return _Stored(None, frozenset())
    position, log = document.get("position"), document.get("log")
    group = log.get("group") if isinstance(log, dict) else None
    return _Stored(
        position if isinstance(position, int) else None,
        frozenset({group} if isinstance(group, str) else ()),
    )


class LogFacts:
    """Reads the topics. Raises the log's errors, and UnknownFactError where a topic is missing."""

    def __init__(self, services: Services, expected: Expected, cluster: ClusterFacts) -> None:
        self._log, self._clock = services.log, services.clock
        self._expected, self._cluster = expected, cluster
        self.unreadable: dict[tuple[str, int, int], UnreadableBatch] = {}
        """Batches that were passed over, by topic, partition and first offset; without bytes."""

    def _passed(self, batch: UnreadableBatch) -> None:
        place = (batch.topic, batch.partition, batch.first_offset)
        self.unreadable[place] = batch._replace(content=b"")

    async def keying(self) -> Keying:
        """Return how the newest messages are keyed."""
        topic = self._expected.messages.name
        sample = KeyingSample(
            len(self._topic(topic).partitions),
            self._expected.message_limit_bytes,
            self._clock.now_ms(),
        )
        await self._newest(topic, self._sampled(topic), sample.add)
        return sample.keying

    async def dead(self) -> DeadLetters:
        """Return the newest dead letters."""
        topic = self._expected.dead.name
        reasons: Counter[str] = Counter()
        times_ms: list[int] = []

        def add(_: int, record: LogRecord) -> None:
            reasons[text_of(dict(record.headers).get("dead_reason")) or "unknown"] += 1
            times_ms.append(record.timestamp_ms)

        left = await self._newest(topic, self._sampled(topic), add)
        looked = reasons.total()
        return DeadLetters(looked, looked + left, dict(reasons), max(times_ms, default=None))

    async def newest_record_ms(self) -> int | None:
        """Return the timestamp of the newest derived record."""
        times_ms: list[int] = []
        await self._newest(
            self._expected.events.name,
            _LAST_OFFSETS,
            lambda _, record: times_ms.append(record.timestamp_ms),
        )
        return max(times_ms, default=None)

    async def commands(self) -> OpenCommands:
        """Return which of the newest commands have no outcome."""
        begun: dict[str, int] = {}
        finished: set[str] = set()
        reasons: dict[str, str] = {}

        def add(_: int, record: LogRecord) -> None:
            try:
                data = read_entry(record.headers, record.value or b"").data
            except VersionError:
                return
            if isinstance(data, CommandFinished):
                finished.add(data.command_id)
                if data.outcome == "completed":
                    reasons.pop(data.session_id, None)
            elif isinstance(data, CompactionDecided):
                if data.reason in {NO_EFFECT, NO_DRIVER}:
                    reasons[data.session_id] = data.reason
            elif isinstance(
                data, CompactRequested | CommandAccepted | CommandPlanned | CommandCalled
            ):
                begun.setdefault(data.command_id, record.timestamp_ms)

        await self._newest(self._expected.commands.name, _COMMAND_OFFSETS, add)
        times_ms = [time_ms for name, time_ms in begun.items() if name not in finished]
        undone, idle = (list(reasons.values()).count(each) for each in (NO_EFFECT, NO_DRIVER))
        return OpenCommands(len(times_ms), min(times_ms, default=None), undone, idle)

    async def derive(self, group: Group | Failure) -> Mapping[int, WorkerProgress]:
        """Return how far messages are derived: the positions stored with the state.

        The group commits the same positions, which stand in where the state has none.
        """
        topic, state = self._expected.messages.name, self._expected.state.name
        committed = group if isinstance(group, Failure) else group.committed
        positions: dict[int, int | None] = {}
        if not isinstance(committed, Failure):
            positions |= {
                number: place for (name, number), place in committed.items() if name == topic
            }
        stored: dict[int, _Stored] = {}
        if isinstance(self._cluster.topics.get(state), TopicFacts):
            stored = await self._each(state, self._stored_position)
            positions |= {
                place: last.position for place, last in stored.items() if last.position is not None
            }
        progress = await self.progress(topic, positions)
        none = _Stored(None, frozenset())
        return {
            place: replace(part, groups=stored.get(place, none).groups)
            for place, part in progress.items()
        }

    async def readers(self, groups: Mapping[str, Group | Failure]) -> Mapping[str, ReaderFacts]:
        """Return how far records are read by the groups that ever began."""
        topic = self._expected.events.name
        by_group: dict[str, ReaderFacts] = {}
        for name, group in groups.items():
            committed = known(known(group).committed)
            begun = {number: offset for (of, number), offset in committed.items() if of == topic}
            if begun:
                progress = await self.progress(topic, begun)
                own = {number: progress[number] for number in begun if number in progress}
                by_group[name] = ReaderFacts(known(group), own)
        return by_group

    async def progress(
        self, topic: str, positions: Mapping[int, int | None]
    ) -> Mapping[int, WorkerProgress]:
        """Return how far a topic is read, given the positions."""

        async def look(reader: PartitionReader, partition: int) -> WorkerProgress:
            first, end = await reader.bounds(partition)
            position = positions.get(partition)
            begin = first if position is None else max(position, first)
            waiting_ms = None
            if begin < end:
                reader.seek(partition, begin)
                batch = await poll_past(reader, partition, 1, _POLL_S, self._passed)
                waiting_ms = batch.records[0].timestamp_ms if batch.records else None
                if not batch.records and batch.position >= end:
                    end = begin  # nothing but transaction markers
            ends = await self._ends(reader, partition, max(end, first))
            unsettled = 0 if ends is None else ends.high - ends.stable
            return WorkerProgress(first, end, position, waiting_ms, unsettled=unsettled)

        return await self._each(topic, look)

    async def unsettled(self, topic: str) -> Mapping[int, Ends]:
        """Return the ends of the partitions in which transactions are open."""

        async def look(reader: PartitionReader, partition: int) -> Ends | None:
            _, end = await reader.bounds(partition)
            return await self._ends(reader, partition, end)

        looks = await self._each(topic, look)
        return {number: ends for number, ends in looks.items() if ends and ends.high > ends.stable}

    async def _ends(self, reader: PartitionReader, partition: int, end: int) -> Ends | None:
        """Return where a partition ends, with what is not settled: a fetch reports it."""
        until_s = self._clock.monotonic_s() + _POLL_S
        reader.seek(partition, end)
        while (ends := reader.ends(partition)) is None and self._clock.monotonic_s() < until_s:
            await poll_past(reader, partition, 1, _FETCH_S, self._passed)
        return ends

    async def _stored_position(self, reader: PartitionReader, partition: int) -> "_Stored":
        until_s = self._clock.monotonic_s() + _SAMPLE_S
        for offsets in _STATE_OFFSETS:
            first, end = await reader.bounds(partition)
            values: list[bytes] = []
            reached = first
            async for batch in self._batches(reader, partition, max(first, end - offsets), until_s):
                reached = batch.position
                values += [
                    record.value
                    for record in batch.records
                    if record.key == POSITION_KEY and record.value is not None
                ]
            if reached < end:
                break  # a newer position may follow
            if values:
                stored = [_stored(value) for value in values]
                groups = frozenset[str]().union(*[each.groups for each in stored])
                return stored[-1]._replace(groups=groups)
        return _Stored(None, frozenset())

    async def _newest(self, topic: str, offsets: int, add: Callable[[int, LogRecord], None]) -> int:
        """Pass on the records of each partition's last offsets, as far as time allows.

        Return how many offsets are left: some of them may be transaction markers, not records.
        """

        async def look(reader: PartitionReader, partition: int) -> int:
            first, end = await reader.bounds(partition)
            until_s = self._clock.monotonic_s() + _SAMPLE_S
            begin = reached = max(first, end - offsets)
            async for batch in self._batches(reader, partition, begin, until_s):
                reached = batch.position
                for record in batch.records:
                    add(partition, record)
            return (begin - first) + max(0, end - reached)

        return sum((await self._each(topic, look)).values())

    async def _batches(
        self, reader: PartitionReader, partition: int, position: int, until_s: float
    ) -> AsyncIterator[Batch]:
        """Yield a partition's records from a position to the end, as far as time allows."""
        _, end = await reader.bounds(partition)
        reader.seek(partition, position)
        while position < end and self._clock.monotonic_s() < until_s:
            batch = await poll_past(reader, partition, _POLLED_RECORDS, _POLL_S, self._passed)
            position = batch.position
            yield batch

    async def _each(
        self, topic: str, look: Callable[[PartitionReader, int], Awaitable[_T]]
    ) -> dict[int, _T]:
        """Examine all partitions that have a leader, concurrently, with one reader."""
        partitions = self.partitions(topic)
        async with started(known(self._log).reader(topic, partitions)) as reader:
            results = await asyncio.gather(*[look(reader, number) for number in partitions])
        return dict(zip(partitions, results, strict=True))

    def _sampled(self, topic: str) -> int:
        return min(_SAMPLED_OF_PARTITION, max(_SAMPLED_RECORDS // len(self.partitions(topic)), 1))

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions that have a leader."""
        parts = self._topic(topic).partitions
        readable = [part.partition for part in parts if part.leader is not None]
        if not readable:
            raise UnknownFactError(f"no partition of {topic} has a leader")
        return readable

    def _topic(self, topic: str) -> TopicFacts:
        facts = known(self._cluster.topics.get(topic))
        if facts is None:
            raise UnknownFactError(f"the topic {topic} does not exist")
        return facts
