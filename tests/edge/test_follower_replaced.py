"""Files that are renamed, cut off, replaced and deleted: nothing is lost, nothing sent twice."""

import os
from pathlib import Path

import pytest

from tests.edge.follower_kit import Bench, add, entry


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the follower's pauses pass at once: the clock is the test's."""
    monkeypatch.setattr("streams.edge.files.follower.POLL_S", 0.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("name", ["s.jsonl.1", "s.1.jsonl"])
def test_a_rotated_file_is_finished_before_the_new_one(
    path: Path, name: str, is_restarted: bool
) -> None:
    add(path, entry(1))
    bench = Bench([str(path)])
    assert bench.lines() == [entry(1)]
    add(path, entry(2))
    path.rename(path.with_name(name))
    add(path, entry(3))
    if is_restarted:
        bench.restart()
    assert bench.lines() == [entry(2), entry(3)]
    add(path.with_name(name), entry(4))
    add(path, entry(5))
    assert bench.lines() == [entry(4), entry(5)]
    assert bench.events == []


def test_a_rotated_file_in_a_folder_is_followed_under_its_new_name(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    add(path, entry(1))
    bench = Bench([str(tmp_path)])
    bench.lines()
    for number in range(2, 5):
        older = [tmp_path / f"s.{index}.jsonl" for index in range(1, number)]
        for index in reversed(range(1, number - 1)):
            older[index - 1].rename(older[index])
        add(path, entry(number * 10))
        path.rename(older[0])
        add(path, entry(number * 10 + 1))
        assert bench.lines() == [entry(number * 10), entry(number * 10 + 1)]
    bench.restart()
    assert bench.lines() == []


def test_the_last_line_of_a_rotated_file_may_lack_a_line_end(path: Path) -> None:
    add(path, entry(1), entry(2), end="")
    bench = Bench([str(path)])
    assert bench.lines() == [entry(1)]
    path.rename(path.with_name("old"))
    add(path, entry(3))
    assert bench.lines() == [entry(3)]
    bench.clock.at_s += 20
    assert bench.lines() == [entry(2)]
    bench.clock.at_s += 20
    assert bench.lines() == []


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_truncated_file_is_reported_and_read_again(path: Path, is_restarted: bool) -> None:
    add(path, entry(1), entry(2))
    bench = Bench([str(path)])
    bench.lines()
    os.truncate(path, 0)
    add(path, entry(3))
    if is_restarted:
        bench.restart()
    assert bench.places() == [("s.jsonl", 1, "s")]
    assert bench.events == [f"{path}: rewritten: it is read from its beginning"]


def test_a_file_rewritten_and_longer_than_before_is_noticed(path: Path) -> None:
    add(path, entry(1), entry(2))
    bench = Bench([str(path)])
    bench.lines()
    os.truncate(path, 0)
    add(path, entry(7), entry(8), entry(9))
    assert bench.lines() == [entry(7), entry(8), entry(9)]
    assert len(bench.events) == 1


def test_a_copy_that_replaces_the_file_is_read_from_the_same_position(path: Path) -> None:
    add(path, entry(1), entry(2))
    bench = Bench([str(path)])
    bench.lines()
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    add(copy, entry(3))
    copy.rename(path)
    assert bench.places() == [("s.jsonl", 3, "s")]
    copy.write_bytes(path.read_bytes())
    add(copy, entry(4))
    copy.rename(path)
    bench.restart()
    assert bench.lines() == [entry(4)]
    assert bench.events == []


def test_another_file_in_its_place_is_read_from_its_beginning(path: Path) -> None:
    add(path, entry(1), entry(2))
    bench = Bench([str(path)])
    bench.lines()
    other = path.with_name("other")
    add(other, entry(5), entry(6), entry(7))
    other.rename(path)
    assert bench.lines() == [entry(5), entry(6), entry(7)]


def test_lines_written_before_a_deletion_are_sent(path: Path) -> None:
    add(path, entry(1))
    bench = Bench([str(path)])
    bench.lines()
    add(path, entry(2))
    path.unlink()
    assert bench.lines() == [entry(2)]
    add(path, entry(3))
    assert bench.lines() == [entry(3)]


def test_files_of_a_remounted_disk_are_not_sent_again(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    add(disk / "s.jsonl", entry(1))
    bench = Bench([str(tmp_path / "disk")])
    bench.lines()
    disk.rename(tmp_path / "away")
    assert bench.lines() == []
    bench.clock.at_s += 60
    assert bench.lines() == []
    (tmp_path / "away").rename(disk)
    add(disk / "s.jsonl", entry(2))
    bench.clock.at_s += 60
    assert bench.lines() == [entry(2)]
    bench.restart()
    assert bench.lines() == []


def test_a_rotated_file_is_finished_even_if_the_new_one_was_read_before_a_restart(
    path: Path,
) -> None:
    add(path, entry(1))
    bench = Bench([str(path)])
    bench.lines()
    add(path, entry(2))
    path.rename(path.with_name("s.1"))
    add(path, entry(3))
    pieces = bench.pieces(settle=False)
    pieces[1].settle()  # of the new one only: they lie on different partitions
    bench.restart()
    assert bench.lines() == [entry(2)]


@pytest.mark.parametrize("follow", [False, True])
def test_the_end_of_a_rotated_file_is_read_again_until_acknowledged(
    path: Path, follow: bool
) -> None:
    add(path, entry(1))
    bench = Bench([str(path)], follow=follow)
    bench.lines()
    add(path, entry(2), end="")
    path.rename(path.with_name("s.1"))
    add(path, entry(3))
    if not follow:
        bench.restart()
    else:
        assert bench.lines() == [entry(3)]
    bench.clock.at_s += 20
    assert entry(2) in bench.lines(settle=False)
    bench.lines(settle=False)
    bench.restart()
    bench.lines()
    bench.clock.at_s += 20
    bench.lines()
    bench.restart()
    bench.clock.at_s += 20
    assert bench.lines() == []
    size = path.with_name("s.1").stat().st_size
    ends = [
        position.end
        for position in bench.follower.positions()
        if position.number == 2 or position.unfinished
    ]
    assert ends == ([] if follow else [size])  # who follows knows that no run will ask again


def test_a_finished_file_that_was_rotated_leaves_no_position(path: Path) -> None:
    add(path, entry(1))
    bench = Bench([str(path)])
    bench.lines()
    bench.restart()
    for number in range(3):
        path.rename(path.with_name(f"s.{number}"))
        add(path, entry(number + 2))
        bench.lines()
        bench.clock.at_s += 20
        bench.lines()
        bench.clock.at_s += 20
        bench.lines()
    assert len(bench.follower.positions()) == 1


def test_many_renamed_files_use_few_descriptors(tmp_path: Path) -> None:
    for number in range(400):
        add(tmp_path / f"{number}.jsonl", entry(number))
    bench = Bench([str(tmp_path)])
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 -- no path of the file system
    assert len(bench.lines()) == 400
    for number in range(400):
        add(tmp_path / f"{number}.jsonl", entry(1_000 + number))
    most = 0
    lines: list[str] = []
    for piece in bench.follower.pieces():
        most = max(most, len(os.listdir("/dev/fd")) - before)  # noqa: PTH208 -- as above
        lines += [line.value.decode() for line in piece.lines]
        piece.settle()
        if not piece.lines:
            break
    assert len(lines) == 400
    for number in range(400):
        (tmp_path / f"{number}.jsonl").rename(tmp_path / f"{number}.old")
    bench.lines()
    most = max(most, len(os.listdir("/dev/fd")) - before)  # noqa: PTH208 -- as above
    assert most < 400
