"""The data of `contextgauge top`, from one snapshot of the views."""

from typing import NamedTuple

from schemas.views import Compaction, SessionView
from streams.codec import views as view_codec
from streams.ports import Clock, Ranking, ViewReader
from streams.serve.views.sessions import Sessions
from streams.serve.views.snapshot import STALE_MS, Snapshot, Snapshots


class Overview(NamedTuple):
    """The first sessions of a ranking, how many there are in all, and the age of the views.

    `snapshot` is None before the first projection. `newest_ms` is the time of the latest record in
    the views, None where there is none.
    """

    snapshot: Snapshot | None
    ranking: Ranking
    views: tuple[SessionView, ...] = ()
    total: int = 0
    newest_ms: int | None = None

    def behind(self) -> str | None:
        """Return why the views are stale; None: they are not."""
        if self.snapshot is None or not self.snapshot.is_stale:
            return None
        age = self.snapshot.as_of()
        silent_ms, lag_ms = age["silent_ms"], age["lag_ms"]
        if not isinstance(silent_ms, int) or silent_ms > STALE_MS:
            return "no project worker is at work on all partitions: these figures may be old"
        seconds = lag_ms // 1_000 if isinstance(lag_ms, int) else 0
        return f"the project worker is {seconds} s behind: these figures are old"


class Detail(NamedTuple):
    """One session, and all of its successful compactions, the newest first."""

    view: SessionView
    compactions: tuple[Compaction, ...]


class Overviews:
    """Reads overviews. Its methods raise what those of `Sessions` and `Snapshots` raise."""

    def __init__(self, store: ViewReader, clock: Clock) -> None:
        self._store = store
        self._snapshots = Snapshots(store, clock)

    async def _sessions(self) -> Sessions:
        return Sessions(self._store, await self._snapshots.now())

    async def read(self, ranking: Ranking, limit: int) -> Overview:
        """Return the first sessions of a ranking.

        By pressure, those of unknown size come last, the last active first.
        """
        sessions = await self._sessions()
        views = await sessions.ranked(ranking, limit)
        if ranking == "pressure" and len(views) < limit:
            known = {view.session_id for view in views}
            recent = await sessions.ranked("recent", limit)
            views += [view for view in recent if view.session_id not in known]
        total, newest_ms = await sessions.count(), await sessions.newest_ms()
        return Overview(sessions.snapshot, ranking, tuple(views[:limit]), total, newest_ms)

    async def detail(self, session_id: str) -> Detail:
        """Return one session. Raises SessionLookupError where it is gone."""
        sessions = await self._sessions()
        view = await sessions.find(session_id)
        stored = await sessions.compactions(view.session_id)
        return Detail(view, tuple(view_codec.decode(Compaction, document) for document in stored))
