"""Tokens: what an API reported where it did, else an estimate.

Tokenizers need tables that few machines have; characters are at hand: the estimate is seed 002's,
a token for four characters, rounded up for each part. What an API reports replaces it as soon as
there is an answer: then only what follows the last one is estimated (`engine.request_size`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final, Literal, Protocol, TypeAlias, TypeGuard

from contextgauge.compaction.formats import marker, plain
from contextgauge.compaction.formats.fields import a_count, an_object, json_text
from contextgauge.compaction.messages import (
    ApiUsage,
    Block,
    Image,
    Message,
    ModelRequest,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from contextgauge.records import Json

CHARACTERS_PER_TOKEN: Final = 4
"""Of English and code; too few for some other scripts, which an API's report corrects."""

ROLE_TOKENS: Final = 2
"""What each message costs on top of its content (002)."""

Basis: TypeAlias = Literal["reported", "estimated"]


class Counter(Protocol):
    """Counts tokens without calling an API."""

    def text(self, text: str) -> int:
        """Return the tokens of a text."""
        ...

    def message(self, message: Message) -> int:
        """Return the tokens of a message, all that is sent of it included."""
        ...


@dataclass(frozen=True, slots=True)
class Estimate:
    """A token for four characters, rounded up for each part, and two for each role."""

    def text(self, text: str) -> int:
        """Return the estimate of a text."""
        return -(-len(text) // CHARACTERS_PER_TOKEN)

    def message(self, message: Message) -> int:
        """Return the estimate of a message: calls by name and arguments, images by their size."""
        return ROLE_TOKENS + _blocks_tokens(message.blocks, self.text)


ESTIMATE: Final[Counter] = Estimate()


def message_tokens(message: Message, counter: Counter) -> int:
    """Return the tokens of a message whose texts a counter counts."""
    return ROLE_TOKENS + _blocks_tokens(message.blocks, counter.text)


def _blocks_tokens(blocks: Iterable[Block], text_tokens: Callable[[str], int]) -> int:
    tokens = 0
    for block in blocks:
        if isinstance(block, Text):
            tokens += text_tokens(block.text)
        elif isinstance(block, ToolCall):
            tokens += text_tokens(block.name) + text_tokens(block.arguments)
        elif isinstance(block, ToolResult):
            tokens += _blocks_tokens(block.content, text_tokens)
        elif isinstance(block, Image):
            tokens += block.tokens
        elif isinstance(block, Thinking | Opaque):  # partly encrypted: no text to be counted
            tokens += -(-block.characters // CHARACTERS_PER_TOKEN)
        else:
            tokens += text_tokens(block.summary)
    return tokens


@dataclass(frozen=True, slots=True)
class Seed002Counter:
    """Seed 002's `estimateTokens` and `estimateMessagesTokens`.

    Arguments and results count as JSON, and the `toolCalls` of an assistant's message on top of its
    parts. A message is counted as the plain format writes it.
    """

    def text(self, text: str) -> int:
        """Return `estimateTokens(text)`."""
        return _estimate_tokens(text)

    def message(self, message: Message) -> int:
        """Return what the message adds to `estimateMessagesTokens`."""
        if len(message.blocks) == 1 and _is_plain_text(only := message.blocks[0], message):
            return ROLE_TOKENS + _estimate_tokens(only.text)
        written = plain.write_message(message)
        return ROLE_TOKENS if written is None else core_message_tokens(written)


def _is_plain_text(block: Block, message: Message) -> TypeGuard[Text]:
    """Whether a message's only block is all that its plain form has to count."""
    if not isinstance(block, Text):
        return False
    source = message.source
    if source is None or source.format != plain.FORMAT or not isinstance(source.value, dict):
        return True
    return source.value.get("content") is block.text


def core_message_tokens(message: Mapping[str, Json]) -> int:
    """Return what a `CoreMessage` adds to seed 002's `estimateMessagesTokens`."""
    tokens = ROLE_TOKENS
    content = message.get("content")
    if isinstance(content, str):
        tokens += _estimate_tokens(content)
    elif isinstance(content, list):
        tokens += sum(_part_tokens(part) for part in content if isinstance(part, dict))
    calls = message.get("toolCalls")
    if message.get("role") == "assistant" and isinstance(calls, list):
        tokens += sum(_call_tokens(call) for call in calls if isinstance(call, dict))
    return tokens


def _part_tokens(part: Mapping[str, Json]) -> int:
    kind = part.get("type")
    if kind == "text":
        return _estimate_tokens(part.get("text"))
    if kind == "tool-call":
        return _call_tokens(part)
    if kind == "tool-result":
        return _stringified_tokens(part, "result")
    if kind == marker.KIND:  # 002's own message of a compaction has its summary as text
        return _estimate_tokens(part.get("summary"))
    return 0


def _call_tokens(call: Mapping[str, Json]) -> int:
    return _estimate_tokens(call.get("toolName")) + _stringified_tokens(call, "args")


def _stringified_tokens(fields: Mapping[str, Json], name: str) -> int:
    """Count a field as JSON; a missing one is undefined in 002, which is no text."""
    return _estimate_tokens(json_text(fields[name])) if name in fields else 0


def _estimate_tokens(text: Json) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN) if isinstance(text, str) else 0


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a request, tokens. `tokens` is what is sent: system, tools and messages.

    The three parts are estimates also where the whole was `reported`; `messages` is then the rest.
    `reserved` is the answer's share of the window and not part of `tokens`.
    """

    tokens: int
    system: int
    tools: int
    messages: int
    reserved: int
    basis: Basis


def estimated_size(request: ModelRequest, counter: Counter) -> Size:
    """Return an estimate of the size of a request, whatever an API reported."""
    system = counter.text(request.system)
    tools = sum(map(counter.text, request.tools))
    messages = sum(map(counter.message, request.messages))
    whole = system + tools + messages
    return Size(whole, system, tools, messages, request.reserved_output_tokens, "estimated")


@dataclass(frozen=True, slots=True)
class CumulativeTokens:
    """What a session's answers cost so far: sums over all of them, also of archived ones (004).

    A session without data stands at zero. `largest_context` is the most that one answer read.
    """

    answers: int = 0
    input: int = 0
    output: int = 0
    last_context: int = 0
    last_output: int = 0
    largest_context: int = 0

    @classmethod
    def of(cls, messages: Iterable[Message]) -> "CumulativeTokens":
        """Return the sums over messages that have a usage."""
        total = cls()
        for message in messages:
            if message.usage is not None:
                total = total.add(message.usage)
        return total

    @property
    def total(self) -> int:
        """Input and output."""
        return self.input + self.output

    @property
    def mean_context(self) -> float:
        """What one answer read on average."""
        return self.input / self.answers if self.answers else 0.0

    @property
    def mean_output(self) -> float:
        """What one answer wrote on average."""
        return self.output / self.answers if self.answers else 0.0

    def add(self, usage: ApiUsage) -> "CumulativeTokens":
        """Return the sums with one more answer."""
        return replace(
            self,
            answers=self.answers + 1,
            input=self.input + usage.context,
            output=self.output + usage.output,
            last_context=usage.context,
            last_output=usage.output,
            largest_context=max(self.largest_context, usage.context),
        )

    def to_json(self) -> dict[str, Json]:
        """Return the sums for a session's metadata, `total` included."""
        return {**asdict(self), "total": self.total}

    @classmethod
    def from_json(cls, value: Json) -> "CumulativeTokens":
        """Read what `to_json` wrote; null or missing counts are zero. Raises ConfigError."""
        if value is None:
            return cls()
        fields = an_object(value, "token usage")
        counts = {
            name: a_count(fields, name, "token usage")
            for name in cls.__slots__
            if fields.get(name) is not None
        }
        return cls(**counts)
