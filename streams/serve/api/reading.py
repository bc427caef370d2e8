"""What the API reads: a snapshot, and of its generation sessions, records and chats; and cursors.

An answer without a cursor comes from the generation that is active now. The generation of a cursor
is read as long as it exists, which is for a minute after a swap.
"""

import asyncio
import base64
import hashlib
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

from pydantic import Field, StrictFloat, StrictInt, StrictStr, TypeAdapter

from contextgauge.addresses import is_hashed
from schemas.records import Json
from schemas.views import SessionView
from streams import codec
from streams.core.until_compaction import NO_POINTS, CompactionPoints, models_to_learn
from streams.ports import Clock, ViewReader
from streams.serve.api.answers import Context
from streams.serve.api.problems import Problem, bad_cursor, no_session
from streams.serve.api.serving import ReadSettings, ReadTitles, RuntimeFolder
from streams.serve.views.session_index import Matches, SessionIndex
from streams.serve.views.session_summary import ListOrder, SessionFilter
from streams.serve.views.sessions import Sessions, decoded
from streams.serve.views.snapshot import NOTHING_YET, Snapshot, Snapshots

_Whole: TypeAlias = Annotated[StrictInt, Field(gt=-(1 << 63), lt=1 << 63)]
"""No offset, time or generation has more than 64 bits."""

CursorForm: TypeAlias = TypeAdapter[tuple[Any, ...]]
"""The parts of a cursor: its generation, its list, and where it ended."""

SESSIONS_FORM: Final[CursorForm] = TypeAdapter(
    tuple[_Whole, Any, _Whole | None, StrictStr, _Whole, StrictFloat | StrictStr, _Whole, StrictStr]
)
"""A cursor of sessions ends with its order, and with a rank, its session in hexadecimal digits.

The order's points are named: there may be too many for an address."""

RECORDS_FORM: Final[CursorForm] = TypeAdapter(tuple[_Whole, Any, _Whole])
"""A cursor of records ends with the offset of the last record."""


class Cursor(NamedTuple):
    """Where an answer ended: a generation, the list, and the end. Opaque to clients.

    The end's parts have the types of the list's form.
    """

    generation: int
    of: str
    end: tuple[Any, ...]

    def encoded(self) -> str:
        """Return the cursor as clients get it."""
        parts: list[Json] = [self.generation, self.of, *self.end]
        return base64.urlsafe_b64encode(codec.dumps(parts)).rstrip(b"=").decode()


def read_cursor(text: str | None, of: str, form: CursorForm) -> Cursor | None:
    """Read a cursor of this list; None where none is given. Raises Problem for any other text."""
    if text is None:
        return None
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        parts = codec.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        generation, name, *end = form.validate_python(parts)
    except ValueError:  # not in ASCII, base64, JSON, or of another form
        raise bad_cursor() from None
    if name != of:
        raise bad_cursor()
    return Cursor(generation, of, tuple(end))


_LEARNED_S: Final = 3.0
"""What is usual of a model is read again so soon: one field of each partition's aggregates."""

_ADDRESSED: Final = 1_000
"""Sessions named by a hash that are remembered: looking one up goes through all sessions."""

_ORDERS: Final = 20
"""Points that cursors name and that are remembered: those of some minutes."""


class Reading:
    """Reads answers. Its methods raise RetryError, VersionError, ViewsGoneError, Problem.

    `points` are the configured ones, `titles` and `settings` as in `Serving`.
    """

    def __init__(
        self,
        store: ViewReader,
        clock: Clock,
        points: CompactionPoints = NO_POINTS,
        titles: ReadTitles | None = None,
        settings: ReadSettings | None = None,
    ) -> None:
        self._store, self.clock = store, clock
        self._titles, self._settings = titles, settings
        self._places: set[RuntimeFolder] = set()
        self._index = SessionIndex(store)
        self._points = points
        self._learned_s: dict[str, float] = {}
        self._named: dict[str, CompactionPoints] = {}
        self._addressed: dict[str, str] = {}
        self.snapshots = Snapshots(store, clock)

    async def snapshot(self, cursor: Cursor | None = None) -> Snapshot:
        """Return the snapshot to answer from: of the cursor's generation, else of the active."""
        active = await self.snapshots.now() or NOTHING_YET
        if cursor is None or cursor.generation == active.generation:
            return active
        # Only a former generation: the one that is being built is not for readers yet.
        is_former = cursor.generation < active.generation
        former = await self.snapshots.of(cursor.generation) if is_former else None
        if former is None:
            raise Problem(
                HTTPStatus.GONE,
                "The views were rebuilt since this cursor was issued: leave it out and start over.",
                "generation-gone",
            )
        return former

    def at(self, snapshot: Snapshot) -> Sessions:
        """Return the sessions of a snapshot."""
        return Sessions(self._store, snapshot)

    async def sessions(
        self,
        snapshot: Snapshot,
        order: ListOrder,
        session_filter: SessionFilter,
        cursor: Cursor | None,
        limit: int,
    ) -> tuple[list[bytes], str | None, Matches]:
        """Return a part of the list of sessions, the next cursor, and the part's account.

        The order is that of the cursor, as far as it is still known: else sessions that move
        because time passes would be in two parts or in none.
        """
        after, points = None, None
        if cursor is not None:
            live_since_ms, name, past, key, recent, session = cursor.end
            is_other = (live_since_ms is None) is not (order.live_since_ms is None)
            if is_other or isinstance(key, str) is not (order.sort == "folder"):
                raise bad_cursor()
            try:
                after = (past, key, recent, bytes.fromhex(session))
            except ValueError:
                raise bad_cursor() from None
            order, points = order._replace(live_since_ms=live_since_ms), self._named.get(name)
        if order.sort == "until":
            if points is None:
                points = await self._learn(snapshot, await self._index.models_to_learn(snapshot))
            order = order._replace(points=points)
        if session_filter.words and self._titles is not None:
            titled = await self._titled(snapshot, session_filter.words, self._titles)
            session_filter = session_filter._replace(titled=titled)
        part = await self._index.part(snapshot, order, session_filter, after, limit)
        views = await self.at(snapshot).views(summary.key for summary in part.sessions)
        following = None
        if part.has_more:
            *rank, last = part.sessions[-1].rank(order)
            end = (order.live_since_ms, self._name(order.points), *rank, last.hex())
            following = Cursor(snapshot.generation, order.sort, end).encoded()
        return list(views.values()), following, part

    async def _titled(
        self, snapshot: Snapshot, words: Sequence[str], read: ReadTitles
    ) -> tuple[frozenset[bytes], ...]:
        """Return, for each of the words in lower case, the sessions whose titles have it."""
        names = await self._index.names(snapshot)
        titles = await read([name.decode("utf-8", "surrogatepass") for name in names])
        lowered = [(codec.key_bytes(name), title.lower()) for name, title in titles.items()]
        return tuple(frozenset(name for name, title in lowered if word in title) for word in words)

    def _name(self, points: CompactionPoints) -> str:
        """Return a short name of points, by which they are remembered for a while."""
        name = hashlib.blake2b(repr(points).encode(), digest_size=8).hexdigest()
        self._named.pop(name, None)
        self._named[name] = points
        if len(self._named) > _ORDERS:
            del self._named[next(iter(self._named))]
        return name

    async def known_points(self, snapshot: Snapshot) -> CompactionPoints:
        """Return what is known of where compactions begin, as of now."""
        await self._read_settings(())
        return await self._learn(snapshot, set(self._learned_s))

    async def context(self, snapshot: Snapshot, documents: Sequence[bytes]) -> Context:
        """Return what the answer about these views depends on."""
        views = [decoded(document) for document in documents]
        await self._read_settings(views)
        points = await self._learn(snapshot, set[str]().union(*map(models_to_learn, views)))
        if self._titles is None:
            return Context(points)
        return Context(points, await self._titles([view.session_id for view in views]))

    async def _read_settings(self, views: Iterable[SessionView]) -> None:
        """Read the settings for these sessions, and again for those of earlier requests."""
        if self._settings is None:
            return
        self._places.update((view.identity.runtime, view.identity.cwd) for view in views)
        places = sorted(self._places, key=repr)
        by_place = await asyncio.to_thread(self._settings, places)
        self._points = self._points._replace(settings=tuple(by_place.items()))

    async def _learn(self, snapshot: Snapshot, models: set[str]) -> CompactionPoints:
        """Return what is known of where compactions begin, of these models as of now."""
        now_s = self.clock.monotonic_s()
        models = {model for model in models if now_s >= self._learned_s.get(model, now_s)}
        if models:
            learned = await self.at(snapshot).usual_points(models)
            known = {name: point for name, point in self._points.learned if name not in models}
            together = tuple(sorted((known | learned).items()))
            self._points = self._points._replace(learned=together)
            self._learned_s.update(dict.fromkeys(models, now_s + _LEARNED_S))
        return self._points

    async def addressed(self, part: str) -> str:
        """Return the id of the session that a part of an address names, else the part itself."""
        if not is_hashed(part):
            return part
        if part not in self._addressed:
            name = await self._index.addressed(await self.snapshot(), part)
            if name is None:
                return part
            self._addressed[part] = name.decode("utf-8", "surrogatepass")
            if len(self._addressed) > _ADDRESSED:
                del self._addressed[next(iter(self._addressed))]
        return self._addressed[part]

    async def session(
        self, session_id: str, cursor: Cursor | None = None
    ) -> tuple[Snapshot, bytes]:
        """Return a session's view as it is stored, and the snapshot that it is of."""
        snapshot = await self.snapshot(cursor)
        view = await self.at(snapshot).view(session_id)
        if view is None:
            raise no_session(session_id)
        return snapshot, view
