"""What a live view of all sessions shows, read at one moment of one generation."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from schemas.views import Compaction, SessionView
from streams import codec
from streams.codec import views as view_codec
from streams.ports import Clock, Ranking, ViewReader
from streams.serve.api.sessions import Sessions
from streams.serve.api.snapshot import STALE_MS, Moment, Moments


class Overview(NamedTuple):
    """Sessions in the order asked for, how many there are in all, and how new the views are.

    `moment` is None before the first projection. `newest_ms` is the time of the latest record that
    is in the views, None where there is none.
    """

    moment: Moment | None
    ranking: Ranking
    views: tuple[SessionView, ...] = ()
    total: int = 0
    newest_ms: int | None = None

    def behind(self) -> str | None:
        """Say why the views are older than a project worker leaves them; None: they are not."""
        if self.moment is None or not self.moment.is_stale:
            return None
        told = self.moment.as_of()
        silent_ms, lag_ms = told["silent_ms"], told["lag_ms"]
        if not isinstance(silent_ms, int) or silent_ms > STALE_MS:
            return "no project worker is at work on all partitions: these figures may be old"
        seconds = lag_ms // 1_000 if isinstance(lag_ms, int) else 0
        return f"the project worker is {seconds} s behind: these figures are old"


class Detail(NamedTuple):
    """One session, and all of its compactions that succeeded, the newest first."""

    view: SessionView
    compactions: tuple[Compaction, ...]


class Overviews:
    """Reads overviews. Its methods raise what those of `Sessions` raise."""

    def __init__(
        self, reader: ViewReader, partition_of: Callable[[str, int], int], clock: Clock
    ) -> None:
        self._reader, self._partition_of = reader, partition_of
        self._moments = Moments(reader, clock)

    async def read(self, ranking: Ranking, limit: int) -> Overview:
        """Return the first sessions of a ranking.

        By pressure, those whose size is not known come last, the last active first.
        """
        moment = await self._moments.now()
        if moment is None:
            return Overview(None, ranking)
        sessions = Sessions(self._reader, self._partition_of, generation=moment.generation)
        views = await sessions.ranked(ranking, limit)
        if ranking == "pressure" and len(views) < limit:
            known = {view.session_id for view in views}
            recent = await sessions.ranked("recent", limit)
            views += [view for view in recent if view.session_id not in known]
        return Overview(
            moment,
            ranking,
            tuple(views[:limit]),
            await sessions.count(),
            await self._newest_ms(moment),
        )

    async def detail(self, session_id: str) -> Detail:
        """Return one session. Raises SessionLookupError where it is not there any more."""
        moment = await self._moments.now()
        generation = None if moment is None else moment.generation
        sessions = Sessions(self._reader, self._partition_of, generation=generation)
        view = await sessions.find(session_id)
        if moment is None:
            return Detail(view, ())
        stored = await self._reader.compactions(
            moment.generation,
            self._partition_of(view.session_id, moment.partitions),
            codec.key_bytes(view.session_id),
        )
        found = [view_codec.decode(Compaction, document) for document in stored.values()]
        found.sort(key=lambda each: (each.time_ms or 0, each.number), reverse=True)
        return Detail(view, tuple(found))

    async def _newest_ms(self, moment: Moment) -> int | None:
        # The rankings tell it: the aggregates, which do too, have thousands of fields.
        found = await asyncio.gather(
            *[
                self._reader.ranked(moment.generation, partition, "recent", 1)
                for partition in range(moment.partitions)
            ]
        )
        return max((int(score) for part in found for _, score in part), default=None)
