"""What the API reads: a snapshot, and of its generation sessions, records and chats; and cursors.

An answer without a cursor comes from the generation that is active now. The generation of a cursor
is read as long as it exists, which is for a minute after a swap.
"""

import asyncio
import base64
import binascii
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from schemas.records import Json
from schemas.views import EntryStream
from streams import codec
from streams.ports import Clock, Entry, Ranking, ViewReader
from streams.serve.api import agents, answers
from streams.serve.api.problems import bad_cursor, generation_gone, no_session
from streams.serve.views.session_index import SessionFilter, SessionIndex
from streams.serve.views.sessions import PartitionOf, SessionKey, Sessions
from streams.serve.views.snapshot import NOTHING_YET, Snapshot, Snapshots

_TYPE_HEAD: Final = "contextgauge."
_TYPE_TAIL: Final = ".v1"

CursorForm: TypeAlias = tuple[type | tuple[type, ...], ...]
"""The parts of a cursor's end: a type, or one of several, for each."""

SESSIONS_FORM: Final[CursorForm] = ((int, float), int, str)
"""The end of a cursor of sessions: a rank, its session in hexadecimal digits."""

RECORDS_FORM: Final[CursorForm] = (int,)
"""The end of a cursor of records: the offset of the last record."""


class Cursor(NamedTuple):
    """Where an answer ended: a generation, the list, and the end. Opaque to clients."""

    generation: int
    of: str
    end: tuple[int | float | str, ...]

    def encoded(self) -> str:
        """Return the cursor as clients get it."""
        parts: list[Json] = [self.generation, self.of, *self.end]
        return base64.urlsafe_b64encode(codec.dumps(parts)).rstrip(b"=").decode()


def read_cursor(text: str, of: str, form: CursorForm) -> Cursor:
    """Read a cursor of this list. Raises Problem for any other text."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        parts = codec.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise bad_cursor() from None
    if not isinstance(parts, list) or len(parts) != len(form) + 2 or parts[1] != of:
        raise bad_cursor()
    generation, _, *end = parts
    fits = all(
        isinstance(part, kind) and not isinstance(part, bool)
        for part, kind in zip((generation, *end), (int, *form), strict=True)
    )
    # No offset, time or generation has more than 64 bits.
    if not fits or any(abs(part) >= 1 << 63 for part in parts if isinstance(part, int)):
        raise bad_cursor()
    return Cursor(generation, of, tuple(end))


def list_of(stream: EntryStream, session_id: str) -> str:
    """Return the name that cursors have for a session's records."""
    return f"{stream} {session_id}"


class Reading:
    """Reads answers. Its methods raise RetryError, VersionError, ViewsGoneError, Problem."""

    def __init__(self, store: ViewReader, partition_of: PartitionOf, clock: Clock) -> None:
        self._store, self.clock = store, clock
        self._partition_of = partition_of
        self._index = SessionIndex(store, partition_of)
        self._chats: answers.SharedCache[list[agents.EncodedEvent]] = answers.SharedCache()
        self.snapshots = Snapshots(store, clock)

    async def snapshot(
        self, cursor: str | None = None, of: str = "", form: CursorForm = ()
    ) -> Snapshot:
        """Return the snapshot to answer from: of the cursor's generation, else of the active."""
        generation = None if cursor is None else read_cursor(cursor, of, form).generation
        active = await self.snapshots.now() or NOTHING_YET
        if generation in {None, active.generation}:
            return active
        # Only a former generation: the one that is being built is not for readers yet.
        former = await self.snapshots.of(generation) if generation < active.generation else None
        if former is None:
            raise generation_gone()
        return former

    def at(self, snapshot: Snapshot) -> Sessions:
        """Return the sessions of a snapshot."""
        return Sessions(self._store, self._partition_of, snapshot)

    async def sessions(
        self,
        snapshot: Snapshot,
        by: Ranking,
        session_filter: SessionFilter,
        cursor: str | None,
        limit: int,
    ) -> tuple[list[bytes], str | None, int]:
        """Return a part of the list of sessions, the next cursor, and the whole list's length."""
        after = None
        if cursor is not None:
            percent, recent, name = read_cursor(cursor, by, SESSIONS_FORM).end
            try:
                after = (float(percent), int(recent), bytes.fromhex(str(name)))
            except (ValueError, OverflowError):
                raise bad_cursor() from None
        part = await self._index.part(snapshot, by, session_filter, after, limit)
        views = await self.at(snapshot).views(summary.key for summary in part.sessions)
        following = None
        if part.has_more:
            percent, recent, session = part.sessions[-1].rank(by)
            following = Cursor(snapshot.generation, by, (percent, recent, session.hex())).encoded()
        return list(views.values()), following, part.total

    async def sessions_by_id(self, snapshot: Snapshot, session_ids: Sequence[str]) -> list[bytes]:
        """Return the sessions of these ids; those that do not exist are missing."""
        sessions = self.at(snapshot)
        keys = dict.fromkeys(sessions.key(session_id) for session_id in session_ids)
        return list((await sessions.views(keys)).values())

    async def session(
        self, session_id: str, cursor: str | None = None, of: str = ""
    ) -> tuple[Snapshot, bytes]:
        """Return a session's view as it is stored, and the snapshot that it is of."""
        snapshot = await self.snapshot(cursor, of, RECORDS_FORM)
        view = await self.at(snapshot).view(session_id)
        if view is None:
            raise no_session(session_id)
        return snapshot, view

    async def records(
        self,
        snapshot: Snapshot,
        session_id: str,
        stream: EntryStream,
        kinds: frozenset[str],
        cursor: str | None,
        limit: int,
    ) -> tuple[list[bytes], str | None]:
        """Return a part of a session's records, oldest first, and the next cursor.

        Those of `kinds`, if any is named.
        """
        of, after = list_of(stream, session_id), -1
        if cursor is not None:
            after = int(read_cursor(cursor, of, RECORDS_FORM).end[0])
        sessions = self.at(snapshot)
        entries = await sessions.entries(sessions.key(session_id), stream, max(after, -1))
        if kinds:
            entries = [entry for entry in entries if _kind(entry) in kinds]
        following = None
        if len(entries) > limit:
            following = Cursor(snapshot.generation, of, (entries[limit - 1].offset,)).encoded()
        return [entry.document for entry in entries[:limit]], following

    async def chat(self, snapshot: Snapshot, views: Mapping[SessionKey, bytes]) -> bytes:
        """Return the events of an agent's sessions, as its chat takes them."""
        sessions, chats = self.at(snapshot), []
        for key, view in views.items():
            tag = answers.tag(snapshot.generation, key.session, view)
            chats.append(await self._chats.get_or_make(tag, partial(_chat, sessions, key)))
        return agents.merged(chats)


async def _chat(sessions: Sessions, key: SessionKey) -> tuple[list[agents.EncodedEvent], int]:
    entries = await sessions.entries(key, "events")
    events = agents.of_session(entry.document for entry in entries)
    await asyncio.sleep(0)  # an agent has many sessions: other requests run in between
    return events, sum(len(document) for _, document in events)


def _kind(entry: Entry) -> str:
    name: str = codec.loads(entry.document)["type"]
    return name.removeprefix(_TYPE_HEAD).removesuffix(_TYPE_TAIL)
