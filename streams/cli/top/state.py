"""What the user of `contextgauge top` has chosen, and what each key changes: no terminal here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from schemas.views import SessionView
from streams.core.session_status import leading_chain, status_of
from streams.ports import Ranking

_PAGE = 10
"""Rows that a page key moves by."""

_MOVES = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -_PAGE, "page down": _PAGE}

_FAR = 1_000_000
"""To the first or the last row."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """`selected` and `opened` are session ids; `opened` is the one whose detail is shown.

    `typing`: keys go into the filter. `scroll` is the first line of the detail that is shown.
    """

    ranking: Ranking = "pressure"
    filter: str = ""
    typing: bool = False
    selected: str | None = None
    opened: str | None = None
    scroll: int = 0
    leaving: bool = False


def live_first(views: Sequence[SessionView], now_ms: int) -> list[SessionView]:
    """Return a ranking by pressure, with those that are stale below the others as full as they."""

    def used(view: SessionView) -> float | None:
        leading = leading_chain(view)
        return None if leading is None else leading.used_percent

    return [
        view
        for _, equal in groupby(views, used)
        for view in sorted(equal, key=lambda each: status_of(each).state(now_ms) == "stale")
    ]


def matching(views: Sequence[SessionView], text: str, now_ms: int) -> list[SessionView]:
    """Return the sessions that a filter fits.

    It looks into their id, model, state, runtime, folder, agent and task.
    """
    wanted = text.casefold().split()
    return [view for view in views if all(word in _words(view, now_ms) for word in wanted)]


def _words(view: SessionView, now_ms: int) -> str:
    who, leading = view.identity, leading_chain(view)
    known = (
        view.session_id,
        None if leading is None else leading.model,
        status_of(view).state(now_ms),
        None if view.attempt is None else "compacting",  # one that has stalled is, too
        who.model,
        who.runtime,
        who.cwd,
        who.publisher_agent_id,
        who.task_id,
    )
    return " ".join(word for word in known if word).casefold()


def press(chosen: Chosen, key: str, shown: Sequence[SessionView]) -> Chosen:
    """Return what is chosen after a key, `shown` being the rows that the filter leaves."""
    if chosen.typing:
        return _typed(chosen, key)
    if key == "q":
        return replace(chosen, leaving=True)
    if chosen.opened is not None:
        return _in_detail(chosen, key)
    if key in {"p", "r"}:
        return replace(chosen, ranking="pressure" if key == "p" else "recent")
    if key == "/":
        return replace(chosen, typing=True)
    if key in {"escape", "clear"}:
        return replace(chosen, filter="")
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
    return next((at for at, view in enumerate(shown) if view.session_id == selected), 0)


def _moved(selected: str | None, shown: Sequence[SessionView], by: int) -> str | None:
    if not shown:
        return selected
    at = place_of(selected, shown) + by
    return shown[max(0, min(at, len(shown) - 1))].session_id
