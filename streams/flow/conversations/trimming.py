"""Keeping a session's lines within their bounds: the oldest archived messages go first."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from streams.codec.conversations import (
    SessionEntry,
    StoredLine,
    add_line,
    fold_of,
    read_line,
    write_base,
)
from streams.core.conversation.fold import ConversationFold
from streams.core.conversation.opt_in import KeptConversations

_TARGET: Final = 0.75
"""Share of the bound to which lines are cut, so that it is not done for every message."""
_MOST: Final = 0.875
"""Share of the bound that active messages may take: else each new one would cut again."""


class Trimmed(NamedTuple):
    """A session's entry and lines after a cut."""

    entry: SessionEntry
    lines: Sequence[bytes]


def exceeds(entry: SessionEntry, kept: KeptConversations) -> bool:
    """Whether a session has more lines than it should have, archived ones included."""
    return entry.size > kept.max_bytes or entry.lines > 2 * kept.max_messages


def trim(entry: SessionEntry, lines: Sequence[bytes], kept: KeptConversations) -> Trimmed:
    """Replace the oldest lines by a base: what was active when they ended.

    Where what is active is too much by itself, nothing is kept until the next compaction.
    Raises VersionError.
    """
    read = [read_line(each) for each in lines]
    fold, cuts = fold_of(entry, ()), list[tuple[SessionEntry, bytes, int]]()
    rest, lines_left = sum(map(len, lines)), len(lines)
    begun = fold.compactions
    for index, (line, value) in enumerate(zip(read, lines, strict=True)):
        add_line(fold, line)
        rest -= len(value)
        lines_left -= 1
        if fold.compactions == begun and lines_left:
            continue
        begun = fold.compactions
        base = _base_of(fold, line)
        # A base that is read again begins with what was known then, so the entry says that too.
        at_cut = replace(entry, is_too_large=fold.state == "too_large")
        if _fits(len(base) + rest, lines_left, kept, _TARGET):
            return _cut(at_cut, [base, *lines[index + 1 :]])
        cuts.append((at_cut, base, index))
    at_cut, base, index = cuts[-1]
    active = len(fold.history.active)
    if active > kept.max_messages or len(base) > _MOST * kept.max_bytes:
        return Trimmed(replace(entry, lines=0, size=0, is_too_large=True), ())
    return _cut(at_cut, [base, *lines[index + 1 :]])


def _fits(size: int, lines: int, kept: KeptConversations, share: float) -> bool:
    return size <= share * kept.max_bytes and lines <= share * 2 * kept.max_messages


def _base_of(fold: ConversationFold, line: StoredLine) -> bytes:
    return write_base(StoredLine(line.offset, line.time_ms, None, fold.base()))


def _cut(entry: SessionEntry, lines: Sequence[bytes]) -> Trimmed:
    return Trimmed(replace(entry, lines=len(lines), size=sum(map(len, lines))), lines)


def without_until(
    entry: SessionEntry, lines: Sequence[bytes], deleted_ms: int, *, everything: bool = False
) -> Trimmed:
    """Leave out the text that was published until a time; a base is left out with it.

    Raises VersionError.
    """
    after = [each for each in lines if not everything and _is_after(read_line(each), deleted_ms)]
    entry = replace(
        entry,
        lines=len(after),
        size=sum(map(len, after)),
        is_whole=False,
        is_too_large=False,
        deleted_ms=max(deleted_ms, entry.deleted_ms or 0),
    )
    return Trimmed(entry, after)


def _is_after(line: StoredLine, time_ms: int) -> bool:
    return line.base is None and line.time_ms > time_ms
