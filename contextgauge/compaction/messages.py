"""The engine's messages: what a conversation of any provider is read into.

A conversation is a sequence of messages, a message a sequence of blocks. All are values: frozen,
compared by their content. A `source` is the JSON that a message or block was read from; it takes
no part in comparison. The formats (`contextgauge.compaction.formats`) write it back as it came
where nothing changed, and lay what a strategy changed over its other fields, so nothing that the
engine does not know is lost.

A strategy that shortens a message keeps its `id`: the archived original has the same one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from contextgauge.records import Json

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

FormatName: TypeAlias = Literal["anthropic", "openai-chat", "openai-responses", "gemini", "plain"]


class JsonSource(NamedTuple):
    """The JSON value of one format that a message or block was read from."""

    format: FormatName
    value: Json


@dataclass(frozen=True, slots=True)
class Text:
    """Text of any role."""

    text: str
    source: JsonSource | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Image:
    """An image or document, by its size: `tokens` is an estimate, 0 where nothing tells it."""

    tokens: int
    media_type: str | None = None
    source: JsonSource | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning of the model; `text` is empty where it came encrypted or redacted.

    `characters` counts what is sent back with the next request, encrypted content included.
    """

    text: str
    characters: int
    source: JsonSource | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Opaque:
    """An item that the engine keeps and returns as it is, such as a server-side compaction.

    `characters` is its size as JSON.
    """

    kind: str
    characters: int
    source: JsonSource | None = field(default=None, compare=False, repr=False)


Content: TypeAlias = Text | Image | Opaque
"""What a tool's result may consist of."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool. `arguments` is JSON text, as most providers send it."""

    id: str
    name: str
    arguments: str
    source: JsonSource | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered to the call `call_id`."""

    call_id: str
    content: tuple[Content, ...]
    name: str | None = None
    is_error: bool = False
    source: JsonSource | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The texts of the result, a line each."""
        return "\n".join([each.text for each in self.content if isinstance(each, Text)])

    def with_content(self, content: Iterable[Content]) -> "ToolResult":
        """Return the result with other content."""
        return ToolResult(self.call_id, tuple(content), self.name, self.is_error, self.source)


@dataclass(frozen=True, slots=True)
class FileUse:
    """One file of the ledger: what was done with it over the whole conversation."""

    path: str
    read: bool = False
    changed: bool = False


PinKind: TypeAlias = Literal["constraint", "request", "preference", "fact", "goal", "statement"]
"""As what a passage is carried; `statement` is what else the user wrote."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A passage of a user's turn that is carried verbatim from one compaction to the next.

    `key` is what it gives values to: a later pin that gives one to the same replaces this one.
    `message_id` is the turn that it was taken from.
    """

    kind: PinKind
    text: str
    key: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Carried:
    """What code, not a model, carries across compactions: with the marker, never read from text."""

    task: str = ""
    pins: tuple[Pin, ...] = ()
    files: tuple[FileUse, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextCompaction:
    """The marker of a compaction, in the message that begins the active conversation.

    `number` counts the compactions of the conversation from 1. `timestamp_ms` is in milliseconds
    since 1970. `summary` is the whole text that the model sees instead of the archived messages.
    `prose` is the part of it that a summariser wrote: the next round's previous summary.
    """

    number: int
    timestamp_ms: int
    summary: str
    messages_archived: int
    context_size_before: int
    prose: str = ""
    carried: Carried = Carried()


Block: TypeAlias = Text | Image | Thinking | Opaque | ToolCall | ToolResult | ContextCompaction


class ApiUsage(NamedTuple):
    """What an API reported with an answer, tokens.

    `context` is everything that was read (uncached, cache reads and cache writes), `output` what
    was written. The answer itself is part of the next request's context.
    """

    context: int
    output: int


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `id` is the caller's, or given by the `History` that it is added to."""

    role: Role
    blocks: tuple[Block, ...]
    id: str = ""
    usage: ApiUsage | None = None
    source: JsonSource | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The texts of the message, a line each; of tools nothing."""
        return "\n".join([each.text for each in self.blocks if isinstance(each, Text)])

    @property
    def calls(self) -> list[ToolCall]:
        """The calls of tools."""
        return [each for each in self.blocks if isinstance(each, ToolCall)]

    @property
    def results(self) -> list[ToolResult]:
        """The results of tools."""
        return [each for each in self.blocks if isinstance(each, ToolResult)]

    @property
    def is_user_turn(self) -> bool:
        """Whether a person says something here: not only a tool's results or a marker."""
        if self.role != "user":
            return False
        speaks = False
        for each in self.blocks:
            if isinstance(each, ContextCompaction):
                return False
            speaks = speaks or isinstance(each, Text | Image)
        return speaks

    @property
    def compaction(self) -> ContextCompaction | None:
        """The marker of a compaction, where the message has one."""
        for each in self.blocks:
            if isinstance(each, ContextCompaction):
                return each
        return None

    def with_blocks(self, blocks: Iterable[Block]) -> "Message":
        """Return the message with other blocks."""
        return Message(self.role, tuple(blocks), self.id, self.usage, self.source)


def open_calls(messages: Iterable[Message]) -> set[str]:
    """Return the ids of calls whose result is still to come.

    A call that was interrupted has none to come: the user's next turn follows it.
    """
    pending: set[str] = set()
    for message in messages:
        if message.is_user_turn and not message.results:
            pending.clear()
        for block in message.blocks:
            if isinstance(block, ToolCall):
                pending.add(block.id)
            elif isinstance(block, ToolResult):
                pending.discard(block.call_id)
    return pending


def first_turn(messages: Iterable[Message]) -> str:
    """Return the text of the user's first turn, empty where there is none."""
    return next((each.text for each in messages if each.is_user_turn and each.text), "")


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """All that one call of the model sends: each part counts towards the window.

    `system` is a system prompt that is not among the messages. `tools` are the definitions of
    tools, as JSON texts. `reserved_output_tokens` is the answer's share of the window.
    """

    messages: Sequence[Message]
    system: str = ""
    tools: tuple[str, ...] = ()
    reserved_output_tokens: int = 0
    model: str | None = None
