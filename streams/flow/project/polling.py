"""Polling one partition and writing its batches: the step that live projection and builds share."""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import structlog

from contextgauge.errors import PositionError, VersionError
from streams import codec
from streams.flow.common.generations import GenerationTracker
from streams.flow.common.log_place import evidence
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.retry import RetryLoop
from streams.flow.common.unreadable import counted_passed, poll_past
from streams.flow.project.config import ProjectConfig
from streams.flow.project.partition import PartitionProjector, ViewPartition
from streams.ports import Batch, Log, LogPlace, LogRecord, PartitionReader, ViewStore, started

_REREAD_PAUSE_S = 0.1
"""Between a mismatch and reading again: two workers that write to one partition must not race."""

logger = structlog.get_logger()


def _record_id(record: LogRecord) -> str:
    """Return a record's id, empty if it is none of ours."""
    try:
        return codec.from_binary(record.headers, record.value or b"").id
    except VersionError:
        return ""


def _new_writer() -> str:
    return secrets.token_hex(8)


@dataclass(frozen=True, kw_only=True)
class ProjectPorts(WorkerPorts):
    """What the work on every partition uses."""

    log: Log
    store: ViewStore
    config: ProjectConfig

    new_writer: Callable[[], str] = _new_writer
    """Returns a name that no other projector writes under."""

    @cached_property
    def retry(self) -> RetryLoop:
        """Retries what the store is asked for."""
        return RetryLoop(self, "redis")

    @cached_property
    def generations(self) -> GenerationTracker:
        """The store's generations, as this worker knows them."""
        return GenerationTracker(self.store, self.clock, self.config.instance_id)


class PartitionPoller:
    """Polls one of `partitions` and writes its batches, with the health steps and metrics of both.

    Live projection and the build share it, and know of each other through it.

    RetryErrors that it raises are the log's; the store is retried.
    """

    def __init__(
        self, ports: ProjectPorts, partition: int, partitions: int, topic_id: str = ""
    ) -> None:
        self.partition, self.label = partition, str(partition)
        self.has_written = False
        """Whether a batch was read from the log and its changes written."""
        self.is_followed = False
        """Whether live projection serves readers; else they wait for the next generation."""
        self.building: int | None = None
        """The generation that the build writes to. One that was just activated still belongs to
        its build until that has ended: one at a time writes to it."""
        self.build_ended = asyncio.Event()
        self._ports = ports
        self.partitions = partitions
        self.topic_id = topic_id
        self._passed = counted_passed(ports.telemetry)

    def projector(self, generation: int, *, strict: bool) -> PartitionProjector:
        """Return what folds the partition into a generation; it is not open yet."""
        ports, place = self._ports, ViewPartition(generation, self.partition, self.partitions)
        projector = PartitionProjector(
            ports.store,
            ports.retry,
            place,
            strict=strict,
            idle_ms=ports.config.idle_ms,
            writer=ports.new_writer(),
            topic_id=self.topic_id,
        )
        projector.checked_s = ports.clock.monotonic_s()
        return projector

    async def foreign_log(self, place: LogPlace) -> str:
        """Return why the log is not the one that views were folded from; empty if it may be.

        Raises RetryError while the broker is away.
        """
        ports = self._ports
        if not place.is_of(self.topic_id):
            return "the topic was deleted and created again"
        with ports.health.step("open", self.partition, ports.config.open_timeout_s):
            async with started(
                ports.log.reader(ports.config.events_topic, [self.partition])
            ) as reader:
                seen = await evidence(
                    reader, ports.clock, self.partition, place, _record_id, self._passed
                )
        if seen == "beyond_end":
            return f"the log ends before offset {place.offset}, the last record in the views"
        if seen == "other":
            return f"record {place.offset} of the log is not the one that is in the views"
        return ""

    async def poll(self, reader: PartitionReader, position: int, max_records: int) -> Batch:
        """Return the records at `position`, where the reader stands. Raises PositionError."""
        config = self._ports.config
        try:
            with self._ports.health.step("poll", self.partition, config.poll_timeout_s):
                return await poll_past(
                    reader, self.partition, max_records, config.poll_timeout_s, self._passed
                )
        except PositionError as error:
            raise PositionError(
                f"the views' position {position} of {config.events_topic}-{self.partition} is out "
                "of range: its records were deleted before they were projected, or the topic was "
                "recreated"
            ) from error

    async def write(self, projector: PartitionProjector, batch: Batch) -> None:
        """Write what a batch changes. Raises ReseekError, LostError or VersionError."""
        ports, telemetry, label = self._ports, self._ports.telemetry, self.label
        writes, documents = projector.writes, projector.documents
        started_s = ports.clock.monotonic_s()
        with ports.health.step("write", self.partition) as step:
            records = await projector.apply(batch, step.restart)
        self.has_written = True
        if projector.writes > writes:
            telemetry.count("project_writes", projector.writes - writes, partition=label)
            telemetry.count("project_documents", projector.documents - documents, partition=label)
        now_s = ports.clock.monotonic_s()
        if now_s - projector.checked_s >= ports.config.watch_s:
            # An idle partition writes nothing that would reveal a store that went back in time, and
            # a busy one does not read what it lost.
            projector.checked_s = now_s
            await projector.verify()
        if records:
            telemetry.observe("project_write_seconds", now_s - started_s)
            telemetry.observe("project_batch_records", records)
            telemetry.count("project_records", records, partition=label)

    async def drop(self, generation: int, build: str | None = None) -> bool:
        """Delete the partition's documents of a generation; see `ViewStore.drop`."""
        ports = self._ports
        return await ports.retry.run(ports.store.drop, generation, self.partition, build)

    async def pause_before_rereading(self, error: Exception) -> None:
        """Report that the partition is read again from the stored position, after a pause."""
        self._ports.telemetry.count("project_mismatches", partition=self.label)
        logger.warning("reading again", partition=self.partition, error=str(error))
        await self._ports.clock.sleep(_REREAD_PAUSE_S)
