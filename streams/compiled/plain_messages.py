"""The plain reader of usual messages: it leaves all of them to the full reading."""

from collections.abc import Sequence
from typing import NamedTuple

from contextgauge.normalise.usual import UsualMessage


class UsualRecord(NamedTuple):
    """A usual message in its Kafka record.

    `received_ms` is the record's time where the publisher marked it live.
    """

    message: UsualMessage
    key: str | None
    received_ms: int | None
    task_id: str | None
    publisher_agent_id: str | None
    offset: int
    timestamp_ms: int


def read(_value: bytes, /) -> UsualMessage | None:
    """Return that a message has to be read in full."""
    return None


def read_record(
    _records: Sequence[object], _index: int, _limit_bytes: int, /
) -> UsualRecord | None:
    """Return that a record's message has to be read in full."""
    return None
