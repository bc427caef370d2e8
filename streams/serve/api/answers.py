"""Answers in JSON: documents go out as they are stored; what has not changed is not sent again.

An entity tag depends on positions, so it is known before any document is read: a client that polls
with `If-None-Match` costs one read of the positions. It is weak (RFC 9110, 8.8.1): the age in an
answer grows while its documents are the same.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import Response

from contextgauge.addresses import session_address
from contextgauge.errors import VersionError
from schemas.records import MAIN_CHAIN, Json
from schemas.views import VIEW_VERSION, Compaction
from streams import codec
from streams.codec import Encoded, view_codec
from streams.core.session_status import THRESHOLDS, Status, status_of
from streams.core.until_compaction import NO_POINTS, CompactionPoints
from streams.serve.views.sessions import decoded
from streams.serve.views.snapshot import Snapshot

T = TypeVar("T")

MEDIA_TYPE: Final = "application/json"

CONDITIONAL: Final[dict[int, dict[str, Any]]] = {
    304: {"description": "Nothing changed since the entity tag in If-None-Match was given."}
}

_CACHE_BYTES: Final = 32 * 1024 * 1024
"""For clients that poll without an entity tag."""

_PRICED_BYTES: Final = 8 * 1024 * 1024
"""Answers with costs that are remembered; those asked for least lately are dropped."""

AGE_HEADERS: Final = ("Contextgauge-Stale", "Contextgauge-Silent-Ms", "Contextgauge-Lag-Records")
"""Headers with an answer's age."""

_MAX_DIGITS: Final = 16
"""Of an instant in ms: longer ones were not issued here."""

_VERSION: Final = b'{"version":%d,' % VIEW_VERSION
"""The beginning of every document of the views that this build can read."""

_REMEMBERED: Final = 2_000
"""Documents that are remembered with their judgement, about 15 MB: most polls find the same."""


def as_stored(documents: Iterable[bytes]) -> list[Encoded]:
    """Return documents that are JSON already, to be put into an answer unchanged."""
    return list(map(Encoded, documents))


def documents(stored: Iterable[bytes]) -> list[Encoded]:
    """Return the views' documents as they are stored. Raises VersionError."""
    views = list(stored)
    if not all(view.startswith(_VERSION) for view in views):
        raise VersionError(f"a view is of another version than {VIEW_VERSION}")
    return as_stored(views)


def tag(*parts: object) -> str:
    """Return the entity tag of an answer that depends on these."""
    text = repr(parts).encode("utf-8", "surrogatepass")
    return f'W/"{hashlib.blake2b(text, digest_size=12).hexdigest()}"'


def until(tag: str, change_ms: int | None) -> str:
    """Return an entity tag that expires at an instant; None: with the entity."""
    return f'{tag[:-1]}-{change_ms or ""}"'


def unchanged(
    request: Request, tag: str, snapshot: Snapshot, now_ms: int | None = None
) -> Response | None:
    """Return the answer to a client that has this entity already; None for others.

    `now_ms` is for answers whose tags expire (`until`).
    """
    header = request.headers.get("if-none-match")
    if header is None:
        return None
    for known in (part.strip() for part in header.split(",")):
        # Weak comparison: the prefix of the opaque part does not count.
        if known == "*" or known.removeprefix("W/") == tag.removeprefix("W/"):
            break
        if now_ms is not None and _is_valid(known, tag, now_ms):
            tag = known
            break
    else:
        return None
    return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=_headers(tag, snapshot))


def _is_valid(known: str, tag: str, now_ms: int) -> bool:
    """Return whether a client's tag is this entity's and has not expired."""
    entity, _, change_ms = known.removeprefix("W/").removesuffix('"').rpartition("-")
    if entity != tag.removeprefix("W/").removesuffix('"'):
        return False
    return not change_ms or (change_ms.isdecimal() and now_ms < int(change_ms[:_MAX_DIGITS]))


def answer(snapshot: Snapshot, tag: str, members: Mapping[str, object]) -> Response:
    """Return an answer with the generation, its age and these members."""
    whole = {"generation": snapshot.generation or None, "as_of": snapshot.as_of(), **members}
    return bare(codec.dumps(whole), tag, snapshot)


def bare(body: bytes, tag: str, snapshot: Snapshot) -> Response:
    """Return an answer of any shape: its age is in the headers too."""
    return Response(body, media_type=MEDIA_TYPE, headers=_headers(tag, snapshot))


def _headers(tag: str, snapshot: Snapshot) -> dict[str, str]:
    # A 304 has no body: without the age in its headers a stalled projector would look fresh.
    age = snapshot.as_of()
    headers = {
        "ETag": tag,
        "Cache-Control": "private, no-cache",
        "Contextgauge-Stale": "true" if age["stale"] else "false",
    }
    for name, member in (("Silent-Ms", "silent_ms"), ("Lag-Records", "lag_records")):
        if age[member] is not None:
            headers[f"Contextgauge-{name}"] = str(age[member])
    return headers


class SharedCache(Generic[T]):
    """An LRU cache by entity tag, limited in bytes; concurrent requests share one computation."""

    def __init__(self, limit_bytes: int = _CACHE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get_or_make(self, tag: str, make: Callable[[], Awaitable[tuple[T, int]]]) -> T:
        """Return the cached value, else that of `make`, which returns a value and its size."""
        async with self._locks.setdefault(tag, asyncio.Lock()):
            if tag in self._entries:
                self._entries.move_to_end(tag)
                return self._entries[tag][0]
            value, size = await make()
            self._entries[tag] = (value, size)
            self._bytes += size
            while self._bytes > self._limit_bytes:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._bytes -= dropped
            return value


class PricedAnswers:
    """Answers of a session's records and prices, each made once for a state of the session.

    Prices are the process's: the next one may have others. So the tag is of the answer itself.
    """

    def __init__(self, name: str) -> None:
        """Take the name of the answer's member."""
        self._name = name
        self._cache: SharedCache[bytes] = SharedCache(_PRICED_BYTES)

    async def answer(
        self, request: Request, snapshot: Snapshot, of: object, make: Callable[[], Awaitable[Json]]
    ) -> Response:
        """Return what was made of this, else what `make` returns."""

        async def made() -> tuple[bytes, int]:
            document = codec.dumps(await make())
            return document, len(document)

        key = tag(request.url.path, of, snapshot.version)
        document = await self._cache.get_or_make(key, made)
        own = tag(request.url.path, document, snapshot.version)
        same = unchanged(request, own, snapshot)
        return same or answer(snapshot, own, {self._name: Encoded(document)})


THRESHOLDS_JSON: Final = Encoded(codec.dumps(THRESHOLDS._asdict()))


def rules(documents: Iterable[bytes]) -> dict[str, Json] | None:
    """Return what was found of the user's turns after main's latest compaction; None: no such.

    `documents` are compactions, the newest first.
    """
    stored = (view_codec.decode(Compaction, document) for document in documents)
    latest = next((each for each in stored if each.chain == MAIN_CHAIN), None)
    if latest is None:
        return None
    lost = latest.receipt.lost_pins
    return {
        "boundary_id": latest.boundary_id,
        "number": latest.number,
        "time_ms": latest.time_ms,
        "pins_kept": latest.receipt.pins_kept,
        "pins_lost": latest.receipt.pins_lost,
        "lost_pins": None if lost is None else list(lost),
    }


class Context(NamedTuple):
    """What answers about sessions depend on besides their views.

    `points` are where compactions begin, `titles` are by session id.
    """

    points: CompactionPoints = NO_POINTS
    titles: Mapping[str, str] = {}


def judged(
    documents: Iterable[bytes], context: Context, now_ms: int
) -> tuple[list[Encoded], int | None]:
    """Return views with address, title and status, and when the first verdict changes; None: never.

    Raises VersionError. These are more members of a view, which goes out as it is stored. What a
    status says of the time is true when the answer is given; a reader that keeps the answer
    compares its own clock with the instants. An entity tag ends with the first of them (`until`).
    """
    views, changes = [], []
    for document in documents:
        session_id = decoded(document).session_id
        status = status_of_document(document, context.points)
        members = {
            "address": session_address(session_id),
            "title": context.titles.get(session_id),
            "status": status.document(now_ms),
        }
        views.append(document[:-1] + b"," + codec.dumps(members)[1:])
        change_ms = status.next_change_ms(now_ms)
        if change_ms is not None:
            changes.append(change_ms)
    return as_stored(views), min(changes, default=None)


@lru_cache(maxsize=_REMEMBERED)
def status_of_document(document: bytes, points: CompactionPoints) -> Status:
    """Return the judgement of a session's view. Raises VersionError."""
    return status_of(decoded(document), points)
