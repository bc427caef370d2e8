"""Lines of a type that is not read, though they carry figures of the context.

A newer version of a runtime may write a size, a window or a compaction under a new type. What a
field is called shows which it is: runtimes call tokens tokens.
"""

import re
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.normalise.fields import MAX_NAME
from contextgauge.normalise.runtimes import IGNORED, RUNTIMES, UNKNOWN, line_of
from contextgauge.normalise.signals import Body
from contextgauge.records import Json

Figure: TypeAlias = Literal["a compaction", "a window", "usage"]

_NAMES: Final[tuple[tuple[Figure, re.Pattern[str]], ...]] = (
    ("a compaction", re.compile(r"(?:.*[a-z_.])?[Cc]ompact\w*")),
    ("a window", re.compile(r"\w*(?:[Cc]ontext_?[Ww]indow|[Tt]oken_?[Ll]imit)\w*")),
    ("usage", re.compile(r"(?:\w*(?:[a-z]T|_t)|[tT])okens?|(?:\w*(?:[a-z]U|_u)|[uU])sage\w*")),
)
_DEPTH: Final = 3
_MARKS: Final = (b"oken", b"sage", b"ompact", b"indow")
"""One of these is in the bytes of any line with such a name."""

_READ: Final = re.compile(
    r'"type"\s*:\s*"(?:{})"'.format(
        "|".join(re.escape(kind) for each in RUNTIMES for kind in (*each.types, *each.ignored))
    ).encode()
)
"""In the bytes of nearly all lines: parsing these again would take as long as deriving them. A line
of a new type around one that is read is not seen for that."""


class UnreadLine(NamedTuple):
    """The type of a line that is not read, and what it carries."""

    type: str
    figure: Figure


class UnreadKind(NamedTuple):
    """Lines of one type in one file, and the runtime that wrote them, as far as it is known."""

    file: str
    line: UnreadLine
    runtime: str | None
    version: str | None


def may_be_unread(value: bytes) -> bool:
    """Return whether a line may be one, by its bytes."""
    return _READ.search(value) is None and any(mark in value for mark in _MARKS)


def unread_line(body: Body) -> UnreadLine | None:
    """Return what a line carries that is not read; None where it is read, or carries nothing."""
    kind = body.get("type")
    if (
        not isinstance(kind, str)
        or len(kind) > MAX_NAME
        or kind in IGNORED
        or line_of(body) is not UNKNOWN
    ):
        return None
    for figure, names in _NAMES:
        if (figure == "a compaction" and names.fullmatch(kind)) or _has(body, names, _DEPTH):
            return UnreadLine(kind, figure)
    return None


def _has(value: dict[str, Json], names: re.Pattern[str], depth: int) -> bool:
    """Return whether a number or an object has such a name."""
    for field, item in value.items():
        is_figure = isinstance(item, dict | int | float) and not isinstance(item, bool)
        if is_figure and len(field) <= MAX_NAME and names.fullmatch(field):
            return True
        if depth and isinstance(item, dict) and _has(item, names, depth - 1):
            return True
    return False
