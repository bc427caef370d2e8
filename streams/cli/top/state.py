"""What the user of `contextgauge top` has chosen, and what each key changes: no terminal here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from schemas.views import ChainView, SessionView
from streams.cli.screen.render import shown_chain, state_word
from streams.cli.screen.sessions_table import folder_words, live_first, successful
from streams.core.session_status import leading_chain, status_of
from streams.core.until_compaction import NO_POINTS, CompactionPoints
from streams.ports import Ranking

_PAGE = 10
"""Rows that a page key moves by."""

_MOVES = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -_PAGE, "page down": _PAGE}

_SORTS = {"p": "Context", "r": "Active"}

_NEXT_COLUMN = {"<": -1, "left": -1, ">": 1, "right": 1}

_FAR = 1_000_000
"""To the first or the last row."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """`selected` and `opened` are session ids; `opened` is the one whose detail is shown.

    `typing`: keys go into the filter. `scroll` is the first line of the detail that is shown.
    `sort` is a column.
    """

    sort: str = "Context"
    reverse: bool = False
    helping: bool = False
    filter: str = ""
    typing: bool = False
    selected: str | None = None
    opened: str | None = None
    scroll: int = 0
    leaving: bool = False

    @property
    def ranking(self) -> Ranking:
        """Which sessions to read, where there are more than fit."""
        return "recent" if self.sort == "Active" else "pressure"


_Key: TypeAlias = Callable[[SessionView, ChainView, int], float | str | None]

COLUMNS: Final[Mapping[str, _Key]] = {
    "Session": lambda view, _, _now: view.session_id,
    "Folder": lambda view, _, _now: folder_words(view.identity.cwd, 2) or None,
    "Model": lambda view, chain, _now: chain.model or view.identity.model,
    "Context": lambda _, chain, _now: _most(chain.used_percent),
    "Tokens": lambda _, chain, _now: _most(chain.used_tokens),
    "Source": lambda _, chain, _now: chain.window_source,
    "Until": lambda view, chain, _now: _until(view, chain, NO_POINTS),
    "Growth": lambda _, chain, _now: _most(chain.growth_tokens),
    "State": lambda view, _, now_ms: status_of(view).state(now_ms),
    "Comp.": lambda view, _, _now: _most(successful(view)),
    "Active": lambda view, _, _now: _most(view.last_ms),
}
"""What each column sorts by, the first row the least; unknown values come last."""


def _until(view: SessionView, chain: ChainView, points: CompactionPoints) -> int | None:
    until = status_of(view, points).until_compaction.get(chain.chain)
    return None if until is None else until.tokens


def _most(value: float | None) -> float | None:
    """Return what puts the greatest value first."""
    return None if value is None else -value


def rows(
    views: Sequence[SessionView],
    chosen: Chosen,
    now_ms: int,
    titles: Mapping[str, str] | None = None,
    points: CompactionPoints = NO_POINTS,
) -> list[SessionView]:
    """Return the sessions to show, in order: those that the filter fits, live ones first.

    `points` are where compactions are expected.
    """
    key = COLUMNS[chosen.sort]
    if chosen.sort == "Until":
        key = lambda view, chain, _now: _until(view, chain, points)  # noqa: E731 -- as in the table
    fitting = matching(views, chosen.filter, now_ms, titles)
    keyed = [(key(view, shown_chain(view), now_ms), view) for view in fitting]
    known = sorted(
        (item for item in keyed if item[0] is not None),
        key=lambda item: item[0],  # type: ignore[arg-type,return-value]  # of one column, one type
        reverse=chosen.reverse,
    )
    unknown = [view for value, view in keyed if value is None]
    return live_first([*(view for _, view in known), *unknown], now_ms)


def matching(
    views: Sequence[SessionView],
    text: str,
    now_ms: int,
    titles: Mapping[str, str] | None = None,
) -> list[SessionView]:
    """Return the sessions that a filter fits.

    It looks into their id, model, state, runtime, folder, agent, task and title.
    """
    parts = text.casefold().split()
    names = titles or {}
    return [
        view
        for view in views
        if all(part in _words(view, now_ms, names.get(view.session_id)) for part in parts)
    ]


def _words(view: SessionView, now_ms: int, title: str | None) -> str:
    who, leading = view.identity, leading_chain(view)
    known = (
        view.session_id,
        None if leading is None else leading.model,
        state_word(status_of(view).state(now_ms)),
        None if view.attempt is None else "compacting",  # one that has stalled is, too
        who.model,
        who.runtime,
        who.cwd,
        who.publisher_agent_id,
        who.task_id,
        title,
    )
    return " ".join(word for word in known if word).casefold()


def press(chosen: Chosen, key: str, shown: Sequence[SessionView]) -> Chosen:
    """Return what is chosen after a key, `shown` being the rows that the filter leaves."""
    if chosen.typing:
        return _typed(chosen, key)
    if key == "q":
        return replace(chosen, leaving=True)
    if key == "?" or chosen.helping:
        return replace(chosen, helping=not chosen.helping)
    if chosen.opened is not None:
        return _in_detail(chosen, key)
    if key == "/":
        return replace(chosen, typing=True)
    if key in {"escape", "clear"}:
        return replace(chosen, filter="")
    return _ordered(chosen, key) or _in_rows(chosen, key, shown)


def _ordered(chosen: Chosen, key: str) -> Chosen | None:
    """Return what is chosen after a key that changes the order; None for another key."""
    if key in _SORTS:
        return replace(chosen, sort=_SORTS[key], reverse=False)
    if key in _NEXT_COLUMN:
        names = list(COLUMNS)
        column = names[(names.index(chosen.sort) + _NEXT_COLUMN[key]) % len(names)]
        return replace(chosen, sort=column, reverse=False)
    return replace(chosen, reverse=not chosen.reverse) if key == "R" else None


def _in_rows(chosen: Chosen, key: str, shown: Sequence[SessionView]) -> Chosen:
    if key in _MOVES:
        return replace(chosen, selected=_moved(chosen.selected, shown, _MOVES[key]))
    if key in {"home", "end"}:
        return replace(
            chosen, selected=_moved(chosen.selected, shown, -_FAR if key == "home" else _FAR)
        )
    if key == "enter" and shown:
        selected = _moved(chosen.selected, shown, 0)
        return replace(chosen, selected=selected, opened=selected, scroll=0)
    return chosen


def _typed(chosen: Chosen, key: str) -> Chosen:
    if key == "enter":
        return replace(chosen, typing=False)
    if key == "escape":
        return replace(chosen, typing=False, filter="")
    if key == "backspace":
        return replace(chosen, filter=chosen.filter[:-1])
    if key == "clear":
        return replace(chosen, filter="")
    return replace(chosen, filter=chosen.filter + key) if len(key) == 1 else chosen


def _in_detail(chosen: Chosen, key: str) -> Chosen:
    if key in {"escape", "enter", "backspace"}:
        return replace(chosen, opened=None, scroll=0)
    if key in _MOVES:
        return replace(chosen, scroll=max(0, chosen.scroll + _MOVES[key]))
    if key in {"home", "end"}:
        return replace(chosen, scroll=0 if key == "home" else _FAR)
    return chosen


def place_of(selected: str | None, shown: Sequence[SessionView]) -> int:
    """Return the row that is selected: the first, where the session is not among them."""
    return next((index for index, view in enumerate(shown) if view.session_id == selected), 0)


def _moved(selected: str | None, shown: Sequence[SessionView], by: int) -> str | None:
    if not shown:
        return selected
    index = place_of(selected, shown) + by
    return shown[max(0, min(index, len(shown) - 1))].session_id
