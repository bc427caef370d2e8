"""What stays and what leaves: never a call without its result.

The active conversation is cut once. What comes before the cut leaves, but for system messages,
messages that the caller keeps, and what belongs to them; what comes after it stays. A cut inside
a turn is allowed, a cut between a call and its result is not: the cut moves back to the call.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from contextgauge.compaction.counting import Counter
from contextgauge.compaction.messages import Message, Thinking, ToolCall, ToolResult


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

    @property
    def covers(self) -> int:
        """Number of active messages up to the cut."""
        return len(self.head) + len(self.leaving) + (self.previous is not None)


def whole_cut(messages: Sequence[Message], cut: int) -> int:
    """Return the latest cut at or before `cut` that separates nothing that belongs together.

    That is a call and its result, and reasoning that came as a message of its own and the message
    after it. A call that has no result yet stays after the cut too: its result is still to come.
    """
    first_call: dict[str, int] = {}
    needed = list(range(len(messages) + 1))
    answered: set[str] = set()
    for index, message in enumerate(messages):
        if index and _only_reasoning(messages[index - 1]):
            needed[index] = index - 1
        if message.is_user_turn and not message.results:
            answered.update(first_call)  # interrupted: no result is to come
        for block in message.blocks:
            if isinstance(block, ToolCall):
                first_call[block.id] = index
                answered.discard(block.id)
            elif isinstance(block, ToolResult) and block.call_id in first_call:
                needed[index] = min(needed[index], first_call[block.call_id])
                answered.add(block.call_id)
    unanswered = [index for call, index in first_call.items() if call not in answered]
    cut = min([cut, *unanswered])
    index = len(messages) - 1
    while index >= cut >= 0:
        cut = min(cut, needed[index])
        index -= 1
    return cut


def _only_reasoning(message: Message) -> bool:
    return bool(message.blocks) and all(isinstance(each, Thinking) for each in message.blocks)


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
    one does too, unless it is a compaction's.
    """
    cut = whole_cut(messages, tail_start(messages, keep_last, keep_tokens, counter))
    previous_at = _marker(messages, cut)
    stays = _stays(messages, cut, keep_ids, keep_first=keep_first)
    head = [each for index, each in enumerate(messages[:cut]) if index in stays]
    leaving = [
        each
        for index, each in enumerate(messages[:cut])
        if index not in stays and index != previous_at
    ]
    previous = None if previous_at is None else messages[previous_at]
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


def _marker(messages: Sequence[Message], cut: int) -> int | None:
    """Return where the last compaction's message stands, by its marker."""
    for index in range(cut - 1, -1, -1):
        if messages[index].compaction is not None:
            return index
    return None


def _stays(
    messages: Sequence[Message], cut: int, keep_ids: frozenset[str], *, keep_first: bool
) -> set[int]:
    """Return positions before the cut that stay: system, kept ones, and what belongs to them."""
    stays = {
        index
        for index, message in enumerate(messages[:cut])
        if message.role == "system" or (message.id and message.id in keep_ids)
    }
    if keep_first and cut and messages[0].compaction is None:
        stays.add(0)
    return _with_calls(messages, cut, stays) if keep_ids or keep_first else stays


def _with_calls(messages: Sequence[Message], cut: int, stays: set[int]) -> set[int]:
    """Return positions with those of their messages' calls and results."""
    by_call: dict[str, list[int]] = {}
    for index, message in enumerate(messages[:cut]):
        for block in message.blocks:
            if isinstance(block, ToolCall):
                by_call.setdefault(block.id, []).append(index)
            elif isinstance(block, ToolResult):
                by_call.setdefault(block.call_id, []).append(index)
    pending = list(stays)
    while pending:
        for block in messages[pending.pop()].blocks:
            call = (
                block.id
                if isinstance(block, ToolCall)
                else block.call_id
                if isinstance(block, ToolResult)
                else None
            )
            for index in by_call.pop(call, ()) if call is not None else ():
                if index not in stays:
                    stays.add(index)
                    pending.append(index)
    return stays
