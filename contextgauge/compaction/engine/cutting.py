"""Texts made short: cut at a length, in the middle, or evenly."""

from collections.abc import Sequence
from typing import Final

MINIMUM_CHARACTERS: Final = 200
"""Shorter results stay: a notice in their place would save next to nothing."""

_HEAD_CHARACTERS: Final = 200
"""What stays of an argument: enough to see what it was."""


def cut(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters: its beginning, and how much was cut."""
    if len(text) <= limit:
        return text
    head = min(_HEAD_CHARACTERS, limit // 2)
    return f"{text[:head]}\n[{len(text) - head:,} characters left out]"


def even_limit(lengths: Sequence[int], room: int) -> int:
    """Return the length to which the longest are cut so that all fit into `room`."""
    left = room
    ordered = sorted(lengths)
    for index, length in enumerate(ordered):
        even = left // (len(ordered) - index)
        if length > even:
            return even
        left -= length
    return max(ordered, default=0)


def middle_cut(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters: beginning and end, and how much was cut.

    Short texts stay, and a hundred characters of a longer one, however low the limit is.
    """
    if len(text) <= max(limit, MINIMUM_CHARACTERS):
        return text
    room = max(MINIMUM_CHARACTERS // 2, limit - len(_cut_note(len(text))))
    head = room * 2 // 3
    tail = room - head
    return text[:head] + _cut_note(len(text) - room) + (text[-tail:] if tail else "")


def _cut_note(characters: int) -> str:
    return f"\n[{characters:,} characters left out]\n"
