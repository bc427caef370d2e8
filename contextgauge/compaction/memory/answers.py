"""Answers of the memory tool: numbered lines, listings and sizes, as Anthropic documents them."""

from collections.abc import Sequence
from typing import Final

from contextgauge.compaction.memory.files import MemoryEntry
from contextgauge.compaction.memory.paths import MemoryToolError, shown

_NUMBER_WIDTH: Final = 6

_LISTED_DEPTH: Final = 2

_REPEATED: Final = 20
"""Line numbers in an answer to an ambiguous `str_replace`: enough to see that it is."""

_KIB: Final = 1_024


def cut_lines(lines: Sequence[str], first: int, limit: int) -> str:
    """Return numbered lines, as many as `limit` characters allow, and where to go on."""
    room = limit
    shown_lines: list[str] = []
    for line in _numbered(lines, first):
        room -= len(line) + 1
        if room < 0:
            break
        shown_lines.append(line)
    if len(shown_lines) == len(lines):
        return "\n".join(shown_lines)
    if not shown_lines:
        shown_lines = [f"{_numbered(lines[:1], first)[0][:limit]} [line cut]"]
    if left := len(lines) - len(shown_lines):
        next_line = first + len(shown_lines)
        shown_lines.append(f"[{left:,} more lines: view them with view_range [{next_line}, -1]]")
    return "\n".join(shown_lines)


def line_range(value: object, lines: int) -> tuple[int, int]:
    """Return the first and last line to show of a `view_range`. Raises MemoryToolError."""
    if value is None:
        return 1, lines
    if isinstance(value, list | tuple) and len(value) == 2:  # noqa: PLR2004 -- first and last
        first, last = value
        if type(first) is int and type(last) is int:
            last = lines if last == -1 else min(last, lines)
            if max(1, first) <= last:
                return max(1, first), last
    raise MemoryToolError(
        f"Error: Invalid `view_range` parameter: {shown(str(value))}. It should be within the "
        f"range of lines of the file: [1, {lines}]"
    )


def _numbered(lines: Sequence[str], first: int) -> list[str]:
    return [f"{number:{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first)]


def lines_of(text: str, part: str) -> str:
    """Return the numbers of the lines in which the part begins."""
    numbers: list[str] = []
    line, counted, place = 1, 0, text.find(part)
    while place >= 0:
        if len(numbers) == _REPEATED:
            return ", ".join((*numbers, "..."))
        line += text.count("\n", counted, place)
        counted = place
        numbers.append(str(line))
        place = text.find(part, place + len(part))
    return ", ".join(numbers)


def listing(path: str, entries: Sequence[MemoryEntry]) -> str:
    """Return what is in a folder, two levels deep, each with the size of its content."""
    base = path.rstrip("/")
    total = sum(each.size_bytes for each in entries if not each.is_folder)
    lines = [f"{_size(total)}\t{base}"]
    for each in entries:
        hidden = any(name.startswith(".") or name == "node_modules" for name in each.names)
        if len(each.names) <= _LISTED_DEPTH and not hidden:
            name = "/".join(each.names) + "/" * each.is_folder
            lines.append(f"{_size(each.size_bytes)}\t{base}/{name}")
    header = (
        f"Here're the files and directories up to 2 levels deep in {base}, excluding hidden items "
        "and node_modules:"
    )
    return "\n".join((header, *lines))


def _size(size_bytes: int) -> str:
    """Return a size for people, such as `512B`, `5.5K` and `1.2M`."""
    if size_bytes < _KIB:
        return f"{size_bytes}B"
    size, unit = size_bytes / _KIB, "K"
    if size >= _KIB:
        size, unit = size / _KIB, "M"
    return f"{size:.1f}{unit}"
