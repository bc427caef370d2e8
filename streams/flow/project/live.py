"""Live projection of one partition: keeps the generation that readers use up to date.

A generation that cannot be followed, because documents are lost or have a former format, is
replaced: the next one is begun.
"""

from collections import deque
from collections.abc import Sequence

import structlog

from contextgauge.errors import FormerViewsError, LostError, PositionError, ReseekError
from streams import codec
from streams.flow.common.lag import Lag
from streams.flow.project.derivation_lag import DerivationLag
from streams.flow.project.partition import PartitionProjector
from streams.flow.project.polling import PartitionPoller, ProjectPorts
from streams.ports import GroupReader, LogRecord, ProjectorHeartbeat

_HEARTBEAT_S = 1.0
"""How often readers learn that a partition is followed; they allow for ten of these."""

_GAUGES: tuple[str, ...] = ("project_position", "project_unsettled_records")
"""Reported while a generation is followed, in addition to the lag."""

_RIVALS_S = 60.0
"""For how long it counts that another projector wrote in this one's place."""

logger = structlog.get_logger()


class LiveProjection:
    """Follows the active generation on one partition, and begins the next where it cannot."""

    def __init__(
        self,
        ports: ProjectPorts,
        reader: GroupReader,
        poller: PartitionPoller,
        derivation: DerivationLag,
    ) -> None:
        self._ports, self._reader, self._poller = ports, reader, poller
        self._derivation = derivation
        self._unusable: int | None = None
        """The generation that is known not to be followed on this partition."""
        self._heartbeat_s = ports.clock.monotonic_s() - _HEARTBEAT_S
        self._displaced: PartitionProjector | None = None
        """The last projector, if the stored position was not its own any more."""
        self._projector: PartitionProjector | None = None
        self._rivals_s: deque[float] = deque()
        self._lag = Lag(ports, poller.partition, "project_lag_records", "project_lag_seconds")

    async def run(self) -> None:
        """Follow whatever generation is active, until cancelled."""
        generations, partition = self._ports.generations, self._poller.partition
        try:
            while True:
                active = generations.current.active
                if active is None or active == self._unusable:
                    self._poller.is_followed = False
                    self._ports.health.partition(
                        partition, "building", "readers wait for the next generation"
                    )
                    if active is not None and generations.current.next is None:
                        # The replacement that was begun is gone: its key was deleted.
                        await self._ports.retry.run(generations.begin_next)
                    else:
                        await generations.wait_for_change()
                elif active == self._poller.building:
                    await self._poller.build_ended.wait()
                else:
                    try:
                        await self._follow(active)
                    except (LostError, FormerViewsError, PositionError) as error:
                        await self._replace(active, error)
                    except ReseekError as error:
                        self._displaced = self._projector
                        await self._poller.pause_before_rereading(error)
        finally:
            for gauge in _GAUGES:
                self._ports.telemetry.forget(gauge, partition=self._poller.label)
            self._lag.forget()

    async def _follow(self, generation: int) -> None:
        ports, poller, partition = self._ports, self._poller, self._poller.partition
        projector = self._projector = poller.projector(generation, strict=True)
        displaced, self._displaced = self._displaced, None
        if not await projector.open():
            raise LostError("the partition's position is gone")
        if displaced is not None:
            await self._report_rival(displaced, projector)
        foreign = await self._poller.foreign_log(projector.stored.log)
        if foreign:
            raise LostError(foreign)
        self._reader.seek(partition, projector.position)
        self._reader.resume(partition)
        self._poller.is_followed = True
        ports.health.partition(partition, "running")
        logger.info(
            "following", partition=partition, generation=generation, position=projector.position
        )
        while ports.generations.current.active == generation:
            batch = await poller.poll(self._reader, projector.position, ports.config.batch_records)
            if ports.generations.current.active == generation:
                await poller.write(projector, batch)
                await self._report(projector, batch.records)

    async def _report_rival(self, former: PartitionProjector, now: PartitionProjector) -> None:
        """Report that another projector went on from where the former one of this worker was."""
        stored, ports = now.stored, self._ports
        is_own = stored.writer == former.writer or stored.build != former.stored.build
        if is_own or stored.offset <= former.position:
            return
        if not self._rivals():
            # Once: while it goes on, the doctor says how often.
            logger.warning(
                "another projector writes the same views: only one may use a key prefix",
                partition=self._poller.partition,
            )
        self._rivals_s.append(ports.clock.monotonic_s())
        heartbeat = stored.heartbeat or ProjectorHeartbeat(ports.clock.now_ms(), None, 0)
        rivals = heartbeat._replace(rivals=self._rivals())
        await ports.retry.run(now.report_heartbeat, rivals)

    def _rivals(self) -> int:
        since_s = self._ports.clock.monotonic_s() - _RIVALS_S
        while self._rivals_s and self._rivals_s[0] < since_s:
            self._rivals_s.popleft()
        return len(self._rivals_s)

    async def _replace(
        self, generation: int, error: LostError | FormerViewsError | PositionError
    ) -> None:
        """Begin the next generation, if the one that cannot be followed is still active."""
        generations, until_done = self._ports.generations, self._ports.retry.run
        await until_done(generations.refresh)
        if generations.current.active != generation:
            return
        self._unusable = generation
        context = {"partition": self._poller.partition, "generation": generation}
        if isinstance(error, FormerViewsError):
            logger.info("views of a former format: rebuilding them from the log", **context)
        else:
            self._ports.telemetry.count("project_losses", partition=self._poller.label)
            logger.error(
                "the views are not what the log comes to: rebuilding them from it",
                error=str(error),
                **context,
            )
        await until_done(generations.begin_next)

    async def _report(self, projector: PartitionProjector, records: Sequence[LogRecord]) -> None:
        """Report how far the views are: metrics, and the heartbeat that readers judge them by.

        Only live projection reports: a generation that is built meanwhile delays no reader.
        """
        ports, label = self._ports, self._poller.label
        telemetry, now_ms = ports.telemetry, ports.clock.now_ms()
        ends = self._reader.ends(self._poller.partition)
        end = None if ends is None else ends.high
        telemetry.gauge("project_position", projector.position, partition=label)
        if ends is not None:
            unsettled = max(ends.high - ends.stable, 0)
            telemetry.gauge("project_unsettled_records", unsettled, partition=label)
        newest_ms = records[-1].timestamp_ms if records else None
        lag_ms = self._lag.report(projector.position, ends, newest_ms)
        if newest_ms is not None:
            telemetry.observe("project_delay_seconds", max(now_ms - newest_ms, 0) / 1000)
            # The Kafka time of the message that the record was derived from.
            message_ms = codec.header_number(dict(records[0].headers).get("src_timestamp"))
            if message_ms is not None:
                telemetry.observe("project_age_seconds", max(now_ms - message_ms, 0) / 1000)
        now_s = ports.clock.monotonic_s()
        if now_s - self._heartbeat_s >= _HEARTBEAT_S:
            self._heartbeat_s = now_s
            # Views without a lag of their own are as late as the records are.
            lag_ms = max(lag_ms, self._derivation.ms(self._poller.partition))
            heartbeat = ProjectorHeartbeat(now_ms, end, lag_ms, self._rivals())
            await ports.retry.run(projector.report_heartbeat, heartbeat)
