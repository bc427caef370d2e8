"""Reads sessions from the view store: lists, one by its id or the beginning of it, its records.

Each method asks once which generation is active and reads only that one, so no answer is put
together of two. What takes several calls is asked of `pinned` sessions, which stay with one
generation and tell which.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from schemas.records import Record
from schemas.views import EntryStream, SessionView
from streams import codec
from streams.codec import views as view_codec
from streams.ports import Entry, Ranking, ViewReader

_WHOLE = 10_000_000
"""Sessions of a ranking that are looked through for the beginning of an id: all."""

_SHOWN_AMBIGUOUS = 5
"""Sessions that are named where the beginning of an id fits several."""


class SessionLookupError(LookupError):
    """There is no such session, or there are several; the message says what to do."""


class ViewsGoneError(LookupError):
    """The active generation's views are gone; the message says what to do."""


class _Place(NamedTuple):
    """The active generation, and how many partitions it has."""

    generation: int
    partitions: int


class Sessions:
    """All sessions of the active generation. `partition_of` gives a session's partition.

    Its methods raise RetryError while the store is away, ViewsGoneError where the store lost what
    the active generation had.
    """

    def __init__(
        self,
        reader: ViewReader,
        partition_of: Callable[[str, int], int],
        *,
        generation: int | None = None,
    ) -> None:
        self._reader = reader
        self._partition_of = partition_of
        self.generation = generation
        """The generation that these sessions are pinned to; None: whichever is active."""

    async def pinned(self) -> "Sessions":
        """Return the sessions of the generation that is active now, for several calls.

        A former generation is there for a minute after the swap: an answer takes less. Before
        the first projection nothing is pinned.
        """
        generation = (await self._reader.generations()).active
        return Sessions(self._reader, self._partition_of, generation=generation)

    async def ranked(self, ranking: Ranking, limit: int) -> list[SessionView]:
        """Return the first sessions of a ranking, the highest first.

        Before the first projection there are none.
        """
        place = await self._place()
        if place is None:
            return []
        found = await asyncio.gather(
            *[
                self._reader.ranked(place.generation, partition, ranking, limit)
                for partition in range(place.partitions)
            ]
        )
        # Ties in the order of their ids: the answer never depends on which came first.
        ranked = sorted(
            (-score, session, partition)
            for partition, part in enumerate(found)
            for session, score in part
        )[:limit]
        views = {
            session: view
            for partition in range(place.partitions)
            for session, view in await self._views(
                place.generation, partition, [name for _, name, at in ranked if at == partition]
            )
        }
        # One that left between the two reads is no longer there.
        return [views[session] for _, session, _ in ranked if session in views]

    async def count(self) -> int:
        """Return how many sessions there are."""
        place = await self._place()
        if place is None:
            return 0
        counts = [
            await self._reader.session_count(place.generation, partition)
            for partition in range(place.partitions)
        ]
        return sum(counts)

    async def find(self, name: str) -> SessionView:
        """Return the session of this id, or the only one whose id begins so.

        Raises SessionLookupError.
        """
        place = await self._place()
        if place is None:
            raise SessionLookupError("there are no sessions yet: does a project worker run?")
        session = codec.key_bytes(name)
        partition = self._partition_of(name, place.partitions)
        exact = await self._views(place.generation, partition, [session])
        if exact:
            return exact[0][1]
        fitting = [
            (candidate, at)
            for at in range(place.partitions)
            for candidate, _ in await self._reader.ranked(place.generation, at, "recent", _WHOLE)
            if candidate.startswith(session)
        ]
        if len(fitting) > 1:
            names = sorted(candidate.decode("utf-8", "surrogatepass") for candidate, _ in fitting)
            more = ", …" if len(names) > _SHOWN_AMBIGUOUS else ""
            raise SessionLookupError(
                f"{len(names)} sessions begin with {name!r}: give more of the id "
                f"({', '.join(names[:_SHOWN_AMBIGUOUS])}{more})"
            )
        for candidate, at in fitting:
            for _, view in await self._views(place.generation, at, [candidate]):
                return view
        raise SessionLookupError(
            f"no session {name!r}: `contextgauge sessions` lists those that there are"
        )

    async def records(self, session_id: str, *, readings: bool = False) -> list[Record]:
        """Return what is kept of a session's records, in order; readings only on request.

        The views keep the newest of both, each up to a cap, and no heartbeats.
        """
        place = await self._place()
        if place is None:
            return []
        streams: tuple[EntryStream, ...] = ("events", "readings") if readings else ("events",)
        partition = self._partition_of(session_id, place.partitions)
        entries: list[Entry] = []
        for stream in streams:
            entries += await self._reader.entries(
                place.generation, partition, stream, codec.key_bytes(session_id), -1
            )
        entries.sort(key=lambda entry: entry.offset)
        return [codec.from_structured(codec.loads(entry.document)) for entry in entries]

    async def _place(self) -> _Place | None:
        generation = self.generation
        if generation is None:
            generation = (await self._reader.generations()).active
        if generation is None:
            return None
        position = await self._reader.position(generation, 0)
        if position is None:
            # It is no new store: what is active once had all its partitions.
            raise ViewsGoneError(
                f"the views of generation {generation} are gone from Redis: a project worker "
                "builds them anew from the log. See that one runs, and ask again"
            )
        return _Place(generation, position.partitions)

    async def _views(
        self, generation: int, partition: int, sessions: list[bytes]
    ) -> list[tuple[bytes, SessionView]]:
        documents = await self._reader.views(generation, partition, sessions)
        return [
            (session, view_codec.decode(SessionView, document))
            for session, document in zip(sessions, documents, strict=True)
            if document is not None
        ]
