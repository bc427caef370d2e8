"""The conversation of a file: what the model of a transcript, or the next call, would see.

Read are transcripts of Claude Code (JSON lines with a `message`), rollouts of Codex (JSON lines
with a `payload`), and JSON documents: a list of messages or a request body of any format.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from contextgauge.compaction.formats import detect, read_messages, read_request
from contextgauge.compaction.messages import ContextCompaction, FormatName, Message, Request
from contextgauge.errors import ConfigError
from contextgauge.json_codec import loads
from contextgauge.records import Json


class ReadConversation(NamedTuple):
    """A file's conversation, its format, and how to write other messages in the file's form."""

    request: Request
    format: FormatName
    rewrite: Callable[[list[Json]], Json]


def read_conversation(value: bytes) -> ReadConversation:
    """Read the active conversation of a file's bytes. Raises ConfigError where there is none."""
    document = _document(value)
    if document is not None:
        return _of_document(document)
    main, side = _Lines(), _Lines()
    for line in _objects(value):
        (side if line.get("isSidechain") is True else main).read(line)
    lines = main if main.items else side  # a subagent's own file has nothing but its side
    if not lines.items:
        raise ConfigError(
            "no conversation: expected a transcript of Claude Code or Codex, a JSON list of "
            "messages, or the body of a request"
        )
    if len(lines.formats) > 1:
        raise ConfigError("lines of Claude Code and of Codex in one file: give one transcript")
    (name,) = lines.formats
    messages = read_messages(lines.items, name)
    if lines.summary is not None:
        messages[0] = _marked(messages[0], lines.summary)
    return ReadConversation(Request(messages), name, lambda items: items)


def _document(value: bytes) -> Json:
    try:
        document = loads(value)
    except ValueError:
        return None
    if isinstance(document, dict) and ("type" in document or "role" in document):
        return [document] if "role" in document else None
    return document


def _of_document(document: Json) -> ReadConversation:
    name = detect(document)
    if name is None:
        raise ConfigError(
            "the JSON is no conversation: expected a list of messages, or the body of a request "
            "with `messages`, `input` or `contents`"
        )
    if isinstance(document, list):
        return ReadConversation(Request(read_messages(document, name)), name, lambda items: items)
    if not isinstance(document, dict):
        raise ConfigError("the JSON is no conversation: expected a list or an object")
    field = next(each for each in ("messages", "input", "contents") if each in document)
    return ReadConversation(
        read_request(document, name), name, lambda items: {**document, field: items}
    )


def _objects(value: bytes) -> Iterator[Mapping[str, Json]]:
    for line in value.splitlines():
        try:
            each = loads(line) if line.strip() else None
        except ValueError:
            continue
        if isinstance(each, dict):
            yield each


class _Lines:
    """The messages of a transcript since its last compaction, and the formats that they have."""

    def __init__(self) -> None:
        self.items: list[Json] = []
        self.formats: set[FormatName] = set()
        self.compactions = 0
        self.summary: ContextCompaction | None = None

    def read(self, line: Mapping[str, Json]) -> None:
        """Add what a line contributes; a compaction empties what came before it."""
        payload, message = line.get("payload"), line.get("message")
        match line.get("type"):
            case "response_item" if isinstance(payload, dict):
                self._add("openai-responses", payload)
            case "compacted" if isinstance(payload, dict):
                self._replace(payload)
            case "system" if line.get("subtype") == "compact_boundary":
                self._begin()
            case "user" | "assistant" if isinstance(message, dict):
                if line.get("parent_tool_use_id") is None:
                    self._add("anthropic", message)
                    if line.get("isCompactSummary") is True and len(self.items) == 1:
                        self._mark(message.get("content"))

    def _add(self, name: FormatName, item: Json) -> None:
        self.formats.add(name)
        self.items.append(item)

    def _replace(self, payload: Mapping[str, Json]) -> None:
        replacement, text = payload.get("replacement_history"), payload.get("message")
        self._begin()
        if isinstance(replacement, list):
            self.items.extend(replacement)
        elif isinstance(text, str) and text:
            self._add("openai-responses", {"role": "user", "content": text})
            self._mark(text)

    def _begin(self) -> None:
        """Begin again after a compaction: what came before it is archived."""
        self.items.clear()
        self.compactions += 1
        self.summary = None

    def _mark(self, text: Json) -> None:
        """Remember that the first message is a summary, and not the user's words."""
        if isinstance(text, str):
            self.summary = ContextCompaction(self.compactions, 0, text, 0, 0, prose=text)


def _marked(message: Message, summary: ContextCompaction) -> Message:
    """Return the message that a runtime's own compaction left, with its marker."""
    return replace(message, blocks=(summary,))
