"""The store of conversations in memory: it behaves as `streams.edge.redis.conversations` does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.errors import ConfigError
from contextgauge.partitioner import key_bytes, partition_of_key
from streams.codec.conversations import KeptPosition, conversation_of
from streams.ports import ApplyResult
from streams.ports.conversations import (
    LinesChange,
    Mark,
    StoredConversations,
)


@dataclass(slots=True)
class _Partition:
    """What is kept of a partition; `count` is the number of sessions that were written."""

    mark: Mark | None = None
    plan: str = ""
    since_ms: int | None = None
    topic_id: str = ""
    """The last one that was known; also of what was dropped."""
    count: int = 0
    end: int | None = None
    reported_ms: int | None = None
    entries: dict[bytes, bytes] = field(default_factory=dict)
    lines: dict[bytes, list[bytes]] = field(default_factory=dict)


class MemoryConversations:
    """The store of conversations, for tests and for embedded mode."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}
        self._count: int | None = None

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def _of(self, partition: int) -> _Partition:
        return self._partitions.setdefault(partition, _Partition())

    async def conversation(self, session_id: str) -> SessionConversation | None:
        if self._count is None:
            return None
        session = key_bytes(session_id)
        own = self._of(partition_of_key(session, self._count))
        entry = own.entries.get(session)
        if entry is None or own.mark is None:
            return None
        lines = own.lines.get(session, [])
        position = KeptPosition(own.mark.position, own.mark.topic_id, own.end, own.reported_ms)
        return conversation_of(entry, lines, position)

    async def open(self, partition: int, partitions: int) -> StoredConversations | None:
        if self._count not in (None, partitions):
            raise ConfigError(
                f"conversations are kept for {self._count} partitions, and agent.messages has "
                f"{partitions}: set another CONTEXTGAUGE_KEY_PREFIX"
            )
        self._count, own = partitions, self._of(partition)
        if own.mark is None and own.since_ms is None and not own.topic_id:
            return None
        mark = own.mark if own.count == len(own.entries) else None
        return StoredConversations(mark, own.plan, own.since_ms, dict(own.entries), own.topic_id)

    async def lines(self, partition: int, session: bytes) -> Sequence[bytes]:
        return list(self._of(partition).lines.get(session, []))

    async def apply(
        self,
        partition: int,
        *,
        expected: str | None,
        mark: Mark,
        plan: str,
        since_ms: int | None,
        keep_ms: int,  # noqa: ARG002 -- nothing outlives the process
        changes: Mapping[bytes, LinesChange],
    ) -> ApplyResult:
        own = self._of(partition)
        stored = None if own.mark is None else own.mark.stamp
        if stored != expected:
            return "done" if stored == mark.stamp else "mismatch"
        if len(own.entries) != own.count or any(
            len(lines := own.lines.get(session, [])) != change.expected
            and (lines or change.lines or not change.replaces)
            for session, change in changes.items()
        ):
            return "damaged"
        for session, change in changes.items():
            if change.entry is None:
                own.entries.pop(session, None)
                own.lines.pop(session, None)
                continue
            own.entries[session] = change.entry
            before = [] if change.replaces else own.lines.get(session, [])
            own.lines[session] = [*before, *change.lines]
        if expected is None:
            own.plan = plan
            own.since_ms = own.since_ms if since_ms is None else since_ms
        own.topic_id = mark.topic_id or own.topic_id
        own.mark, own.count = mark._replace(topic_id=own.topic_id), len(own.entries)
        return "applied"

    async def mark(self, partition: int) -> Mark | None:
        return self._of(partition).mark

    async def report(self, partition: int, end: int, now_ms: int) -> None:
        own = self._of(partition)
        own.end, own.reported_ms = end, now_ms

    async def drop(self, partition: int, since_ms: int | None = None, topic_id: str = "") -> None:
        self._partitions[partition] = _Partition(since_ms=since_ms, topic_id=topic_id)

    def lose(self, partition: int, session: bytes, *, entry: bool) -> None:
        """Lose a session's entry, or else its lines, as a store may that evicts keys."""
        own = self._of(partition)
        (own.entries if entry else own.lines).pop(session)
