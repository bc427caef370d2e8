"""Reads sessions from the view store: one, several, ranked, by the beginning of an id, an agent's.

Every reader of views uses this: API, live feed, `sessions`, `status`, `events`, `top`, `demo`.
`Sessions` reads one snapshot's generation only, so no answer is put together from two.
"""

from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeVar

from contextgauge.partitioner import partition_of
from schemas.records import Record
from schemas.views import MODEL_FIELD, EntryStream, SessionView
from streams import codec
from streams.codec import view_codec
from streams.core.session_ids import several_begin_with
from streams.core.until_compaction import CompactionPoints, models_to_learn, usual_point
from streams.ports import Clock, Entry, Ranking, ViewReader
from streams.serve.views.snapshot import Snapshot, Snapshots, ViewsGoneError, gather_all

_T = TypeVar("_T")

_NO_GENERATION: Final = 0
"""Has nothing: generations are numbered from 1."""

_ALL: Final = 10_000_000
"""Sessions of a ranking that are searched for the beginning of an id."""

_MORE: Final = 4
"""How many times as many sessions are read, where there are more live ones than were read."""


class SessionLookupError(LookupError):
    """There is no such session, or there are several; the message says what to do."""


class SeveralSessionsError(SessionLookupError):
    """Several sessions' ids begin so; the message names them."""


class SessionKey(NamedTuple):
    """Where a session is stored."""

    partition: int
    session: bytes


class Sessions:
    """The sessions of one snapshot; without one, before the first projection, there are none.

    Its methods raise RetryError while the store is away, VersionError where its format is unknown.
    """

    def __init__(self, store: ViewReader, snapshot: Snapshot | None) -> None:
        self._store = store
        self.snapshot = snapshot
        self._generation = _NO_GENERATION if snapshot is None else snapshot.generation
        self._partitions = range(0 if snapshot is None else snapshot.partitions)

    def key(self, session_id: str) -> SessionKey:
        """Return where a session of this id would be stored."""
        partition = partition_of(session_id, max(len(self._partitions), 1))
        return SessionKey(partition, codec.key_bytes(session_id))

    async def views(self, keys: Iterable[SessionKey]) -> dict[SessionKey, bytes]:
        """Return sessions' views as they are stored, in this order; without those that are gone."""
        return await self._of_each(keys, partial(self._store.views, self._generation))

    async def view(self, session_id: str) -> bytes | None:
        """Return a session's view as it is stored; None where there is no such session.

        Raises ViewsGoneError where the store lost it: a ranking has it still.
        """
        key = self.key(session_id)
        document = (await self.views([key])).get(key)
        if document is None and await self._scores("recent", [key]):
            raise ViewsGoneError(
                f"the view of session {session_id} is gone from Redis: a project worker rebuilds "
                "it from the log. Redis must not evict keys (maxmemory-policy noeviction)"
            )
        return document

    async def ranked(self, ranking: Ranking, limit: int) -> list[SessionView]:
        """Return the first sessions of a ranking, the highest first."""
        keys = [key for key, _ in await self._highest(ranking, limit)]
        return [decoded(document) for document in (await self.views(keys)).values()]

    async def fullest(self, limit: int, live_since_ms: int) -> list[SessionView]:
        """Return the fullest sessions: first those that were active after that time, then others.

        Of both, those whose size is unknown come last, by their last activity.
        """
        count = limit
        while True:
            recent = await self._highest("recent", count)
            if len(recent) < count or recent[-1][1] <= live_since_ms:
                break
            count *= _MORE
        live = [key for key, active_ms in recent if active_ms > live_since_ms]
        percents = await self._scores("pressure", live)
        keys = dict.fromkeys(sorted(live, key=lambda key: -percents.get(key, -1.0)))
        if len(keys) < limit:
            keys |= dict.fromkeys(key for key, _ in await self._highest("pressure", limit))
            keys |= dict.fromkeys(key for key, _ in recent)
        views = await self.views(list(keys)[:limit])
        return [decoded(document) for document in views.values()]

    async def newest_ms(self) -> int | None:
        """Return when a session was last active; None where no session has a time."""
        # The rankings know; the aggregates, which do too, have thousands of fields.
        newest = await self._highest("recent", 1)
        return int(newest[0][1]) if newest and newest[0][1] > 0 else None

    async def of_agent(self, agent_id: str, limit: int) -> dict[SessionKey, bytes]:
        """Return the views of an agent's last active sessions, else of the session of this id."""
        agent = codec.key_bytes(agent_id)
        ranked = _merged(
            await gather_all(
                self._store.agent_sessions(self._generation, partition, agent, limit)
                for partition in self._partitions
            )
        )
        return await self.views([key for key, _ in ranked[:limit]] or [self.key(agent_id)])

    async def count(self) -> int:
        """Return how many sessions there are."""
        counts = await gather_all(
            self._store.session_count(self._generation, partition) for partition in self._partitions
        )
        return sum(counts)

    async def find(self, name: str) -> SessionView:
        """Return the session of this id, or the only one whose id begins so.

        Raises SessionLookupError.
        """
        if self.snapshot is None:
            raise SessionLookupError("there are no sessions yet: is a project worker running?")
        if not name:
            raise SessionLookupError("an empty name: give the session's ID, or the beginning of it")
        exact = await self.view(name)
        if exact is not None:
            return decoded(exact)
        prefix = codec.key_bytes(name)
        fitting = [
            key for key, _ in await self._highest("recent", _ALL) if key.session.startswith(prefix)
        ]
        if len(fitting) > 1:
            names = [key.session.decode("utf-8", "surrogatepass") for key in fitting]
            raise SeveralSessionsError(several_begin_with(name, names))
        for key in fitting:
            document = await self.view(key.session.decode("utf-8", "surrogatepass"))
            if document is not None:
                return decoded(document)
        raise SessionLookupError(f"no session {name!r}: `contextgauge sessions` lists all sessions")

    async def entries(self, key: SessionKey, stream: EntryStream, after: int = -1) -> list[Entry]:
        """Return a session's stored records with offsets above `after`, in order."""
        partition, session = key
        return await self._store.entries(self._generation, partition, stream, session, after)

    async def records(self, session_id: str, *, readings: bool = False) -> list[Record]:
        """Return a session's records in order, with its readings on request.

        The views hold the newest of both, each up to a cap, and no heartbeats.
        """
        key = self.key(session_id)
        entries = await self.entries(key, "events")
        if readings:
            entries = [*entries, *await self.entries(key, "readings")]
            entries.sort(key=lambda entry: entry.offset)
        return [codec.from_structured(codec.loads(entry.document)) for entry in entries]

    async def compactions(self, session_id: str) -> list[bytes]:
        """Return a session's successful compactions as they are stored, the newest first."""
        partition, session = self.key(session_id)
        stored = await self._store.compactions(self._generation, partition, session)
        return sorted(stored.values(), key=_age, reverse=True)

    async def aggregates(self) -> list[dict[bytes, bytes]]:
        """Return the fields of each partition's aggregates."""
        return await gather_all(
            self._store.stats(self._generation, partition) for partition in self._partitions
        )

    async def points(
        self, views: Iterable[SessionView], configured: CompactionPoints
    ) -> CompactionPoints:
        """Return what is known of where these sessions are compacted, besides the configuration."""
        models = set[str]().union(*map(models_to_learn, views))
        learned = await self.usual_points(models)
        return configured._replace(learned=tuple(sorted(learned.items())))

    async def usual_points(self, models: Iterable[str]) -> dict[str, int]:
        """Return where automatic compactions of models usually begin, in tokens, where known."""
        fields = {model: codec.key_bytes(MODEL_FIELD + model) for model in models}
        stored = await gather_all(
            self._store.stats(self._generation, partition, list(fields.values()))
            for partition in self._partitions
        )
        points = {
            model: usual_point(codec.loads(part[field]) for part in stored if field in part)
            for model, field in fields.items()
        }
        return {model: point for model, point in points.items() if point is not None}

    async def _scores(
        self, ranking: Ranking, keys: Iterable[SessionKey]
    ) -> dict[SessionKey, float]:
        """Return the scores of those sessions that are in a ranking."""
        return await self._of_each(
            keys, partial(self._store.scores, self._generation, ranking=ranking)
        )

    async def _of_each(
        self,
        keys: Iterable[SessionKey],
        read: Callable[[int, Sequence[bytes]], Coroutine[Any, Any, list[_T | None]]],
    ) -> dict[SessionKey, _T]:
        """Return what `read` returns for sessions of a partition, in this order; without Nones."""
        keys = list(keys)
        parts: dict[int, list[SessionKey]] = defaultdict(list)
        for key in keys:
            parts[key.partition].append(key)
        answers = await gather_all(
            read(partition, [key.session for key in part]) for partition, part in parts.items()
        )
        stored = {
            key: value
            for part, values in zip(parts.values(), answers, strict=True)
            for key, value in zip(part, values, strict=True)
        }
        return {key: value for key in keys if (value := stored[key]) is not None}

    async def _highest(self, ranking: Ranking, limit: int) -> list[tuple[SessionKey, float]]:
        ranked = await gather_all(
            self._store.ranked(self._generation, partition, ranking, limit)
            for partition in self._partitions
        )
        return _merged(ranked)[:limit]


def _merged(ranked: Iterable[Iterable[tuple[bytes, float]]]) -> list[tuple[SessionKey, float]]:
    """Return each partition's sessions and scores in one list, the highest first."""
    merged = [
        (SessionKey(partition, session), score)
        for partition, sessions in enumerate(ranked)
        for session, score in sessions
    ]
    # Equal scores are in the order of ids, so that the order is the same every time.
    return sorted(merged, key=lambda item: (-item[1], item[0].session))


def _age(document: bytes) -> tuple[int, int]:
    """Return what orders compactions: their time, and their number where they have none."""
    compaction = codec.loads(document)
    return (compaction["time_ms"] or 0, compaction["number"])


@lru_cache(maxsize=2_000)
def decoded(document: bytes) -> SessionView:
    """Return a session's view. Raises VersionError.

    Those that were asked for last are remembered, about 15 MB: most polls find the same.
    """
    return view_codec.decode(SessionView, document)


async def active_sessions(store: ViewReader, clock: Clock) -> Sessions:
    """Return the sessions of the generation that is active now; they stay with it.

    A former generation is there for a minute after a swap: an answer takes less. Raises
    ViewsGoneError where the store lost the generation's views.
    """
    return Sessions(store, await Snapshots(store, clock).now())
