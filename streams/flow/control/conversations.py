"""Waiting for a conversation that `contextgauge conversations` keeps."""

from typing import Final

from contextgauge.backoff import Backoff
from contextgauge.errors import RetryError
from contextgauge.windows import base_name
from streams.core.control.thresholds import Subject
from streams.flow.control.command_job import OutcomeError
from streams.flow.control.command_ports import CommandPorts
from streams.ports import ConversationState, SessionConversation

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
    while True:
        try:
            position = await ports.conversations.position(partition)
            if position is not None and position >= upto:
                conversation = await ports.conversations.conversation(session_id)
                # It was read in one step with its own position: the store may have lost
                # everything since the look before.
                if conversation is None:
                    return None
                position = conversation.position
                if position >= upto and await is_of_topic(ports, conversation.topic_id):
                    return conversation
            why = _why_not(position, partition, upto)
        except RetryError as error:
            why = f"conversations cannot be read: {error}"
        if clock.monotonic_s() >= until_s or ports.stop.is_set():
            raise OutcomeError("failed", f"{why} (waited {ports.plan.conversation_s:.0f} s)")
        await backoff.wait()


def _why_not(position: int | None, partition: int, upto: int) -> str:
    if position is None:
        return "no conversations are kept: is `contextgauge conversations` running?"
    if position >= upto:
        return (
            "conversations are kept of a topic that was deleted and created again: is "
            "`contextgauge conversations` running?"
        )
    return (
        f"conversations are kept up to offset {position} of partition {partition}, and {upto} is "
        "needed: is `contextgauge conversations` behind, or stopped?"
    )


async def is_of_topic(ports: CommandPorts, topic_id: str) -> bool:
    """Return whether a topic's id is that of `agent.messages` now, as far as both are known.

    Raises RetryError.
    """
    if not topic_id:
        return True
    current = (await ports.log.topic_ids([ports.messages_topic]))[ports.messages_topic]
    return current is None or current.hex == topic_id


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
