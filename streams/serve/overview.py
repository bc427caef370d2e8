"""What a live view of all sessions shows, read at one moment of one generation."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from schemas.views import Compaction, SessionView
from streams.edge import codec, view_codec
from streams.ports import Ranking, ViewReader
from streams.serve.sessions import Sessions


class Overview(NamedTuple):
    """Sessions in the order asked for, how many there are in all, and how new the views are.

    `newest_ms` is the time of the latest record that is in the views, None where there is none.
    While nobody publishes it grows old too: only the log's end could tell that apart from a
    project worker that stands still, and readers see no log.
    """

    generation: int | None
    ranking: Ranking
    views: tuple[SessionView, ...] = ()
    total: int = 0
    newest_ms: int | None = None


class Detail(NamedTuple):
    """One session, and all of its compactions that succeeded, the newest first."""

    view: SessionView
    compactions: tuple[Compaction, ...]


class Overviews:
    """Reads overviews. Its methods raise what those of `Sessions` raise."""

    def __init__(self, reader: ViewReader, partition_of: Callable[[str, int], int]) -> None:
        self._reader, self._partition_of = reader, partition_of

    async def read(self, ranking: Ranking, limit: int) -> Overview:
        """Return the first sessions of a ranking.

        By pressure, those whose size is not known come last, the last active first.
        """
        sessions = await Sessions(self._reader, self._partition_of).pinned()
        if sessions.generation is None:
            return Overview(None, ranking)
        views = await sessions.ranked(ranking, limit)
        if ranking == "pressure" and len(views) < limit:
            known = {view.session_id for view in views}
            recent = await sessions.ranked("recent", limit)
            views += [view for view in recent if view.session_id not in known]
        return Overview(
            sessions.generation,
            ranking,
            tuple(views[:limit]),
            await sessions.count(),
            await self._newest_ms(sessions.generation),
        )

    async def detail(self, session_id: str) -> Detail:
        """Return one session. Raises SessionLookupError where it is not there any more."""
        sessions = await Sessions(self._reader, self._partition_of).pinned()
        view = await sessions.find(session_id)
        if sessions.generation is None:
            return Detail(view, ())
        partitions = await self._partitions(sessions.generation)
        partition = self._partition_of(view.session_id, partitions)
        stored = await self._reader.compactions(
            sessions.generation, partition, codec.key_bytes(view.session_id)
        )
        found = [view_codec.decode(Compaction, document) for document in stored.values()]
        found.sort(key=lambda each: (each.time_ms or 0, each.number), reverse=True)
        return Detail(view, tuple(found))

    async def _newest_ms(self, generation: int) -> int | None:
        # The rankings tell it: the aggregates, which do too, have thousands of fields.
        found = await asyncio.gather(
            *[
                self._reader.ranked(generation, partition, "recent", 1)
                for partition in range(await self._partitions(generation))
            ]
        )
        return max((int(score) for part in found for _, score in part), default=None)

    async def _partitions(self, generation: int) -> int:
        position = await self._reader.position(generation, 0)
        return 0 if position is None else position.partitions
