"""Decisions on compacting sessions: records of a stream in, entries of `context.commands` out.

What was requested before, what became of it, and which thresholds were set is read from the log of
commands itself: each partition's trigger follows the partition of the same number. A record is
acknowledged once what it gives rise to is in the log, or put off: what a former worker put off is
read back from the records at the assignment.
"""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import structlog

from contextgauge.backoff import sleep_until
from contextgauge.errors import PositionError, RetryError, VersionError
from schemas.commands import CommandEntry, CompactionDecided
from schemas.records import Record
from streams import codec
from streams.codec.commands import read_entry
from streams.core.control.thresholds import SessionRule, ThresholdBook
from streams.core.control.trigger import Trigger
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.ranges import read_back
from streams.flow.common.retry import RetryLoop
from streams.flow.control.control_loop import AssignedPartition, PartitionHandler, PendingRecord
from streams.flow.control.decisions.latest_readings import LatestReadings, is_evaluated
from streams.flow.control.session_owners import Owner
from streams.ports import (
    CommandSink,
    Headers,
    Log,
    LogRecord,
    PartitionReader,
    started,
)

GROUP: Final = "contextgauge-decisions"
"""The consumer group, behind the settings' prefix; the rule guard reads with it."""

_POLL_ENTRIES: Final = 2_000
_POLL_S: Final = 1.0

logger = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class DecisionPorts(WorkerPorts):
    """What decisions need of the outside world. `log` has both topics."""

    log: Log
    sink: CommandSink
    owner_of: Callable[[str], Awaitable[Owner]]


class Topics(NamedTuple):
    """Where decisions are made by, and where they are written."""

    records: str
    commands: str


class Decisions:
    """Decides by the rules of the service's file."""

    def __init__(
        self, rules: Sequence[SessionRule], max_age_ms: int, topics: Topics, ports: DecisionPorts
    ) -> None:
        self._rules, self._max_age_ms = rules, max_age_ms
        self._topics, self._ports = topics, ports

    def opened(self, partition: AssignedPartition) -> "DecisionPartition":
        """Begin on a partition."""
        trigger = Trigger(ThresholdBook(self._rules), self._max_age_ms)
        return DecisionPartition(partition, trigger, self._max_age_ms, self._topics, self._ports)


class DecisionPartition(PartitionHandler):
    """A partition, from its assignment until it is revoked."""

    def __init__(
        self,
        partition: AssignedPartition,
        trigger: Trigger,
        max_age_ms: int,
        topics: Topics,
        ports: DecisionPorts,
    ) -> None:
        super().__init__(partition)
        self._number, self._position = partition.number, partition.position
        self._trigger, self._max_age_ms = trigger, max_age_ms
        self._topics, self._ports = topics, ports
        self._commands_position = 0
        """The next entry of the log of commands."""
        ports.health.partition(partition.number, "restoring")

    async def handle(self, pending: PendingRecord) -> None:
        """Evaluate a record."""
        if is_evaluated(pending.arrival.record):
            await self._evaluate(pending.arrival.record)

    async def _evaluate(self, logged: LogRecord) -> None:
        logged_ms, now_ms = logged.timestamp_ms, self._ports.clock.now_ms()
        record, trigger = _record_of(logged), self._trigger
        if trigger.needs_identity(record, logged_ms, now_ms):
            try:
                await self._identify(record.data.session_id)
            except RetryError:
                trigger.defer(record, logged_ms)  # a rule may exclude its agent or project
                return
        await self._send(trigger.observe(record, logged_ms, now_ms))

    async def _identify(self, session_id: str) -> None:
        owner = await self._ports.owner_of(session_id)
        self._trigger.identify(
            session_id,
            owner.agent_id,
            owner.cwd,
            self._ports.clock.now_ms(),
            runtime=owner.runtime,
            asks=owner.asks,
        )

    async def _look_again(self) -> None:
        """Evaluate what was put off and is due."""
        trigger, clock = self._trigger, self._ports.clock
        with contextlib.suppress(RetryError):  # it is looked up again soon
            for session_id in trigger.unidentified(clock.now_ms()):
                await self._identify(session_id)
        await self._send(trigger.due(clock.now_ms()))

    async def _send(self, entries: Sequence[CommandEntry]) -> None:
        if entries:
            await RetryLoop(self._ports, "kafka").run(self._ports.sink.send, entries)
        for entry in entries:
            if isinstance(entry.data, CompactionDecided):
                self._ports.telemetry.count("control_decisions", reason=entry.data.reason)

    async def run(self) -> None:
        """Read the partition's entries, from the first to the last and on.

        Raises RetryError where the log of commands is not what was read.
        """
        retry, ports = RetryLoop(self._ports, "kafka"), self._ports
        try:
            while True:
                reader = ports.log.reader(self._topics.commands, [self._number])
                async with started(_Retried(reader, retry)):
                    with contextlib.suppress(RetryError):  # it is read on from where it was
                        await self._follow(reader)
                await sleep_until(ports.clock, ports.stop, _POLL_S)
        except PositionError as error:
            raise RetryError(
                f"partition {self._number} of {self._topics.commands} is not what was read "
                f"({error}): start the worker again, and it is read from its beginning"
            ) from error

    async def _follow(self, reader: PartitionReader) -> None:
        first, end = await reader.bounds(self._number)
        position = max(first, self._commands_position)
        reader.seek(self._number, position)
        while True:
            if position >= end and not self.is_ready.is_set():
                await self._recall()
                self.is_ready.set()
                self._ports.health.partition(self._number, "running")
                logger.info("read the commands", partition=self._number, position=position)
            batch = await reader.poll(self._number, _POLL_ENTRIES, _POLL_S)
            for record in batch.records:
                entry = _entry_of(record.headers, record.value)
                if entry is not None:
                    self._trigger.note(entry)
            position = self._commands_position = batch.position
            if self.is_ready.is_set():
                await self._look_again()

    async def _recall(self) -> None:
        """Read back what a former worker evaluated, and may have put off. Raises RetryError."""
        clock, number, trigger = self._ports.clock, self._number, self._trigger
        since_ms, latest = clock.now_ms() - self._max_age_ms, LatestReadings()
        async with started(self._ports.log.reader(self._topics.records, [number])) as reader:
            async for batch in read_back(reader, clock, number, since_ms, self._position):
                for each in batch.records:
                    if latest.take(each):
                        trigger.recall(_record_of(each), each.timestamp_ms)
        for each in latest.records():
            trigger.recall(_record_of(each), each.timestamp_ms)
        trigger.restored(since_ms)


class _Retried:
    """A reader whose start is tried until it succeeds."""

    def __init__(self, reader: PartitionReader, retry: RetryLoop) -> None:
        self._reader, self._retry = reader, retry

    async def start(self) -> None:
        await self._retry.run(self._reader.start)

    async def stop(self) -> None:
        await self._reader.stop()


def _entry_of(headers: Headers, value: bytes | None) -> CommandEntry | None:
    """Read an entry; None for one that this build cannot read: it decides nothing here."""
    try:
        return read_entry(headers, value or b"")
    except VersionError as error:
        logger.warning("an entry of the log of commands is left out", error=str(error))
        return None


def _record_of(record: LogRecord) -> Record:
    return codec.from_binary(record.headers, record.value or b"")
