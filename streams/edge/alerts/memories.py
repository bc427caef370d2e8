"""Which alerts were dealt with: in Redis, or in a file of this machine.

Redis is for several workers, and for one that moves to another machine. The file is a SQLite
database, which several processes of one machine may share.
"""

import asyncio
import sqlite3
from pathlib import Path
from typing import Final

from contextgauge.errors import ConfigError, RetryError
from streams.edge.redis.access import NO_ACCESS, RedisAccess
from streams.edge.redis.errors import TIMEOUT_S, replied
from streams.ports import Clock

KEPT_S: Final = 30 * 24 * 3_600
"""No epoch of a chain was seen to last so long, and all else is alerted on within minutes."""

_PRUNE = "DELETE FROM alerted WHERE time_ms < ?"
_PRUNE_EVERY_MS = 24 * 3_600 * 1_000
"""A worker may run for months."""
_BUSY_S = 5.0
"""Another process writes for milliseconds."""


class RedisAlertMemory:
    """Remembers in Redis: a key of its own for each alert, which Redis deletes after its time.

    `group` is the prefix of the consumer groups: what one group sent, another one has to send.
    """

    def __init__(
        self, url: str, prefix: str, access: RedisAccess = NO_ACCESS, group: str = ""
    ) -> None:
        self._prefix = f"{prefix}:alerted:{group}:" if group else f"{prefix}:alerted:"
        self._redis = access.client(url, TIMEOUT_S)

    async def start(self) -> None:
        """Nothing: the first question connects."""

    async def knows(self, key: str) -> bool:
        """Ask for the key. Raises RetryError while Redis is away."""
        asked = self._redis.exists(self._prefix + key)
        return bool(await replied("asking which alerts were sent", asked))

    async def remember(self, key: str) -> None:
        """Set the key. Raises RetryError while Redis is away."""
        written = self._redis.set(self._prefix + key, b"1", ex=KEPT_S)
        await replied("remembering which alerts were sent", written)

    async def stop(self) -> None:
        await self._redis.aclose()


class FileAlertMemory:
    """Remembers in a file of this machine, which is made where it is missing."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._made: sqlite3.Connection | None = None
        self._pruned_ms = 0
        self._turn = asyncio.Lock()
        """Python leaves it to us to have the threads of a connection take turns."""

    async def start(self) -> None:
        """Open the file, and forget what is too old. Raises ConfigError."""
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            connection = sqlite3.connect(
                self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            # Other processes of this machine read while one writes.
            connection.execute("PRAGMA journal_mode=WAL")
            # WAL alone may lose the last commits in a power failure: alerts would be sent twice.
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS alerted"
                " (key TEXT PRIMARY KEY, time_ms INTEGER NOT NULL) WITHOUT ROWID"
            )
            connection.execute(_PRUNE, [self._clock.now_ms() - KEPT_S * 1_000])
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"{self._path} cannot be used ({error}): name another folder with "
                "CONTEXTGAUGE_STATE_FOLDER, or have alerts remembered by Redis"
            ) from error
        self._made, self._pruned_ms = connection, self._clock.now_ms()

    async def knows(self, key: str) -> bool:
        rows = await self._run("SELECT 1 FROM alerted WHERE key = ?", [key])
        return bool(rows)

    async def remember(self, key: str) -> None:
        await self._run("INSERT OR REPLACE INTO alerted VALUES (?, ?)", [key, self._clock.now_ms()])
        now_ms = self._clock.now_ms()
        if now_ms - self._pruned_ms >= _PRUNE_EVERY_MS:
            self._pruned_ms = now_ms
            await self._run(_PRUNE, [now_ms - KEPT_S * 1_000])

    async def stop(self) -> None:
        connection, self._made = self._made, None
        if connection is not None:
            connection.close()

    async def _run(self, statement: str, values: list[object]) -> list[tuple[object, ...]]:
        connection = self._made
        if connection is None:
            raise RuntimeError("the memory of alerts is not started")

        def run() -> list[tuple[object, ...]]:
            return connection.execute(statement, values).fetchall()

        try:
            async with self._turn:
                return await asyncio.to_thread(run)
        except sqlite3.Error as error:
            raise RetryError(f"{self._path} cannot be written or read for now ({error})") from error
