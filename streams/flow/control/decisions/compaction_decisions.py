"""Decisions on compacting sessions: records of a stream in, entries of `context.commands` out.

What was requested before, what became of it, and which thresholds were set is read from the log of
commands itself: each partition's trigger follows the partition of the same number. A record is
acknowledged once what it gives rise to is in the log, or put off: what a former worker put off is
read back from the records at the assignment.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

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
from streams.flow.control.decisions.latest_readings import LatestReadings, is_evaluated
from streams.flow.control.session_owners import Owner
from streams.ports import (
    CommandSink,
    Headers,
    Log,
    LogRecord,
    PartitionReader,
    ReceivedRecord,
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


@dataclass(slots=True, eq=False)
class DecisionPartition:
    """A partition, from its assignment until it is revoked."""

    number: int
    position: int
    trigger: Trigger
    commands_position: int | None = None
    """The next entry of the log of commands; None before the first."""
    is_ours: bool = True
    is_restored: asyncio.Event = field(default_factory=asyncio.Event)


class Decisions:
    """Handles the records of one stream by the rules of the service's file."""

    def __init__(
        self, rules: Sequence[SessionRule], max_age_ms: int, topics: Topics, ports: DecisionPorts
    ) -> None:
        self._rules, self._max_age_ms = rules, max_age_ms
        self._topics, self._ports = topics, ports
        self._partitions: dict[int, DecisionPartition] = {}
        self._following: set[asyncio.Task[None]] = set()
        self._failed: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Run until stopped, while the stream runs. Raises what following the log raised."""
        self._failed = asyncio.get_running_loop().create_future()
        stopping = asyncio.create_task(self._ports.stop.wait())
        waits: list[asyncio.Future[Any]] = [stopping, self._failed]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if self._failed.done():
                self._failed.result()
        finally:
            for task in (*waits, *self._following):
                task.cancel()
            await asyncio.gather(*waits, *self._following, return_exceptions=True)

    def assigned(self, positions: Mapping[int, int]) -> None:
        """Take partitions over, and begin to read what was requested in them."""
        self.revoked()
        self._ports.telemetry.count("worker_rebalances", worker="decisions")
        self._ports.telemetry.gauge("worker_partitions", len(positions), worker="decisions")
        self._ports.health.worker("member")
        for number, position in positions.items():
            self._ports.health.partition(number, "restoring")
            trigger = Trigger(ThresholdBook(self._rules), self._max_age_ms)
            partition = self._partitions[number] = DecisionPartition(number, position, trigger)
            task = asyncio.create_task(self._follow(partition))
            self._following.add(task)
            task.add_done_callback(self._following.discard)

    def revoked(self) -> None:
        """Release all partitions: their next worker evaluates what was not acknowledged."""
        for partition in self._partitions.values():
            partition.is_ours = False
            partition.is_restored.set()
        self._partitions.clear()
        self._ports.health.released()
        self._ports.telemetry.gauge("worker_partitions", 0, worker="decisions")

    async def handle(self, arrivals: Sequence[ReceivedRecord]) -> None:
        """Evaluate records, in order."""
        for arrival in arrivals:
            partition = self._partitions.get(arrival.partition)
            if partition is None or not arrival.is_current():
                continue  # of a former assignment: it is read again
            await partition.is_restored.wait()
            if not partition.is_ours or not arrival.is_current():
                continue
            if is_evaluated(arrival.record):
                try:
                    await self._evaluate(partition, arrival)
                except RetryError:
                    if self._ports.stop.is_set():
                        return  # it is not acknowledged, and so evaluated again
                    raise
            arrival.acknowledge()

    async def _evaluate(self, partition: DecisionPartition, arrival: ReceivedRecord) -> None:
        logged_ms, now_ms = arrival.record.timestamp_ms, self._ports.clock.now_ms()
        record = _record_of(arrival.record)
        trigger = partition.trigger
        if trigger.needs_identity(record, logged_ms, now_ms):
            try:
                await self._identify(trigger, record.data.session_id)
            except RetryError:
                trigger.defer(record, logged_ms)  # a rule may exclude its agent or project
                return
        await self._send(trigger.observe(record, logged_ms, now_ms))

    async def _identify(self, trigger: Trigger, session_id: str) -> None:
        owner = await self._ports.owner_of(session_id)
        trigger.identify(
            session_id,
            owner.agent_id,
            owner.cwd,
            self._ports.clock.now_ms(),
            runtime=owner.runtime,
            asks=owner.asks,
        )

    async def _look_again(self, partition: DecisionPartition) -> None:
        """Evaluate what was put off and is due."""
        trigger, clock = partition.trigger, self._ports.clock
        with contextlib.suppress(RetryError):  # it is looked up again soon
            for session_id in trigger.unidentified(clock.now_ms()):
                await self._identify(trigger, session_id)
        if partition.is_ours:
            await self._send(trigger.due(clock.now_ms()))

    async def _send(self, entries: Sequence[CommandEntry]) -> None:
        if entries:
            await RetryLoop(self._ports, "kafka").run(self._ports.sink.send, entries)
        for entry in entries:
            if isinstance(entry.data, CompactionDecided):
                self._ports.telemetry.count("control_decisions", reason=entry.data.reason)

    async def _follow(self, partition: DecisionPartition) -> None:
        """Read the partition's entries, from the first to the last and on."""
        retry = RetryLoop(self._ports, "kafka")
        try:
            while partition.is_ours:
                reader = self._ports.log.reader(self._topics.commands, [partition.number])
                async with started(_Retried(reader, retry)):
                    with contextlib.suppress(RetryError):  # it is read on from where it was
                        await self._read(partition, reader)
                await sleep_until(self._ports.clock, self._ports.stop, _POLL_S)
        except RetryError:
            return  # the worker stops, and this has only given up waiting
        except PositionError as error:
            self._fail(
                RetryError(
                    f"partition {partition.number} of {self._topics.commands} is not what was read "
                    f"({error}): start the worker again, and it is read from its beginning"
                )
            )
        except Exception as error:  # noqa: BLE001 -- `run` raises it
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self._failed is not None and not self._failed.done():
            self._failed.set_exception(error)

    async def _read(self, partition: DecisionPartition, reader: PartitionReader) -> None:
        first, end = await reader.bounds(partition.number)
        position = max(first, partition.commands_position or 0)
        reader.seek(partition.number, position)
        while partition.is_ours:
            if position >= end and not partition.is_restored.is_set():
                await self._recall(partition)
                partition.is_restored.set()
                if partition.is_ours:
                    self._ports.health.partition(partition.number, "running")
                logger.info("read the commands", partition=partition.number, position=position)
            batch = await reader.poll(partition.number, _POLL_ENTRIES, _POLL_S)
            for record in batch.records:
                entry = _entry_of(record.headers, record.value)
                if entry is not None:
                    partition.trigger.note(entry)
            position = partition.commands_position = batch.position
            if partition.is_restored.is_set():
                await self._look_again(partition)

    async def _recall(self, partition: DecisionPartition) -> None:
        """Read back what a former worker evaluated, and may have put off. Raises RetryError."""
        clock, number, trigger = self._ports.clock, partition.number, partition.trigger
        since_ms, latest = clock.now_ms() - self._max_age_ms, LatestReadings()
        async with started(self._ports.log.reader(self._topics.records, [number])) as reader:
            async for batch in read_back(reader, clock, number, since_ms, partition.position):
                if not partition.is_ours:
                    return
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
