"""Messages that cannot be derived from: how they are kept, and when there are too many."""

from collections import deque
from collections.abc import Callable, Sequence

from schemas.messages import DeadLetter
from streams.core.errors import DeadLetterFlood
from streams.edge import codec
from streams.ports import Headers, LogRecord, NewRecord

FLOOD_WINDOW = 1_000
"""So many last messages of a worker are looked at; more than half of them dead is a flood."""


def source_headers(topic: str, partition: int) -> Callable[[int], Headers]:
    """Return what makes the headers that tell where a record came from (provenance only)."""
    always = (("src_topic", topic.encode()), ("src_partition", str(partition).encode()))
    return lambda offset: (*always, ("src_offset", str(offset).encode()))


def dead_record(
    record: LogRecord, dead: DeadLetter, source: Headers, topic: str, partition: int
) -> NewRecord:
    """Return the dead letter: original bytes, key and headers, the reason, and the origin.

    `src_timestamp` keeps the message's Kafka time, which is its event time where the publisher
    marked it live (R28); `dead_detail` is a sentence that says what to do.
    """
    return NewRecord(
        topic,
        partition,
        record.key,
        record.value,
        (
            *record.headers,
            ("dead_reason", dead.reason.encode()),
            ("dead_detail", codec.utf8(dead.detail)),
            *source,
            ("src_timestamp", str(record.timestamp_ms).encode()),
        ),
    )


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
                "what cannot be derived from. They are kept, with the reasons, in the topic of "
                "dead letters: mend the publisher, then start again; `--allow-dead-letters` goes on"
            )
