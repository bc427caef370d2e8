"""The engine's messages: what a conversation of any provider is read into.

A conversation is a sequence of messages, a message a sequence of blocks. All are values: frozen,
compared by their content. A `source` is the JSON that a message or block was read from; it takes
no part in comparison. The formats (`contextgauge.compaction.formats`) write it back as it came
where nothing changed, and lay what a strategy changed over its other fields, so nothing that the
engine does not know is lost.

A strategy that shortens a message keeps its `id`: the archived original has the same one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

from contextgauge.compaction.format_names import FormatName as FormatName  # noqa: PLC0414 -- of this module too
from contextgauge.normalise.user_words import SplitText, is_observation, words_of
from contextgauge.records import Json

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


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


Speaker: TypeAlias = Literal["user", "agent", "tool", "data", "todos"]
"""Whose a passage is: `tool` of a failed call, `data` of a text in the user's role that is not the
person's, `todos` the agent's list of what is to be done."""


@dataclass(frozen=True, slots=True)
class DigestEntry:
    """A passage of the conversation, as it was written, that is carried across compactions.

    `number` is the place among the user's turns, of another speaker's that of the turn before it.
    Where `omitted` characters are left out, `text` is what comes before them and `end` after them.
    """

    number: int
    message_id: str
    speaker: Speaker
    text: str
    end: str = ""
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class Carried:
    """What code, not a model, carries across compactions: with the marker, never read from text.

    `entries` are in the order of the conversation; `omitted` of others than the user are left out.
    """

    entries: tuple[DigestEntry, ...] = ()
    files: tuple[FileUse, ...] = ()
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class ContextCompaction:
    """The marker of a compaction, in the message that begins the active conversation.

    `number` counts the compactions of the conversation from 1. `timestamp_ms` is in milliseconds
    since 1970; it and the counts are None where they are unknown, as of a runtime's own compaction.
    `summary` is the whole text that the model sees instead of the archived messages. `prose` is the
    part of it that a summariser wrote: the next round's previous summary.
    """

    number: int
    timestamp_ms: int | None
    summary: str
    messages_archived: int | None
    context_size_before: int | None
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
    """One message. `id` is the caller's, or given by the `History` that it is added to.

    `from_user` is whether a person wrote the texts of a message in the user's role, where the
    caller or the runtime reports it; None: the shape of each text decides.
    """

    role: Role
    blocks: tuple[Block, ...]
    id: str = ""
    usage: ApiUsage | None = None
    source: JsonSource | None = field(default=None, compare=False, repr=False)
    from_user: bool | None = None

    @property
    def text(self) -> str:
        """The texts of the message, a line each, a compaction's too; of tools nothing."""
        if len(self.blocks) == 1 and isinstance(only := self.blocks[0], Text):
            return only.text
        return "\n".join(
            [
                each.text if isinstance(each, Text) else each.summary
                for each in self.blocks
                if isinstance(each, Text | ContextCompaction)
            ]
        )

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
        """Whether a person says something here: not only a tool, a harness or a marker."""
        if self.role != "user" or self.from_user is False or self.compaction is not None:
            return False
        words = self._words()
        if any(each.of_user for each in words):
            return True
        others = self.results or any(each.of_harness for each in words)
        return not others and any(isinstance(each, Text | Image) for each in self.blocks)

    @property
    def user_text(self) -> str:
        """The person's own words in this message, byte for byte; empty where there are none."""
        if self.compaction is not None:
            return ""
        return "\n".join(each.of_user for each in self._words() if each.of_user)

    @property
    def data_text(self) -> str:
        """The texts that stand in the user's role and are not the person's own words."""
        if self.compaction is not None:
            return self.text if self.role == "user" else ""
        return "\n".join(each.of_harness for each in self._words() if each.of_harness)

    def _words(self) -> list[SplitText]:
        """Return whose words each text is: as reported, else by its shape.

        A text next to a tool's result is the tool's, unless a runtime marks it as the person's.
        """
        if self.role != "user":
            return []
        texts = [each.text for each in self.blocks if isinstance(each, Text)]
        if self.from_user is not None:
            return [
                SplitText(each, "") if self.from_user else SplitText("", each) for each in texts
            ]
        words = words_of(texts)
        if self.results:
            return [each if each.of_harness else SplitText("", each.of_user) for each in words]
        return words

    @property
    def compaction(self) -> ContextCompaction | None:
        """The marker of a compaction, where the message has one."""
        for each in self.blocks:
            if isinstance(each, ContextCompaction):
                return each
        return None

    def with_blocks(self, blocks: Iterable[Block]) -> "Message":
        """Return the message with other blocks."""
        return replace(self, blocks=tuple(blocks))


def images_of(blocks: Iterable[Block]) -> str:
    """Return what images are among blocks, such as `image/png, 2 application/pdf`; else nothing."""
    images = [each.media_type or "image" for each in blocks if isinstance(each, Image)]
    if not images:
        return ""
    kinds = Counter(images)
    return ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in kinds.items())


def open_calls(messages: Sequence[Message]) -> set[str]:
    """Return the ids of calls whose result is still to come.

    A call that was interrupted has none to come: the user's next turn follows it.
    """
    pending: set[str] = set()
    turn = len(messages) - 1
    while turn > 0 and not (messages[turn].is_user_turn and not messages[turn].results):
        turn -= 1
    for index in range(max(0, turn), len(messages)):
        for block in messages[index].blocks:
            if isinstance(block, ToolCall):
                pending.add(block.id)
            elif isinstance(block, ToolResult):
                pending.discard(block.call_id)
    return pending


def first_turn(messages: Iterable[Message]) -> str:
    """Return the text of the user's first turn, empty where there is none."""
    return next((text for each in messages if (text := each.user_text)), "")


def in_context(message: Message, before: Message | None, *, has_calls: bool) -> Message:
    """Return a message as what comes right before it shows it: an action's observation is none.

    `has_calls` is whether the model called a tool earlier in the conversation.
    """
    if message.role != "user" or message.from_user is not None or before is None:
        return message
    if before.role != "assistant" or message.results or message.data_text:
        return message
    seen = is_observation(message.text, before.text, has_calls=has_calls)
    return replace(message, from_user=False) if seen else message


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
