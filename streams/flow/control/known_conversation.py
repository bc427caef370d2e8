"""Waiting for a conversation that `contextgauge conversations` keeps."""

from typing import Final

from contextgauge.backoff import Backoff
from contextgauge.compaction.reading.session_conversation import (
    ConversationState,
    SessionConversation,
)
from contextgauge.errors import RetryError
from contextgauge.windows import base_name
from streams.core.control.thresholds import Subject
from streams.flow.common.log_place import is_of_topic
from streams.flow.control.commands.command_job import OutcomeError
from streams.flow.control.commands.command_ports import CommandPorts
from streams.ports import started
from streams.ports.conversations import Mark

_LOOK_S: Final = 0.05
_LONGEST_LOOK_S: Final = 1.0

_REASONS: Final[dict[ConversationState, str]] = {
    "incomplete": "the beginning of the conversation is not there: it expired, was deleted, or was "
    "published before conversations were kept; it is whole again from the next /clear on",
    "too_large": "the conversation is larger than is kept of a session: raise the limit of "
    "`contextgauge conversations`",
    "without_text": "the session is published without its text: publish it with text",
}


async def conversation_at(
    ports: CommandPorts, session_id: str, partition: int, upto: int
) -> SessionConversation | None:
    """Return a session's conversation by all messages before an offset; None: none is kept.

    Raises OutcomeError where it is not reached in time.
    """
    clock, until_s = ports.clock, ports.clock.monotonic_s() + ports.plan.conversation_s
    backoff = Backoff(clock, ports.stop, _LOOK_S, _LONGEST_LOOK_S)
    conversations = ports.conversations
    while True:
        try:
            mark = await conversations.mark(partition)
            why = await _why_not(ports, mark, partition, upto)
            if why is None:
                conversation = await conversations.conversation(session_id)
                # The store may have lost everything since the look before: what was read in one
                # step with the conversation counts, and without one another look.
                if conversation is None:
                    mark = await conversations.mark(partition)
                else:
                    mark = Mark(conversation.position, "", conversation.topic_id)
                why = await _why_not(ports, mark, partition, upto)
                if why is None:
                    return conversation
        except RetryError as error:
            why = f"conversations cannot be read: {error}"
        if clock.monotonic_s() >= until_s or ports.stop.is_set():
            why = await _beyond_end(ports, partition, upto) or why
            raise OutcomeError("failed", f"{why} (waited {ports.plan.conversation_s:.0f} s)")
        await backoff.wait()


async def _why_not(ports: CommandPorts, mark: Mark | None, partition: int, upto: int) -> str | None:
    """Return why conversations are not kept up to an offset; None: they are. Raises RetryError."""
    if mark is None:
        return "no conversations are kept: is `contextgauge conversations` running?"
    if not await is_of_topic(ports.log, ports.messages_topic, mark.topic_id):
        return (
            "conversations are kept of a topic that was deleted and created again: is "
            "`contextgauge conversations` running?"
        )
    if mark.position >= upto:
        return None
    return (
        f"conversations are kept up to offset {mark.position} of partition {partition}, and {upto} "
        "is needed: is `contextgauge conversations` behind, or stopped?"
    )


async def _beyond_end(ports: CommandPorts, partition: int, upto: int) -> str | None:
    """Return what is wrong where the log does not reach an offset that it once had."""
    topic = ports.messages_topic
    try:
        async with started(ports.log.reader(topic, [partition])) as reader:
            _, end = await reader.bounds(partition)
    except RetryError:
        return None
    if end >= upto:
        return None
    return (
        f"{topic}-{partition} ends at {end}, and {upto} is needed: it was deleted and created "
        "again, or lost its end"
    )


async def whole_conversation(
    ports: CommandPorts, session_id: str, partition: int, upto: int
) -> SessionConversation:
    """Return a conversation that can be compacted. Raises OutcomeError."""
    conversation = await conversation_at(ports, session_id, partition, upto)
    if conversation is None:
        raise OutcomeError(
            "refused",
            "no conversation of the session is kept: it was published before `contextgauge "
            "conversations` ran, or is not among the sessions whose text is kept",
        )
    check_whole(conversation)
    return conversation


def subject_of(session_id: str, conversation: SessionConversation) -> Subject:
    """Return what rules name a session by."""
    model = conversation.model and base_name(conversation.model)[0]
    return Subject(session_id, conversation.agent_id, conversation.project, model)


def check_whole(conversation: SessionConversation) -> None:
    """Raise OutcomeError where a conversation cannot be compacted."""
    if conversation.state != "whole":
        raise OutcomeError("refused", _REASONS[conversation.state])
