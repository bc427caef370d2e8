"""The compaction service's worker: partitions are assigned by a stream, and owned one by one.

The stream (Faust's) says which partitions are this worker's. Their records are read by each
partition's owner itself, from the log: what a stream repeats, skips or no longer fetches after a
rebalance is without effect. A watch ends partitions that make no progress; they are taken over
again, as after every failure.
"""

import asyncio
from typing import Final

import structlog

from contextgauge.backoff import Backoff, sleep_until
from contextgauge.errors import FencedError, RetryError
from streams.flow.control.commands.command_partition import CommandPartition
from streams.flow.control.commands.command_ports import CommandPorts
from streams.flow.control.commands.planning import Planner
from streams.flow.control.control_loop import AssignedPartition, ControlLoop, PartitionHandler

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

    async def run(self) -> None:
        """Run until stopped. Raises StopError, RetryError, or the error of any task."""
        try:
            await ControlLoop("compaction", self._ports.stream, [self._opened], self._ports).run()
        finally:
            self._planner.close()

    def _opened(self, partition: AssignedPartition) -> "OwnedPartition":
        return OwnedPartition(partition, self._ports, self._planner)


class OwnedPartition(PartitionHandler):
    """A partition, from its assignment until it is revoked: owned again after failures.

    Its records are acknowledged at once: the position is for lag tools only, and never read.
    """

    def __init__(self, partition: AssignedPartition, ports: CommandPorts, planner: Planner) -> None:
        super().__init__(partition)
        self._ports, self._planner = ports, planner
        ports.telemetry.count("worker_fenced", 0, partition=str(partition.number))

    async def run(self) -> None:
        """Own the partition until it is revoked. Raises StopError, or RetryError in the end."""
        self.is_ready.set()
        ports, number, fenced = self._ports, self.partition.number, 0
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
