"""Files that grow, and others that appear: each line once, with its session, live or not."""

import os
from pathlib import Path

import pytest

from contextgauge.errors import ConfigError
from streams.edge.files.watch import TranscriptFinder
from tests.edge.follower_kit import Bench, Hands, add, entry


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the follower's pauses pass at once: the clock is the test's."""
    monkeypatch.setattr("streams.edge.files.follower.POLL_S", 0.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


def test_each_line_is_read_once_as_it_is_written(path: Path) -> None:
    add(path, entry(1), entry(2))
    bench = Bench([str(path)])
    assert bench.places() == [("s.jsonl", 1, "s"), ("s.jsonl", 2, "s")]
    assert bench.lines() == []
    add(path, entry(3))
    assert bench.places() == [("s.jsonl", 3, "s")]
    assert bench.follower.lag == 0


def test_a_file_from_before_1970_is_not_sent_twice(path: Path) -> None:
    add(path, entry(1))
    os.utime(path, (-1_000, -1_000))
    bench = Bench([str(path)])
    assert bench.lines() == [entry(1)]
    bench.restart()
    assert bench.lines() == []


def test_half_a_line_waits_for_its_end(path: Path) -> None:
    add(path, entry(1), '{"half":', end="")
    bench = Bench([str(path)])
    assert bench.lines() == [entry(1)]
    assert bench.follower.lag == 8
    add(path, '"', end="")
    assert bench.lines() == []
    add(path, '"}')
    assert bench.lines() == ['{"half":""}']


def test_a_single_run_sends_a_line_without_an_end_once(path: Path) -> None:
    add(path, entry(1), entry(2), end="")
    bench = Bench([str(path)], follow=False)
    assert bench.lines() == [entry(1), entry(2)]
    bench.restart()
    assert bench.lines() == []
    assert bench.follower.already_sent == 2
    add(path, "", entry(3))
    bench.restart()
    assert bench.places() == [("s.jsonl", 3, "s")]


def test_a_single_run_sends_a_completed_line_whole(path: Path) -> None:
    add(path, entry(1), '{"half":', end="")
    bench = Bench([str(path)], follow=False)
    assert bench.lines() == [entry(1), '{"half":']
    add(path, '"x"}')
    bench.restart()
    assert bench.lines() == ['{"half":"x"}']


def test_unacknowledged_lines_are_read_again(path: Path) -> None:
    add(path, entry(1))
    bench = Bench([str(path)])
    assert bench.lines() == [entry(1)]
    add(path, entry(2))
    assert bench.lines(settle=False) == [entry(2)]
    bench.restart()
    assert bench.places() == [("s.jsonl", 2, "s")]
    add(path, entry(3))
    assert bench.lines(settle=False) == [entry(3)]
    bench.follower.rewind()
    assert bench.lines() == [entry(3)]


def test_an_untouched_file_is_not_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(path, entry(1))
    bench = Bench([str(path)], follow=False)
    bench.lines()
    bench.restart()
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened"))
    assert bench.lines() == []
    assert bench.follower.already_sent == 1


def test_again_sends_from_the_beginning(path: Path) -> None:
    add(path, entry(1))
    bench = Bench([str(path)], follow=False)
    bench.lines()
    bench.again = True
    bench.restart()
    assert bench.lines() == [entry(1)]
    assert len(bench.follower.positions()) == 1


def test_new_files_and_folders_and_late_subagents_are_found(tmp_path: Path) -> None:
    bench = Bench([str(tmp_path)])
    assert bench.lines() == []
    add(tmp_path / "p" / "one.jsonl", entry(1, "one"))
    assert bench.places() == [("one.jsonl", 1, "one")]
    add(tmp_path / "p" / "one" / "subagents" / "agent-a.jsonl", '{"isSidechain":true}')
    add(tmp_path / "p" / "one" / "subagents" / "deep" / "agent-b.jsonl", '{"isSidechain":true}')
    add(tmp_path / "p" / "one" / "tool-results" / "no.jsonl", "{}")
    add(tmp_path / "p" / "one" / "notes.txt", "{}")
    assert bench.places() == [("agent-a.jsonl", 1, "one"), ("agent-b.jsonl", 1, "one")]
    assert bench.follower.files == 3


def test_a_sessions_folder_is_followed_including_later_files(tmp_path: Path) -> None:
    add(tmp_path / "one.jsonl", entry(1, "one"))
    (tmp_path / "one").mkdir()
    bench = Bench([str(tmp_path / "one")])
    assert bench.places() == [("one.jsonl", 1, "one")]
    add(tmp_path / "one" / "subagents" / "agent-a.jsonl", '{"isSidechain":true}')
    add(tmp_path / "two.jsonl", entry(1, "two"))
    assert bench.places() == [("agent-a.jsonl", 1, "one")]


def test_a_file_that_does_not_exist_yet_is_followed_later(path: Path, tmp_path: Path) -> None:
    assert TranscriptFinder([str(path)]).missing == [str(path)]
    bench = Bench([str(path)])
    assert bench.lines() == []
    add(path, entry(1))
    assert bench.lines() == [entry(1)]
    with pytest.raises(ConfigError, match="no such file"):
        TranscriptFinder([str(tmp_path / "nowhere" / "s.jsonl")])


def test_only_lines_seen_as_they_are_written_are_live(path: Path) -> None:
    add(path, entry(1))
    clock = Hands(path.stat().st_mtime)
    bench = Bench([str(path)], clock=clock)
    assert [piece.live for piece in bench.pieces()] == [False]
    add(path, entry(2))
    assert [piece.live for piece in bench.pieces()] == [True]
    new = path.with_name("new.jsonl")
    bench.restart()
    add(path, entry(3))
    assert [piece.live for piece in bench.pieces()] == [False]
    add(path, entry(4))
    clock.at_s += 30  # nobody looked for a while
    assert [piece.live for piece in bench.pieces()] == [False]
    assert not new.exists()


def test_a_new_file_is_live_and_one_that_was_moved_here_is_not(tmp_path: Path) -> None:
    clock = Hands()
    folder = tmp_path / "p"
    folder.mkdir()
    clock.at_s = folder.stat().st_mtime
    bench = Bench([str(folder)], clock=clock)
    bench.lines()
    add(folder / "new.jsonl", entry(1))
    assert [piece.live for piece in bench.pieces()] == [True]
    add(folder / "old.jsonl", entry(2))
    os.utime(folder / "old.jsonl", (1, 1))
    assert [piece.live for piece in bench.pieces()] == [False]


def test_a_line_completed_after_the_start_is_live(path: Path) -> None:
    add(path, entry(1), '{"half":', end="")
    bench = Bench([str(path)])
    assert [piece.live for piece in bench.pieces()] == [False]
    add(path, "1}", entry(2))
    pieces = bench.pieces()
    assert [line.value for piece in pieces for line in piece.lines] == [
        b'{"half":1}',
        entry(2).encode(),
    ]
    assert {piece.live for piece in pieces} == {True}


def test_a_stream_continues_with_the_last_reported_session(path: Path) -> None:
    add(path, '{"type":"system","session_id":"a"}', '{"type":"x"}')
    bench = Bench([str(path)])
    assert bench.places() == [("s.jsonl", 1, None), ("s.jsonl", 2, "a")]
    add(path, '{"type":"x"}', '{"session_id":"b"}')
    assert bench.places() == [("s.jsonl", 3, "a"), ("s.jsonl", 4, "a")]
    bench.restart()
    add(path, '{"type":"x"}')
    assert bench.places() == [("s.jsonl", 5, "b")]


def test_lines_before_the_first_session_id_wait_for_it(path: Path) -> None:
    add(path, '{"type":"summary"}')
    bench = Bench([str(path)])
    assert bench.places() == []
    add(path, '{"type":"session_meta","payload":{"id":"r"}}')
    assert bench.places() == [("s.jsonl", 1, "r"), ("s.jsonl", 2, "r")]
    bench.restart()
    add(path, '{"type":"event_msg"}')
    assert bench.places() == [("s.jsonl", 3, "r")]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_lines_without_a_session_wait_only_briefly(path: Path, is_restarted: bool) -> None:
    add(path, '{"type":"summary"}')
    bench = Bench([str(path)], fallback="given")
    assert bench.places() == []
    bench.clock.at_s += 3
    assert bench.places() == [("s.jsonl", 1, "given")]
    if is_restarted:
        bench.restart()
    add(path, '{"isSidechain":true}', '{"type":"summary"}')
    assert bench.places() == [("s.jsonl", 2, "s"), ("s.jsonl", 3, "s")]


def test_a_line_longer_than_a_block_is_read_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.edge.files.tail._BLOCK_BYTES", 64)
    long = f'{{"sessionId":"s","text":"{"x" * 500}"}}'
    add(path, entry(1), long, entry(2), long[:300], end="")
    bench = Bench([str(path)])
    assert bench.lines() == [entry(1), long, entry(2)]
    add(path, long[300:])
    assert bench.places() == [("s.jsonl", 4, "s")]
    add(path, entry(5))
    monkeypatch.setattr("streams.edge.files.tail.HELD_LINE_BYTES", 100)
    add(path, long)
    pieces = bench.pieces()
    (first,), (second,) = (piece.lines for piece in pieces)
    assert first.number == 5
    assert (second.size, second.value) == (len(long), long[:100].encode())


def test_a_windows_line_end_is_not_part_of_the_line(path: Path) -> None:
    add(path, entry(1) + "\r")
    assert Bench([str(path)]).lines() == [entry(1)]


def test_an_unreadable_file_is_reported_once(path: Path) -> None:
    add(path, entry(1))
    bench = Bench([str(path)])
    bench.lines()
    bench.restart()
    with pytest.MonkeyPatch.context() as patch:

        def refuse(*_: object) -> int:
            raise PermissionError(13, "Permission denied")

        patch.setattr(os, "open", refuse)
        add(path, entry(2))
        assert bench.lines() == []
        assert bench.lines() == []
        assert bench.follower.unreadable == 1
    assert bench.events == [f"{path}: cannot be read: Permission denied"]
    assert bench.lines() == [entry(2)]
    assert bench.follower.unreadable == 0


def test_stopping_ends_between_two_pieces(tmp_path: Path) -> None:
    for number in range(3):
        add(tmp_path / f"{number}.jsonl", entry(number))
    bench = Bench([str(tmp_path)])
    pieces = bench.follower.pieces()
    assert len(next(pieces).lines) == 1
    bench.follower.stop()
    assert [piece.lines for piece in pieces] == [()]


def test_a_file_that_is_rewritten_while_it_is_read_is_read_from_its_beginning(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.edge.files.tail._BLOCK_BYTES", 64)
    add(path, entry(1), entry(2), entry(3))
    bench = Bench([str(path)])
    pieces = bench.follower.pieces()
    first = next(pieces)
    assert [line.value.decode() for line in first.lines] == [entry(1)]
    first.settle()
    path.write_text("")
    add(path, *(entry(number) for number in range(4, 8)))
    assert next(pieces).lines == ()
    bench.clock.at_s += 0.3
    lines = [line for piece in (next(pieces) for _ in range(4)) for line in piece.lines]
    assert [line.value.decode() for line in lines] == [entry(number) for number in range(4, 8)]


def test_a_single_run_reports_a_file_that_is_rewritten_while_it_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.edge.files.tail._BLOCK_BYTES", 64)
    add(path, entry(1), entry(2), entry(3))
    bench = Bench([str(path)], follow=False)
    pieces = bench.follower.pieces()
    assert len(next(pieces).lines) == 1
    path.write_text("")
    assert [piece.lines for piece in pieces] == [()]
    assert bench.events == [f"{path}: rewritten while it was read: publish it again"]
