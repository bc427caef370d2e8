"""The OpenTelemetry worker: records of a stream in, events and figures for a backend out.

    records ─▶ events ─▶ the backend accepts them ─▶ figures are recorded ─▶ acknowledged

Until it accepts them, they are tried again and no others are taken. So nothing is lost while it is
away; after a crash, at most what was sent since the last commit is sent again, with the same ids.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from contextgauge.backoff import sleep_until
from contextgauge.errors import RetryError
from schemas.records import Record, SessionInfo
from streams import codec
from streams.codec.otel_events import event_of
from streams.codec.otel_figures import figures_of
from streams.core.bounded_memory import BoundedMemory
from streams.flow.common.lag import Lag
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.retry import RetryLoop
from streams.flow.common.together import together
from streams.flow.control.session_owners import OwnerOf
from streams.ports import Ends, ReceivedRecord, RecordStream
from streams.ports.otel import Figure, OutgoingEvent, TelemetryBackend

GROUP: Final = "contextgauge-otel"
"""The consumer group, behind the settings' prefix."""

_MOST_RUNTIMES: Final = 100_000
"""Sessions whose runtime is remembered: some ten megabytes."""

_REPORT_EVERY_S: Final = 1.0

logger = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class OtelPorts(WorkerPorts):
    """What the worker needs of the outside world.

    `owner_of` looks a session's runtime up. Without events, only figures leave.
    """

    stream: RecordStream
    backend: TelemetryBackend
    owner_of: OwnerOf
    with_events: bool = True


@dataclass(slots=True)
class _Followed:
    """A partition: the next offset to be exported, and the Kafka time of the last one."""

    lag: Lag
    position: int
    last_ms: int | None = None


class OtelWorker:
    """Sends the records of one stream; it is the stream's handler."""

    def __init__(self, ports: OtelPorts) -> None:
        self._ports = ports
        self._retry = RetryLoop(ports, "the collector")
        self._runtimes: BoundedMemory[str, str | None] = BoundedMemory(_MOST_RUNTIMES)
        self._followed: dict[int, _Followed] = {}
        self._sending = asyncio.Lock()

    async def run(self) -> None:
        """Run until stopped. Raises StopError, RetryError, VersionError."""
        await together([self._stream(), self._report()])

    async def _stream(self) -> None:
        end = asyncio.Event()
        streaming = asyncio.create_task(self._ports.stream.run(self, end))
        stopping = asyncio.create_task(self._ports.stop.wait())
        try:
            await asyncio.wait({streaming, stopping}, return_when=asyncio.FIRST_COMPLETED)
            # What is being sent is waited for, or it would be sent again.
            async with self._sending:
                end.set()
            await streaming
        finally:
            for task in (streaming, stopping):
                task.cancel()
            await asyncio.gather(streaming, stopping, return_exceptions=True)

    def assigned(self, positions: Mapping[int, int]) -> None:
        """Begin on these partitions."""
        self.revoked()
        ports = self._ports
        ports.telemetry.count("worker_rebalances", worker="otel")
        ports.telemetry.gauge("worker_partitions", len(positions), worker="otel")
        ports.health.worker("member")
        logger.info("assigned", worker="otel", partitions=sorted(positions))
        for number, position in positions.items():
            lag = Lag(ports, number, "otel_lag_records", "otel_lag_seconds")
            self._followed[number] = _Followed(lag, position)
            ports.health.partition(number, "running")

    def revoked(self) -> None:
        """Release all partitions."""
        for followed in self._followed.values():
            followed.lag.forget()
        self._followed.clear()
        self._ports.health.released()
        self._ports.telemetry.gauge("worker_partitions", 0, worker="otel")

    async def handle(self, arrivals: Sequence[ReceivedRecord]) -> None:
        """Export records, and acknowledge them once they are accepted. Raises VersionError."""
        events: list[OutgoingEvent] = []
        figures: list[Figure] = []
        for arrival in arrivals:
            if arrival.is_current():
                record, logged_ms = _read(arrival), arrival.record.timestamp_ms
                runtime = await self._runtime_of(record)
                event = event_of(record, runtime, logged_ms) if self._ports.with_events else None
                if event is not None:
                    events.append(event)
                figures += figures_of(record, runtime, logged_ms)
        async with self._sending:
            try:
                await self._retry.run(self._send, events, arrivals)
            except RetryError:
                return  # it stops: what is not acknowledged is read again
            current = [arrival for arrival in arrivals if arrival.is_current()]
            if current:  # else the next owner's count
                self._ports.backend.record(figures)
            for arrival in current:
                arrival.acknowledge()
                followed = self._followed[arrival.partition]
                followed.position = arrival.record.offset + 1
                followed.last_ms = arrival.record.timestamp_ms

    async def _send(
        self, events: Sequence[OutgoingEvent], arrivals: Sequence[ReceivedRecord]
    ) -> None:
        """Send events, unless all are another worker's by now. Raises RetryError."""
        if self._ports.stop.is_set():
            raise RetryError("the worker stops")
        if not any(arrival.is_current() for arrival in arrivals):
            return
        telemetry = self._ports.telemetry
        try:
            rejected = await self._ports.backend.send(events)
        except RetryError:
            telemetry.count("otel_events", len(events), outcome="failed")
            raise
        telemetry.count("otel_events", len(events) - rejected, outcome="accepted")
        telemetry.count("otel_events", rejected, outcome="rejected")

    async def _runtime_of(self, record: Record) -> str | None:
        """Return what runs the session: by its own record, else by its view; None if unknown."""
        data = record.data
        if isinstance(data, SessionInfo):
            self._runtimes[data.session_id] = data.runtime
        if data.session_id not in self._runtimes:
            try:
                owner = await self._ports.owner_of(data.session_id)
            except RetryError:
                return None
            if not owner.is_known:
                return None  # its view may come yet
            self._runtimes[data.session_id] = owner.runtime
        return self._runtimes[data.session_id]

    async def _report(self) -> None:
        """Report the lags, also while nothing comes or nothing is accepted."""
        ports = self._ports
        while not ports.stop.is_set():
            for number, followed in self._followed.items():
                behind, position = ports.stream.behind(number), followed.position
                ends = None if behind is None else Ends(position + behind, position + behind)
                followed.lag.report(position, ends, followed.last_ms)
            await sleep_until(ports.clock, ports.stop, _REPORT_EVERY_S)


def _read(arrival: ReceivedRecord) -> Record:
    return codec.from_binary(arrival.record.headers, arrival.record.value or b"")
