"""Classifies single messages: is one keyed by its session, and on its partition."""

from collections import Counter
from collections.abc import Callable

from contextgauge.normalise import normalise, session_of
from schemas.messages import DeadLetter, Message
from streams import codec
from streams.flow.derive.deriver import text_of
from streams.flow.doctor.facts import AHEAD_MS, Keying, MiskeyedMessage
from streams.ports import LogRecord

_HEADERS = 8
"""Header names of a wrongly keyed message that are shown."""

_HEADER_CHARACTERS = 40


class KeyingSample:
    """Counts messages by kind; `partition_of` returns a session's partition among `partitions`."""

    def __init__(
        self, partitions: int, partition_of: Callable[[str, int], int], limit: int, now_ms: int
    ) -> None:
        self._partitions, self._partition_of = partitions, partition_of
        self._limit, self._now_ms = limit, now_ms
        self._counts: Counter[str] = Counter()
        self._newest_wrong: MiskeyedMessage | None = None
        self._created_ms: list[int] = []
        self._appended_ms: list[int] = []

    def add(self, partition: int, record: LogRecord) -> None:
        """Count a message of a partition."""
        self._counts["looked"] += 1
        (self._created_ms if record.created else self._appended_ms).append(record.timestamp_ms)
        kind = self._kind(partition, record)
        if kind is None:
            return
        self._counts[kind] += 1
        newest = self._newest_wrong
        if newest is None or record.timestamp_ms >= newest.timestamp_ms:
            names = {name[:_HEADER_CHARACTERS] for name, _ in record.headers[:_HEADERS]}
            self._newest_wrong = MiskeyedMessage(
                partition, record.offset, record.timestamp_ms, tuple(sorted(names))
            )

    def _kind(self, partition: int, record: LogRecord) -> str | None:
        """Return what is wrong with a message's key or partition, as `Keying` names it."""
        value = record.value or b""
        body = codec.decode(value, self._limit)
        if isinstance(body, DeadLetter):
            return None  # it is dead for another reason, whatever its key
        key, own = text_of(record.key), session_of(body, None)
        session = session_of(body, key)
        if session is None:
            return None if normalise(Message(body, value)) is None else "without_key"
        right = self._partition_of(session, self._partitions) == partition
        if key is not None and (own is None or key == own):
            return None if right else "other_partitioner"
        if right:
            return "right_by_chance"
        return "without_key" if key is None else "other_key"

    def result(self) -> Keying:
        """Return the counts."""
        ahead_ms = [time_ms - self._now_ms for time_ms in self._created_ms]
        return Keying(
            **self._counts,
            newest_wrong=self._newest_wrong,
            ahead=sum(ahead > AHEAD_MS for ahead in ahead_ms),
            most_ahead_ms=max([0, *ahead_ms]),
            newest_ms=max(self._created_ms + self._appended_ms, default=None),
            newest_append_ms=max(self._appended_ms, default=None),
        )
