"""What fills a session's window, by its transcript: for a runtime that does not say it itself.

Where that cannot be given, the reason is.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from contextgauge.compaction.displays.window_parts import Measured, WindowPart, filling_of
from contextgauge.compaction.messages import Message
from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.errors import ConfigError
from contextgauge.normalise import session_of
from contextgauge.normalise.fields import text
from contextgauge.normalise.runtimes import line_of
from schemas.messages import DeadLetter
from schemas.records import (
    MAIN_CHAIN,
    CompactBoundary,
    ContextEdit,
    ContextReading,
    ContextReset,
    Json,
    Record,
)
from streams import codec
from streams.cli.transcripts import ReplayedSession
from streams.core.session_status import leading_chain
from streams.edge.files import reading as files
from streams.edge.files.watch import InputSource

Filling: TypeAlias = tuple[WindowPart, ...] | str
"""The parts of what fills a window, else why they are unknown."""

_CLEARED: Final = ("compactedToolIds", "compacted_tool_ids")


class _Epoch:
    """What the main chain's records say since its last compaction or reset."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.readings: list[ContextReading] = []
        self.cleared: set[str] | None = set()
        """Calls whose results were removed; None where it is not known which were."""
        for record in records:
            data = record.data
            if data.chain != MAIN_CHAIN:
                continue
            match data:
                case CompactBoundary() | ContextReset():
                    self.readings, self.cleared = [], set()
                case ContextReading(late=None):
                    self.readings.append(data)
                case ContextEdit():
                    self._clear(data)

    def _clear(self, edit: ContextEdit) -> None:
        ids = [each for object_ in edit.edits for each in _texts(object_, _CLEARED)]
        if self.cleared is not None:
            is_known = all(_texts(object_, _CLEARED) for object_ in edit.edits)
            self.cleared = self.cleared.union(ids) if edit.edits and is_known else None


def filling_of_session(session: ReplayedSession) -> Filling | None:
    """Return what fills the window of a session's main chain, by the file that it was read from.

    None where the runtime says it itself.
    """
    chain = leading_chain(session.view)
    if chain is None or chain.chain != MAIN_CHAIN:
        return "the main conversation is not in the file"
    if chain.breakdown is None:
        return "the size is unknown"
    if chain.categories is not None:
        return None
    if session.source.path is None:
        return "a pipe is read only once"
    epoch = _Epoch(session.records)
    if epoch.cleared is None:
        return "the file does not say which results were removed"
    transcript = _Transcript(session.source, session.view.session_id)
    if transcript.is_incomplete:
        return "the file lacks some of what the model sees"
    ends = _measured(transcript.messages, epoch.readings)
    if ends is None:
        return "the messages that were measured are not in the file"
    return filling_of(
        transcript.messages,
        ends,
        attachments=transcript.attachments,
        cleared=epoch.cleared,
        system_characters=transcript.system_characters,
    )


class _Transcript:
    """The messages that the main chain's model sees, by a session's lines in a file."""

    def __init__(self, source: InputSource, session_id: str) -> None:
        self.attachments: set[str] = set()
        self.system_characters = 0
        self.is_incomplete = False
        reading = ConversationReading()
        for number, body in enumerate(bodies_of(source, session_id)):
            self._note_instructions(body)
            try:
                reading.add(self._as_message(body), f"m{number}")
            except ConfigError:
                self.is_incomplete = True
        self.messages: Sequence[Message] = reading.history.active
        self.is_incomplete = self.is_incomplete or reading.is_incomplete or reading.is_without_text

    def _note_instructions(self, body: dict[str, Json]) -> None:
        """Note the system prompt that a line has."""
        line = line_of(body)
        if line.instructions is not None:
            self.system_characters = len(line.instructions(body) or "")

    def _as_message(self, body: dict[str, Json]) -> dict[str, Json]:
        """Return a line; one with what a runtime attached as the message that the model sees."""
        line, uuid = line_of(body), text(body, "uuid")
        content = None if line.attached is None or uuid is None else line.attached(body)
        if content is None or uuid is None:
            return body
        self.attachments.add(uuid)
        return {**body, "type": "user", "message": {"role": "user", "content": content}}


def bodies_of(source: InputSource, session_id: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a session."""
    for block in files.read([source]):
        for line in block:
            body = codec.decode(line.value)
            if not isinstance(body, DeadLetter) and (
                session_of(body, line.session_hint) == session_id
            ):
                yield body


def _texts(fields: dict[str, Json], names: Sequence[str]) -> list[str]:
    values = next((fields[each] for each in names if each in fields), None)
    return [each for each in values if isinstance(each, str)] if isinstance(values, list) else []


def _measured(messages: Sequence[Message], readings: Sequence[ContextReading]) -> Measured | None:
    """Return where the first and the last response of an epoch are; None where one is not there."""
    if not readings:
        return None
    first, last = readings[0], readings[-1]
    firsts, lasts = _places(messages, first), _places(messages, last)
    if not firsts or not lasts:
        return None
    # Several messages are parts of one response, or responses of the same size.
    end = lasts[-1] if last.response_id is None else lasts[0]
    return Measured(firsts[0], first.used_tokens, end, last.used_tokens)


def _places(messages: Sequence[Message], reading: ContextReading) -> list[int]:
    """Return the messages of a response: by its id, and where it has none by its size."""
    if reading.response_id is not None:
        return [
            index for index, each in enumerate(messages) if _answer(each) == reading.response_id
        ]
    return [
        index
        for index, each in enumerate(messages)
        if each.usage is not None and each.usage.context == reading.used_tokens
    ]


def _answer(message: Message) -> str | None:
    """Return the id of the response that a message is a part of."""
    value = None if message.source is None else message.source.value
    return text(value, "id") if message.role == "assistant" and isinstance(value, dict) else None
