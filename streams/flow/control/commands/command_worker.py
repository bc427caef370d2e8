"""The compaction service's worker: partitions are assigned by a stream, and owned one by one.

The stream (Faust's) says which partitions are this worker's. Their records are read by each
partition's owner itself, from the log: what a stream repeats, skips or no longer fetches after a
rebalance is without effect. A watch ends partitions that make no progress; they are taken over
again, as after every failure.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog

from contextgauge.backoff import Backoff, sleep_until
from contextgauge.errors import FencedError, RetryError
from streams.flow.control.commands.command_partition import CommandPartition
from streams.flow.control.commands.command_ports import CommandPorts
from streams.flow.control.commands.planning import Planner
from streams.ports import ReceivedRecord

_MOST_FENCED: Final = 3
"""Takeovers in a row that end in another worker's. More mean that this one is no member of the
group any more and does not know it: a new process does."""

logger = structlog.get_logger()


class StalledError(RetryError):
    """A partition made no progress for too long."""


class CommandWorker:
    """Owns the partitions that a stream assigns."""

    def __init__(self, ports: CommandPorts) -> None:
        self._ports = ports
        self._planner = Planner(ports.plan.pool_size)
        self._owned: dict[int, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._failed: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Run until stopped. Raises StopError, RetryError, or the error of any task."""
        ports = self._ports
        self._failed = asyncio.get_running_loop().create_future()
        end = asyncio.Event()
        streaming = asyncio.create_task(ports.stream.run(self, end))
        stopping = asyncio.create_task(ports.stop.wait())
        tasks: list[asyncio.Future[Any]] = [streaming, self._failed]
        try:
            await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            if ports.stop.is_set():
                # What is being written is written to its end; open commands are the next owner's.
                self.revoked()
                await asyncio.gather(*self._ending, return_exceptions=True)
                end.set()
                await streaming
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            self.revoked()
            for each in (stopping, *tasks):
                each.cancel()
            await asyncio.gather(stopping, *tasks, *self._ending, return_exceptions=True)
            self._planner.close()

    def assigned(self, positions: Mapping[int, int]) -> None:
        """Take partitions over, and no others."""
        self.revoked()
        telemetry = self._ports.telemetry
        telemetry.count("worker_rebalances", worker="compaction")
        telemetry.gauge("worker_partitions", len(positions), worker="compaction")
        self._ports.health.worker("member")
        logger.info("assigned", partitions=sorted(positions))
        for number in positions:
            telemetry.count("worker_fenced", 0, partition=str(number))
            task = self._owned[number] = asyncio.create_task(self._own(number))
            task.add_done_callback(self._ended)

    def revoked(self) -> None:
        """Release all partitions: their next owner goes on from the log."""
        for task in self._owned.values():
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        self._owned.clear()
        self._ports.telemetry.gauge("worker_partitions", 0, worker="compaction")

    async def handle(self, arrivals: Sequence[ReceivedRecord]) -> None:
        """Acknowledge records: the position is for lag tools only, and never read."""
        for arrival in arrivals:
            arrival.acknowledge()
            arrival.release()

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and self._failed is not None and not self._failed.done():
            self._failed.set_exception(error)

    async def _own(self, number: int) -> None:
        """Own a partition, again after failures, until it is revoked."""
        ports, fenced = self._ports, 0
        backoff = Backoff(ports.clock, ports.stop)
        while not ports.stop.is_set():
            partition = CommandPartition(ports, number, self._planner)
            began_s = ports.clock.monotonic_s()
            try:
                await self._watched(partition)
            except FencedError as error:
                ports.telemetry.count("worker_fenced", partition=str(number))
                logger.warning("fenced", partition=number, error=str(error))
                ran_s = ports.clock.monotonic_s() - began_s
                fenced = 1 if ran_s > ports.fenced_pause_s else fenced + 1
                if fenced > _MOST_FENCED:
                    raise RetryError(
                        f"another worker takes partition {number} over again and again: this one "
                        "is no longer a member of the group"
                    ) from error
                await sleep_until(ports.clock, ports.stop, ports.fenced_pause_s)
            except RetryError as error:
                if partition.is_running:
                    backoff.reset()
                ports.health.away(partition, "kafka", str(error))
                ports.telemetry.count("worker_retries", service="kafka")
                logger.warning(
                    "trying again", error=str(error), pause_s=backoff.next_s, partition=number
                )
                await backoff.wait()
                ports.health.back(partition)

    async def _watched(self, partition: CommandPartition) -> None:
        """Run a partition for as long as it makes progress."""
        clock = self._ports.clock
        running = asyncio.ensure_future(partition.run())
        try:
            while not running.done():
                await asyncio.wait(
                    {running, watch := asyncio.ensure_future(clock.sleep(self._ports.look_s))},
                    return_when=asyncio.FIRST_COMPLETED,
                )
                watch.cancel()
                if not running.done() and partition.silent_s() > self._ports.stalled_s:
                    raise StalledError(
                        f"partition {partition.number} made no progress for "
                        f"{self._ports.stalled_s:.0f} s"
                    )
            running.result()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
