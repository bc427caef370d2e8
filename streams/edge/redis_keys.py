"""The names of all keys in Redis, and one batch of changes as operations on them.

`{generation:partition}` is a hash tag: all keys of one partition share a slot, so one script may
touch them. Session ids are the last part of a key, so any characters may be in them.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from schemas.views import LEFT_KEPT_MS, LIVE_ENTRIES, STREAM_ENTRIES, EntryStream
from streams.core.errors import ConfigError
from streams.ports import Entry, Ranking, ViewChanges

Argument: TypeAlias = bytes | str | int | float

_ENTRY_LETTER: dict[EntryStream, bytes] = {"events": b"e:", "readings": b"r:"}

DOCUMENT = b"d"
"""The one field of a stream's entry."""


class Keys:
    """The keys of all generations under one prefix. Raises ConfigError for a bad prefix."""

    def __init__(self, prefix: str) -> None:
        if not prefix or "{" in prefix or "}" in prefix:
            raise ConfigError(
                f"CONTEXTGAUGE_KEY_PREFIX={prefix!r}: must not be empty or hold braces, which mark "
                "the part of a key that Redis Cluster places it by"
            )
        self.active = f"{prefix}:active"
        self.next = f"{prefix}:next"
        self._prefix = prefix

    def of(self, generation: int, partition: int) -> "PartitionKeys":
        """Return the keys of a partition."""
        return PartitionKeys(f"{self._prefix}:{{{generation}:{partition}}}:".encode())


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """The keys of one partition of a generation."""

    base: bytes

    @property
    def position(self) -> bytes:
        """Hash: offset, begin, format, partitions, and caught_up once it is."""
        return self.base + b"pos"

    @property
    def stats(self) -> bytes:
        """Hash of the aggregates."""
        return self.base + b"stats"

    @property
    def live(self) -> bytes:
        """Stream for push readers."""
        return self.base + b"live"

    @property
    def idle(self) -> bytes:
        """Sorted set of sessions by the Kafka timestamp of their last record."""
        return self.base + b"idle"

    @property
    def left(self) -> bytes:
        """Sorted set of sessions that left for idleness, by when."""
        return self.base + b"left"

    def ranking(self, ranking: Ranking) -> bytes:
        """Return the key of a sorted set of sessions."""
        return self.base + ranking.encode()

    def view(self, session: bytes) -> bytes:
        """Return the key of a string, the session's view."""
        return self.base + b"s:" + session

    def compactions(self, session: bytes) -> bytes:
        """Return the key of a hash, the session's compactions by name."""
        return self.base + b"c:" + session

    def entries(self, stream: EntryStream, session: bytes) -> bytes:
        """Return the key of a stream of the session's records, or of its readings."""
        return self.base + _ENTRY_LETTER[stream] + session

    def of_session(self, session: bytes) -> tuple[bytes, ...]:
        """Return all keys that hold nothing but this session."""
        return (
            self.view(session),
            self.compactions(session),
            self.entries("events", session),
            self.entries("readings", session),
        )


def entry_id(offset: int) -> str:
    """Return the id of a stream's entry; Redis takes any but 0-0, so offset 0 has 0-1."""
    return f"{offset}-0" if offset else "0-1"


def entry_offset(entry: bytes) -> int:
    """Return the offset that an entry's id was made of."""
    return int(entry.partition(b"-")[0])


Command: TypeAlias = Literal[
    "SET", "HSET", "HDEL", "XADD", "ZADD", "ZREM", "ZREMRANGEBYSCORE", "UNLINK"
]


@dataclass(slots=True)
class Operations:
    """The keys and arguments of `apply.lua` after the first five."""

    keys: list[bytes]
    arguments: list[Argument] = field(default_factory=list)
    _index: dict[bytes, int] = field(default_factory=dict)

    def add(self, command: Command, key: bytes, *arguments: Argument) -> None:
        """Add one operation."""
        index = self._index.get(key)
        if index is None:
            self.keys.append(key)
            index = self._index[key] = len(self.keys)
        self.arguments += (command, index, len(arguments), *arguments)


def operations(keys: PartitionKeys, changes: ViewChanges) -> Operations:
    """Return what writes the changes: leaving sessions first, then documents."""
    found = Operations([keys.position])
    _leave(found, keys, changes)
    for session, document in changes.views.items():
        found.add("SET", keys.view(session), document)
    for (session, name), document in changes.compactions.items():
        found.add("HSET", keys.compactions(session), name, document)
    for stream, session, entry in changes.entries:
        _append(found, keys.entries(stream, session), STREAM_ENTRIES, entry)
    for entry in changes.live:
        _append(found, keys.live, LIVE_ENTRIES, entry)
    _rank(found, keys, changes)
    for name, stat in changes.stats.items():
        if stat is None:
            found.add("HDEL", keys.stats, name)
        else:
            found.add("HSET", keys.stats, name, stat)
    return found


def _leave(found: Operations, keys: PartitionKeys, changes: ViewChanges) -> None:
    for session, left_ms in changes.leaving.items():
        for key in keys.of_session(session):
            found.add("UNLINK", key)
        for key in (keys.ranking("recent"), keys.ranking("pressure"), keys.idle):
            found.add("ZREM", key, session)
        found.add("ZREMRANGEBYSCORE", keys.left, "-inf", left_ms - LEFT_KEPT_MS)
        found.add("ZADD", keys.left, left_ms, session)


def _rank(found: Operations, keys: PartitionKeys, changes: ViewChanges) -> None:
    for session, recent in changes.recent.items():
        found.add("ZADD", keys.ranking("recent"), recent, session)
    for session, logged_ms in changes.idle.items():
        found.add("ZADD", keys.idle, logged_ms, session)
    for session, percent in changes.pressure.items():
        if percent is None:
            found.add("ZREM", keys.ranking("pressure"), session)
        else:
            found.add("ZADD", keys.ranking("pressure"), percent, session)


def _append(found: Operations, key: bytes, cap: int, entry: Entry) -> None:
    found.add("XADD", key, "MAXLEN", "=", cap, entry_id(entry.offset), DOCUMENT, entry.document)
