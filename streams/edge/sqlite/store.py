"""What `contextgauge view` writes to its local file, and reads back to go on."""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from schemas.views import LIVE_ENTRIES, STREAM_ENTRIES
from streams import codec
from streams.edge.sqlite.database import failing, open_database, transaction
from streams.ports import Entry, LocalChanges, ViewChanges

_OF_SESSION = ("compactions", "entries", "agents", "states", "totals")
"""Tables of a session's documents, by its id."""

_LARGEST = 2**63 - 1
"""SQLite has no larger integer; a time beyond it is no time."""


class SqliteStore:
    """The local file, as its one writer uses it. Holds no lock: see `Lock`."""

    def __init__(self, path: Path, tag: str) -> None:
        self._path = path
        self._connection = open_database(path, tag)
        with failing(self._path):
            about = dict(self._connection.execute("SELECT name, value FROM about"))
            visits = self._connection.execute("SELECT max(last_visit) FROM members").fetchone()
        self.position: int = about["position"]
        self.visits: int = 0 if visits[0] is None else visits[0] + 1

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def marks(self) -> dict[str, bytes]:
        with failing(self._path):
            rows = self._connection.execute("SELECT path, mark FROM files")
            return {os.fsdecode(path): mark for path, mark in rows}

    def stats(self) -> dict[bytes, bytes]:
        return dict(self._rows("SELECT field, document FROM stats"))

    def view(self, session: bytes) -> bytes | None:
        return self._value("SELECT view FROM sessions WHERE session = ?", session)

    def compaction(self, session: bytes, name: bytes) -> bytes | None:
        return self._value(
            "SELECT document FROM compactions JOIN sessions USING (id) "
            "WHERE session = ? AND name = ?",
            session,
            name,
        )

    def state(self, session: bytes) -> list[tuple[bytes, bytes]]:
        return self._rows(
            "SELECT part, value FROM states JOIN sessions USING (id) WHERE session = ?", session
        )

    def own_totals(self, session: bytes) -> dict[bytes, bytes]:
        return dict(
            self._rows(
                "SELECT field, document FROM totals JOIN sessions USING (id) WHERE session = ?",
                session,
            )
        )

    def other_totals(self, field: bytes, sessions: Collection[bytes]) -> list[bytes]:
        rows = self._rows(
            "SELECT session, document FROM totals JOIN sessions USING (id) WHERE field = ?", field
        )
        return [document for session, document in rows if session not in sessions]

    def files(self, session: bytes) -> set[str]:
        paths = self._others("SELECT path FROM members WHERE session = ?", {session})
        return set(map(os.fsdecode, paths))

    def sessions_of(self, path: str) -> set[bytes]:
        """Return the sessions of which a file has lines."""
        return self._others("SELECT session FROM members WHERE path = ?", {os.fsencode(path)})

    def related(self, paths: Collection[str]) -> tuple[set[bytes], set[str]]:
        files, sessions = {os.fsencode(path) for path in paths}, set[bytes]()
        new = set(files)
        while new:
            more = self._others("SELECT session FROM members WHERE path = ?", new) - sessions
            sessions |= more
            new = self._others("SELECT path FROM members WHERE session = ?", more) - files
            files |= new
        return sessions, set(map(os.fsdecode, files))

    def commit(self, changes: LocalChanges) -> None:
        with failing(self._path), transaction(self._connection):
            run, many = self._connection.execute, self._connection.executemany
            views = changes.views
            self._leave(views.leaving)
            files = {os.fsencode(path): mark for path, mark in changes.marks.items()}
            gone = [(path,) for path, mark in files.items() if mark is None]
            many("DELETE FROM files WHERE path = ?", gone)
            many("DELETE FROM members WHERE path = ?", gone)
            inexact = set(map(os.fsencode, changes.inexact))
            many(
                "INSERT INTO files VALUES (?, ?, ?) ON CONFLICT (path) DO UPDATE "
                "SET mark = excluded.mark, is_exact = min(is_exact, excluded.is_exact)",
                [
                    (path, mark, path not in inexact)
                    for path, mark in files.items()
                    if mark is not None
                ],
            )
            many(
                "INSERT INTO members VALUES (?, ?, ?, ?) ON CONFLICT (path, session) DO UPDATE "
                "SET last_visit = excluded.last_visit",
                [
                    (os.fsencode(path), who, *visits)
                    for (path, who), visits in changes.members.items()
                ],
            )
            ids = self._write_views(views)
            self._write_parts(changes, ids)
            run("UPDATE about SET value = ? WHERE name = 'position'", (changes.position,))
        if changes.views.leaving:
            with failing(self._path):  # else the log still has what was deleted
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.position = changes.position
        lasts = (visits.last for visits in changes.members.values())
        self.visits = max(self.visits, 1 + max(lasts, default=-1))

    def _write_views(self, views: ViewChanges) -> dict[bytes, int]:
        """Write the views and what belongs to them; return the ids of their sessions."""
        many = self._connection.executemany
        many(
            "INSERT INTO sessions (session, view, recent, pressure) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (session) DO UPDATE "
            "SET view = excluded.view, recent = excluded.recent, pressure = excluded.pressure",
            [
                (session, view, min(views.recent[session], _LARGEST), views.pressure[session])
                for session, view in views.views.items()
            ],
        )
        ids = self._ids({*views.views, *(who for _, who in views.agents)})
        many(
            "INSERT OR REPLACE INTO compactions VALUES (?, ?, ?)",
            [(ids[who], name, document) for (who, name), document in views.compactions.items()],
        )
        many(
            "INSERT INTO entries VALUES (?, ?, ?, ?)",
            [(ids[who], stream, *entry) for stream, who, entry in views.entries],
        )
        streams = {(ids[who], stream) for stream, who, _ in views.entries}
        many(
            "DELETE FROM entries WHERE id = ?1 AND stream = ?2 AND position <= ("
            "SELECT position FROM entries WHERE id = ?1 AND stream = ?2 "
            "ORDER BY position DESC LIMIT 1 OFFSET ?3)",
            [(*of, STREAM_ENTRIES) for of in streams],
        )
        agents = [(agent, ids.get(who), recent) for (agent, who), recent in views.agents.items()]
        many(
            "DELETE FROM agents WHERE agent = ? AND id = ?",
            [(agent, number) for agent, number, recent in agents if recent is None],
        )
        rows = [(*row[:2], min(row[2], _LARGEST)) for row in agents if row[2] is not None]
        many("INSERT OR REPLACE INTO agents VALUES (?, ?, ?)", rows)
        self._write_stats(views.stats)
        if views.live:
            self._write_live(views.live)
        return ids

    def _write_live(self, entries: Iterable[Entry]) -> None:
        run = self._connection.execute
        self._connection.executemany("INSERT INTO live VALUES (?, ?)", entries)
        cut = run(
            "DELETE FROM live WHERE position <= ("
            "SELECT position FROM live ORDER BY position DESC LIMIT 1 OFFSET ?)",
            (LIVE_ENTRIES,),
        )
        if cut.rowcount:
            run("INSERT OR IGNORE INTO about VALUES ('feed_is_cut', 1)")

    def _write_stats(self, stats: Mapping[bytes, bytes | None]) -> None:
        gone = [(field,) for field, document in stats.items() if document is None]
        self._connection.executemany("DELETE FROM stats WHERE field = ?", gone)
        rows = [item for item in stats.items() if item[1] is not None]
        self._connection.executemany("INSERT OR REPLACE INTO stats VALUES (?, ?)", rows)

    def _write_parts(self, changes: LocalChanges, ids: dict[bytes, int]) -> None:
        """Write the states of sessions, which may have no view yet, and their own aggregates."""
        many = self._connection.executemany
        new = [session for session in changes.states if session not in ids]
        many("INSERT OR IGNORE INTO sessions (session) VALUES (?)", [(name,) for name in new])
        ids |= self._ids(new)
        parts = [
            (ids[session], part, value)
            for session, values in changes.states.items()
            for part, value in values.items()
        ]
        gone = [(who, part) for who, part, value in parts if value is None]
        many("DELETE FROM states WHERE id = ? AND part = ?", gone)
        rows = [row for row in parts if row[2] is not None]
        many("INSERT OR REPLACE INTO states VALUES (?, ?, ?)", rows)
        totals = [(ids[who], field, value) for (who, field), value in changes.totals.items()]
        many("INSERT OR REPLACE INTO totals VALUES (?, ?, ?)", totals)

    def _leave(self, sessions: Collection[bytes]) -> None:
        if not sessions:
            return
        feed = self._connection.execute("SELECT position, document FROM live").fetchall()
        gone = [(position,) for position, document in feed if _session_of(document) in sessions]
        self._connection.executemany("DELETE FROM live WHERE position = ?", gone)
        ids = [(number,) for number in self._ids(sessions).values()]
        for table in _OF_SESSION:
            self._connection.executemany(f"DELETE FROM {table} WHERE id = ?", ids)  # noqa: S608 -- a constant
        self._connection.executemany("DELETE FROM sessions WHERE id = ?", ids)

    def _ids(self, sessions: Iterable[bytes]) -> dict[bytes, int]:
        ask = "SELECT id FROM sessions WHERE session = ?"
        rows = {name: self._connection.execute(ask, (name,)).fetchone() for name in sessions}
        return {name: row[0] for name, row in rows.items() if row is not None}

    def _others(self, ask: str, keys: Iterable[bytes]) -> set[bytes]:
        return {row[0] for key in keys for row in self._rows(ask, key)}

    def _value(self, ask: str, *keys: bytes) -> bytes | None:
        rows = self._rows(ask, *keys)
        return rows[0][0] if rows else None

    def _rows(self, ask: str, *keys: bytes) -> list[tuple[bytes, bytes]]:
        with failing(self._path):
            return self._connection.execute(ask, keys).fetchall()


def _session_of(document: bytes) -> bytes:
    """Return the session of an entry of the live feed."""
    return codec.key_bytes(codec.loads(document)["session_id"])
