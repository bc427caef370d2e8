"""One frame of `contextgauge top`, as wide and as high as the terminal."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from schemas.views import SessionView
from streams.cli.screen.output import ago, count, exact, safe
from streams.cli.screen.render import shown_chain, status_box
from streams.cli.top.columns import header_and_rows
from streams.cli.top.compactions import compactions_table
from streams.cli.top.overview import Detail, Overview
from streams.cli.top.state import Chosen, matching, place_of
from streams.core.session_status import THRESHOLDS

_KEYS = "q quit · p pressure · r recent · / filter · ↑↓ select · Enter details"
_FEW_KEYS = "q quit · p r sort · / filter · ↑↓ Enter"
_TYPING_KEYS = "Enter apply · Esc clear"
_DETAIL_KEYS = "Esc back · ↑↓ scroll · q quit"

NOTHING = "No sessions yet: publish some while a derive and a project worker run"


class ScreenContent(NamedTuple):
    """What to show: `read_ms` is when it was read, `problem` why it is not newer."""

    overview: Overview | None = None
    detail: Detail | None = None
    read_ms: int = 0
    problem: str | None = None


class Frame:
    """One frame, for rich. `last_scroll` is the maximum scroll position of the detail."""

    def __init__(self, known: ScreenContent, chosen: Chosen, now_ms: int) -> None:
        self._known, self._chosen, self._now_ms = known, chosen, now_ms
        self.last_scroll = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or console.height
        head = [self._title(width), *self._notices()]
        foot = [Text(self._keys(width), style="dim")]
        room = max(0, height - len(head) - len(foot))
        body = self._body(console, options, room)
        lines = [_line(console, options, text) for text in head]
        lines += body[:room]
        lines += [[Segment(" " * width)]] * (room - len(body[:room]))
        lines += [_line(console, options, text) for text in foot]
        for at, line in enumerate(lines[:height]):
            yield from line
            if at + 1 < min(len(lines), height):
                yield Segment.line()

    def _body(self, console: Console, options: ConsoleOptions, room: int) -> list[list[Segment]]:
        if self._chosen.opened is not None:
            whole = console.render_lines(self._detail(), options.update(height=None))
            self.last_scroll = max(0, len(whole) - room)
            begin = min(self._chosen.scroll, self.last_scroll)
            return whole[begin : begin + room]
        overview = self._known.overview
        if overview is None:
            return []
        shown = matching(overview.views, self._chosen.filter, self._now_ms)
        rows = max(1, room - 1)
        at = place_of(self._chosen.selected, shown)
        first = at // rows * rows
        texts = header_and_rows(shown, self._now_ms, options.max_width, first, rows)
        if shown:
            texts[1 + at - first].stylize("reverse")
        elif self._chosen.filter:
            texts = [Text("No session matches the filter: Esc clears it", style="dim")]
        else:
            texts = [Text(NOTHING, style="dim")]
        return [_line(console, options, text) for text in texts]

    def _detail(self) -> RenderableType:
        detail = self._known.detail
        if detail is None or detail.view.session_id != self._chosen.opened:
            return Text("reading the session …", style="dim")
        return Group(
            status_box(detail.view, self._now_ms, compactions=False),
            compactions_table(detail, self._now_ms),
        )

    def _title(self, width: int) -> Text:
        overview = self._known.overview
        if overview is None:
            return Text("contextgauge", style="bold")
        left = title(overview)
        right = _age(overview.newest_ms, self._now_ms)
        gap = width - left.cell_len - right.cell_len
        return left.append(" " * gap).append(right) if gap > 0 else left

    def _notices(self) -> list[Text]:
        notices = []
        known, chosen = self._known, self._chosen
        if known.problem is not None:
            since = f"figures of {ago(known.read_ms, self._now_ms)}: " if known.read_ms else ""
            notices.append(Text(f"{since}{safe(known.problem)}", style="bold red"))
        elif known.overview is not None and (behind := known.overview.behind()) is not None:
            notices.append(Text(behind, style="yellow"))
        if chosen.typing or chosen.filter:
            cursor = "█" if chosen.typing else ""
            notices.append(Text(f"filter: {safe(chosen.filter)}{cursor}", style="cyan"))
        return notices

    def _keys(self, width: int) -> str:
        if self._chosen.typing:
            return _TYPING_KEYS
        if self._chosen.opened is not None:
            return _DETAIL_KEYS
        return _KEYS if len(_KEYS) <= width else _FEW_KEYS


def title(overview: Overview) -> Text:
    """Return the title: the number of sessions, and what is urgent."""
    views = overview.views
    line = Text("contextgauge", style="bold").append(
        f"  {count(overview.total, 'session')}", style="not bold"
    )
    if overview.total > len(views):
        line.append(f", the first {exact(len(views))}", style="not bold dim")
    for number, words, style in (
        (_counted(views, _is_compacting), "compacting", "magenta"),
        (_counted(views, _is_high), f"over {THRESHOLDS.high_percent}%", "yellow"),
    ):
        if number:
            line.append(" · ", style="not bold dim").append(f"{number} {words}", style=style)
    line.append(" · ", style="not bold dim").append(f"by {overview.ranking}", style="not bold dim")
    return line


def once(known: ScreenContent, now_ms: int, width: int) -> RenderableType:
    """Return a frame for a pipe: all rows, without keys."""
    overview = known.overview
    if overview is None or not overview.views:
        return Text(NOTHING)
    head = title(overview)
    head.append(" · ").append(_age(overview.newest_ms, now_ms))
    if (behind := overview.behind()) is not None:
        head.append(f"\n{behind}", style="yellow")
    rows = header_and_rows(overview.views, now_ms, width, 0, len(overview.views))
    return Group(head, *rows)


def _age(newest_ms: int | None, now_ms: int) -> Text:
    text = "no record yet" if newest_ms is None else f"newest record {ago(newest_ms, now_ms)}"
    return Text(text, style="not bold dim")


def _counted(views: Sequence[SessionView], fits: Callable[[SessionView], bool]) -> int:
    return sum(1 for view in views if fits(view))


def _is_compacting(view: SessionView) -> bool:
    return view.attempt is not None


def _is_high(view: SessionView) -> bool:
    return (shown_chain(view).used_percent or 0) >= THRESHOLDS.high_percent


def _line(console: Console, options: ConsoleOptions, text: Text) -> list[Segment]:
    """Return a text as one full-width line, truncated if too long."""
    cut = text.copy()
    cut.truncate(options.max_width, overflow="ellipsis", pad=True)
    cut.no_wrap, cut.end = True, ""
    lines = console.render_lines(cut, options.update(height=None, no_wrap=True), pad=True)
    return lines[0]
