"""The conversation of a file: what the model of a transcript, or the next call, would see.

Read are transcripts of Claude Code (JSON lines with a `message`), rollouts of Codex (JSON lines
with a `payload`), and JSON documents: a list of messages or a request body of any format.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from contextgauge.compaction.formats import detect, read_messages, read_request
from contextgauge.compaction.messages import FormatName, Message, ModelRequest
from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.compaction.reading.lines import Line
from contextgauge.errors import ConfigError
from contextgauge.json_codec import loads
from contextgauge.normalise.limit_signals import OwnWindow, RuntimeWindows
from contextgauge.normalise.runtimes import line_of
from contextgauge.records import Json
from contextgauge.windows import base_name


class ReadConversation(NamedTuple):
    """A file's conversation, its format, and how to write other messages in the file's form."""

    request: ModelRequest
    format: FormatName
    rewrite: Callable[[list[Json]], Json]
    window_tokens: int | None = None
    """The window of the request's model that a transcript's runtime reported."""
    everything: Sequence[Message] = ()
    """All messages of a transcript, archived ones too."""


class _ReportedWindows:
    """The windows that a runtime reports in its transcript, tokens, by the model's name (R12)."""

    def __init__(self) -> None:
        self._own: int | None = None
        self._by_model: dict[str, int] = {}

    def add(self, line: Line) -> None:
        """Add what a line reports: Codex names no model, and means the one of that turn."""
        for each in line_of(line).read(line):
            if isinstance(each, OwnWindow):
                self._own = each.window
            elif isinstance(each, RuntimeWindows):
                for entry in each.entries:
                    names = {entry.name, entry.canonical or entry.name}
                    self._by_model |= {base_name(name)[0]: entry.window for name in names}

    def of(self, model: str | None) -> int | None:
        """Return the window that was last reported of a model."""
        named = None if model is None else self._by_model.get(base_name(model)[0])
        return self._own if named is None else named


def read_conversation(value: bytes) -> ReadConversation:
    """Read the active conversation of a file's bytes. Raises ConfigError where there is none."""
    if not value.strip():
        raise ConfigError("the file is empty: expected a conversation")
    document = _document(value)
    if document is not None:
        return _of_document(document)
    main, side, windows = ConversationReading(), ConversationReading(), _ReportedWindows()
    for number, line in _objects(value):
        windows.add(line)
        try:
            if line.get("isSidechain") is True:
                side.add({**line, "isSidechain": False}, f"m{number}")
            else:
                main.add(line, f"m{number}")
        except ConfigError as error:
            raise _unsupported(f"; line {number} cannot be read: {error}") from error
    # A subagent's own file has nothing but its side.
    conversation = main if main.history.active else side
    messages = conversation.history.active
    if not messages:
        raise _unsupported(_unreadable(value))
    formats = {each.source.format for each in messages if each.source is not None}
    if len(formats) > 1:
        raise _unsupported(f"; this one mixes lines of {' and '.join(sorted(formats))}")
    (name,) = formats
    request = ModelRequest(messages, model=conversation.model)
    window = windows.of(conversation.model)
    everything = conversation.history.everything
    return ReadConversation(request, name, lambda items: items, window, everything)


def _unsupported(reason: str = "") -> ConfigError:
    return ConfigError(
        "not a supported conversation: expected a transcript of Claude Code or Codex, a JSON list "
        f"of messages, or the body of a request{reason}"
    )


def _unreadable(value: bytes) -> str:
    """Return where a JSON document is broken; empty for lines, whose first is JSON on its own."""
    first = value.strip().partition(b"\n")[0]
    if first[:1] in (b"[", b"{") and not any(_objects(first)):
        try:
            loads(value)
        except (ValueError, RecursionError) as error:
            return f"; the JSON cannot be read: {error}"
    return ""


def _document(value: bytes) -> Json:
    try:
        document: Json = loads(value)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, dict) and ("type" in document or "role" in document):
        return [document] if "role" in document else None
    return document


def _of_document(document: Json) -> ReadConversation:
    name = detect(document)
    if document == [] or (isinstance(document, dict) and document.get("messages") == []):
        raise ConfigError("the conversation has no messages")
    if name is None:
        raise ConfigError(
            "the JSON is no conversation: expected a list of messages, or the body of a request "
            "with `messages`, `input` or `contents`"
        )
    if isinstance(document, list):
        return ReadConversation(
            ModelRequest(read_messages(document, name)), name, lambda items: items
        )
    if not isinstance(document, dict):
        raise ConfigError("the JSON is no conversation: expected a list or an object")
    field = next(each for each in ("messages", "input", "contents") if each in document)
    return ReadConversation(
        read_request(document, name), name, lambda items: {**document, field: items}
    )


def _objects(value: bytes) -> Iterator[tuple[int, Line]]:
    for number, line in enumerate(value.splitlines(), 1):
        try:
            each = loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            continue
        if isinstance(each, dict):
            yield number, each
