"""A command that a runtime carries out itself, steered by its driver.

The runtime publishes its own compaction: nothing is published for it. Done is the command when the
driver says so, or when a boundary of the session is in `agent.messages`.
"""

import asyncio
from collections.abc import Sequence

from contextgauge.errors import PositionError, RetryError
from contextgauge.normalise import normalise
from contextgauge.normalise.signals import Boundary, InputMessage, Response
from schemas.commands import CommandOutcome, CommandPlanned
from streams.core.control.log import UnfinishedCommand
from streams.core.control.messages import Line
from streams.flow.control.command_job import CommandJob, OutcomeError
from streams.flow.control.command_log import CommandLog
from streams.flow.control.command_ports import CommandPorts
from streams.flow.control.tails import lines_of
from streams.ports import Driver, DriverResult, started

_RECORDS = 2_000
_WAIT_S = 1.0


class DriverJob(CommandJob):
    """Has a runtime compact."""

    def __init__(
        self, ports: CommandPorts, log: CommandLog, command: UnfinishedCommand, driver: Driver
    ) -> None:
        super().__init__(ports, log, command)
        self._driver = driver

    def _last_lines(self, outcome: CommandOutcome, reason: str) -> Sequence[Line]:  # noqa: ARG002 -- the runtime publishes its own
        return ()

    async def _carry_out(self) -> None:
        planned = CommandPlanned(
            session_id=self.session_id, command_id=self.command_id, attempt=self._attempt
        )
        await self._log.append([self._step(planned), self._step(self._called(self._driver.name))])
        seeing = asyncio.create_task(self._until_boundary())
        driving = asyncio.create_task(self._drive())
        try:
            async with asyncio.timeout(self._plan.driver_s):
                # One that was left by the worker before may have its boundary already.
                await asyncio.wait({seeing, driving}, return_when=asyncio.FIRST_COMPLETED)
                if driving.done() and driving.result().outcome == "started":
                    await seeing
        except TimeoutError:
            raise OutcomeError(
                "failed", f"{self._driver.name} reported no boundary in {self._plan.driver_s:.0f} s"
            ) from None
        finally:
            for task in (seeing, driving):
                task.cancel()
            await asyncio.gather(seeing, driving, return_exceptions=True)
        if seeing.done() and not seeing.cancelled():
            seeing.result()
        elif driving.result().outcome == "refused":
            raise OutcomeError("refused", driving.result().reason)
        await self._log.append([self._finished("completed", None)])

    async def _drive(self) -> DriverResult:
        """Ask the runtime, again while it is away."""
        backoff = self._backoff()
        request = self._command.request
        while True:
            result = await self._driver.compact(self.session_id, request.instructions)
            if result.outcome != "retry":
                return result
            await backoff.wait()

    async def _until_boundary(self) -> None:
        """Wait for a boundary of the session's main chain, from the command's acceptance on."""
        log, number, topic = self._ports.log, self._log.partition, self._ports.messages_topic
        accepted = self._command.accepted
        async with started(log.reader(topic, [number])) as reader:
            first, _ = await reader.bounds(number)
            reader.seek(number, max(first, accepted.upto_offset if accepted else first))
            while True:
                try:
                    batch = await reader.poll(number, _RECORDS, _WAIT_S)
                except PositionError as error:
                    raise RetryError(f"the session's messages cannot be read: {error}") from error
                if any(is_boundary(line) for _, line in lines_of(batch.records, self.session_id)):
                    return


def is_boundary(line: Line) -> bool:
    """Return whether a message is, or has, a compaction of the main chain."""
    normal = normalise(line, InputMessage(b"", None))
    if normal is None or normal.sidechain or normal.parent_id is not None:
        return False
    return any(
        isinstance(signal, Boundary)
        or (isinstance(signal, Response) and signal.boundary is not None)
        for signal in normal.signals
    )
