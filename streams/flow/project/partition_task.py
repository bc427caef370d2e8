"""One partition while a worker has it: following the active generation, building the next."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import structlog

from contextgauge.errors import LostError, PositionError, ReseekError
from streams.flow.common.generations import Watch
from streams.flow.common.lag import Lag
from streams.flow.common.provenance import source_timestamp_ms
from streams.flow.common.retry import Patience
from streams.flow.project.config import ProjectConfig
from streams.flow.project.partition import PartitionProjector, Place
from streams.ports import (
    Batch,
    Clock,
    GaugeName,
    Generations,
    GroupReader,
    Health,
    Log,
    LogRecord,
    PartitionReader,
    Telemetry,
    Told,
    ViewStore,
)

_BREATH_S = 0.1
"""Between a mismatch and reading again: two that write to one partition must not race."""

_BESIDE_RECORDS = 50
"""Records folded at once into a generation beside the active one: some milliseconds, for which
records that readers wait for may have to wait, several times on their way."""

_HELD_S = 0.05
"""How often a build that is at its limit asks whether it may go on: a comparison waits for it."""

_TELL_S = 1.0
"""How often readers are told that a partition is followed; they wait ten of these."""

_GAUGES: tuple[GaugeName, ...] = ("project_position", "project_unsettled_records")
"""What is told of a partition while its generation is followed, beside its lag."""

logger = structlog.get_logger()


class Tools(NamedTuple):
    """What every partition's task works with."""

    log: Log
    store: ViewStore
    config: ProjectConfig
    telemetry: Telemetry
    health: Health
    clock: Clock
    patience: Patience
    watch: Watch


class ProjectTask:
    """The work on one partition. Each of its methods runs until it is cancelled.

    RetryErrors that they raise are the log's: the store is waited for.
    """

    def __init__(self, tools: Tools, reader: GroupReader, partition: int, partitions: int) -> None:
        self._tools = tools
        self._reader = reader
        self.partition = self._partition = partition
        self._partitions = partitions
        self._label = str(partition)
        self._lost: int | None = None
        """The generation whose documents of this partition are known to be lost."""
        self._lost_building = ("", "")
        """The last build in which documents were lost, and how."""
        self._log_lacks: str | None = None
        """The build in which the log itself was found to lack beginnings of sessions."""
        self._is_following = False
        """Whether the partition is followed for readers, beside what is built."""
        self._building: int | None = None
        self._built = asyncio.Event()
        self._verified_s = tools.clock.monotonic_s()
        self._told_s = self._verified_s - _TELL_S
        self._lag = Lag(
            tools.telemetry, tools.clock, partition, "project_lag_records", "project_lag_seconds"
        )
        self.has_read = False
        """Whether the log has answered: a batch came and what it changes is written."""

    async def follow(self) -> None:
        """Keep the active generation up to date."""
        watch = self._tools.watch
        try:
            while True:
                active = watch.seen.active
                if active is None or active == self._lost:
                    self._is_following = False
                    self._tools.health.partition(
                        self._partition, "building", "readers wait for the next generation"
                    )
                    if active is not None and watch.seen.next is None:
                        # The one that was begun is gone, by whatever: somebody deleted its key.
                        await self._tools.patience.until_done(watch.begin)
                    else:
                        await watch.change()
                elif active == self._building:
                    # It was activated a moment ago; one at a time writes to it.
                    await self._built.wait()
                else:
                    await self._follow_or_lose(active)
        finally:
            for gauge in _GAUGES:
                self._tools.telemetry.forget(gauge, partition=self._label)
            self._lag.forget()

    async def _follow_or_lose(self, generation: int) -> None:
        try:
            await self._follow(generation)
        except LostError as error:
            await self._lose(generation, error)
        except ReseekError as error:
            await self._mismatch(error)

    async def _follow(self, generation: int) -> None:
        watch = self._tools.watch
        projector = self._projector(generation, strict=True)
        if not await projector.open():
            raise LostError("the partition's position is gone")
        self._reader.seek(self._partition, projector.position)
        self._reader.resume(self._partition)
        self._is_following = True
        self._tools.health.partition(self._partition, "running")
        logger.info(
            "following",
            partition=self._partition,
            generation=generation,
            position=projector.position,
        )
        while watch.seen.active == generation:
            await self._step(projector, self._reader, lambda: watch.seen.active == generation)

    async def _lose(self, generation: int, error: LostError) -> None:
        """Begin the next generation, if this one is still the active one."""
        watch = self._tools.watch
        await self._tools.patience.until_done(watch.look)
        if watch.seen.active != generation:
            return
        self._lost = generation
        self._tools.telemetry.count("project_losses", partition=self._label)
        logger.error(
            "documents are gone from the view store: building them anew from the log",
            partition=self._partition,
            generation=generation,
            error=str(error),
        )
        await self._tools.patience.until_done(watch.begin)

    async def build(self) -> None:
        """Build whatever generation is next; begin one where none is active."""
        watch, patience = self._tools.watch, self._tools.patience
        while True:
            if watch.seen.next is not None:
                await self._build(watch.seen.next, watch.seen.build)
            elif watch.seen.active is None:
                await patience.until_done(watch.begin)
            else:
                await watch.change()

    async def _build(self, generation: int, build: str) -> None:
        tools = self._tools
        self._building = generation
        self._built.clear()
        reader = tools.log.reader(tools.config.events_topic, [self._partition])
        try:
            with tools.health.step("open", self._partition, tools.config.open_timeout_s):
                await reader.start()
                begin, end = await reader.bounds(self._partition)
            await self._build_from(reader, generation, build, begin, end)
        except LostError as error:
            self._judge(build, error)
            await self._drop(generation)
            await self._mismatch(error)
        except ReseekError as error:
            await self._mismatch(error)
        finally:
            await reader.stop()
            self._building = None
            self._built.set()

    def _judge(self, build: str, error: LostError) -> None:
        """Tell a loss of the store, which building again mends, from one of the log."""
        self._tools.telemetry.count("project_losses", partition=self._label)
        before, self._lost_building = self._lost_building, (build, str(error))
        if before == self._lost_building:
            logger.error(
                "the log lacks records: sessions begin in between",
                partition=self._partition,
                error=str(error),
            )
            self._log_lacks = build

    async def _build_from(
        self, reader: PartitionReader, generation: int, build: str, begin: int, end: int
    ) -> None:
        """Build a generation from the log's `begin`; at `end` it has caught up."""
        tools, partition, watch = self._tools, self._partition, self._tools.watch

        def wanted() -> bool:
            return (watch.seen.next, watch.seen.build) == (generation, build)

        projector = self._projector(generation, strict=self._log_lacks != build)
        if not await projector.open(build):
            # Whatever is there under this generation's keys is of another build: an emptied
            # store's numbers begin again.
            await self._drop(generation)
            await projector.begin(begin, build)
            if not await projector.open(build):
                raise ReseekError("another worker begins the partition")
        reader.seek(partition, projector.position)
        logger.info(
            "building",
            partition=partition,
            generation=generation,
            position=projector.position,
            end=end,
        )
        until_done = tools.patience.until_done
        caught_up = asked = False
        while wanted():
            if not caught_up and projector.position >= end:
                await until_done(partial(tools.store.caught_up, generation, partition, build))
                caught_up = True
            elif caught_up and not asked and not (watch.seen.held and watch.seen.active):
                await until_done(partial(watch.activate, generation, build, self._partitions))
                asked = True
            else:
                if not self._is_following:
                    tools.health.partition(
                        partition,
                        "building",
                        "readers wait for the next generation",
                        done=projector.position,
                        total=end,
                    )
                limit = await self._limit(generation) if caught_up else None
                await self._step(projector, reader, wanted, limit)

    async def _limit(self, generation: int) -> int | None:
        """Return how far a build that has caught up may go: while it is compared."""
        tools = self._tools
        if not tools.watch.seen.held:
            return None
        position = await tools.patience.until_done(
            partial(tools.store.position, generation, self._partition)
        )
        return None if position is None else position.limit

    async def _drop(self, generation: int) -> None:
        drop = partial(self._tools.store.drop, generation, self._partition)
        await self._tools.patience.until_done(drop)

    async def clean(self) -> None:
        """Delete generations that are not used, once no reader can be in them."""
        tools, watch = self._tools, self._tools.watch
        while True:
            seen = watch.seen
            unused = await self._unused(seen)
            if unused:
                await tools.clock.sleep(tools.config.drop_after_s)
                # Much may have happened: of an emptied store the numbers begin again.
                await tools.patience.until_done(watch.look)
                for generation in unused:
                    if watch.seen.active == seen.active and watch.seen.next != generation:
                        await self._drop(generation)
            if watch.seen == seen:
                await watch.change()

    async def _unused(self, seen: Generations) -> list[int]:
        """Return generations beside the active one: the former, and a build that was given up."""
        if seen.active is None:
            return []
        beside = (seen.active - 1, seen.active + 1)
        return [
            generation
            for generation in beside
            if generation not in (0, seen.next) and await self._is_there(generation)
        ]

    async def _is_there(self, generation: int) -> bool:
        is_there = partial(self._tools.store.is_there, generation, self._partition)
        return await self._tools.patience.until_done(is_there)

    def _projector(self, generation: int, *, strict: bool) -> PartitionProjector:
        place = Place(generation, self._partition, self._partitions)
        tools = self._tools
        return PartitionProjector(
            tools.store, tools.patience, place, strict=strict, idle_ms=tools.config.idle_ms
        )

    async def _step(
        self,
        projector: PartitionProjector,
        reader: PartitionReader,
        wanted: Callable[[], bool],
        limit: int | None = None,
    ) -> None:
        """Poll once and write what came, up to the limit, if it is still wanted then."""
        tools, config, label = self._tools, self._tools.config, self._label
        if limit is not None and projector.position >= limit:
            await tools.clock.sleep(_HELD_S)
            return
        most = config.batch_records
        if reader is not self._reader and tools.watch.seen.active is not None:
            most = min(most, _BESIDE_RECORDS)
        try:
            with tools.health.step("poll", self._partition, config.poll_timeout_s):
                batch = await reader.poll(self._partition, most, config.poll_timeout_s)
        except PositionError as error:
            raise PositionError(
                f"the views' position {projector.position} of {config.events_topic}-"
                f"{self._partition} is not among its records: they were deleted before they were "
                "projected, or the topic was created anew. Give this topic's views a "
                "CONTEXTGAUGE_KEY_PREFIX of their own; they are built anew there"
            ) from error
        if not wanted():
            return
        if limit is not None and batch.position > limit:
            batch = Batch([record for record in batch.records if record.offset < limit], limit)
            reader.seek(self._partition, limit)
        began, writes, documents = (
            tools.clock.monotonic_s(),
            projector.writes,
            projector.documents,
        )
        with tools.health.step("write", self._partition) as step:
            records = await projector.apply(batch, step.again)
        self.has_read = True
        if projector.writes > writes:
            tools.telemetry.count("project_writes", projector.writes - writes, partition=label)
            changed = projector.documents - documents
            tools.telemetry.count("project_documents", changed, partition=label)
        now_s = tools.clock.monotonic_s()
        if not batch.records and now_s - self._verified_s >= config.watch_s:
            self._verified_s = now_s
            await projector.verify()
        if records:
            tools.telemetry.observe("project_write_seconds", now_s - began)
            tools.telemetry.observe("project_batch_records", records)
            tools.telemetry.count("project_records", records, partition=label)
        if reader is self._reader:
            lag_ms = self._tell_age(projector.position, batch.records)
            await self._tell_readers(projector, lag_ms)

    async def _tell_readers(self, projector: PartitionProjector, lag_ms: int) -> None:
        """Tell readers that the views are at work on, and how far behind: their only sign of it."""
        tools = self._tools
        now_s = tools.clock.monotonic_s()
        if now_s - self._told_s < _TELL_S:
            return
        self._told_s = now_s
        ends = self._reader.ends(self._partition)
        told = Told(tools.clock.now_ms(), None if ends is None else ends.high, lag_ms)
        await tools.patience.until_done(partial(projector.tell, told))

    def _tell_age(self, position: int, records: Sequence[LogRecord]) -> int:
        """Tell how far the active generation has come; what is built beside it ages nobody.

        Returns the lag in milliseconds.
        """
        telemetry, label = self._tools.telemetry, self._label
        now_ms = self._tools.clock.now_ms()
        telemetry.gauge("project_position", position, partition=label)
        ends = self._reader.ends(self._partition)
        if ends is not None:
            unsettled = max(ends.high - ends.stable, 0)
            telemetry.gauge("project_unsettled_records", unsettled, partition=label)
        lag_ms = self._lag.tell(
            position,
            None if ends is None else ends.high,
            records[-1].timestamp_ms if records else None,
        )
        if records:
            age_ms = now_ms - records[-1].timestamp_ms
            telemetry.observe("project_delay_seconds", max(age_ms, 0) / 1000)
            told_ms = source_timestamp_ms(records[0].headers)
            if told_ms is not None:
                telemetry.observe("project_age_seconds", max(now_ms - told_ms, 0) / 1000)
        return lag_ms

    async def _mismatch(self, error: Exception) -> None:
        """Say that the partition is read again, after a breath: another worker may be at it."""
        self._tools.telemetry.count("project_mismatches", partition=self._label)
        logger.warning("reading again", partition=self._partition, error=str(error))
        await self._tools.clock.sleep(_BREATH_S)
