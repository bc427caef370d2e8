"""Single messages: how one is keyed, and whether its time lies ahead."""

import json

import pytest

from contextgauge.partitioner import partition_of
from schemas.messages import OBSERVED_HEADER
from streams.flow.doctor.facts import Keying
from streams.flow.doctor.sample import KeyingSample
from streams.ports import LogRecord

NOW = 1_800_000_000_000
SESSION = "session-1"
RIGHT = partition_of(SESSION, 4)
WRONG = (RIGHT + 1) % 4
USER = {"type": "user", "session_id": SESSION, "message": {"content": "words"}}
NAMELESS = {"type": "user", "message": {"content": "words"}}


def looked(
    body: object, key: bytes | None, partition: int, *, ahead_ms: int = 0, created: bool = True
) -> Keying:
    sample = KeyingSample(4, partition_of, 1_000_000, NOW)
    value = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = ((OBSERVED_HEADER, b"words"), ("x" * 100, b""))
    record = LogRecord(7, NOW + ahead_ms, key, value, headers, created)
    sample.take(partition, record)
    return sample.result()


@pytest.mark.parametrize(
    ("body", "key", "partition", "counted"),
    [
        (USER, SESSION.encode(), RIGHT, None),
        (NAMELESS, SESSION.encode(), RIGHT, None),
        (USER, None, WRONG, "keyless"),
        (USER, b"task-7", WRONG, "foreign"),
        (USER, SESSION.encode(), WRONG, "misplaced"),
        (NAMELESS, SESSION.encode(), WRONG, "misplaced"),
        (USER, None, RIGHT, "lucky"),
        (USER, b"task-7", RIGHT, "lucky"),
        (USER, b"\xff\xfe", WRONG, "keyless"),
        (b"no json", None, WRONG, None),  # dead, but not for its key
        ({"type": "system", "subtype": "init", "model": "m"}, None, WRONG, "keyless"),
        ({"type": "unheard-of"}, None, WRONG, None),
    ],
)
def test_a_message_counts_in_one_kind(
    body: object, key: bytes | None, partition: int, counted: str | None
) -> None:
    found = looked(body, key, partition)
    counts = {name: getattr(found, name) for name in ("keyless", "foreign", "misplaced", "lucky")}
    assert counts == dict.fromkeys(counts, 0) | ({} if counted is None else {counted: 1})
    assert found.looked == 1
    assert (found.newest_wrong is None) == (counted is None)


def test_a_wrong_message_is_told_by_place_and_header_names() -> None:
    wrong = looked(USER, None, WRONG).newest_wrong
    assert wrong is not None
    assert (wrong.partition, wrong.offset, wrong.timestamp_ms) == (WRONG, 7, NOW)
    assert wrong.headers == (OBSERVED_HEADER, "x" * 40)


def test_a_time_ahead_counts_where_it_is_a_publishers() -> None:
    key = SESSION.encode()
    ahead = looked(USER, key, RIGHT, ahead_ms=60_000)
    assert (ahead.ahead, ahead.most_ahead_ms) == (1, 60_000)
    assert looked(USER, key, RIGHT, ahead_ms=1_000).ahead == 0
    stamped = looked(USER, key, RIGHT, ahead_ms=60_000, created=False)
    assert (stamped.ahead, stamped.newest_append_ms) == (0, NOW + 60_000)
