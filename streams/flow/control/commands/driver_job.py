"""A command that a runtime carries out itself, steered by its driver.

    read what the session published since the acceptance ─▶ ask the runtime ─▶ wait for a boundary
                     │ a boundary is there: done
                     └ a compaction has begun (asked by an owner before): wait for its end first

The runtime publishes its own compaction: nothing is published for it. Done is the command when the
driver says so, or when a boundary of the session is in `agent.messages`.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from contextgauge.errors import PositionError
from contextgauge.normalise import normalise
from contextgauge.normalise.signals import (
    Boundary,
    CompactionRefused,
    CompactionStatus,
    InputMessage,
    Response,
)
from schemas.commands import CommandOutcome, CommandPlanned
from streams.core.control.log import UnfinishedCommand
from streams.core.control.messages import Line
from streams.flow.common.unreadable import poll_past
from streams.flow.control.commands.command_job import CommandJob, OutcomeError
from streams.flow.control.commands.command_log import CommandLog
from streams.flow.control.commands.command_ports import CommandPorts
from streams.flow.control.commands.message_tail import lines_of
from streams.ports import Driver, DriverResult, started

LOST_S: Final = 300.0
"""A compaction that is silent for so long is lost (R15)."""

_BOUNDARY, _BEGUN, _ENDED = "boundary", "begun", "ended"
_RECORDS = 2_000
_WAIT_S = 1.0
"""Of one poll: while the runtime compacts, its messages are watched."""


class DriverJob(CommandJob):
    """Has a runtime compact."""

    def __init__(
        self, ports: CommandPorts, log: CommandLog, command: UnfinishedCommand, driver: Driver
    ) -> None:
        super().__init__(ports, log, command)
        self._driver = driver
        self._is_free = asyncio.Event()
        """Set where everything was read, and no compaction is under way."""

    def hurry(self) -> None:
        """Do nothing: a runtime takes its own time."""

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
        """Ask the runtime, again while it is away; not for what it has begun already."""
        await self._is_free.wait()
        backoff = self._backoff()
        request = self._command.request
        while True:
            result = await self._driver.compact(self.session_id, request.instructions)
            if result.outcome != "retry":
                return result
            await backoff.wait()

    async def _until_boundary(self) -> None:
        """Wait for a boundary of the session's main chain, from the command's acceptance on.

        Raises OutcomeError where its messages are no longer in the log.
        """
        log, number, topic = self._ports.log, self._log.partition, self._ports.messages_topic
        clock, accepted = self._ports.clock, self._command.accepted
        begun_s: float | None = None
        async with started(log.reader(topic, [number])) as reader:
            first, end = await reader.bounds(number)
            position = max(first, accepted.upto_offset if accepted else first)
            if position > end:
                raise OutcomeError(
                    "failed", f"offset {position} is beyond the end of {topic}-{number}: {end}"
                )
            reader.seek(number, position)
            while True:
                silent_s = None if begun_s is None else clock.monotonic_s() - begun_s
                if position >= end and (silent_s is None or silent_s > LOST_S):
                    self._is_free.set()
                try:
                    batch = await poll_past(reader, number, _RECORDS, _WAIT_S)
                except PositionError as error:
                    raise OutcomeError(
                        "failed", f"the session's messages cannot be read: {error}"
                    ) from error
                position = batch.position
                for _, line in lines_of(batch.records, self.session_id):
                    signs = signs_of(line)
                    if _BOUNDARY in signs:
                        return
                    if signs:
                        begun_s = clock.monotonic_s() if _BEGUN in signs else None


def signs_of(line: Line) -> frozenset[str]:
    """Return what a message says of a compaction of the main chain."""
    normal = normalise(line, InputMessage(b"", None))
    if normal is None or normal.sidechain or normal.parent_id is not None:
        return frozenset()
    signs = set()
    for signal in normal.signals:
        if isinstance(signal, Boundary) or (
            isinstance(signal, Response) and signal.boundary is not None
        ):
            signs.add(_BOUNDARY)
        elif isinstance(signal, CompactionStatus) and signal.event == "COMPACTING":
            signs.add(_BEGUN)
        elif isinstance(signal, CompactionRefused):
            signs.add(_ENDED)
    return frozenset(signs)
