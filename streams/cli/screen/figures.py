"""Formats of figures and texts on every screen, and fallbacks for limited encodings.

Unknown values are shown as `unknown`, never as zero. The status line draws with this: it
imports nothing that takes long (docs/adr/0069-the-status-line-reads-on.md).
"""

import codecs
import io
import sys
from collections.abc import Callable, Sequence

from streams.core.session_status import whole_percents

UNKNOWN = "unknown"

_KILO = 1_000

_SHORT = (
    (1_000, 1, 1, ""),
    (9_950, 100, 1_000, "K"),
    (999_500, 1_000, 1_000, "K"),
    (9_995_000, 10_000, 1_000_000, "M"),
    (99_950_000, 100_000, 1_000_000, "M"),
)
"""Short counts: below the first number, rounded to the second and shown in units of the third."""

_MILLIONS = (1_000_000, 1_000_000, "M")

GUESS = "~"
"""Stands before what is assumed or estimated, and before what is computed from it: a window that
was not reported, a size that no response has reported. What is computed from reported sizes has
none."""

_REPLACEMENTS = dict(zip("█░·→✓✗…▁▂▃▄▅▆▇", "#-->*x.__--==#", strict=True))
"""Replacements for terminals without Unicode; one character each, so columns stay aligned."""

_PLAIN = "contextgauge.plain"


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that an encoding lacks; a handler of `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_REPLACEMENTS.get(character, "?") for character in missing), error.end


def forgive_encodings() -> None:
    """Let standard output and error replace characters that their encoding lacks.

    An error handler that the user has set (as by `PYTHONIOENCODING=ascii:ignore`) stays.
    """
    codecs.register_error(_PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in {"strict", "surrogateescape"}:
            stream.reconfigure(errors=_PLAIN)


def safe(text: str) -> str:
    r"""Escape control characters and lone surrogates, as `\x1b`.

    IDs and names are input: they must not move the cursor or hide text.
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def thousands(tokens: int | None) -> str:
    """Return a short token count, as on the page: 950, 5.6K, 58K, 1.05M, 12.3M."""
    if tokens is None:
        return UNKNOWN
    sign, size = ("-", -tokens) if tokens < 0 else ("", tokens)
    step, unit, name = next((each[1:] for each in _SHORT if size < each[0]), _MILLIONS)
    rounded = (size + step // 2) // step
    return f"{sign}{rounded * step / unit:.15g}{name}"


def tokens_left(
    left: int, figure: Callable[[int], str], unit: str = "", *, estimated: bool = False
) -> str:
    """Return the tokens until compaction: `23K`, `due, 131K over`; `expected, ~12K over`."""
    mark, due = (GUESS, "expected") if estimated else ("", "due")
    if left > 0:
        return f"{mark}{figure(left)}{unit}"
    return f"{due}, {mark}{figure(-left)}{unit} over" if left else due


def exact(tokens: int | None) -> str:
    """Return a count with its digits grouped: 58,432."""
    return UNKNOWN if tokens is None else f"{tokens:,}"


def roughly(number: int) -> str:
    """Return an estimated count with the two digits that are worth reading: ~47, ~150, ~1,300."""
    step = 10 ** max(len(str(number)) - 2, 0)
    return f"{GUESS}{exact((number + step // 2) // step * step)}"


def count(number: float, name: str) -> str:
    """Return a number of things, of a mean one digit: 1 message, 2.9 messages, 1,200 messages."""
    return f"{number:,.1f}".removesuffix(".0") + f" {name}" + ("" if number == 1 else "s")


def first_of(files: Sequence[str]) -> str:
    """Return what names files by the first of them: a.jsonl, a.jsonl and 3 other files."""
    more = len(files) - 1
    return files[0] if not more else f"{files[0]} and {count(more, 'other file')}"


def size(number: int) -> str:
    """Return a size in bytes: 812 B, 4.2 kB, 8.4 MB, 1,200.0 MB."""
    if number < _KILO:
        return f"{number} B"
    if number < _KILO * _KILO:
        return f"{number / _KILO:.1f} kB"
    return f"{number / _KILO / _KILO:,.1f} MB"


def percent(used_percent: float | None) -> str:
    """Return a percentage as a whole number, floored: 99.99 is not yet 100%, 0.4 is <1%."""
    if used_percent is None:
        return UNKNOWN
    return "<1%" if 0 < used_percent < 1 else f"{whole_percents(used_percent)[0]}%"


def remaining(used_percent: float) -> str:
    """Return what remains of a window: with `percent` of the same value it adds up to 100."""
    return ">99%" if 0 < used_percent < 1 else f"{max(0, whole_percents(used_percent)[1])}%"


def duration(duration_ms: int | None) -> str:
    """Return a duration: 800 ms, 12.3 s, 2 min 5 s, 3 h 20 min, 4 d 3 h.

    Rounded to the nearest second, below a minute to the nearest tenth, as on the page.
    """
    if duration_ms is None:
        return UNKNOWN
    if duration_ms < 1_000:
        return f"{duration_ms} ms"
    if duration_ms < 59_950:
        return f"{(duration_ms + 50) // 100 / 10:.1f} s"
    seconds = (duration_ms + 500) // 1_000
    for size, unit, smaller, smaller_unit in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if seconds >= size:
            rest = seconds % size // smaller
            return f"{seconds // size} {unit}" + (f" {rest} {smaller_unit}" if rest else "")
    raise AssertionError(seconds)


def elapsed(since_ms: int, now_ms: int) -> str:
    """Return the time since `since_ms` in whole seconds: tenths would flicker.

    A time in this clock's future is 0 s ago.
    """
    seconds = max(0, now_ms - since_ms) // 1_000
    return f"{seconds} s" if seconds < 60 else duration(seconds * 1_000)


def ago(then_ms: int | None, now_ms: int) -> str:
    """Return how long ago a time was, in one unit: 45 s ago, 90 min ago, 20 h ago, 3 d ago.

    A time in this clock's future is `now`.
    """
    if then_ms is None:
        return UNKNOWN
    seconds = (now_ms - then_ms) // 1_000
    if seconds < 1:
        return "now"
    for size, unit, up_to in ((1, "s", 120), (60, "min", 7_200), (3_600, "h", 172_800)):
        if seconds < up_to:
            return f"{seconds // size} {unit} ago"
    return f"{seconds // 86_400} d ago"
