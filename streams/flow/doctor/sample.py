"""Looks at single messages: whether one is keyed by its session, and on its partition."""

from collections.abc import Callable

from contextgauge.normalise import normalise, session_of
from schemas.messages import DeadLetter, Message
from streams import codec
from streams.flow.derive.intake import text_of
from streams.flow.doctor.facts import AHEAD_MS, Keying, Wrong
from streams.ports import LogRecord

_HEADERS = 8
"""Header names of a wrongly keyed message that are shown."""

_HEADER_CHARACTERS = 40


class KeyingSample:
    """Takes messages and counts. `partition_of` gives a session's partition among `partitions`."""

    def __init__(
        self, partitions: int, partition_of: Callable[[str, int], int], limit: int, now_ms: int
    ) -> None:
        self._partitions, self._partition_of = partitions, partition_of
        self._limit, self._now_ms = limit, now_ms
        self._looked = self._keyless = self._foreign = self._misplaced = self._lucky = 0
        self._newest_wrong: Wrong | None = None
        self._ahead = self._most_ahead_ms = 0
        self._newest_ms: int | None = None
        self._newest_append_ms: int | None = None

    def take(self, partition: int, record: LogRecord) -> None:
        """Look at a message of a partition."""
        self._looked += 1
        self._take_time(record)
        body = codec.decode(record.value or b"", self._limit)
        if isinstance(body, DeadLetter):
            return  # dead for another reason, whatever its key
        key, own = text_of(record.key), session_of(body, None)
        session = session_of(body, key)
        if session is None:
            if normalise(Message(body, record.value or b"")) is not None:
                self._keyless += 1  # it names no session either: `no_session`
                self._remember(partition, record)
            return
        right = self._partition_of(session, self._partitions) == partition
        keyed = key is not None and (own is None or key == own)
        if keyed and right:
            return
        if right:
            self._lucky += 1
        elif keyed:
            self._misplaced += 1
        elif key is None:
            self._keyless += 1
        else:
            self._foreign += 1
        self._remember(partition, record)

    def _remember(self, partition: int, record: LogRecord) -> None:
        newest = self._newest_wrong
        if newest is None or record.timestamp_ms >= newest.timestamp_ms:
            names = [name[:_HEADER_CHARACTERS] for name, _ in record.headers[:_HEADERS]]
            self._newest_wrong = Wrong(
                partition, record.offset, record.timestamp_ms, tuple(sorted(set(names)))
            )

    def _take_time(self, record: LogRecord) -> None:
        at = record.timestamp_ms
        self._newest_ms = at if self._newest_ms is None else max(self._newest_ms, at)
        if not record.created:
            self._newest_append_ms = max(self._newest_append_ms or at, at)
            return
        ahead_ms = at - self._now_ms
        self._ahead += ahead_ms > AHEAD_MS
        self._most_ahead_ms = max(self._most_ahead_ms, ahead_ms)

    def result(self) -> Keying:
        """Return the counts."""
        return Keying(
            looked=self._looked,
            keyless=self._keyless,
            foreign=self._foreign,
            misplaced=self._misplaced,
            lucky=self._lucky,
            newest_wrong=self._newest_wrong,
            ahead=self._ahead,
            most_ahead_ms=self._most_ahead_ms,
            newest_ms=self._newest_ms,
            newest_append_ms=self._newest_append_ms,
        )
