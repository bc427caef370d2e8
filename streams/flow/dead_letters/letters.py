"""Dead letters, messages that cannot be derived: their format, and when they are too many."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from contextgauge import json_codec
from contextgauge.errors import DeadLetterFlood
from contextgauge.partitioner import partition_of
from schemas.messages import DeadLetter
from streams.codec.cloudevents import header_texts
from streams.ports import Headers, LogRecord, NewRecord

REMEDIES: Final[Mapping[str, str]] = {
    "not_utf8": "fix the producer: JSON is UTF-8. `dead show --raw` writes the bytes; convert and "
    "publish them",
    "byte_order_mark": "fix the producer: write no byte order mark. `dead show --raw` writes the "
    "bytes; publish them without the first three",
    "not_json": "fix the producer: one complete JSON object per message. `dead show --raw` writes "
    "the bytes",
    "not_object": "fix the producer: the value must be the message itself, not a list or a string",
    "too_deep": "fix the producer: at most 1 024 levels of nesting are read",
    "too_large": "`dead redrive` shortens it as `publish` does, if possible; otherwise raise "
    "CONTEXTGAUGE_MESSAGE_LIMIT_BYTES, or fix the producer",
    "no_session": "`dead redrive --assign-session ID` assigns one; fix the producer: key messages "
    "by their session id",
    "misrouted": "`dead redrive` sends it to the right partition; first fix the producer: key "
    "messages by session id, partition by murmur2 (librdkafka: partitioner=murmur2_random)",
    "batch_too_large": "fix the producer: smaller batches. If it is meant to be so large, raise "
    "CONTEXTGAUGE_BATCH_LIMIT_BYTES; then `dead redrive` sends its messages",
    "batch_damaged": "fix the producer, or the broker's disk, and publish its messages again. "
    "`dead show --raw` writes the batch as the broker has it",
}
"""How to handle a dead letter, by its reason."""

UNKNOWN_REASON: Final = "unknown"
"""Of a record without a reason: it was not written by a derive worker."""

_REASON_HEADER: Final = "dead_reason"
"""The first of the headers that are appended to the message's own."""

LAST_OFFSET_HEADER: Final = "src_last_offset"
"""Of the letter of a batch: that of its last message. `src_offset` is the first one's."""

CUT_SIZE_HEADER: Final = "dead_cut_from_bytes"
CUT_HASH_HEADER: Final = "dead_cut_from_sha256"
"""Of a letter that is cut: the size and the hash of the message's value."""

FLOOD_WINDOW: Final = 1_000
"""A worker's last messages: if more than half of them are dead, that is a flood."""


def dead_record(
    record: LogRecord, dead: DeadLetter, source: Headers, topic: str, partition: int
) -> NewRecord:
    """Return the dead letter: original bytes, key and headers, the reason, and the origin.

    `dead_detail` is a sentence that explains what to do.
    """
    return NewRecord(
        topic,
        partition,
        record.key,
        record.value,
        (
            *record.headers,
            (_REASON_HEADER, dead.reason.encode()),
            ("dead_detail", json_codec.utf8(dead.detail)),
            *source,
        ),
    )


class Origin(NamedTuple):
    """Where a message was read before it became a dead letter, and its Kafka timestamp there.

    `last_offset` is that of the last message of a batch, None for a message.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    last_offset: int | None = None


class WholeValue(NamedTuple):
    """What a message's value was of which a letter keeps the beginning."""

    size: int
    sha256: str


class Letter(NamedTuple):
    """A dead letter: its position, when and why it became one, and the original message.

    `key`, `value` and `headers` are the message's own; `origin` is None where it is unknown, `cut`
    where all of the value is there.
    """

    partition: int
    offset: int
    died_ms: int
    reason: str
    detail: str
    key: bytes | None
    value: bytes
    headers: Headers
    origin: Origin | None
    cut: WholeValue | None = None

    @property
    def size(self) -> int:
        """How many bytes the message has, or the batch as the broker had it."""
        return len(self.value) if self.cut is None else self.cut.size

    @property
    def address(self) -> str:
        """`PARTITION:OFFSET` in the topic of dead letters."""
        return f"{self.partition}:{self.offset}"


def letter_of(partition: int, record: LogRecord) -> Letter:
    """Parse a record that `dead_record` wrote."""
    own, appended = split_headers(record.headers)
    values = header_texts(appended)
    return Letter(
        partition,
        record.offset,
        record.timestamp_ms,
        values.get(_REASON_HEADER, UNKNOWN_REASON),
        values.get("dead_detail", ""),
        record.key,
        record.value or b"",
        own,
        _origin(values),
        _cut(values),
    )


def split_headers(headers: Headers) -> tuple[Headers, Headers]:
    """Return the message's own headers, and those that were appended."""
    names = [name for name, _ in headers]
    if _REASON_HEADER not in names:
        return tuple(headers), ()
    # The last one: the message's own headers may have the same names.
    own = len(names) - 1 - names[::-1].index(_REASON_HEADER)
    return tuple(headers[:own]), tuple(headers[own:])


def _origin(values: Mapping[str, str]) -> Origin | None:
    try:
        return Origin(
            values["src_topic"],
            int(values["src_partition"]),
            int(values["src_offset"]),
            int(values["src_timestamp"]),
            int(values[LAST_OFFSET_HEADER]) if LAST_OFFSET_HEADER in values else None,
        )
    except (KeyError, ValueError):
        return None


def _cut(values: Mapping[str, str]) -> WholeValue | None:
    try:
        return WholeValue(int(values[CUT_SIZE_HEADER]), values[CUT_HASH_HEADER])
    except (KeyError, ValueError):
        return None


def misrouted_check(partition: int, partitions: int) -> Callable[[str], DeadLetter | None]:
    """Return a function that checks that a session belongs on this partition (R5)."""

    def check(session_id: str) -> DeadLetter | None:
        right = partition_of(session_id, partitions)
        if right == partition:
            return None
        return DeadLetter(
            "misrouted",
            f"the session belongs on partition {right} of {partitions}, the message is on "
            f"{partition}: key messages by their session id and partition them by murmur2 "
            "(librdkafka: partitioner=murmur2_random; the Java client's default)",
        )

    return check


class FloodWatch:
    """Counts dead letters among a worker's last messages, of all its partitions."""

    def __init__(self) -> None:
        self._last: deque[bool] = deque(maxlen=FLOOD_WINDOW)

    def add(self, flags: Sequence[bool]) -> None:
        """Add a committed batch: one flag for each message, true for a dead letter."""
        self._last.extend(flags)

    def check(self) -> None:
        """Raise DeadLetterFlood if more than half of the last messages were dead letters."""
        dead = sum(self._last)
        if dead * 2 > FLOOD_WINDOW:
            raise DeadLetterFlood(
                f"{dead} of the last {FLOOD_WINDOW} messages cannot be derived. They are kept as "
                "dead letters: `contextgauge dead list` shows them with reasons. Fix the "
                "publisher, then restart; `--allow-dead-letters` continues anyway"
            )
