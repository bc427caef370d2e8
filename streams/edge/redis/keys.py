"""The names of all keys in Redis, and one batch of changes as operations on them.

`{generation:partition}` is a hash tag: all keys of one partition share a slot, so one script may
touch them. Session ids are the last part of a key, so any characters may be in them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
        """All sorted sets of sessions, by name."""
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


OperationName: TypeAlias = Literal["UNLINK", "ZREM", "ZTRIM", "SET", "HSET", "HDEL", "ZADD", "XADD"]


class Operations:
    """The keys and arguments of `apply.lua`, but for its first seven.

    Each operation is on one key and takes all that the batch does to it: members, fields, entries.
    Operations of one name follow one another, so that their name is there once.
    """

    def __init__(self, position: bytes) -> None:
        self.keys = [position]
        self.arguments: list[bytes] = []

    def add_plain(
        self, name: OperationName, keys: Sequence[bytes], arguments: Iterable[bytes] = ()
    ) -> None:
        """Add an operation for each key, which takes one argument (SET) or none (UNLINK)."""
        if keys:
            self.keys += keys
            self.arguments += (name.encode(), b"%d" % len(keys), *arguments)

    def add(
        self, name: OperationName, grouped: Mapping[bytes, Sequence[bytes]], *common: bytes
    ) -> None:
        """Add an operation for each key; `common` is an argument of all of them (XADD)."""
        if grouped:
            self.keys += grouped
            added = self.arguments
            added += (name.encode(), b"%d" % len(grouped), *common)
            for arguments in grouped.values():
                added.append(b"%d" % len(arguments))
                added += arguments


def operations(keys: PartitionKeys, changes: ViewChanges) -> Operations:
    """Return what writes the changes: what goes first, then documents."""
    batch = Operations(keys.position)
    # First what leaves: a later record of the same batch may begin such a session again.
    _take_out(batch, keys, changes)
    views = changes.views
    batch.add_plain("SET", [keys.view(session) for session in views], views.values())
    fields: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for (session, name), document in changes.compactions.items():
        fields[keys.compactions(session)] += (name, document)
    for name, stat in changes.stats.items():
        if stat is not None:
            fields[keys.stats] += (name, stat)
    batch.add("HSET", fields)
    batch.add("ZADD", _scores(keys, changes))
    by_session: dict[EntryStream, defaultdict[bytes, list[bytes]]] = {
        "events": defaultdict(list),
        "readings": defaultdict(list),
    }
    for stream, session, entry in changes.entries:
        by_session[stream][session] += (entry_id(entry.offset), entry.document)
    entries = {
        keys.entries(stream, session): added
        for stream, sessions in by_session.items()
        for session, added in sessions.items()
    }
    batch.add("XADD", entries, b"%d" % STREAM_ENTRIES)
    if changes.live:
        added = [part for each in changes.live for part in (entry_id(each.offset), each.document)]
        batch.add("XADD", {keys.live: added}, b"%d" % LIVE_ENTRIES)
    return batch


def _take_out(batch: Operations, keys: PartitionKeys, changes: ViewChanges) -> None:
    """Add what removes sessions, members and fields."""
    left, recent, pressure = changes.leaving, keys.ranking("recent"), keys.ranking("pressure")
    batch.add_plain("UNLINK", [key for session in left for key in keys.of_session(session)])
    unranked = [name for name, percent in changes.pressure.items() if percent is None]
    members = {recent: [*left], pressure: [*left, *unranked], keys.idle: [*left]}
    for (agent, session), recent_ms in changes.agents.items():
        if recent_ms is None:
            members.setdefault(keys.agent(agent), []).append(session)
    # Redis refuses a ZREM without members.
    batch.add("ZREM", {key: some for key, some in members.items() if some})
    if left:
        batch.add("ZTRIM", {keys.left: (b"%d" % (max(left.values()) - LEFT_KEPT_MS),)})
    dropped = [name for name, stat in changes.stats.items() if stat is None]
    if dropped:
        batch.add("HDEL", {keys.stats: dropped})


def _scores(keys: PartitionKeys, changes: ViewChanges) -> Mapping[bytes, Sequence[bytes]]:
    """Return the scores and members of each sorted set."""
    scores: dict[bytes, list[bytes]] = {}
    for key, sessions in (
        (keys.left, changes.leaving),
        (keys.ranking("recent"), changes.recent),
        (keys.ranking("pressure"), changes.pressure),
        (keys.idle, changes.idle),
    ):
        added: list[bytes] = []
        for session, score in sessions.items():
            if score is not None:
                # The shortest text that reads back as the same float.
                added += (repr(score).encode(), session)
        if added:
            scores[key] = added
    for (agent, session), recent_ms in changes.agents.items():
        if recent_ms is not None:
            scores.setdefault(keys.agent(agent), []).extend((b"%d" % recent_ms, session))
    return scores
