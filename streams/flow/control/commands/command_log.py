"""A partition of `context.commands`, as its owner has it: fenced, read to its end, and written.

    start the producer (an older owner is fenced, its transaction settled)
      → read the partition to its end → follow it, and write steps in transactions

What the owner writes is folded once it is committed. Everything else is read: by a reader of its
own, as Faust may skip records and stop fetching. After any failure of a commit the log is spent:
only what a new one reads after its start is certain.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, get_args

import structlog

from contextgauge import json_codec
from contextgauge.errors import PositionError, RetryError, VersionError
from contextgauge.partitioner import key_bytes, partition_of
from schemas.commands import CommandData, CommandEntry, CommandFinished, CommandStep, ThresholdsSet
from schemas.messages import OBSERVED_HEADER, OBSERVED_LIVE
from streams.codec.commands import KNOWN_TYPES, read_entry, write_entry
from streams.core.control.log import SessionControl, empty, fold
from streams.core.control.messages import Line
from streams.core.control.plan import CompactedSession
from streams.core.control.thresholds import Subject
from streams.flow.common.ranges import read_range
from streams.flow.control.commands.command_ports import CommandPorts
from streams.ports import (
    SCATTERED,
    Approval,
    LogRecord,
    NewRecord,
    PartitionReader,
    TransactionalProducer,
    started,
)

_READ_RECORDS: Final = 1_000
_READ_S: Final = 1.0
_OWN_TYPES: Final = b"contextgauge.command."

_STEPS: Final = get_args(CommandStep)

logger = structlog.get_logger()


class CommandLog:
    """The log of one partition, from its takeover until it is lost."""

    def __init__(self, ports: CommandPorts, partition: int) -> None:
        self._ports, self.partition = ports, partition
        self.sessions: dict[str, SessionControl] = {}
        self.thresholds: dict[tuple[str, str], CommandEntry] = {}
        """Of agents and projects, by scope and name."""
        self.position = 0
        """The next offset to be read."""
        self.read_s = ports.clock.monotonic_s()
        """When it was read last, or began to be, whether anything came or not."""
        self.written = 0
        """The end after the owner's last transaction."""
        self.changed: dict[str, None] = {}
        """Sessions that have changed since the owner looked, the first one first."""
        self.unstored: dict[str, None] = {}
        """Sessions whose views have changed since they were stored, the first one first."""
        self.news = asyncio.Event()
        """Set where something was folded, for who acts on it."""
        self.to_store = asyncio.Event()
        """Set where something was folded, for who stores it."""
        self._advanced = asyncio.Condition()
        self._turn = asyncio.Lock()
        self._producer: TransactionalProducer | None = None
        self._reader: PartitionReader | None = None
        self._failure: Exception | None = None
        self.failed = asyncio.Event()

    @asynccontextmanager
    async def owned(self) -> AsyncIterator[None]:
        """Take the partition over, and read it to its end. Raises RetryError or StopError."""
        ports, number = self._ports, self.partition
        topic = ports.commands_topic
        producer = ports.log.transactional_producer(f"{ports.transactional_prefix}{number}")
        async with started(producer), started(ports.log.reader(topic, [number])) as reader:
            first, end = await reader.bounds(number)
            self.position = first
            async for batch in read_range(reader, ports.clock, number, first, end):
                self._take(batch.records, batch.position)
                await asyncio.sleep(0)
            self._producer, self._reader = producer, reader
            reader.seek(number, self.position)
            try:
                yield
            finally:
                self._producer = self._reader = None

    def state(self, session_id: str) -> SessionControl:
        """Return what is known of a session."""
        return self.sessions.get(session_id) or empty(session_id)

    def facts(self, subject: Subject, window: int | None = None) -> CompactedSession:
        """Return what is known of a session, with the thresholds that were set for it."""
        names = [("agent", subject.agent_id), *(("project", name) for name in subject.projects())]
        by_name = [self.thresholds.get((scope, name)) for scope, name in names if name is not None]
        entries: list[CommandData | None] = [each.data for each in by_name if each is not None]
        entries.append(self.state(subject.session_id).view.thresholds)
        thresholds = [each for each in entries if isinstance(each, ThresholdsSet)]
        return CompactedSession(*subject, window, thresholds)

    async def follow(self) -> None:
        """Read what comes, until cancelled. Raises RetryError or VersionError."""
        reader = self._reader
        if reader is None:
            raise RetryError("the partition's log is not owned")
        while True:
            try:
                batch = await reader.poll(self.partition, _READ_RECORDS, _READ_S)
            except PositionError as error:  # all of it is read again by the next takeover
                where = f"{self._ports.commands_topic}-{self.partition}"
                raise RetryError(f"{where} is not what was read: {error}") from error
            self._take(batch.records, batch.position)
            async with self._advanced:
                self._advanced.notify_all()

    async def reached(self, offset: int) -> None:
        """Wait until everything before an offset is read."""
        async with self._advanced:
            await self._advanced.wait_for(lambda: self.position >= offset)

    async def append(
        self,
        entries: Sequence[CommandEntry],
        lines: Sequence[Line] = (),
        approve: Approval | None = None,
    ) -> bool:
        """Write entries, and lines of a session to `agent.messages`, all or nothing.

        Returns whether they are written: false where they were not approved, or are steps of a
        command that has its outcome. One that has begun is
        not cut off by a cancellation: what became of it is known before anything else is written.
        Raises FencedError, RetryError; the log is spent then.
        """
        return await self._whole(lambda: (entries, lines), approve)

    async def append_made(
        self, make: Callable[[], tuple[Sequence[CommandEntry], Sequence[Line]]]
    ) -> bool:
        """Write what `make` returns once nothing else is being written, as `append` does.

        What was under way before, such as an announcement, is folded by then.
        """
        return await self._whole(make, None)

    async def _whole(
        self,
        make: Callable[[], tuple[Sequence[CommandEntry], Sequence[Line]]],
        approve: Approval | None,
    ) -> bool:
        writing = asyncio.ensure_future(self._append(make, approve))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait([writing])
            if not writing.cancelled():
                writing.exception()  # it has the log lost already
            raise

    async def _append(
        self,
        make: Callable[[], tuple[Sequence[CommandEntry], Sequence[Line]]],
        approve: Approval | None,
    ) -> bool:
        ports, topic = self._ports, self._ports.commands_topic
        async with self._turn:
            producer = self._producer
            if self._failure is not None or producer is None:
                raise RetryError(f"the partition's log is lost: {self._failure}")
            entries, lines = make()
            if any(self._is_over(entry.data) for entry in entries):
                return False
            records = [self._message(line) for line in lines]
            records += [self._entry(entry) for entry in entries]
            try:
                with ports.health.step("commit", self.partition, ports.plan.check_s):
                    ends = await producer.commit(records, self._checked(approve))
            except BaseException as error:
                self._lose(error if isinstance(error, Exception) else RetryError("cut off"))
                raise
            if ends is None:
                return False
            self.written = max(self.written, ends.get((topic, self.partition), 0))
            now_ms = ports.clock.now_ms()
            for entry in entries:
                self._fold(entry, now_ms)
                if isinstance(entry.data, CommandFinished):
                    ports.telemetry.count("control_commands", outcome=entry.data.outcome)
            return True

    def _checked(self, approve: Approval | None) -> Approval:
        """Return what approves a transaction only where the log goes on as it was read."""

        async def approved(begins: Mapping[tuple[str, int], int]) -> bool:
            topic, known = self._ports.commands_topic, max(self.position, self.written)
            begin = begins.get((topic, self.partition), known)
            if SCATTERED < begin < known:
                raise RetryError(
                    f"{topic}-{self.partition} ended at {known} and goes on at {begin}: the topic "
                    "was deleted and created again, or lost its end"
                )
            return approve is None or await approve(begins)

        return approved

    def _is_over(self, data: CommandData) -> bool:
        """Return whether an entry is a step of a command that has its outcome already."""
        return isinstance(data, _STEPS) and self.state(data.session_id).of(data.command_id) is None

    def raise_loss(self) -> None:
        """Raise what made the log unusable, if anything did."""
        if self._failure is not None:
            raise self._failure

    def _lose(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        self.failed.set()

    def _message(self, line: Line) -> NewRecord:
        return NewRecord(
            self._ports.messages_topic,
            self.partition,
            key_bytes(str(line["session_id"])),
            json_codec.dumps(line),
            ((OBSERVED_HEADER, OBSERVED_LIVE),),
        )

    def _entry(self, entry: CommandEntry) -> NewRecord:
        headers, value = write_entry(entry)
        session_id = session_of(entry.data)
        key = None if session_id is None else key_bytes(session_id)
        return NewRecord(self._ports.commands_topic, self.partition, key, value, headers)

    def _take(self, records: Sequence[LogRecord], position: int) -> None:
        for record in records:
            if record.offset < self.position:
                continue
            try:
                entry = read_entry(record.headers, record.value or b"")
            except VersionError as error:
                if _is_of_later_build(record):
                    raise
                logger.warning("not a command: skipped", offset=record.offset, reason=str(error))
                continue
            self._fold(entry, record.timestamp_ms)
        self.position = max(self.position, position)
        self.read_s = self._ports.clock.monotonic_s()

    def _fold(self, entry: CommandEntry, logged_ms: int) -> None:
        data = entry.data
        session_id = session_of(data)
        if session_id is None:
            if isinstance(data, ThresholdsSet):
                self.thresholds[data.scope, data.name] = entry
            return
        if partition_of(session_id, self._ports.partitions) != self.partition:
            logger.warning("a command is on the wrong partition: skipped", kind=data.kind)
            return
        before = self.state(session_id)
        after = fold(before, entry, logged_ms)
        if after is not before:
            self.sessions[session_id] = after
            self.changed[session_id] = self.unstored[session_id] = None
            self.news.set()
            self.to_store.set()


def session_of(data: CommandData) -> str | None:
    """Return the session that an entry is of; None for thresholds of an agent or a project."""
    if isinstance(data, ThresholdsSet):
        return data.name if data.scope == "session" else None
    return data.session_id


def _is_of_later_build(record: LogRecord) -> bool:
    """Return whether an entry is of this project, of a type or version that this build lacks."""
    for name, value in record.headers:
        if name == "ce_type" and value is not None:
            return value.startswith(_OWN_TYPES) and value not in KNOWN_TYPES
    return False
