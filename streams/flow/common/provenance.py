"""The headers that tell where a record came from: provenance only, nothing is derived from them."""

from collections.abc import Callable

from streams.ports import Headers, LogRecord


def source_headers(topic: str, partition: int) -> Callable[[LogRecord], Headers]:
    """Return what makes the headers for what comes of a message.

    `src_timestamp` is the message's Kafka time: what becomes of the message later can tell its
    age by it. Of a dead letter it is the event time too, where the publisher marked it live (R28).
    """
    always = (("src_topic", topic.encode()), ("src_partition", str(partition).encode()))
    return lambda message: (
        *always,
        ("src_offset", b"%d" % message.offset),
        ("src_timestamp", b"%d" % message.timestamp_ms),
    )


def source_timestamp_ms(headers: Headers) -> int | None:
    """Return the Kafka time of the message that a record was derived from, where it is told."""
    for name, value in reversed(headers):
        if name == "src_timestamp":
            return int(value) if value.isdigit() else None
    return None
