"""How the status line looks: its parts, which to drop where there is no room, its colours."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from streams.cli.screen.figures import (
    GUESS,
    UNKNOWN,
    count,
    duration,
    elapsed,
    percent,
    safe,
    thousands,
    tokens_left,
)
from streams.cli.statusline.figures import Figures
from streams.core.session_status import Severity, latest, severity_of, stalled_from

_BAR_CELLS = (10, 5, 0)

_BETWEEN = " · "

_RED, _YELLOW, _GREEN, _MAGENTA, _DIM, _BOLD = "31", "33", "32", "35", "2", "1"


class _Piece(NamedTuple):
    """Text with one ANSI code; empty: the terminal's own colours."""

    text: str
    look: str = ""


_STEPS = ("last", "bar", "compactions", "model", "bar", "until", "size")
"""What goes first where there is no room, the bar by halves; at last there is the percentage."""


def draw(figures: Figures, now_ms: int, width: int, *, in_colour: bool) -> str:
    """Return the line, as much of it as fits into `width` columns."""
    for dropped in range(len(_STEPS) + 1):
        pieces = list(_pieces(figures, now_ms, _STEPS[:dropped]))
        if sum(len(piece.text) for piece in pieces) <= width:
            break
    else:
        whole = "".join(piece.text for piece in pieces)
        pieces = [_Piece(whole[: max(0, width - 1)] + "…")]
    if not in_colour:
        return "".join(piece.text for piece in pieces)
    return "".join(f"\x1b[{look}m{text}\x1b[0m" if look else text for text, look in pieces if text)


def _pieces(figures: Figures, now_ms: int, dropped: Sequence[str]) -> Iterator[_Piece]:
    model = "" if figures.model is None or "model" in dropped else safe(figures.model)
    size = "" if "size" in dropped else _size(figures)
    words = [
        [_Piece(model, _BOLD)] if model else [],
        list(_bar(figures, _BAR_CELLS[dropped.count("bar")])),
        list(_label(figures, now_ms)),
        [_Piece(size)] if size else [],
    ]
    for index, word in enumerate([word for word in words if word]):
        if index:
            yield _Piece(" ")
        yield from word
    if "until" not in dropped and figures.until_compaction_tokens is not None:
        yield _Piece(_BETWEEN, _DIM)
        left = figures.until_compaction_tokens
        estimated = figures.until_is_estimated or figures.is_partial
        until = tokens_left(left, thousands, estimated=estimated)
        yield _Piece(f"{'compaction is' if left <= 0 else 'compacts in'} {until}")
    if figures.compactions and "compactions" not in dropped:
        yield _Piece(_BETWEEN, _DIM)
        yield _Piece(_compactions(figures), _DIM)
        last_ms = None if figures.is_partial else figures.last_duration_ms
        if "last" not in dropped and last_ms is not None:
            yield _Piece(f", last {duration(last_ms)}", _DIM)


def _bar(figures: Figures, cells: int) -> Iterator[_Piece]:
    """Yield the bar; only here is a percentage clamped."""
    used = figures.used_percent
    if cells and used is None:
        yield _Piece("·" * cells, _DIM)
    elif cells and used is not None:
        filled = min(cells, max(0, int(used * cells / 100)))
        yield _Piece("█" * filled, _look(figures))
        yield _Piece("░" * (cells - filled), _DIM)


def _label(figures: Figures, now_ms: int) -> Iterator[_Piece]:
    """Yield the percentage, or what is known instead."""
    used, look = figures.used_percent, _look(figures)
    shown = "" if used is None else f"{_mark(figures)}{percent(used)}"
    if figures.state == "compacting":
        yield _Piece(_attempt(figures, now_ms), _MAGENTA)
        if shown:
            yield _Piece(f" at {shown}", look)
    elif shown:
        yield _Piece(shown, look)
    elif figures.used_tokens is None:
        yield _Piece(UNKNOWN, _DIM)


def _attempt(figures: Figures, now_ms: int) -> str:
    started_ms, heartbeat_ms = figures.attempt_started_ms, figures.attempt_heartbeat_ms
    last_sign_ms = latest((started_ms, heartbeat_ms))
    stalled_from_ms = stalled_from(last_sign_ms)
    if last_sign_ms is not None and stalled_from_ms is not None and now_ms >= stalled_from_ms:
        return f"compaction stalled {elapsed(last_sign_ms, now_ms)}"
    return "compacting" if started_ms is None else f"compacting {elapsed(started_ms, now_ms)}"


def _size(figures: Figures) -> str:
    """Return `58K/128K`; `of 128K` while nothing is measured."""
    if figures.used_tokens is None:
        return "" if figures.window is None else f"of {_mark(figures)}{thousands(figures.window)}"
    used = f"{GUESS if figures.is_partial else ''}{thousands(figures.used_tokens)}"
    if figures.window is not None:
        return f"{used}/{_mark(figures)}{thousands(figures.window)}"
    if figures.window_source != "exceeded" or figures.passed_window is None:
        return f"{used}/{UNKNOWN}"
    return f"{used}/{UNKNOWN}, passed {thousands(figures.passed_window)}"


def _mark(figures: Figures) -> str:
    return GUESS if figures.window_is_doubtful or figures.is_partial else ""


def _compactions(figures: Figures) -> str:
    number = count(figures.compactions, "compaction")
    return f"at least {number}" if figures.is_partial else number


_LOOKS: Mapping[Severity, str] = {
    "unknown": "",
    "normal": _GREEN,
    "elevated": _GREEN,
    "high": _YELLOW,
    "critical": _RED,
}


def _look(figures: Figures) -> str:
    left = figures.until_compaction_tokens
    return _LOOKS[severity_of(figures.used_percent, left, figures.window)]
