"""What keeps a checkpoint: one reader at a time, also after a failure; small pieces go together."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextgauge.containers import Line
from streams.edge.files.checkpoint import (
    Checkpoint,
    CheckpointedFollower,
    CheckpointTarget,
    grouped,
)
from streams.ports import LineBatch
from tests.edge.follower_kit import Bench, add, entry
from tests.patience import PATIENCE_S

TARGET = CheckpointTarget("cluster", "agent.messages")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.edge.files.follower.POLL_S", 0.0)


def keeper(bench: Bench, folder: Path) -> CheckpointedFollower:
    return CheckpointedFollower(
        bench.follower, Checkpoint(folder / "c.json", TARGET), bench.clock, dict
    )


def numbers(piece: LineBatch) -> list[int]:
    return [line.number for line in piece.lines]


def test_unacknowledged_lines_are_read_again_and_former_readers_stop(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.jsonl"
    add(path, entry(1))
    bench = Bench([str(path)])
    checkpoints = keeper(bench, tmp_path)
    former, not_begun = checkpoints.pieces(), checkpoints.pieces()
    assert numbers(next(former)) == [1]  # and is not acknowledged
    checkpoints.rewind()
    assert list(former) == []
    assert list(not_begun) == []
    pieces = checkpoints.pieces()
    again = next(pieces)
    assert numbers(again) == [1]
    again.settle()
    assert numbers(next(pieces)) == []
    bench.clock.at_s += 1
    add(path, entry(2))
    assert numbers(next(pieces)) == [2]


def test_lines_sent_again_after_a_failure_are_not_marked_as_live(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    add(path, entry(1))
    bench = Bench([str(path)])
    assert [piece.live for piece in bench.pieces()] == [False]
    add(path, entry(2))
    assert [piece.live for piece in bench.pieces(settle=False)] == [True]
    bench.follower.rewind()
    assert [piece.live for piece in bench.pieces()] == [False]


def test_saves_do_not_overlap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.jsonl"
    add(path, entry(1))
    bench = Bench([str(path)])
    checkpoints = keeper(bench, tmp_path)
    inside, may_go = threading.Event(), threading.Event()
    running: list[int] = []
    most: list[int] = []

    def save(*_: object) -> None:
        running.append(1)
        most.append(len(running))
        inside.set()
        may_go.wait(PATIENCE_S)
        running.pop()

    monkeypatch.setattr(Checkpoint, "save", save)
    threads = [threading.Thread(target=checkpoints.save) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert inside.wait(PATIENCE_S)
    threads[1].join(0.05)
    may_go.set()
    for thread in threads:
        thread.join()
    assert most == [1, 1]


def test_small_pieces_are_merged_and_settled_together() -> None:
    settled: list[int] = []

    def piece(number: int, *, live: bool = False, size: int = 1) -> LineBatch:
        line = Line("f", number, b"x" * size, size, None)
        return LineBatch([line], live, lambda: settled.append(number))

    def pieces() -> Iterator[LineBatch]:
        yield piece(1)
        yield piece(2)
        yield piece(3, live=True)
        yield LineBatch((), live=False)
        yield piece(4, size=1 << 20)
        yield piece(5)

    groups = list(grouped(pieces()))
    assert [numbers(each) for each in groups] == [[1, 2], [3], [], [4], [5]]
    assert [each.live for each in groups[:2]] == [False, True]
    groups[0].settle()
    assert settled == [1, 2]
    many = list(grouped(piece(number) for number in range(1_000)))
    assert [len(each.lines) for each in many] == [256, 256, 256, 232]
