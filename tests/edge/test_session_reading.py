"""A session's files are read on where they were left; what was lost is read again."""

import os
from pathlib import Path

import pytest

from contextgauge.errors import ConfigError
from streams.edge.files import session_reading, tail
from streams.edge.files.session_reading import SessionReading


def line(number: int, agent: str = "") -> bytes:
    return b'{"sessionId":"s","isSidechain":false,"uuid":"%s%d"}' % (agent.encode(), number)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A transcript with a compaction's own call, and a subagent."""
    agents = tmp_path / "s" / "subagents"
    agents.mkdir(parents=True)
    for name in ("acompact-1", "b"):
        (agents / f"agent-{name}.jsonl").write_bytes(line(1, name) + b"\n")
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(line(number) + b"\n" for number in range(3)))
    return path


def lines(reading: SessionReading, most_bytes: int = 1 << 20) -> list[bytes]:
    return [each.value for block in reading.lines(most_bytes) for each in block]


def test_the_files_of_a_session_are_read_in_order(session: Path) -> None:
    reading = SessionReading(str(session), {})
    first = lines(reading)
    assert first == [line(1, "acompact-1"), *map(line, range(3)), line(1, "b")]
    assert (reading.goes_on, reading.is_whole, reading.is_decided) == (False, True, True)
    again = SessionReading(str(session), reading.marks)
    assert (lines(again), again.goes_on, again.is_whole) == ([], True, True)
    with session.open("ab") as file:
        file.write(line(3))
    unfinished = SessionReading(str(session), again.marks)
    assert lines(unfinished) == [line(3)]
    with session.open("ab") as file:
        file.write(b"\n" + line(4) + b"\n")
    ended = SessionReading(str(session), unfinished.marks)
    assert (lines(ended), ended.goes_on) == ([line(4)], True)


def test_a_file_with_another_time_has_nothing_new(session: Path) -> None:
    reading = SessionReading(str(session), {})
    lines(reading)
    os.utime(session, (1, 1))
    again = SessionReading(str(session), reading.marks)
    assert (lines(again), again.goes_on, again.is_whole) == ([], True, True)
    # A copy that took its place, too.
    copy = session.with_suffix(".copy")
    copy.write_bytes(session.read_bytes() + line(3) + b"\n")
    copy.replace(session)
    longer = SessionReading(str(session), again.marks)
    assert (lines(longer), longer.goes_on) == ([line(3)], True)


def test_what_was_lost_is_read_again(session: Path) -> None:
    reading = SessionReading(str(session), {})
    everything = lines(reading)
    agent = session.with_suffix("") / "subagents" / "agent-b.jsonl"
    (agent.parent / "agent-c.jsonl").touch()
    assert lines(SessionReading(str(session), reading.marks)) == []
    agent.unlink()
    lost = SessionReading(str(session), reading.marks)
    assert (lines(lost), lost.goes_on, lost.is_whole) == (everything[:-1], False, True)
    session.write_bytes(line(7) + b"\n")
    assert lines(SessionReading(str(session), lost.marks)) == [everything[0], line(7)]
    damaged = dict.fromkeys(lost.marks, "?")
    assert not SessionReading(str(session), damaged).goes_on


def test_the_end_is_read_where_there_is_much_before(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "_BLOCK_BYTES", 200)
    monkeypatch.setattr(session_reading, "_END_BYTES", 120)
    session.write_bytes(b"".join(line(number) + b"\n" for number in range(100)))
    reading = SessionReading(str(session), {})
    part = lines(reading, 100)
    assert part[-1] == line(len(part) - 2)
    assert (reading.is_whole, reading.is_at_end) == (False, False)
    end = [each.value for block in reading.end() for each in block]
    assert end == [line(98), line(99)]
    rest: list[bytes] = []
    while not reading.is_at_end:
        reading = SessionReading(str(session), reading.marks)
        rest += lines(reading, 100)
    assert rest[: 100 - len(part) + 1] == [line(each) for each in range(len(part) - 1, 100)]


def test_the_end_of_a_document_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"[" + b",\n".join(map(line, range(3))) + b"]")
    assert list(SessionReading(str(path), {}).end()) == []


def test_what_is_no_transcript_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SessionReading(str(tmp_path / "a.jsonl"), {})
    with pytest.raises(ConfigError, match="is not a transcript"):
        SessionReading(str(tmp_path), {})
    with pytest.raises(ConfigError, match="nor the folder"):
        SessionReading(str(tmp_path / "b" / "a.jsonl"), {})
