"""The conversation of a file: what the model of a transcript, or the next call, would see.

Read are transcripts of Claude Code (JSON lines with a `message`), rollouts of Codex (JSON lines
with a `payload`), and JSON documents: a list of messages or a request body of any format.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from contextgauge.compaction.branches import Line, is_boundary, without_rewound
from contextgauge.compaction.formats import detect, read_messages, read_request
from contextgauge.compaction.messages import ContextCompaction, FormatName, Message, ModelRequest
from contextgauge.errors import ConfigError
from contextgauge.json_codec import loads
from contextgauge.records import Json

_SYNTHETIC: Final = "<synthetic>"
"""The model of messages that Claude Code writes itself."""


class ReadConversation(NamedTuple):
    """A file's conversation, its format, and how to write other messages in the file's form."""

    request: ModelRequest
    format: FormatName
    rewrite: Callable[[list[Json]], Json]


def read_conversation(value: bytes) -> ReadConversation:
    """Read the active conversation of a file's bytes. Raises ConfigError where there is none."""
    document = _document(value)
    if document is not None:
        return _of_document(document)
    main: list[Line] = []
    side: list[Line] = []
    for line in _objects(value):
        (side if line.get("isSidechain") is True else main).append(line)
    lines = _Lines(main)
    if not lines.items:  # a subagent's own file has nothing but its side
        lines = _Lines(side)
    if not lines.items:
        raise ConfigError(
            "no conversation: expected a transcript of Claude Code or Codex, a JSON list of "
            "messages, or the body of a request"
        )
    if len(lines.formats) > 1:
        raise ConfigError("lines of Claude Code and of Codex in one file: give one transcript")
    (name,) = lines.formats
    messages = _usage_once(read_messages(lines.items, name))
    if lines.summary is not None:
        messages = _marked(messages, lines.summary, lines.summary_item)
    return ReadConversation(ModelRequest(messages, model=lines.model), name, lambda items: items)


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


def _objects(value: bytes) -> Iterator[Line]:
    for line in value.splitlines():
        try:
            each = loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            continue
        if isinstance(each, dict):
            yield each


class _Lines:
    """The messages of a transcript since its last compaction, and the formats that they have.

    `model` is the model that was named last.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self.items: list[Json] = []
        self.formats: set[FormatName] = set()
        self.compactions = 0
        self.summary: ContextCompaction | None = None
        self.summary_item: Json = None
        self.model: str | None = None
        for line in without_rewound(lines):
            self._read(line)

    def _read(self, line: Line) -> None:
        """Add what a line contributes; a compaction empties what came before it."""
        payload, message = line.get("payload"), line.get("message")
        match line.get("type"):
            case "response_item" if isinstance(payload, dict):
                self._add("openai-responses", payload)
            case "compacted" if isinstance(payload, dict):
                self._replace(payload)
            case "turn_context" if isinstance(payload, dict):
                self._name_model(payload.get("model"))
            case "system" if is_boundary(line):
                self._begin()
            case "user" | "assistant" if isinstance(message, dict):
                if line.get("parent_tool_use_id") is None:
                    self._read_message(message, is_summary=line.get("isCompactSummary") is True)

    def _read_message(self, message: dict[str, Json], *, is_summary: bool) -> None:
        if is_summary and self.items:  # without a boundary
            self._begin()
        self._add("anthropic", message)
        if is_summary:
            self._mark(message, _text_of(message))
        self._name_model(message.get("model"))

    def _name_model(self, name: Json) -> None:
        if isinstance(name, str) and name and name != _SYNTHETIC:
            self.model = name

    def _add(self, name: FormatName, item: Json) -> None:
        self.formats.add(name)
        self.items.append(item)

    def _replace(self, payload: Mapping[str, Json]) -> None:
        replacement, text = payload.get("replacement_history"), payload.get("message")
        self._begin()
        if isinstance(replacement, list):
            for item in replacement:
                self._add("openai-responses", item)
                if text and _text_of(item) == text:
                    self._mark(item, text)
        elif isinstance(text, str) and text:
            item = {"role": "user", "content": text}
            self._add("openai-responses", item)
            self._mark(item, text)

    def _begin(self) -> None:
        """Begin again after a compaction: what came before it is archived."""
        self.items.clear()
        self.compactions += 1
        self.summary = None

    def _mark(self, item: Json, text: Json) -> None:
        """Remember that an item is a summary, and not the user's words."""
        if isinstance(text, str):
            self.summary = ContextCompaction(self.compactions, 0, text, 0, 0, prose=text)
            self.summary_item = item


def _text_of(item: Json) -> str:
    """Return the texts of an item of any format, a line each."""
    content = item.get("content") if isinstance(item, dict) else None
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    texts = (each.get("text") for each in content if isinstance(each, dict))
    return "\n".join(each for each in texts if isinstance(each, str))


def _usage_once(messages: Sequence[Message]) -> list[Message]:
    """Leave what an API reported with the last message of an answer: each line repeats it."""
    once: list[Message] = []
    later: set[str] = set()
    for message in reversed(messages):
        value = None if message.source is None else message.source.value
        answer = value.get("id") if isinstance(value, dict) else None
        if isinstance(answer, str) and message.usage is not None:
            once.append(replace(message, usage=None) if answer in later else message)
            later.add(answer)
        else:
            once.append(message)
    return once[::-1]


def _marked(messages: Sequence[Message], summary: ContextCompaction, item: Json) -> list[Message]:
    """Return the messages with the marker in the one that a runtime's own compaction left."""
    return [
        replace(each, blocks=(summary,))
        if each.source is not None and (each.source.value is item or each.source.value == [item])
        else each
        for each in messages
    ]
