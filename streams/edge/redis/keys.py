"""The names of all keys in Redis, and one batch of changes as operations on them.

`{generation:partition}` is a hash tag: all keys of one partition share a slot, so one script may
touch them. Session ids are the last part of a key, so any characters may be in them.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from contextgauge.errors import ConfigError
from schemas.views import LEFT_KEPT_MS, LIVE_ENTRIES, STREAM_ENTRIES, EntryStream
from streams.ports import Ranking, ViewChanges

_ENTRY_LETTER: dict[EntryStream, bytes] = {"events": b"e:", "readings": b"r:"}

DOCUMENT = b"d"
"""The one field of a stream's entry, as `apply.lua` writes it."""


class RedisKeys:
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


class PartitionKeys:
    """The keys of one partition of a generation, all beginning with `base`."""

    def __init__(self, base: bytes) -> None:
        self.base = base
        self.position = base + b"pos"
        """Hash: offset, begin, format, partitions, build, caught_up once it is, its writer, the log
        that it is of, and how many fields `held` has: what each other key holds (`apply.lua`)."""
        self.stats = base + b"stats"
        """Hash of the aggregates."""
        self.live = base + b"live"
        """Stream for push readers."""
        self.idle = base + b"idle"
        """Sorted set of sessions by the Kafka timestamp of their last record."""
        self.left = base + b"left"
        """Sorted set of sessions that left for idleness, by when."""

    @property
    def session_sets(self) -> dict[str, bytes]:
        """All sorted sets of sessions, by name, in the order in which `look.lua` takes them."""
        recent, pressure = self.ranking("recent"), self.ranking("pressure")
        return {"recent": recent, "pressure": pressure, "idle": self.idle, "left": self.left}

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

    def agent(self, agent: bytes) -> bytes:
        """Return the key of a sorted set of an agent's sessions, by last activity."""
        return self.base + b"a:" + agent

    def of_session(self, session: bytes) -> tuple[bytes, ...]:
        """Return all keys that hold nothing but this session."""
        return (
            self.view(session),
            self.compactions(session),
            self.entries("events", session),
            self.entries("readings", session),
        )


def entry_id(offset: int) -> bytes:
    """Return the id of a stream's entry; Redis takes any but 0-0, so offset 0 has 0-1."""
    return b"%d-0" % offset if offset else b"0-1"


def entry_offset(entry: bytes) -> int:
    """Return the offset that an entry's id was made of."""
    return int(entry.partition(b"-")[0])


GroupName: TypeAlias = Literal["UNLINK", "ZREM", "ZTRIM", "SET", "HSET", "HDEL", "ZADD", "XADD"]


class Operations:
    """The keys and arguments of `apply.lua`, but for its first seven.

    Operations of a kind are one group: a name for each would be half of all arguments.
    """

    def __init__(self, position: bytes) -> None:
        self.keys = [position]
        self.arguments: list[bytes] = []
        self._index: dict[bytes, bytes] = {}

    def group(
        self, name: GroupName, operations: Iterable[tuple[bytes, ...]], extra: bytes = b""
    ) -> None:
        """Add operations of a kind, each a key and its arguments."""
        start, count = len(self.arguments), 0
        self.arguments += (name.encode(), extra, b"")
        for key, *arguments in operations:
            count += 1
            self.arguments.append(self._of(key))
            self.arguments += arguments
        if count:
            self.arguments[start + 2] = b"%d" % count
        else:
            del self.arguments[start:]

    def _of(self, key: bytes) -> bytes:
        index = self._index.get(key)
        if index is None:
            self.keys.append(key)
            index = self._index[key] = b"%d" % len(self.keys)
        return index


def operations(keys: PartitionKeys, changes: ViewChanges) -> Operations:
    """Return what writes the changes: what goes first, then documents."""
    batch = Operations(keys.position)
    recent, pressure = keys.ranking("recent"), keys.ranking("pressure")
    left = changes.leaving.items()
    batch.group("UNLINK", ((key,) for session, _ in left for key in keys.of_session(session)))
    batch.group(
        "ZREM",
        [
            *((key, session) for session, _ in left for key in (recent, pressure, keys.idle)),
            *((pressure, name) for name, percent in changes.pressure.items() if percent is None),
            *(
                (keys.agent(agent), session)
                for (agent, session), recent_ms in changes.agents.items()
                if recent_ms is None
            ),
        ],
    )
    batch.group("ZTRIM", ((keys.left, b"%d" % (at - LEFT_KEPT_MS)) for _, at in left))
    batch.group("SET", ((keys.view(session), view) for session, view in changes.views.items()))
    batch.group(
        "HSET",
        [
            *(
                (keys.compactions(session), name, document)
                for (session, name), document in changes.compactions.items()
            ),
            *((keys.stats, name, stat) for name, stat in changes.stats.items() if stat is not None),
        ],
    )
    batch.group(
        "HDEL", ((keys.stats, name) for name, stat in changes.stats.items() if stat is None)
    )
    scores = [
        (keys.left, left),
        (recent, changes.recent.items()),
        (pressure, changes.pressure.items()),
        (keys.idle, changes.idle.items()),
    ]
    batch.group(
        "ZADD",
        [
            *(
                (key, repr(score).encode(), session)
                for key, sessions in scores
                for session, score in sessions
                if score is not None
            ),
            *(
                (keys.agent(agent), b"%d" % recent_ms, session)
                for (agent, session), recent_ms in changes.agents.items()
                if recent_ms is not None
            ),
        ],
    )
    batch.group(
        "XADD",
        (
            (keys.entries(stream, session), entry_id(entry.offset), entry.document)
            for stream, session, entry in changes.entries
        ),
        extra=b"%d" % STREAM_ENTRIES,
    )
    batch.group(
        "XADD",
        ((keys.live, entry_id(entry.offset), entry.document) for entry in changes.live),
        extra=b"%d" % LIVE_ENTRIES,
    )
    return batch
