"""Putting a plan into effect: one transaction over two topics, checked before it is committed.

Before the commit, the conversation is read up to the transaction's own first message, and the
boundary applied to it; and the log of commands up to the outcome, so that a cancellation that is
there before the outcome is honoured.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from contextgauge.compaction.engine.plan import PlanRejectedError
from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.errors import PositionError, RetryError
from schemas.commands import CommandEntry
from streams.core.control.log import UnfinishedCommand
from streams.core.control.messages import Line
from streams.core.conversation.fold import ConversationFold
from streams.flow.common.log_place import is_of_topic
from streams.flow.control.commands.command_job import OutcomeError
from streams.flow.control.commands.command_log import CommandLog
from streams.flow.control.commands.command_ports import CommandPorts
from streams.flow.control.commands.message_tail import MessageTail
from streams.ports import SCATTERED, PartitionReader, started

_QUIET_LOOK_S: Final = 0.1

Outcome: TypeAlias = Callable[[bool], tuple[list[Line], CommandEntry]]
"""Makes the messages of a compaction, the boundary second, and the command's outcome.

It takes whether the model may be answering what was sent before.
"""


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
        self._until_s = ports.clock.monotonic_s() + ports.plan.quiet_s
        self._is_calling = self._has_moved = False

    async def run(self, conversation: SessionConversation, outcome: Outcome) -> Swapped:
        """Write the outcome, unless the conversation changed. Raises OutcomeError."""
        ports, partition = self._ports, self._log.partition
        session_id = self._command.request.session_id
        fold = ConversationFold(conversation)
        self._topic_id = conversation.topic_id
        try:
            async with started(ports.log.reader(ports.messages_topic, [partition])) as reader:
                tail = MessageTail(reader, partition, session_id, fold)
                while True:
                    await self._until_quiet(reader, tail)
                    lines, entry = outcome(self._is_calling)

                    async def approve(first: Mapping[tuple[str, int], int]) -> bool:
                        return await self._is_approved(tail, lines[1], first)  # noqa: B023 -- called in this round

                    self._has_moved = False
                    if await self._log.append([entry], lines, approve):
                        return Swapped(done=True)
                    if not self._has_moved:
                        break
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
        offset = first[ports.messages_topic, partition]
        if offset == SCATTERED:  # what is between its own messages would not be checked
            self._is_unchecked = True
            return False
        try:
            async with asyncio.timeout(ports.plan.check_s):
                await self._check_topic()
                await tail.read(offset)
                await self._log.reached(first[ports.commands_topic, partition])
                is_calling = await self._may_be_calling(tail.fold.result)
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
        if is_calling is not self._is_calling:
            self._has_moved = True
            return False
        try:
            if seen.state == "whole":
                tail.fold.add(boundary, offset + 1, strict=True)
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

        At most `quiet_s` in all, and not if it is urgent. An answer to what was sent before the
        swap would report the size before it.
        """
        while True:
            _, end = await reader.bounds(self._log.partition)
            await tail.read(end)
            self._is_calling = await self._may_be_calling(tail.fold.result)
            if not self._is_calling or self._is_late():
                return
            await tail.wait(_QUIET_LOOK_S)

    def _is_late(self) -> bool:
        return self._hurry.is_set() or self._ports.clock.monotonic_s() >= self._until_s

    async def _may_be_calling(self, conversation: SessionConversation) -> bool:
        """Return whether the model may be answering the end of the conversation.

        It is not where that is an answer itself. Nor where the agent asks for its context again
        though it was given the end: it waits for the compaction.
        """
        active = conversation.history.active
        if not active or active[-1].role == "assistant":
            return False
        try:
            asked = await self._ports.asked.asked(self._command.request.session_id)
        except RetryError:
            return True
        return asked is None or not (asked.is_waiting and asked.last_id == active[-1].id)
