"""The conversation of a session, folded line by line from `agent.messages`.

How lines make a conversation is read by the library (`contextgauge.compaction.reading`); the fold
adds what concerns the log: offsets, and whether the conversation is all that the model sees.
"""

from collections.abc import Mapping

from contextgauge.compaction.history import History
from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.compaction.reading.lines import begins_anew, reduced
from contextgauge.compaction.reading.session_conversation import (
    ConversationState,
    SessionConversation,
)
from contextgauge.errors import ConfigError
from schemas.records import Json


class ConversationFold:
    """A conversation that lines can be added to. What it was made from stays as it is."""

    def __init__(self, conversation: SessionConversation | None = None) -> None:
        self._agent_id: str | None = None
        self._project: str | None = None
        self._first_offset: int | None = None
        self._position = 0
        self._is_too_large = False
        self._reading = ConversationReading()
        if conversation is not None:
            self._agent_id, self._project = conversation.agent_id, conversation.project
            self._first_offset = conversation.first_offset
            self._position = conversation.position
            self._is_too_large = conversation.state == "too_large"
            self._reading = _reading_of(conversation)

    @classmethod
    def of_session(
        cls, agent_id: str | None, project: str | None, first_offset: int
    ) -> "ConversationFold":
        """Return the fold of a session of which nothing else is known yet."""
        fold = cls()
        fold._agent_id, fold._project, fold._first_offset = agent_id, project, first_offset
        return fold

    def begin_with(self, base: Mapping[str, Json], offset: int) -> None:
        """Begin with what was active at an offset. Raises ConfigError where it is damaged."""
        self._reading = ConversationReading.of_base(dict(base))
        self._position = offset + 1

    def base(self) -> dict[str, Json]:
        """Return what a fold can begin with, without what is archived, as JSON."""
        return self._reading.base()

    def add(self, line: Mapping[str, Json], offset: int, *, strict: bool = False) -> bool:
        """Add a message of the session, and return whether it contained anything new.

        With `strict`, raises PlanRejectedError for a compaction of the service that does not fit,
        and nothing is changed; else such a one is ignored.
        """
        if self._is_too_large:
            own_line = reduced(dict(line))
            if own_line is None or not begins_anew(own_line):
                self._position = max(self._position, offset + 1)
                return False
        try:
            is_new = self._reading.add(dict(line), f"m{offset}", strict=strict)
        except ConfigError:
            is_new = True  # it cannot be read: the conversation is incomplete now
        if is_new:
            self._is_too_large = False
            self._first_offset = offset if self._first_offset is None else self._first_offset
        self._position = max(self._position, offset + 1)
        return is_new

    def miss(self) -> None:
        """Note that something before is not there: until the next boundary or reset."""
        self._reading.miss()

    def outgrow(self) -> None:
        """Give up all that is known: it is more than is kept of a session."""
        self._reading, self._is_too_large = ConversationReading(), True

    @property
    def history(self) -> History:
        """The history as it is now."""
        return self._reading.history

    @property
    def compactions(self) -> int:
        """Number of compactions and resets so far."""
        return self._reading.begun

    @property
    def state(self) -> ConversationState:
        """Whether the conversation is all that the model sees."""
        if self._is_too_large:
            return "too_large"
        if self._reading.is_incomplete:
            return "incomplete"
        return "without_text" if self._reading.is_without_text else "whole"

    @property
    def result(self) -> SessionConversation:
        """The conversation after the lines so far. Adding more changes its history."""
        return SessionConversation(
            history=self._reading.history,
            state=self.state,
            model=self._reading.model,
            agent_id=self._agent_id,
            project=self._reading.folder or self._project,
            first_offset=self._position if self._first_offset is None else self._first_offset,
            position=self._position,
            reading=self._reading,
        )


def _reading_of(conversation: SessionConversation) -> ConversationReading:
    """Return what can be added to, apart from what was given."""
    if conversation.reading is not None and conversation.reading.history is conversation.history:
        return conversation.reading.copy()
    reading = ConversationReading.of_history(conversation.history.fork(), conversation.model)
    if conversation.state == "incomplete":
        reading.miss()
    if conversation.state == "without_text":
        reading.without_text.update(each.id for each in reading.history.active)
    return reading
