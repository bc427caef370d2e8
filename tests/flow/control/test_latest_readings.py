"""Which of the records that were evaluated before are read back."""

import pytest

from streams.codec import key_bytes, to_binary
from streams.flow.control.decisions import latest_readings
from streams.flow.control.decisions.latest_readings import LatestReadings
from streams.ports import LogRecord
from tests.core.given import Body, Given, assistant, boundary, clear, init, side
from tests.doubles.headers import by_name


def records(*bodies: Body) -> list[LogRecord]:
    logged = []
    for offset, record in enumerate(Given().take(*bodies)):
        headers, value = to_binary(record)
        key = key_bytes(record.data.session_id)
        logged.append(LogRecord(offset, record.time_ms or 0, key, value, headers))
    return logged


def kinds(found: list[LogRecord]) -> list[str]:
    return [by_name(each.headers)["ce_type"].decode().split(".")[1] for each in found]


def reading(percent: float, at: float) -> Body:
    return assistant(f"r{at}", read=int(2_000 * percent), at=at)


def test_of_readings_the_last_one_of_the_main_chain_is_held() -> None:
    latest = LatestReadings()
    given = records(init(at=0), reading(50, 1), reading(60, 2), side(reading(99, 3)))
    at_once = [each for each in given if latest.take(each)]
    assert set(kinds(at_once)) == {"session_info"}
    (held,) = latest.records()
    assert kinds([held]) == ["context_reading"]
    assert b'"used_tokens":120000' in (held.value or b"")


@pytest.mark.parametrize("end", [boundary({}, at=3), clear(at=3)])
def test_what_ends_an_epoch_is_recalled_and_no_reading_of_before(end: Body) -> None:
    latest = LatestReadings()
    at_once = [each for each in records(init(at=0), reading(50, 1), end) if latest.take(each)]
    assert kinds(at_once)[-1] in {"compact_boundary", "context_reset"}
    assert "context_reading" not in kinds(latest.records())


def test_limits_are_held_behind_their_reading() -> None:
    latest = LatestReadings()
    given = records(init(at=0), reading(50, 1))
    first = next(each for each in given if kinds([each]) == ["context_limits"])
    for each in [*given, first._replace(offset=98), first._replace(offset=99)]:
        latest.take(each)
    assert [each.offset for each in latest.records()][1:] == [99]
    alone = LatestReadings()
    assert not alone.take(first)
    assert alone.records() == []


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest_readings, "MOST_SESSIONS", 2)
    latest = LatestReadings()
    read = next(
        each for each in records(init(at=0), reading(50, 1)) if b"used_tok" in (each.value or b"")
    )
    for number in range(5):
        latest.take(read._replace(offset=number, key=b"%d" % number))
    assert [each.key for each in latest.records()] == [b"3", b"4"]
