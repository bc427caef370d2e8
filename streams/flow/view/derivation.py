"""Derives and folds the lines of transcripts into the local file, as the workers do over Kafka.

    piece ─▶ Deriver ─▶ Fold ─▶ commit: views, states, totals and the files' marks together

A commit is one transaction, so a process that is killed goes on from a commit as if it had never
been away. Between commits only the sessions that were used last are in memory.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

from contextgauge.normalise.fields import moment_ms
from contextgauge.normalise.unread_lines import UnreadKind
from schemas.messages import DeadLetter
from schemas.records import Record
from schemas.topics import MESSAGE_LIMIT_BYTES
from schemas.views import Aggregates, PartitionView, SessionView
from streams import codec
from streams.codec import view_codec
from streams.codec.aggregates import added
from streams.core.derivation.outside_windows import OutsideWindows, with_windows
from streams.core.derivation.rules_config import Rules
from streams.core.derivation.state import Session
from streams.core.projection import statistics
from streams.core.times import later
from streams.flow.derive.deriver import Deriver
from streams.flow.derive.stored_sessions import Activity, StoredSessions, changes_of
from streams.flow.project.fold import FIRST_STATS, LoggedRecord
from streams.flow.project.view_write import ViewWrite
from streams.flow.replay.hook_lines import HookLines
from streams.flow.replay.replay import derive_line
from streams.flow.replay.unread_lines import UnreadLines
from streams.flow.view.local_fold import LocalFold
from streams.flow.view.unchanged import is_outdated
from streams.ports import (
    DerivedFiles,
    Entry,
    HookedBy,
    LocalChanges,
    LocalStore,
    TranscriptPiece,
    Visits,
)

_MEMORY_SESSIONS = 8
"""Sessions that stay in memory after a commit: those that are written to at a time, and more."""

_NEVER_IDLE = Activity(0, None)


class LocalDerivation:
    """The sessions of the local file. Not thread-safe.

    `give_way` is called between two lines: it may wait for others of this process. `windows` and
    what `hooked` returns are known from elsewhere than the sessions' lines.
    """

    def __init__(
        self,
        rules: Rules,
        store: LocalStore,
        give_way: Callable[[], None],
        limit_bytes: int = MESSAGE_LIMIT_BYTES,
        windows: OutsideWindows | None = None,
        hooked: HookedBy = lambda _: (),
    ) -> None:
        self._rules = rules
        self._store = store
        self._give_way = give_way
        self._limit_bytes = limit_bytes
        self._windows = windows
        self._hooked = hooked
        self.rejected: Counter[str] = Counter()
        """Lines that could not be derived, by file."""
        self._unread = UnreadLines()
        self._unread_elsewhere: dict[UnreadKind, int] = {}
        self._postponed: set[bytes] = set()
        self._position = self._visit = 0
        self._visited: str | None = None
        self._restart()

    @property
    def position(self) -> int:
        """The offset of the next record."""
        return self._position

    @property
    def partition(self) -> PartitionView:
        """The account of all records that were taken."""
        return self._fold.partition

    @property
    def unread(self) -> dict[UnreadKind, int]:
        """Lines whose figures are not read."""
        return self._unread_elsewhere | self._unread.counts()

    def take(self, piece: TranscriptPiece) -> None:
        """Derive and fold the lines of a piece."""
        if not self._marks:
            self._take_windows()
        is_live = piece.received_ms is not None
        is_exact = piece.is_as_once
        if piece.path != self._visited:
            self._visited, self._visit = piece.path, self._visit + 1
        member: str | None = None
        self._unread.look(piece.lines)
        for line in self._hooks.between(piece.path, piece.lines):
            self._give_way()
            result = derive_line(self._deriver, line, self._limit_bytes, piece.received_ms)
            if result.dead is not None:
                self.rejected[piece.path] += 1
                is_exact = False
            if result.session_id is None:
                continue
            if result.session_id != member:
                # A copy of known messages is its session's file too: the first one may be deleted.
                member = result.session_id
                self._note(piece.path, codec.key_bytes(member))
            is_exact = is_exact and not (is_live and _is_untimed(line.value))
            self._unread.take(result.records)
            for record in result.records:
                self._add(record, piece.modified_ms, is_live=is_live)
        self._marks[piece.path] = piece.mark
        if not is_exact:
            self._inexact.add(piece.path)

    def take_hooks(self, session_ids: Iterable[str]) -> None:
        """Derive messages of hooks that came after the last lines of sessions' files.

        All files must have been read, and nothing may be uncommitted.
        """
        for session in map(codec.key_bytes, session_ids):
            for path in self._store.files(session):
                self._begin_hooks(path, session)
                lines = self._hooks.rest(path)
                mark = self._store.marks().get(path) if lines else None
                if mark is None:
                    continue
                for line in lines:
                    result = derive_line(self._deriver, line, self._limit_bytes)
                    for record in result.records:
                        self._add(record, record.time_ms or 0, is_live=True)
                self._marks[path] = mark
                self._inexact.add(path)

    def _begin_hooks(self, path: str, session: bytes) -> None:
        """Leave out what an earlier run derived of hooks: all up to the last record's time."""
        stored = self._store.view(session)
        if stored is not None:
            self._hooks.begin(path, view_codec.decode(SessionView, stored).last_ms)

    def _note(self, path: str, session: bytes) -> None:
        """Note that the file which is read has lines of a session."""
        first = self._members.get((path, session), Visits(self._visit, self._visit)).first
        self._members[path, session] = Visits(first, self._visit)

    def _take_windows(self) -> None:
        """Drop sessions whose windows changed elsewhere: they are loaded with these again.

        Nothing may be uncommitted.
        """
        if self._windows is None:
            return
        for session_id, session in list(self._deriver.sessions.items()):
            if with_windows(session, self._windows(session_id)) is not session:
                self._deriver.drop(session_id)

    def outdated(self, session_ids: Iterable[str]) -> set[str]:
        """Return the files of those sessions that are stored without a window known meanwhile."""
        sessions: set[str] = set()
        for session_id in session_ids:
            session = codec.key_bytes(session_id)
            stored = self._store.view(session)
            if self._windows is None or stored is None:
                continue
            view = view_codec.decode(SessionView, stored)
            if is_outdated(view, self._windows(session_id)):
                sessions |= self._store.files(session)
        return sessions

    def marks_of(self, derived: DerivedFiles | None) -> Mapping[str, bytes | None] | None:
        """Return how far files were read that another process derived; None to read them here.

        That is where it could not, and where it had to know a session from other files: it began
        without any.
        """
        if derived is None:
            return None
        sessions = _sessions_of(derived.changes)
        known = self._postponed.union(session for _, session in self._members)
        if sessions & known or any(map(self._store.state, sessions)):
            return None
        return derived.changes.marks

    def postpone(self, derived: DerivedFiles) -> None:
        """Note sessions whose files are read here later on: no later file may come before."""
        self._postponed |= _sessions_of(derived.changes)

    def take_derived(self, derived: DerivedFiles) -> None:
        """Write what another process derived, after what was taken before; see `marks_of`."""
        self._give_way()
        self.commit()
        changes, begin, visit = derived.changes, self._position, self._visit + 1
        members = {
            of: Visits(visits.first + visit, visits.last + visit)
            for of, visits in changes.members.items()
        }
        self._visit = max((visits.last for visits in members.values()), default=visit)
        self._visited = None
        views = changes.views
        totals = {
            place: document
            for place, document in changes.totals.items()
            if not self._fold.is_too_old(place[1])
        }
        stats = self._fold.count_all(derived.partition, derived.ahead_ms, derived.counts)
        self._position = begin + changes.position
        self._store.commit(
            changes._replace(
                position=self._position,
                views=views._replace(
                    views={session: _moved(view, begin) for session, view in views.views.items()},
                    entries=[(of, who, _later(entry, begin)) for of, who, entry in views.entries],
                    live=[_later(entry, begin) for entry in views.live],
                    stats=stats,
                ),
                totals=totals,
                members=members,
            )
        )
        self.rejected.update(derived.rejected)
        self._unread_elsewhere |= derived.unread

    def commit(self) -> None:
        """Write everything that was taken since the last commit."""
        if not self._marks:
            return
        changes = self.changes()
        self._store.commit(changes)
        self._fold.encoded(changes.views.views)
        self._begin()

    def changes(self) -> LocalChanges:
        """Return what was taken since the last commit."""
        # Of what is read long after it was written the feed gets each session's last record:
        # it says which sessions have changed.
        latest = {entry.offset: entry for entry in self._latest_entries()}
        self._write.live = [latest[offset] for offset in sorted(latest)]
        return LocalChanges(
            position=self._position,
            views=self._write.changes(),
            states=dict(self._states()),
            totals=self._encoded_totals(),
            marks=self._marks,
            members=self._members,
            inexact=self._inexact,
        )

    def remove(self, paths: Collection[str]) -> set[str]:
        """Forget what files gave, with all files of their sessions; return these files.

        They are then read again, those that are still there. Nothing may be uncommitted.
        """
        sessions, files = self._store.related(paths)
        stats: dict[bytes, bytes | None] = {}
        for field in {name for session in sessions for name in self._store.own_totals(session)}:
            if self._fold.is_too_old(field):
                continue
            others = [_aggregates(each) for each in self._store.other_totals(field, sessions)]
            stats[field] = view_codec.encode(added(Aggregates, others)) if others else None
        views = ViewWrite(leaving=dict.fromkeys(sessions, 0)).changes()._replace(stats=stats)
        # The position moves on, so that readers notice.
        forgotten: dict[str, bytes | None] = dict.fromkeys(files)
        self._store.commit(LocalChanges(self._position + 1, views, {}, {}, forgotten, {}))
        for path in files:
            del self.rejected[path]
        self._restart()
        return files

    def _restart(self) -> None:
        """Begin with what is stored."""
        self._position, self._visit = self._store.position, self._store.visits
        self._visited = None
        # Not a method: in a cycle it would never be freed, as no process looks for old garbage.
        stored = partial(_stored_session, self._store, self._windows)
        self._deriver = Deriver(self._rules, limit_bytes=self._limit_bytes, stored=stored)
        self._hooks = HookLines(self._hooked)
        self._fold: LocalFold = LocalFold()
        self._fold.load_stats(self._store.stats() or FIRST_STATS)
        self._begin()

    def _begin(self) -> None:
        """Begin a transaction; keep only the sessions in memory that were used last."""
        for session_id in list(self._deriver.sessions)[:-_MEMORY_SESSIONS]:
            self._deriver.drop(session_id)
        self._fold.forget_sessions(_MEMORY_SESSIONS)
        self._write = ViewWrite()
        self._live: list[Entry] = []
        self.totals: dict[bytes, dict[str, Aggregates]] = {}
        """The own aggregates of the sessions that changed them."""
        self.ahead_ms: set[int] = set()
        """Times of records that are too far ahead of the files' own."""
        self._marks: dict[str, bytes | None] = {}
        self._members: dict[tuple[str, bytes], Visits] = {}
        self._inexact: set[str] = set()

    def _add(self, record: Record, modified_ms: int, *, is_live: bool) -> None:
        session = codec.key_bytes(record.data.session_id)
        if self._fold.missing([session]):
            for name in self._fold.put_view(session, self._store.view(session)):
                document = self._store.compaction(session, name)
                self._fold.put_compaction(session, name, document)
        for place in self._fold.missing_compactions([record]):
            self._fold.put_compaction(*place, self._store.compaction(*place))
        before = self._fold.view(session)
        documents = self._fold.add(LoggedRecord(self._position, modified_ms, record))
        self._position += 1
        if documents is None:
            return
        self._write.add(documents)
        newest_ms = documents.partition.newest_ms
        if record.time_ms is not None and later(newest_ms, record.time_ms) != newest_ms:
            self.ahead_ms.add(record.time_ms)
        if is_live:
            self._live.append(documents.live)
        fields = statistics.fields(record, before, newest_ms)
        own = self._own_totals(session) if fields else {}
        for field in fields:
            own[field] = statistics.counted(own.get(field, Aggregates()), record, before)

    def _own_totals(self, session: bytes) -> dict[str, Aggregates]:
        """Return the session's own aggregates, to be changed."""
        if session not in self.totals:
            self.totals[session] = {
                field.decode("utf-8", "surrogatepass"): _aggregates(document)
                for field, document in self._store.own_totals(session).items()
            }
        return self.totals[session]

    def _latest_entries(self) -> Iterable[Entry]:
        yield from self._live
        for documents in self._write.latest.values():
            yield documents.live

    def _states(self) -> Iterator[tuple[bytes, dict[bytes, bytes | None]]]:
        sessions = self._deriver.sessions
        for session_id, before, after in self._deriver.end_steps():
            sessions[session_id] = sessions.pop(session_id)  # those used last are the last
            yield codec.key_bytes(session_id), changes_of(session_id, before, after, _NEVER_IDLE)

    def _encoded_totals(self) -> dict[tuple[bytes, bytes], bytes]:
        return {
            (session, codec.key_bytes(name)): view_codec.encode(aggregates)
            for session, own in self.totals.items()
            for name, aggregates in own.items()
        }


def _stored_session(
    store: LocalStore, windows: OutsideWindows | None, session_id: str
) -> Session | None:
    session: Session | None = None
    parts = store.state(codec.key_bytes(session_id))
    if parts:
        stored = StoredSessions("the local file")
        stored.add(parts)
        session = stored.take(session_id)
    return session if windows is None else with_windows(session, windows(session_id))


def _is_untimed(value: bytes) -> bool:
    """Return whether a line has no time of its own: then it got that of its arrival (R28)."""
    body = codec.decode(value)
    return isinstance(body, DeadLetter) or moment_ms(body.get("timestamp")) is None


def _sessions_of(changes: LocalChanges) -> set[bytes]:
    return {session for _, session in changes.members}


def _moved(view: bytes, offsets: int) -> bytes:
    """Return a view whose records are so many offsets further on."""
    document = codec.loads(view)
    document["position"] += offsets
    return codec.dumps(document)


def _later(entry: Entry, offsets: int) -> Entry:
    return Entry(entry.offset + offsets, entry.document)


def _aggregates(document: bytes) -> Aggregates:
    return view_codec.decode(Aggregates, document)
