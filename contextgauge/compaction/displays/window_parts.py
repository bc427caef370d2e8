"""What fills a window, by a conversation's messages: estimates that sum to what was measured.

    size at the first response, less its messages: what is sent besides messages, as tools
    size at the last response, less that: its messages, by kind in proportion to their estimates

Characters are counted, as a token is worth more of them in one text than in another; the measured
size corrects that for all together. What is measured beyond what the messages may be is `other`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from contextgauge.compaction.counting import CHARACTERS_PER_TOKEN, ESTIMATE, ROLE_TOKENS
from contextgauge.compaction.engine.request_size import LARGEST_ERROR
from contextgauge.compaction.messages import (
    Block,
    ContextCompaction,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

PartKind: TypeAlias = Literal[
    "overhead",
    "system",
    "summary",
    "user",
    "attachments",
    "images",
    "assistant",
    "thinking",
    "tool_calls",
    "tool_results",
    "other",
]
"""`overhead` is what the first response's size has beyond its messages: system prompt, definitions
of tools, memory. `system` is what of these the file has as messages."""


class ToolTokens(NamedTuple):
    """The results of one tool; `name` is None where the call is not known."""

    name: str | None
    tokens: int


class WindowPart(NamedTuple):
    """One kind of what fills a window; of results also by tool, the largest first."""

    kind: PartKind
    tokens: int
    tools: tuple[ToolTokens, ...] = ()


class Measured(NamedTuple):
    """What was measured since the conversation began, or since its last compaction.

    `first` and `last` are the places of the first and the last answer among the messages, the
    tokens what each of them read: what is before it.
    """

    first: int
    first_tokens: int
    last: int
    tokens: int


_Unit: TypeAlias = tuple[PartKind, str | None]
"""A kind, and of results the tool."""

_ATTACHED: Final[_Unit] = ("attachments", None)


def filling_of(
    messages: Sequence[Message],
    measured: Measured,
    *,
    attachments: Collection[str] = (),
    cleared: Collection[str] = (),
    system_characters: int = 0,
) -> tuple[WindowPart, ...]:
    """Return what filled the window at the last answer; the parts sum to its tokens.

    `attachments` are ids of messages that a runtime added, `cleared` ids of calls whose results
    were removed since, `system_characters` are those of a system prompt that is not among the
    messages. Kinds without a token are left out.
    """
    estimates: defaultdict[_Unit, int] = defaultdict(int)
    estimates["system", None] = -(-system_characters // CHARACTERS_PER_TOKEN)
    tools = {call.id: call.name for each in messages for call in each.calls}
    own = [None if each.id in attachments else each for each in messages[: measured.last]]
    fresh_from = _last_turn(own)
    before_first = 0
    for place, message in enumerate(messages[: measured.last]):
        if place == measured.first:
            before_first = sum(estimates.values())
        for unit, tokens in _units(message, tools, cleared, thinks=place >= fresh_from):
            estimates[_ATTACHED if message.id in attachments else unit] += tokens
    if measured.first == measured.last:
        before_first = sum(estimates.values())
    overhead = min(max(0, measured.first_tokens - before_first), measured.tokens)
    total = sum(estimates.values())
    explained = min(measured.tokens - overhead, total * LARGEST_ERROR)
    shares = _shares(explained, estimates)
    shares["overhead", None] = overhead
    shares["other", None] += measured.tokens - overhead - explained
    return tuple(_parts(shares))


def _last_turn(messages: Sequence[Message | None]) -> int:
    """Return where the user's last turn is.

    Reasoning from before it is not sent again: providers leave it out.
    """
    turns = (place for place, each in enumerate(messages) if each and each.is_user_turn)
    return max(turns, default=0)


def _units(
    message: Message, tools: dict[str, str], cleared: Collection[str], *, thinks: bool
) -> Iterator[tuple[_Unit, int]]:
    """Yield the estimates of a message's parts."""
    yield (_KINDS_OF_ROLES[message.role], None), ROLE_TOKENS
    for block in message.blocks:
        if isinstance(block, ToolResult):
            name = block.name or tools.get(block.call_id)
            for each in () if block.call_id in cleared else block.content:
                is_image = isinstance(each, Image)
                yield ("images", None) if is_image else ("tool_results", name), _tokens(each)
        elif thinks or not isinstance(block, Thinking):
            yield (_kind_of(block, message), None), _tokens(block)


def _kind_of(block: Block, message: Message) -> PartKind:
    match block:
        case Text():
            return _KINDS_OF_ROLES[message.role]
        case ToolCall():
            return "tool_calls"
        case Thinking():
            return "thinking"
        case Image():
            return "images"
        case ContextCompaction():
            return "summary"
    return "other"


_KINDS_OF_ROLES: Final[dict[Role, PartKind]] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",  # what is written next to results
}


def _tokens(block: Block) -> int:
    return ESTIMATE.message(Message("user", (block,))) - ROLE_TOKENS


def _shares(tokens: int, estimates: dict[_Unit, int]) -> defaultdict[_Unit, int]:
    """Return so many tokens in proportion to the estimates, whole and all of them."""
    total = sum(estimates.values())
    shares: defaultdict[_Unit, int] = defaultdict(int)
    if not total:
        return shares
    rests = []
    for unit, estimate in estimates.items():
        shares[unit], rest = divmod(tokens * estimate, total)
        rests.append((-rest, str(unit), unit))
    for _, _, unit in sorted(rests)[: tokens - sum(shares.values())]:
        shares[unit] += 1
    return shares


def _parts(shares: dict[_Unit, int]) -> Iterator[WindowPart]:
    for kind in get_args(PartKind):
        of_kind = [(unit[1], tokens) for unit, tokens in shares.items() if unit[0] == kind]
        tokens = sum(each for _, each in of_kind)
        if not tokens:
            continue
        by_tool = sorted(of_kind, key=lambda each: (-each[1], each[0] or ""))
        tools = tuple(ToolTokens(*each) for each in by_tool if each[1])
        yield WindowPart(kind, tokens, tools if kind == "tool_results" else ())
