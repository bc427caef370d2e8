"""Messages that cannot be derived from: how they are kept and read, and when they are too many."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from contextgauge import json_codec
from contextgauge.errors import DeadLetterFlood
from schemas.messages import DeadLetter
from streams.ports import Headers, LogRecord, NewRecord

MENDS: Final[Mapping[str, str]] = {
    "not_utf8": "mend the producer: JSON is UTF-8. `dead show --raw` writes the bytes; converted, "
    "they can be published",
    "byte_order_mark": "mend the producer: write without a byte order mark. `dead show --raw` "
    "writes the bytes; without the first three they can be published",
    "not_json": "mend the producer: one whole JSON object a message. `dead show --raw` writes the "
    "bytes, to be looked at",
    "not_object": "mend the producer: the message itself is the value, neither in a list nor "
    "quoted as a text",
    "too_deep": "mend the producer: at most 1 024 levels are read",
    "too_large": "`dead redrive` shortens it as `publish` does, if anything of it can be; else "
    "raise CONTEXTGAUGE_MESSAGE_LIMIT_BYTES, or mend the producer",
    "no_session": "`dead redrive --assign-session ID` gives it one; mend the producer: key "
    "messages by their session id",
    "misrouted": "`dead redrive` routes it rightly; mend the producer first: messages keyed by "
    "session id, murmur2 (librdkafka: partitioner=murmur2_random)",
}
"""What to do about a dead letter, by its reason."""

UNKNOWN_REASON: Final = "unknown"
"""Of a record that does not tell one: whoever wrote it to the topic was no derive worker."""

_REASON_HEADER: Final = "dead_reason"
"""The first of the headers that are put behind the message's own."""

FLOOD_WINDOW: Final = 1_000
"""So many last messages of a worker are looked at; more than half of them dead is a flood."""


def dead_record(
    record: LogRecord, dead: DeadLetter, source: Headers, topic: str, partition: int
) -> NewRecord:
    """Return the dead letter: original bytes, key and headers, the reason, and the origin.

    `dead_detail` is a sentence that says what to do.
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
    """Where a dead letter was read, and its Kafka time there, in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Letter(NamedTuple):
    """A dead letter as it is kept: where, since when, why; and the message as it was.

    `key`, `value` and `headers` are the message's own; `origin` is None where it is not told.
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

    @property
    def address(self) -> str:
        """The letter's name: `PARTITION:OFFSET` in the topic of dead letters."""
        return f"{self.partition}:{self.offset}"


def letter_of(partition: int, record: LogRecord) -> Letter:
    """Read a record of the topic of dead letters: what `dead_record` wrote, taken apart."""
    names = [name for name, _ in record.headers]
    # The last one: a message may have had headers of these names of its own.
    own = len(names) - 1 - names[::-1].index(_REASON_HEADER) if _REASON_HEADER in names else None
    told = {} if own is None else {n: v.decode("utf-8", "replace") for n, v in record.headers[own:]}
    return Letter(
        partition,
        record.offset,
        record.timestamp_ms,
        told.get(_REASON_HEADER, UNKNOWN_REASON),
        told.get("dead_detail", ""),
        record.key,
        record.value or b"",
        tuple(record.headers[:own]),
        _origin(told),
    )


def _origin(told: Mapping[str, str]) -> Origin | None:
    try:
        return Origin(
            told["src_topic"],
            int(told["src_partition"]),
            int(told["src_offset"]),
            int(told["src_timestamp"]),
        )
    except (KeyError, ValueError):
        return None


def misrouted_check(
    partition: int, partitions: int, partition_of: Callable[[str, int], int]
) -> Callable[[str], DeadLetter | None]:
    """Return what tells whether a session belongs on another partition (R5)."""

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
    """The worker's last messages, of all its partitions: which were dead letters."""

    def __init__(self) -> None:
        self._last: deque[bool] = deque(maxlen=FLOOD_WINDOW)

    def add(self, flags: Sequence[bool]) -> None:
        """Note a committed batch: one flag for each message, true for a dead letter."""
        self._last.extend(flags)

    def check(self) -> None:
        """Raise DeadLetterFlood where more than half of the last messages were dead."""
        dead = sum(self._last)
        if dead * 2 > FLOOD_WINDOW:
            raise DeadLetterFlood(
                f"{dead} of the last {FLOOD_WINDOW} messages were dead letters: someone publishes "
                "what cannot be derived from. They are kept: `contextgauge dead list` tells which "
                "and why. Mend the publisher, then start again; `--allow-dead-letters` goes on"
            )
