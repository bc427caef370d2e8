"""What stays and what leaves: never a call without its result.

The active conversation is cut once. What comes before the cut leaves, but for system messages, a
provider's own compactions, messages that the caller keeps, and what belongs to them; what comes
after it stays. A cut inside a turn is allowed, a cut between a call and its result is not: the cut
moves back to the call.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from contextgauge.compaction.counting import Counter
from contextgauge.compaction.engine.linked_messages import (
    answered_by,
    belongs_to_previous,
    caller_of,
    ids_of,
    is_server_compaction,
    opened_by,
)
from contextgauge.compaction.messages import ContextCompaction, Message, Text, ToolResult


@dataclass(frozen=True, slots=True)
class Division:
    """A division of the active messages.

    `head` are those before the cut that stay, in order; `leaving` those that are summarised,
    without the `previous` compaction's message, which is replaced; `tail` stays as it is.
    """

    head: tuple[Message, ...]
    leaving: tuple[Message, ...]
    previous: Message | None
    tail: tuple[Message, ...]


def whole_cut(messages: Sequence[Message], cut: int) -> int:
    """Return the latest cut at or before `cut` that separates nothing that belongs together.

    That is a call and its result, also of a provider's own tools, and the parts of one answer that
    came as messages of their own. A call that has no result yet stays after the cut too: its
    result is still to come.
    """
    return next(whole_cuts(messages, cut), 0)


def whole_cuts(messages: Sequence[Message], cut: int) -> Iterator[int]:
    """Yield all cuts at or before `cut` that separate nothing that belongs together."""
    needed, waiting = _needed(messages)
    cut = min(cut, waiting)
    first = len(messages)  # what all messages from the cut on need
    for index in range(len(messages), -1, -1):
        first = min(first, needed[index]) if index < len(messages) else index
        if index <= cut and index <= first:
            yield index


def _needed(messages: Sequence[Message]) -> tuple[list[int], int]:
    """Return the first message that each one needs, and that of a call without a result."""
    opened: dict[str | None, int] = {}
    needed = list(range(len(messages)))
    waiting: set[str] = set()
    belongs = belongs_to_previous(messages)
    for index, message in enumerate(messages):
        if belongs[index]:
            needed[index] = index - 1
        if waiting and message.is_user_turn and not message.results:
            waiting.clear()  # interrupted: no result is to come
        for block in message.blocks:
            if isinstance(block, Text):
                continue
            if isinstance(block, ToolResult):
                waiting.discard(block.call_id)
                needed[index] = min(needed[index], opened.get(block.call_id, index))
                continue
            if (given := opened_by(block)) is not None:
                opened[given] = index
                waiting.add(given)
            elif (given := answered_by(block)) in opened:
                waiting.discard(given)
            others = opened.get(given, index), opened.get(caller_of(block), index)
            needed[index] = min(needed[index], *others)
    return needed, min((opened[each] for each in waiting), default=len(messages))


def select(
    messages: Sequence[Message],
    *,
    keep_last: int,
    keep_tokens: int | None,
    counter: Counter,
    keep_ids: frozenset[str] = frozenset(),
    keep_first: bool = False,
) -> Division:
    """Divide the active messages: the last `keep_last` stay, within `keep_tokens`.

    The last message stays whatever its size, unless `keep_last` is 0. With `keep_first` the first
    one does too, unless it is a compaction's, and the second may be a summary without a marker.
    """
    cut = whole_cut(messages, tail_start(messages, keep_last, keep_tokens, counter))
    return divide(messages, cut, keep_ids=keep_ids, keep_first=keep_first)


def divide(
    messages: Sequence[Message],
    cut: int,
    *,
    keep_ids: frozenset[str] = frozenset(),
    keep_first: bool = False,
) -> Division:
    """Divide the active messages at a cut that separates nothing that belongs together."""
    previous_at = _marker(messages, cut)
    if previous_at is None and keep_first and cut > 1 and former_compaction(messages[1]):
        previous_at = 1
    stays = _stays(messages, cut, keep_ids, keep_first=keep_first)
    head = [messages[index] for index in sorted(stays)]
    leaving = [
        each
        for index, each in enumerate(messages[:cut])
        if index not in stays and index != previous_at
    ]
    previous = None if previous_at is None else messages[previous_at]
    if previous is not None and previous.compaction is None and len(previous.blocks) > 1:
        leaving.insert(0, previous.with_blocks(previous.blocks[1:]))
    return Division(tuple(head), tuple(leaving), previous, tuple(messages[cut:]))


def tail_start(
    messages: Sequence[Message], keep_last: int, keep_tokens: int | None, counter: Counter
) -> int:
    """Return where the latest messages begin that stay, before calls are looked at."""
    first = max(0, len(messages) - keep_last)
    if keep_tokens is None or first == len(messages):
        return first
    tokens = 0
    for index in range(len(messages) - 1, first - 1, -1):
        tokens += counter.message(messages[index])
        if tokens > keep_tokens and index < len(messages) - 1:
            return index + 1
    return first


_SEED_002_HEADING: Final = re.compile(
    r"###? Session Summary\b(?: \((?:Compaction )?Round ([1-9][0-9]{0,5})\))?"
)
"""002 looks for two marks, its prompt asks for three."""


def former_compaction(message: Message) -> ContextCompaction | None:
    """Return a message's marker, or what 002's summary says where a provider's format has no more.

    002 knows its summary by its place, role and heading; one without a round is of the first. What
    comes after it may be a part of the same message: Responses joins what an assistant says.
    """
    if message.compaction is not None:
        return message.compaction
    text = message.blocks[0] if message.role == "assistant" and message.blocks else None
    heading = _SEED_002_HEADING.match(text.text) if isinstance(text, Text) else None
    if heading is None or not isinstance(text, Text):
        return None
    return ContextCompaction(int(heading[1] or 1), None, text.text, None, None)


def _marker(messages: Sequence[Message], cut: int) -> int | None:
    """Return where the last compaction's message stands, by its marker."""
    for index in range(cut - 1, -1, -1):
        if messages[index].compaction is not None:
            return index
    return None


def _stays(
    messages: Sequence[Message], cut: int, keep_ids: frozenset[str], *, keep_first: bool
) -> set[int]:
    """Return positions before the cut that stay, and what belongs to them.

    They are system messages, a provider's own compactions, and what the caller keeps.
    """
    stays: set[int] = set()
    pending: list[int] = []
    keep_ids -= {""}
    for index, message in enumerate(messages[:cut]):
        if message.role == "system":
            stays.add(index)
        if message.id in keep_ids or is_server_compaction(message):
            pending.append(index)
    if keep_first and cut and messages[0].compaction is None:
        pending.append(0)
    if not pending:
        return stays
    sharing: dict[str | int, list[int]] = {}
    shares: list[list[str | int]] = []
    run = 0
    for index, belongs in enumerate(belongs_to_previous(messages[:cut])):
        run = run if belongs else index
        shares.append([run, *ids_of(messages[index])])
        for each in shares[index]:
            sharing.setdefault(each, []).append(index)
    while pending:
        index = pending.pop()
        stays.add(index)
        for each in shares[index]:
            pending.extend(sharing.pop(each, ()))
    return stays
