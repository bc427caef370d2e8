"""Putting a plan into effect: one transaction over two topics, checked before it is committed.

Before the commit, the conversation is read up to the transaction's own first message, and the
boundary applied to it; and the log of commands up to the outcome, so that a cancellation that is
there before the outcome is honoured.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from contextgauge.compaction.messages import Message
from contextgauge.compaction.plan import PlanRejectedError
from contextgauge.compaction.session import SessionConversation
from contextgauge.errors import PositionError, RetryError
from schemas.commands import CommandEntry
from streams.core.control.log import UnfinishedCommand
from streams.core.control.messages import Line
from streams.core.conversation.fold import ConversationFold
from streams.flow.common.log_place import is_of_topic
from streams.flow.control.command_job import OutcomeError
from streams.flow.control.command_log import CommandLog
from streams.flow.control.command_ports import CommandPorts
from streams.flow.control.tails import MessageTail
from streams.ports import SCATTERED, Asked, PartitionReader, started

_QUIET_LOOK_S: Final = 0.1

Outcome: TypeAlias = Callable[[], tuple[list[Line], CommandEntry]]
"""Makes the messages of a compaction, the boundary second, and the command's outcome."""


class Swapped(NamedTuple):
    """What became of a swap: in effect, or rejected for the conversation as it is now.

    Neither: it could not be checked, and is to be repeated.
    """

    done: bool
    changed: SessionConversation | None = None


class Swap:
    """One attempt to put a plan into effect; `hurry` ends what it waits for."""

    def __init__(
        self,
        ports: CommandPorts,
        log: CommandLog,
        command: UnfinishedCommand,
        hurry: asyncio.Event,
    ) -> None:
        self._ports, self._log, self._command, self._hurry = ports, log, command, hurry
        self._rejected_for: SessionConversation | None = None
        self._lost: PositionError | None = None
        self._is_unchecked = False
        self._topic_id = ""

    async def run(self, conversation: SessionConversation, outcome: Outcome) -> Swapped:
        """Write the outcome, unless the conversation changed. Raises OutcomeError."""
        ports, partition = self._ports, self._log.partition
        session_id = self._command.request.session_id
        fold = ConversationFold(conversation)
        self._topic_id = conversation.topic_id
        try:
            async with started(ports.log.reader(ports.messages_topic, [partition])) as reader:
                tail = MessageTail(reader, partition, session_id, fold)
                await self._until_quiet(reader, tail)
                lines, entry = outcome()

                async def approve(first: Mapping[tuple[str, int], int]) -> bool:
                    return await self._is_approved(tail, lines[1], first)

                if await self._log.append([entry], lines, approve):
                    return Swapped(done=True)
        except PositionError as error:
            self._lost = error
        if self._lost is not None:
            raise OutcomeError(
                "failed", f"the messages since the plan cannot be read: {self._lost}"
            ) from self._lost
        command = self._log.state(session_id).of(self._command.id)
        if command is not None and command.cancelled is not None:
            raise OutcomeError("cancelled", command.cancelled)
        if self._is_unchecked:
            return Swapped(done=False)
        changed = self._rejected_for or fold.result
        return Swapped(done=False, changed=changed._replace(topic_id=self._topic_id))

    async def _is_approved(
        self, tail: MessageTail, boundary: Line, first: Mapping[tuple[str, int], int]
    ) -> bool:
        """Return whether the plan fits everything before the transaction's first offsets."""
        ports, partition = self._ports, self._log.partition
        at = first[ports.messages_topic, partition]
        if at == SCATTERED:  # what is between its own messages would not be checked
            self._is_unchecked = True
            return False
        try:
            async with asyncio.timeout(ports.plan.check_s):
                await self._check_topic()
                await tail.read(at)
                await self._log.reached(first[ports.commands_topic, partition])
        except TimeoutError:
            self._is_unchecked = True
            return False
        except PositionError as error:
            self._lost = error
            return False
        state = self._log.state(self._command.request.session_id).of(self._command.id)
        if state is None or state.cancelled is not None:
            return False
        seen = tail.fold.result
        try:
            if seen.state == "whole":
                tail.fold.add(boundary, at + 1, strict=True)
                return True
        except PlanRejectedError:
            pass
        self._rejected_for = seen
        return False

    async def _check_topic(self) -> None:
        """Raise PositionError where the conversation is of a topic that is no more."""
        ports = self._ports
        if not await is_of_topic(ports.log, ports.messages_topic, self._topic_id):
            raise PositionError(f"{self._ports.messages_topic} was deleted and created again")

    async def _until_quiet(self, reader: PartitionReader, tail: MessageTail) -> None:
        """Read all messages, until no call of the model is under way.

        At most `quiet_s`, and not if it is urgent. An answer to what was sent before the swap would
        report the size of before it.
        """
        clock = self._ports.clock
        until_s = clock.monotonic_s() + self._ports.plan.quiet_s
        before: int | None = None
        while True:
            _, end = await reader.bounds(self._log.partition)
            await tail.read(end)
            active = tail.fold.result.history.active
            answers = sum(message.role == "assistant" for message in active)
            before = answers if before is None else before
            is_quiet = not active or active[-1].role == "assistant" or answers > before
            if is_quiet or self._hurry.is_set() or clock.monotonic_s() >= until_s:
                return
            if _is_idle(active, await self._asked()):
                return
            await clock.sleep(_QUIET_LOOK_S)

    async def _asked(self) -> Asked | None:
        """Return what the agent asked for last; None where that is not known."""
        try:
            return await self._ports.asked.asked(self._command.request.session_id)
        except RetryError:
            return None


def _is_idle(active: Sequence[Message], asked: Asked | None) -> bool:
    """Return whether an agent that asks for its context has not called its model with the end.

    It waits where it asks again and again. And it has not asked yet where the last that it was
    given is what the last answer is to: it asks before each call.
    """
    if asked is None:
        return False
    if asked.is_waiting:
        return True
    places = [at for at, message in enumerate(active) if message.role == "assistant"]
    if not places:
        return False
    first = places[-1]
    while first and active[first - 1].role == "assistant":  # an answer may have several parts
        first -= 1
    return first > 0 and active[first - 1].id == asked.last_id
