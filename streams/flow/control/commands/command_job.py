"""One command, from its acceptance to its one outcome.

What is common to all: it is examined and accepted, has a deadline, may be cancelled, and ends with
exactly one `CommandFinished`. Who carries it out, the service or a runtime's driver, is elsewhere.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

import structlog

from contextgauge.backoff import Backoff
from contextgauge.compaction.engine.compaction_receipt import Receipt
from contextgauge.errors import FencedError, RetryError, StopError
from contextgauge.json_codec import dumps, loads
from schemas.commands import (
    CommandCalled,
    CommandData,
    CommandEntry,
    CommandFinished,
    CommandOutcome,
)
from schemas.records import Json
from streams.codec.cloudevents import rfc3339
from streams.core.control.log import UnfinishedCommand
from streams.core.control.messages import AttemptMessages, Line, step_id
from streams.core.control.short_receipts import short_receipt
from streams.flow.control.commands.command_log import CommandLog
from streams.flow.control.commands.command_ports import CommandPorts

_RECEIPT_BYTES: Final = 128 * 1024
"""A receipt that is larger goes into the log of commands without its lists of message ids."""

logger = structlog.get_logger()


class OutcomeError(Exception):
    """A command ends, and this is how."""

    def __init__(self, outcome: CommandOutcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome: CommandOutcome = outcome
        self.reason = reason


class CommandJob(ABC):
    """Carries an accepted command out, in attempts that count on from what the log says."""

    def __init__(self, ports: CommandPorts, log: CommandLog, command: UnfinishedCommand) -> None:
        self._ports, self._log, self._plan = ports, log, ports.plan
        self._command = command
        self.session_id, self.command_id = command.request.session_id, command.id
        self._attempt = command.attempt + 1
        self._cancel = asyncio.Event()
        self._beats = 0

    def cancel(self) -> None:
        """Have the command cancelled, unless its outcome is being written."""
        self._cancel.set()

    @abstractmethod
    def hurry(self) -> None:
        """Have the command carried out at once: it has become urgent."""

    @abstractmethod
    async def _carry_out(self) -> None:
        """Work until the outcome is written, or raise it as OutcomeError."""

    @abstractmethod
    def _last_lines(self, outcome: CommandOutcome, reason: str) -> Sequence[Line]:
        """Return what is published where the conversation stays as it was."""

    async def run(self) -> None:
        """Run to the outcome. Raises what makes the log unusable, FencedError or RetryError."""
        now_ms, command = self._ports.clock.now_ms(), self._command
        left_s = self._plan.command_s - (now_ms - command.accepted_ms) / 1_000
        working = asyncio.create_task(self._worked())
        cancelling = asyncio.create_task(self._cancel.wait())
        pausing = asyncio.create_task(self._ports.clock.sleep(max(left_s, 0)))
        try:
            await asyncio.wait({working, cancelling, pausing}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                end = working.result()
            elif cancelling.done():
                why = self._state.cancelled if self._state else None
                end = OutcomeError("cancelled", why or "cancelled on request")
            else:
                limit = f"{self._plan.command_s:.0f} s"
                end = OutcomeError("failed", f"not done within {limit}: {self._doing()}")
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            # Its own outcome may have been committed meanwhile: then that is the one.
            self._log.raise_loss()
            if end is not None and self._state is not None:
                await self._finish(end)
        finally:
            for task in (working, cancelling, pausing):
                task.cancel()
            await asyncio.gather(working, cancelling, pausing, return_exceptions=True)

    async def _worked(self) -> OutcomeError | None:
        try:
            await self._carry_out()
        except OutcomeError as end:
            return end
        except (FencedError, RetryError, StopError):
            raise
        except Exception as error:
            self._log.raise_loss()
            logger.exception("a command failed unexpectedly", command=self.command_id)
            return OutcomeError("failed", f"an unexpected {type(error).__name__}: see the log")
        return None

    @property
    def _state(self) -> UnfinishedCommand | None:
        """The command as the log has it; None once it is finished."""
        return self._log.state(self.session_id).of(self.command_id)

    def _doing(self) -> str:
        return f"attempt {self._attempt} was under way"

    @property
    def _messages(self) -> AttemptMessages:
        request = self._command.request
        return AttemptMessages(
            self.session_id, self.command_id, self._attempt, request.trigger, request.cause_id
        )

    def _now(self) -> str:
        return rfc3339(self._ports.clock.now_ms())

    def _step(self, data: CommandData, number: int | None = None) -> CommandEntry:
        name = data.kind if number is None else f"{data.kind}-{number}"
        own_id = step_id(self.command_id, self._attempt, name)
        return CommandEntry(own_id, self._ports.clock.now_ms(), data)

    def _called(self, summariser: str) -> CommandCalled:
        return CommandCalled(
            session_id=self.session_id,
            command_id=self.command_id,
            attempt=self._attempt,
            summariser=summariser,
        )

    def _finished(
        self, outcome: CommandOutcome, reason: str | None, receipt: Receipt | None = None
    ) -> CommandEntry:
        boundary = short = None
        if receipt is not None:
            boundary = self._messages.boundary_id
            short = short_receipt(receipt_json(receipt), _RECEIPT_BYTES)
        state = self._state
        before = 0 if state is None else state.attempt
        attempt = self._attempt if outcome in ("completed", "failed") else before
        return self._step(
            CommandFinished(
                session_id=self.session_id,
                command_id=self.command_id,
                outcome=outcome,
                attempt=attempt,
                reason=reason,
                boundary_uuid=boundary,
                receipt=short,
            )
        )

    async def _finish(self, end: OutcomeError) -> None:
        """Write an outcome that leaves the conversation as it was."""

        def ending() -> tuple[Sequence[CommandEntry], Sequence[Line]]:
            # An announcement may have been under way: it has to end, too.
            lines = self._last_lines(end.outcome, end.reason)
            return [self._finished(end.outcome, end.reason)], lines

        await self._log.append_made(ending)
        logger.info(
            "command finished",
            command=self.command_id,
            outcome=end.outcome,
            attempt=self._attempt,
            reason=end.reason,
        )

    def _backoff(self, first_s: float | None = None) -> Backoff:
        stop = self._ports.stop
        if first_s is None:
            return Backoff(self._ports.clock, stop)
        return Backoff(self._ports.clock, stop, first_s, max(first_s, 60.0))


def receipt_json(receipt: Receipt) -> dict[str, Json]:
    """Return a receipt as JSON, in full."""
    value: dict[str, Json] = loads(dumps(receipt))
    return value
