"""The views in the local file, for the server of the same process."""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contextgauge.errors import RetryError
from schemas.views import EntryStream
from streams.edge.sqlite.database import failing
from streams.edge.sqlite.turns import Turns
from streams.ports import (
    Entry,
    Generations,
    LiveBounds,
    ProjectorHeartbeat,
    Ranking,
    ViewPosition,
)

_GENERATION = 1
"""The local file has one generation; another build of it has another id."""

_LOOK_S = 0.05
"""Polling interval of who waits for the feed: a twentieth of a second is not noticed."""

_AT_ONCE = 500
"""Sessions named in one query."""

_PARTITION = 0

_PRIMARY = 0xFF
"""The part of SQLite's error codes that says what; the rest says where."""


class SqliteViews:
    """Reads views from the local file, which a store of this process has opened already.

    `heartbeat` returns what the reading reports; it is not stored, as nothing else would be
    written while nothing changes. The reading gives way to queries by `turns`.
    """

    def __init__(
        self, path: Path, heartbeat: Callable[[], ProjectorHeartbeat], turns: Turns
    ) -> None:
        self._path, self._heartbeat, self._turns = path, heartbeat, turns
        self._connection: sqlite3.Connection | None = None
        self._build = ""

    async def start(self) -> None:
        with failing(self._path):
            self._connection = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None
            )
        self._build = self._rows("SELECT value FROM about WHERE name = 'build'")[0][0]

    async def stop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def generations(self) -> Generations:
        return Generations(_GENERATION, None)

    async def position(self, generation: int, partition: int) -> ViewPosition | None:
        if (generation, partition) != (_GENERATION, _PARTITION):
            return None
        offset = self._rows("SELECT value FROM about WHERE name = 'position'")[0][0]
        heartbeat = self._heartbeat()
        return ViewPosition(offset, 0, 1, caught_up=True, build=self._build, heartbeat=heartbeat)

    async def views(
        self, generation: int, partition: int, sessions: Sequence[bytes]
    ) -> list[bytes | None]:
        del generation, partition
        stored = dict(self._among("SELECT session, view FROM sessions WHERE session", sessions))
        return [stored.get(session) for session in sessions]

    async def ranked(
        self, generation: int, partition: int, ranking: Ranking, limit: int
    ) -> list[tuple[bytes, float]]:
        del generation, partition
        # `ranking` is a column's name: one of two constants.
        return self._rows(
            f"SELECT session, {ranking} FROM sessions WHERE {ranking} IS NOT NULL "  # noqa: S608
            f"ORDER BY {ranking} DESC, session DESC LIMIT ?",
            limit,
        )

    async def scores(
        self, generation: int, partition: int, sessions: Sequence[bytes], ranking: Ranking
    ) -> list[float | None]:
        del generation, partition
        ask = f"SELECT session, {ranking} FROM sessions WHERE session"  # noqa: S608 -- a column
        stored = dict(self._among(ask, sessions))
        return [stored.get(session) for session in sessions]

    async def session_count(self, generation: int, partition: int) -> int:
        del generation, partition
        count: int = self._rows("SELECT count(*) FROM sessions WHERE recent IS NOT NULL")[0][0]
        return count

    def files(self, sessions: Sequence[bytes]) -> list[tuple[bytes, Path, bool]]:
        """Return sessions and files that have lines of them, and whether of no other session."""
        ask = (
            "SELECT session, path, NOT EXISTS (SELECT 1 FROM members WHERE path = one.path "
            "AND session != one.session) FROM members AS one WHERE session"
        )
        rows = self._among(ask, sessions)
        return [(session, Path(os.fsdecode(path)), alone == 1) for session, path, alone in rows]

    async def agent_sessions(
        self, generation: int, partition: int, agent: bytes, limit: int
    ) -> list[tuple[bytes, float]]:
        del generation, partition
        return self._rows(
            "SELECT session, agents.recent FROM agents JOIN sessions USING (id) WHERE agent = ? "
            "ORDER BY agents.recent DESC, session DESC LIMIT ?",
            agent,
            limit,
        )

    async def compactions(
        self, generation: int, partition: int, session: bytes
    ) -> dict[bytes, bytes]:
        del generation, partition
        return dict(
            self._rows(
                "SELECT name, document FROM compactions JOIN sessions USING (id) WHERE session = ?",
                session,
            )
        )

    async def entries(
        self, generation: int, partition: int, stream: EntryStream, session: bytes, after: int
    ) -> list[Entry]:
        del generation, partition
        rows = self._rows(
            "SELECT position, document FROM entries JOIN sessions USING (id) "
            "WHERE session = ? AND stream = ? AND position > ? ORDER BY position",
            session,
            stream,
            after,
        )
        return [Entry(*row) for row in rows]

    async def stats(
        self, generation: int, partition: int, fields: Sequence[bytes] | None = None
    ) -> dict[bytes, bytes]:
        del generation, partition
        if fields is None:
            return dict(self._rows("SELECT field, document FROM stats"))
        return dict(self._among("SELECT field, document FROM stats WHERE field", fields))

    async def live(
        self, generation: int, partition: int, after: int, limit: int, wait_s: float = 0.0
    ) -> list[Entry]:
        del generation, partition
        waited_s = 0.0
        while True:
            rows = self._rows(
                "SELECT position, document FROM live WHERE position > ? ORDER BY position LIMIT ?",
                after,
                limit,
            )
            if rows or waited_s >= wait_s:
                return [Entry(*row) for row in rows]
            await asyncio.sleep(_LOOK_S)
            waited_s += _LOOK_S

    async def live_bounds(self, generation: int, partition: int) -> LiveBounds:
        del generation, partition
        first, is_cut = self._rows(
            "SELECT min(position), EXISTS (SELECT 1 FROM about WHERE name = 'feed_is_cut') "
            "FROM live"
        )[0]
        return LiveBounds(first, is_whole=not is_cut)

    def _among(self, ask: str, names: Sequence[bytes]) -> list[Any]:
        """Return what a query gives whose last column is one of these."""
        rows = []
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            rows += self._rows(f"{ask} IN ({','.join('?' * len(some))})", *some)
        return rows

    def _rows(self, ask: str, *values: object) -> list[Any]:
        """Return what a query gives.

        Raises RetryError while others keep the file locked, StopError where it cannot be read.
        """
        if self._connection is None:
            raise RetryError("the local file is closed")
        with failing(self._path), self._turns.query():
            try:
                return self._connection.execute(ask, values).fetchall()
            except sqlite3.OperationalError as error:
                if getattr(error, "sqlite_errorcode", 0) & _PRIMARY == sqlite3.SQLITE_BUSY:
                    raise RetryError(f"{self._path}: {error}") from error
                raise
