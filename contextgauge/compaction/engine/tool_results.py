"""The rungs before a summary: old tool results made short, in place, and what fits of messages.

None of them calls a model or archives a message. The history keeps the original of what is
cleared: where the model can recall it, the notice names the message.

Results are cleared by value, lowest first: old ones before new ones, large ones before small ones,
what later messages never mention before what they use (seed 004's quality scores), until the
target is reached. The last `clear_keep` uses, excluded tools, calls without a result and results
that the model has not read yet are left alone (`clear_tool_uses_20250919`).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from contextgauge.compaction.carried.failure_lines import failure_in
from contextgauge.compaction.counting import Counter
from contextgauge.compaction.engine.cutting import MINIMUM_CHARACTERS, even_limit, middle_cut
from contextgauge.compaction.engine.tool_arguments import Edited, fit_arguments
from contextgauge.compaction.formats.signatures import is_signed
from contextgauge.compaction.messages import (
    Content,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    images_of,
)
from contextgauge.compaction.profiles import Profile

_PATH: Final = re.compile(r"(?<![\w./\\-])[\w\\-]*+[./][\w./\\-]*+")
"""A word with a dot or a slash."""

_SAME: Final = "[A later call of this tool has the same result, below.]"

_LONGEST_PATH: Final = 300
"""A longer word with a dot or slash is data, not a path."""

_FAILURE_CHARACTERS: Final = 200
_FAILURE_END: Final = 130
"""Of what a failed result says, and of them the end: what failed comes first, why mostly last."""


class ReturnedCall(NamedTuple):
    """One call with its result: where both stand in the active messages."""

    call: ToolCall
    result: ToolResult
    message: int
    block: int
    characters: int


def tool_uses(messages: Sequence[Message]) -> list[ReturnedCall]:
    """Return the calls that have a result, in the order of the results."""
    calls: dict[str, ToolCall] = {}
    uses: list[ReturnedCall] = []
    for index, message in enumerate(messages):
        for position, block in enumerate(message.blocks):
            if isinstance(block, Text):
                continue
            if isinstance(block, ToolCall):
                calls[block.id] = block
            elif isinstance(block, ToolResult) and (call := calls.get(block.call_id)) is not None:
                uses.append(ReturnedCall(call, block, index, position, _characters(block.content)))
    return uses


def _characters(content: Iterable[Content]) -> int:
    """Return the size of a result, images included."""
    characters = 0
    for each in content:
        if isinstance(each, Text):
            characters += len(each.text)
        elif isinstance(each, Image):
            characters += 4 * each.tokens
    return characters


def deduplicate(messages: Sequence[Message], profile: Profile) -> Edited:
    """Replace results that the same tool gave again later, word for word, by a reference."""
    results = (block for each in messages for block in each.blocks if isinstance(block, ToolResult))
    texts = [text for each in results if len(text := each.text) >= MINIMUM_CHARACTERS]
    if len(set(texts)) == len(texts):
        return Edited(list(messages), ())
    latest: dict[str, dict[str, ReturnedCall]] = {}
    edited = _Editing(messages)
    for use in reversed(tool_uses(messages)):
        if use.characters < MINIMUM_CHARACTERS or use.call.name in profile.exclude_tools:
            continue
        later = latest.setdefault(use.call.name, {}).setdefault(use.result.text, use)
        if later is not use and _only_text(use.result):
            edited.replace_result(use, _SAME)
    return edited.done()


def clear_results(
    messages: Sequence[Message],
    profile: Profile,
    counter: Counter,
    excess_tokens: int,
    *,
    offers_recall: bool = False,
) -> Edited:
    """Clear old results, the least valuable first, until `excess_tokens` are saved."""
    uses = tool_uses(messages)
    unread = _unread_from(messages)
    candidates = [
        use
        for use in uses[: max(0, len(uses) - profile.clear_keep)]
        if use.message < unread
        and use.characters >= MINIMUM_CHARACTERS
        and use.call.name not in profile.exclude_tools
    ]
    if sum([use.characters // 4 for use in candidates]) > excess_tokens:
        values = _values(candidates, messages)
        order = sorted(range(len(candidates)), key=values.__getitem__)
        candidates = [candidates[index] for index in order]
    edited = _Editing(messages)
    saved = 0
    for use in candidates:  # all of them where that saves no more than is needed
        if saved >= excess_tokens:
            break
        recallable = messages[use.message].id if offers_recall else None
        notice = _notice(use, recallable)
        saving = use.characters // 4 - counter.text(notice)
        if saving > 0:
            edited.replace_result(use, notice)
            saved += saving
    return edited.done()


def _unread_from(messages: Sequence[Message]) -> int:
    """Return where the messages begin that the model has not answered yet."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "assistant":
            return index + 1
    return 0


def _values(candidates: Sequence[ReturnedCall], messages: Sequence[Message]) -> list[float]:
    """Return what each result is worth, 0 to about 3: age, size, use in later messages."""
    used = _used_later(candidates, messages)
    total = max(1, len(messages))
    values = []
    for use, again in zip(candidates, used, strict=True):
        recency = use.message / total
        smallness = 1 / (1 + use.characters / 2_000)
        error = 0.25 if use.result.is_error else 0.0
        values.append(recency + 0.5 * smallness + (1.0 if again else 0.0) + error)
    return values


def _used_later(candidates: Sequence[ReturnedCall], messages: Sequence[Message]) -> list[bool]:
    """Return whether later messages, a call or a text of either side, mention a call's paths."""
    used = [False] * len(candidates)
    place = len(candidates) - 1
    later: set[str] = set()
    read: dict[int, set[str]] = {}
    for index in range(len(messages) - 1, -1, -1):
        while place >= 0 and candidates[place].message == index:
            call = candidates[place].call
            read[id(call)] = _paths(call.arguments[:2_000])
            used[place] = not later.isdisjoint(read[id(call)])
            place -= 1
        if place < 0:
            break
        for block in messages[index].blocks:
            if isinstance(block, Text):
                later |= _paths(block.text[:4_000])
            elif isinstance(block, ToolCall):
                paths = read.pop(id(block), None)
                later |= _paths(block.arguments[:2_000]) if paths is None else paths
    return used


def _paths(text: str) -> set[str]:
    """Return the words that look like files: with a dot or a slash inside."""
    paths = set()
    for each in _PATH.findall(text):
        word = each.rstrip(".")
        if len(word) <= _LONGEST_PATH and ("." in word or "/" in word):
            paths.add(word)
    return paths


def _notice(use: ReturnedCall, recallable: str | None) -> str:
    """Return what stands for a result; `recallable` is its message's id where a model can ask."""
    content = use.result.content
    characters = sum([len(each.text) for each in content if isinstance(each, Text)])
    images = images_of(content)
    parts = [f"{characters:,} characters"] if characters or not images else []
    what = " and ".join([*parts, *([images] if images else [])])
    how = "" if recallable is None else f" To see it again: recall {recallable}."
    notice = f"[Result of {use.call.name} cleared to save context: {what}.{how}]"
    failure = failure_in(use.result.text, is_error=use.result.is_error)
    if len(failure) > _FAILURE_CHARACTERS:
        failure = f"{failure[: _FAILURE_CHARACTERS - _FAILURE_END]}…{failure[-_FAILURE_END:]}"
    return f"{failure}\n{notice}" if failure else notice


def _only_text(result: ToolResult) -> bool:
    return all(isinstance(each, Text) for each in result.content)


class _Editing:
    """Messages of which results are being replaced."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = list(messages)
        self._changed: set[int] = set()

    def replace_result(self, use: ReturnedCall, notice: str) -> None:
        message = self._messages[use.message]
        result = use.result.with_content((Text(notice),))
        before, after = message.blocks[: use.block], message.blocks[use.block + 1 :]
        self._messages[use.message] = message.with_blocks((*before, result, *after))
        self._changed.add(use.message)

    def done(self) -> Edited:
        changed = tuple(self._messages[index].id for index in sorted(self._changed))
        return Edited(self._messages, changed)


def shorten_message(message: Message, limit_tokens: int, counter: Counter) -> Message:
    """Shorten the largest parts of one message until it fits: results and texts, from the middle.

    Calls, thinking and opaque items stay as they are: an API checks them against its own; so does
    a text that is signed.
    """
    tokens = counter.message(message)
    if tokens <= limit_tokens or is_signed(message):
        return message
    parts = _text_parts(message)
    total = sum(len(text) for text in parts)
    fixed = tokens - total // 4
    room = max(0, limit_tokens - fixed) * 4
    limit = even_limit([len(text) for text in parts], room)
    return _with_texts(message, lambda text: middle_cut(text, limit))


def _text_parts(message: Message) -> list[str]:
    texts: list[str] = []
    for block in message.blocks:
        if isinstance(block, Text):
            texts.append(block.text)
        elif isinstance(block, ToolResult):
            texts.extend(each.text for each in block.content if isinstance(each, Text))
    return texts


def _with_texts(message: Message, change: Callable[[str], str]) -> Message:
    blocks = tuple(
        replace(block, text=change(block.text))
        if isinstance(block, Text)
        else block.with_content(
            replace(each, text=change(each.text)) if isinstance(each, Text) else each
            for each in block.content
        )
        if isinstance(block, ToolResult)
        else block
        for block in message.blocks
    )
    return message.with_blocks(blocks)


def fitting(
    messages: Sequence[Message], room_tokens: int | None, profile: Profile, counter: Counter
) -> list[Message]:
    """Shorten the largest of some messages until all fit, or nothing is left to shorten.

    System messages stay. The arguments of answered calls are the last that is touched, those of
    older ones first, and no more of them than is needed. None is no bound.
    """
    fitted = list(messages)
    if room_tokens is None:
        return fitted
    sizes = [counter.message(each) for each in fitted]
    if sum(sizes) <= room_tokens:
        return fitted
    system = sum(size for size, each in zip(sizes, fitted, strict=True) if each.role == "system")
    others = [size for size, each in zip(sizes, fitted, strict=True) if each.role != "system"]
    limit = even_limit(others, max(0, room_tokens - system))
    large = [
        index for index, size in enumerate(sizes) if size > limit and fitted[index].role != "system"
    ]
    for index in large:
        fitted[index] = shorten_message(fitted[index], limit, counter)
    excess = sum(map(counter.message, fitted)) - room_tokens
    if excess > 0:
        still = [index for index in large if counter.message(fitted[index]) > limit]
        fitted = fit_arguments(fitted, profile, still, counter, excess).messages
    return fitted
