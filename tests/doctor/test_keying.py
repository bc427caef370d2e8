"""Single messages: how one is keyed, and whether its timestamp is ahead."""

import json

import pytest

from contextgauge.partitioner import partition_of
from schemas.messages import OBSERVED_HEADER
from streams.flow.doctor.facts import Keying
from streams.flow.doctor.log_facts import KeyingSample
from streams.ports import LogRecord

NOW = 1_800_000_000_000
SESSION = "session-1"
RIGHT = partition_of(SESSION, 4)
WRONG = (RIGHT + 1) % 4
USER = {"type": "user", "session_id": SESSION, "message": {"content": "words"}}
NAMELESS = {"type": "user", "message": {"content": "words"}}


def sampled(
    body: object, key: bytes | None, partition: int, *, ahead_ms: int = 0, created: bool = True
) -> Keying:
    sample = KeyingSample(4, 1_000_000, NOW)
    value = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = ((OBSERVED_HEADER, b"words"), ("x" * 100, b""))
    record = LogRecord(7, NOW + ahead_ms, key, value, headers, created)
    sample.add(partition, record)
    return sample.keying


@pytest.mark.parametrize(
    ("body", "key", "partition", "kind"),
    [
        (USER, SESSION.encode(), RIGHT, None),
        (NAMELESS, SESSION.encode(), RIGHT, None),
        (USER, None, WRONG, "without_key"),
        (USER, b"task-7", WRONG, "other_key"),
        (USER, SESSION.encode(), WRONG, "other_partitioner"),
        (NAMELESS, SESSION.encode(), WRONG, "other_partitioner"),
        (USER, None, RIGHT, "right_by_chance"),
        (USER, b"task-7", RIGHT, "right_by_chance"),
        (USER, b"\xff\xfe", WRONG, "without_key"),
        (b"no json", None, WRONG, None),  # dead, but not for its key
        ({"type": "system", "subtype": "init", "model": "m"}, None, WRONG, "without_key"),
        ({"type": "unknown"}, None, WRONG, None),
    ],
)
def test_a_message_counts_in_one_kind(
    body: object, key: bytes | None, partition: int, kind: str | None
) -> None:
    keying = sampled(body, key, partition)
    counts = {
        name: getattr(keying, name)
        for name in ("without_key", "other_key", "other_partitioner", "right_by_chance")
    }
    assert counts == dict.fromkeys(counts, 0) | ({} if kind is None else {kind: 1})
    assert keying.looked == 1
    assert (keying.newest_wrong is None) == (kind is None)


def test_a_wrong_message_is_reported_with_its_position_and_header_names() -> None:
    wrong = sampled(USER, None, WRONG).newest_wrong
    assert wrong is not None
    assert (wrong.partition, wrong.offset, wrong.timestamp_ms) == (WRONG, 7, NOW)
    assert wrong.headers == (OBSERVED_HEADER, "x" * 40)


def test_a_timestamp_ahead_counts_if_a_publisher_set_it() -> None:
    key = SESSION.encode()
    ahead = sampled(USER, key, RIGHT, ahead_ms=60_000)
    assert (ahead.ahead, ahead.most_ahead_ms) == (1, 60_000)
    assert sampled(USER, key, RIGHT, ahead_ms=1_000).ahead == 0
    stamped = sampled(USER, key, RIGHT, ahead_ms=60_000, created=False)
    assert (stamped.ahead, stamped.newest_append_ms) == (0, NOW + 60_000)


def test_a_message_whose_figures_are_not_read_is_counted_by_its_type() -> None:
    line = {"type": "sizes", "session_id": SESSION, "inputTokens": 9}
    assert sampled(line, SESSION.encode(), RIGHT).unread == {("sizes", "usage"): 1}


def test_a_message_whose_two_spellings_differ_is_counted_by_what_counts() -> None:
    line = USER | {
        "sessionId": SESSION,
        "session_id": "the-process",
        "agentId": "a",
        "agent_id": "a",
    }
    keying = sampled(line, SESSION.encode(), RIGHT)
    assert keying.differing == {("sessionId", "session_id"): 1}
    assert keying.newest_wrong is None  # it is keyed by what counts
