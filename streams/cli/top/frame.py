"""One frame of `contextgauge top`, as wide and as high as the terminal."""

from collections.abc import Mapping
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.layout import Layout
from rich.segment import SegmentLines
from rich.text import Text

from schemas.views import Compaction, SessionView
from streams.cli.screen.figures import ago, count, exact, safe
from streams.cli.screen.render import compactions_table, shown_chain, status_box
from streams.cli.screen.sessions_table import NOTHING_HERE, live_table
from streams.cli.screen.tables import plain_table
from streams.cli.top.state import Chosen, place_of, rows
from streams.core.session_status import THRESHOLDS
from streams.core.until_compaction import NO_POINTS, CompactionPoints
from streams.serve.views.snapshot import STALE_MS, Snapshot

_KEYS = "q quit · ? help · p r < > sort · R reverse · / filter · ↑↓ select · Enter open"
_FEW_KEYS = "q quit · ? help · / filter · ↑↓ Enter"
_HELP_KEYS = "any key: back · q quit"
_TYPING_KEYS = "Enter apply · Esc clear"
_DETAIL_KEYS = "Esc back · ↑↓ scroll · q quit"

_HELP = (
    ("p", "sort by pressure: the fullest first"),
    ("r", "sort by last activity"),
    ("< >  ← →", "sort by the column before or after"),
    ("R", "reverse the order"),
    ("/", "filter by id, title, model, runtime, state, folder, agent or task"),
    ("Esc", "clear the filter"),
    ("↑ ↓  k j", "select a session"),
    ("Page keys", "ten rows up or down; Home and End: the first, the last"),
    ("Enter", "details of the session, with all its compactions"),
    ("?", "this list"),
    ("q", "quit"),
)
"""What the keys do; docs/TOP.md has the same list."""

_HELP_NOTE = (
    "Whatever the order, live sessions come before quiet ones, which are dimmed: they have had no "
    "record for half an hour. Until is what is left until automatic compaction. ~ marks what is "
    "assumed or estimated."
)

_SORT_NAMES = {"Context": "pressure", "Active": "recent"}

NOTHING = "No sessions yet: publish some while a derive and a project worker run"


class LocalState(NamedTuple):
    """How far transcripts have been read, without Redis.

    `is_own`: they are those of this machine's runtimes, and not of paths that were named.
    `progress` is None once all has been read; `problem` is what could not be.
    """

    is_own: bool
    progress: str | None = None
    problem: str | None = None


class Overview(NamedTuple):
    """Sessions, how many there are in all, and the age of the views.

    `snapshot` is None before the first projection. `newest_ms` is the time of the latest record in
    the views, None where there is none. `titles` are by session id, `points` where compactions are
    expected. `local` is None for sessions from Redis.
    """

    snapshot: Snapshot | None
    views: tuple[SessionView, ...] = ()
    total: int = 0
    newest_ms: int | None = None
    titles: Mapping[str, str] = {}
    points: CompactionPoints = NO_POINTS
    local: LocalState | None = None

    @property
    def nothing(self) -> str:
        """What is shown where there is no session."""
        if self.local is None:
            return NOTHING
        return self.local.progress or NOTHING_HERE

    def behind(self) -> str | None:
        """Return why the views are stale; None: they are not."""
        if self.snapshot is None or not self.snapshot.is_stale:
            return None
        age = self.snapshot.as_of()
        silent_ms, lag_ms = age["silent_ms"], age["lag_ms"]
        if self.local is not None:
            return "a file takes long to be read: these figures may be old"
        if not isinstance(silent_ms, int) or silent_ms > STALE_MS:
            return "no project worker is at work on all partitions: these figures may be old"
        seconds = lag_ms // 1_000 if isinstance(lag_ms, int) else 0
        return f"the project worker is {seconds} s behind: these figures are old"


class Detail(NamedTuple):
    """One session, and all of its successful compactions, the newest first."""

    view: SessionView
    compactions: tuple[Compaction, ...]
    points: CompactionPoints = NO_POINTS


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
        room = max(0, height - len(head) - 1)
        if self._chosen.helping:
            body: RenderableType = _help()
        elif self._chosen.opened is not None:
            whole = console.render_lines(self._detail(), options.update(height=None))
            self.last_scroll = max(0, len(whole) - room)
            begin = min(self._chosen.scroll, self.last_scroll)
            body = SegmentLines(whole[begin : begin + room], new_lines=True)
        else:
            body = self._sessions(width, room)
        one_line = Text("\n", no_wrap=True, overflow="ellipsis")
        layout = Layout()
        layout.split_column(
            Layout(one_line.join(head), size=len(head)),
            Layout(body),
            Layout(one_line.join([Text(self._keys(width), style="dim")]), size=1),
        )
        yield layout

    def _sessions(self, width: int, room: int) -> RenderableType:
        overview = self._known.overview
        if overview is None:
            return Text()
        chosen, points = self._chosen, overview.points
        shown = rows(overview.views, chosen, self._now_ms, overview.titles, points)
        if not shown:
            no_match = "No session matches the filter: Esc clears it"
            return Text(no_match if self._chosen.filter else overview.nothing, style="dim")
        height = max(1, room - 1)
        index = place_of(self._chosen.selected, shown)
        first = index // height * height
        return live_table(
            shown,
            self._now_ms,
            width,
            range(first, min(first + height, len(shown))),
            selected=index,
            titles=overview.titles,
            sorted_by=self._chosen.sort,
            points=points,
        )

    def _detail(self) -> RenderableType:
        detail = self._known.detail
        if detail is None or detail.view.session_id != self._chosen.opened:
            return Text("reading the session …", style="dim")
        return Group(
            status_box(detail.view, self._now_ms, detail.points, compactions=False),
            compactions_table(detail.view, detail.compactions, self._now_ms),
        )

    def _title(self, width: int) -> Text:
        overview = self._known.overview
        if overview is None:
            return Text("contextgauge", style="bold")
        left = title(overview, self._chosen)
        right = _right(overview, self._now_ms)
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
        local = None if known.overview is None else known.overview.local
        if local is not None and local.problem is not None:
            notices.append(Text(safe(local.problem), style="yellow"))
        if chosen.typing or chosen.filter:
            cursor = "█" if chosen.typing else ""
            notices.append(Text(f"filter: {safe(chosen.filter)}{cursor}", style="cyan"))
        return notices

    def _keys(self, width: int) -> str:
        if self._chosen.typing:
            return _TYPING_KEYS
        if self._chosen.helping:
            return _HELP_KEYS
        if self._chosen.opened is not None:
            return _DETAIL_KEYS
        return _KEYS if len(_KEYS) <= width else _FEW_KEYS


def _help() -> RenderableType:
    table = plain_table("Key", "What it does", wrap=("What it does",))
    for key, what in _HELP:
        table.add_row(key, what)
    return Group(table, Text(), Text(_HELP_NOTE, style="dim"))


def title(overview: Overview, chosen: Chosen) -> Text:
    """Return the title: the number of sessions, and what is urgent."""
    views = overview.views
    more = f", the first {exact(len(views))}" if overview.total > len(views) else ""
    place = " on this machine" if overview.local is not None and overview.local.is_own else ""
    sessions = f"  {count(overview.total, 'session')}{place}"
    line = Text.assemble(("contextgauge", "bold"), sessions, (more, "dim"))
    compacting = sum(view.attempt is not None for view in views)
    high = sum((shown_chain(view).used_percent or 0) >= THRESHOLDS.high_percent for view in views)
    if compacting:
        line.append(" · ", style="dim").append(f"{compacting} compacting", style="magenta")
    if high:
        over = f"{high} over {THRESHOLDS.high_percent}%"
        line.append(" · ", style="dim").append(over, style="yellow")
    by = _SORT_NAMES.get(chosen.sort, chosen.sort.lower())
    reverse = ", reversed" if chosen.reverse else ""
    return line.append(f" · by {by}{reverse}", style="dim")


def once(overview: Overview, now_ms: int, width: int) -> RenderableType:
    """Return a frame for a pipe: all rows, without keys."""
    if not overview.views:
        return Text(overview.nothing)
    chosen = Chosen()
    views = rows(overview.views, chosen, now_ms)
    head = title(overview, chosen).append(" · ").append(_age(overview, now_ms))
    if (behind := overview.behind()) is not None:
        head.append(f"\n{behind}", style="yellow")
    titles, points = overview.titles, overview.points
    table = live_table(views, now_ms, width, range(len(views)), titles=titles, points=points)
    return Group(head, table)


def _right(overview: Overview, now_ms: int) -> Text:
    """Return the right end of the title: how current the figures are."""
    if overview.local is not None and overview.local.progress is not None:
        return Text(overview.local.progress, style="dim")
    return _age(overview, now_ms)


def _age(overview: Overview, now_ms: int) -> Text:
    if overview.newest_ms is not None:
        text = f"newest record {ago(overview.newest_ms, now_ms)}"
    else:
        text = "newest record of unknown time" if overview.views else "no record yet"
    return Text(text, style="dim")
