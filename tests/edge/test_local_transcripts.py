"""What `contextgauge view` reads of transcripts: each line once, the newest session first."""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from streams.edge.files.transcripts import LocalTranscripts
from streams.edge.files.watch import TranscriptFinder
from streams.ports import TranscriptPiece
from tests.edge.follower_kit import Hands, add, entry

NOW_S = 1_000.0
OLD_S = NOW_S - 500


@dataclass
class Reading:
    """A reading of a folder; `pieces` remembers the marks as a local file does."""

    folder: Path
    marks: dict[str, bytes] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    clock: Hands = field(default_factory=lambda: Hands(NOW_S))

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin with what an earlier reading left."""
        look = TranscriptFinder((), [str(self.folder)]).look
        self.transcripts = LocalTranscripts(look, self.marks, self.clock, self.events.append)

    def pieces(self) -> list[TranscriptPiece]:
        """Return what is there now; a moment passes before."""
        self.clock.at_s += 1.0
        lost = self.transcripts.look()
        assert lost == []
        return list(self._pieces())

    def _pieces(self) -> Iterator[TranscriptPiece]:
        for piece in self.transcripts.pieces():
            self.marks[piece.path] = piece.mark
            yield piece

    def lines(self) -> list[str]:
        return [line.value.decode() for piece in self.pieces() for line in piece.lines]

    def names(self) -> list[str]:
        return [str(Path(piece.path).relative_to(self.folder)) for piece in self.pieces()]

    def lost(self) -> list[str]:
        """Look; forget what is lost and return the names."""
        self.clock.at_s += 1.0
        paths = self.transcripts.look()
        self.transcripts.forget(paths)
        for path in paths:
            self.marks.pop(path, None)
        return [Path(path).name for path in paths]


def refuse(
    monkeypatch: pytest.MonkeyPatch, function: str, number: int, is_refused: Callable[[str], bool]
) -> None:
    """Let a function of `os` fail with an error number for some paths."""
    really: Callable[..., Any] = getattr(os, function)

    def refusing(path: Any, *more: Any, **options: Any) -> Any:
        if is_refused(os.fspath(path)):
            raise OSError(number, os.strerror(number), path)
        return really(path, *more, **options)

    monkeypatch.setattr(os, function, refusing)


def write(path: Path, *values: str, at_s: float = OLD_S, end: str = "\n") -> Path:
    add(path, *values, end=end)
    os.utime(path, (at_s, at_s))
    return path


def test_the_newest_session_comes_first_and_its_main_file_before_its_subagents(
    tmp_path: Path,
) -> None:
    write(tmp_path / "p" / "old.jsonl", entry(1, "old"), at_s=OLD_S)
    write(tmp_path / "p" / "new.jsonl", entry(2, "new"), at_s=OLD_S + 10)
    agents = tmp_path / "p" / "new" / "subagents"
    write(agents / "agent-a.jsonl", entry(3, "new"), at_s=OLD_S + 90)
    write(agents / "deep" / "agent-b.jsonl", entry(4, "new"), at_s=OLD_S)
    write(tmp_path / "p" / "agent-loose.jsonl", entry(5, "old"), at_s=OLD_S + 99)
    write(tmp_path / "q" / "middle.jsonl", entry(6, "middle"), at_s=OLD_S + 50)
    assert Reading(tmp_path).names() == [
        "p/new.jsonl",
        "p/new/subagents/agent-a.jsonl",
        "p/new/subagents/deep/agent-b.jsonl",
        "q/middle.jsonl",
        "p/old.jsonl",
        "p/agent-loose.jsonl",
    ]


def test_files_that_did_not_change_are_not_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        write(tmp_path / f"{number}.jsonl", entry(number))
    reading = Reading(tmp_path)
    assert len(reading.lines()) == 5
    write(tmp_path / "3.jsonl", entry(9), at_s=OLD_S + 1)
    opened = []
    really_open = os.open

    def counted(path: str, *more: int) -> int:
        opened.append(Path(path).name)
        return really_open(path, *more)

    monkeypatch.setattr(os, "open", counted)
    reading.start()
    assert reading.lines() == [entry(9)]
    assert set(opened) == {"3.jsonl"}
    progress = reading.transcripts.progress()
    assert progress is not None
    assert (progress.files, progress.read_files, progress.is_done) == (5, 5, True)


def test_a_file_is_read_on_where_it_was_left_and_so_is_a_longer_copy(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", entry(1), entry(2))
    reading = Reading(tmp_path)
    reading.lines()
    reading.start()
    write(path, entry(3), at_s=OLD_S + 1)
    assert reading.lines() == [entry(3)]
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes() + entry(4).encode() + b"\n")
    copy.replace(path)
    assert reading.lines() == [entry(4)]
    reading.start()
    assert reading.lines() == []


@pytest.mark.parametrize("is_later", [False, True], ids=["while it reads", "between two runs"])
def test_what_is_cut_off_rewritten_or_gone_is_reported(tmp_path: Path, is_later: bool) -> None:
    paths = [write(tmp_path / f"{name}.jsonl", entry(1), entry(2)) for name in "abcd"]
    reading = Reading(tmp_path)
    reading.lines()
    paths[0].write_text(entry(1) + "\n")
    paths[1].write_text(entry(7) + "\n" + entry(8) + "\n" + entry(9) + "\n")
    paths[2].unlink()
    if is_later:
        reading.start()
    assert sorted(reading.lost()) == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert sorted(reading.lines()) == [entry(1), entry(7), entry(8), entry(9)]
    assert reading.lost() == []


def test_a_line_without_an_end_waits_and_is_taken_once_its_file_is_quiet(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", entry(1), '{"half":', at_s=NOW_S, end="")
    reading = Reading(tmp_path)
    assert reading.lines() == [entry(1)]
    write(path, " 1}", at_s=NOW_S + 1)
    assert reading.lines() == ['{"half": 1}']
    write(path, entry(2), at_s=NOW_S + 2, end="")
    assert reading.lines() == []
    reading.clock.at_s += 20
    assert reading.lines() == [entry(2)]
    assert reading.lines() == []
    reading.start()
    assert reading.lines() == []


def test_only_lines_written_meanwhile_are_seen_when_they_are_written(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", entry(1), at_s=NOW_S)
    reading = Reading(tmp_path)
    assert [piece.received_ms for piece in reading.pieces()] == [None]
    write(path, entry(2), at_s=NOW_S + 1)
    write(tmp_path / "new.jsonl", entry(3, "new"), at_s=NOW_S + 1)
    times = {Path(piece.path).name: piece.received_ms for piece in reading.pieces()}
    assert times == {"a.jsonl": int(NOW_S + 2) * 1_000, "new.jsonl": None}
    write(tmp_path / "moved.jsonl", entry(4, "moved"), at_s=OLD_S)
    assert [piece.received_ms for piece in reading.pieces()] == [None]
    write(path, entry(5), at_s=NOW_S + 3)
    reading.clock.at_s += 60  # the machine slept
    assert [piece.received_ms for piece in reading.pieces()] == [None]


def test_what_was_there_before_the_first_look_is_not_new_though_its_file_grows(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "a.jsonl", entry(1), at_s=NOW_S)
    reading = Reading(tmp_path)
    assert reading.lost() == []
    write(path, entry(2), at_s=NOW_S + 1)
    assert [piece.received_ms for piece in reading.pieces()] == [None]


def test_a_file_that_is_copied_here_in_parts_was_not_seen_when_it_was_written(
    tmp_path: Path,
) -> None:
    reading = Reading(tmp_path)
    assert reading.lines() == []
    path = tmp_path / "new.jsonl"
    for number in range(3):
        write(path, entry(number, "new"), at_s=NOW_S + number)
        assert [piece.received_ms for piece in reading.pieces()] == [None]
    reading.clock.at_s += 3
    assert list(reading.pieces()) == []
    write(path, entry(4, "new"), at_s=NOW_S + 7)
    (piece,) = reading.pieces()
    assert piece.received_ms is not None


def test_a_copy_that_begins_in_the_middle_of_a_line_was_not_seen_when_it_was_written(
    tmp_path: Path,
) -> None:
    reading = Reading(tmp_path)
    assert reading.lines() == []
    path = write(tmp_path / "new.jsonl", entry(1)[:20], at_s=NOW_S, end="")
    assert list(reading.pieces()) == []
    write(path, entry(1)[20:], entry(2), at_s=NOW_S + 1)
    (piece,) = reading.pieces()
    assert [line.value.decode() for line in piece.lines] == [entry(1), entry(2)]
    assert piece.received_ms is None


def test_a_last_line_is_taken_once_its_file_is_quiet_whatever_the_files_time_is(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a.jsonl", entry(1), entry(2), at_s=NOW_S + 1_000_000, end="")
    reading = Reading(tmp_path)
    assert reading.lines() == [entry(1)]
    reading.clock.at_s += 8
    assert reading.lines() == []
    reading.clock.at_s += 2
    assert reading.lines() == [entry(2)]
    progress = reading.transcripts.progress()
    assert progress is not None
    assert progress.is_done


def test_a_file_that_cannot_be_read_is_reported_once_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.jsonl", entry(1, name))
    refuse(monkeypatch, "open", errno.EACCES, lambda path: path.endswith("a.jsonl"))
    reading = Reading(tmp_path)
    assert reading.lines() == [entry(1, "b")]
    assert reading.lines() == []
    write(tmp_path / "a.jsonl", entry(2, "a"), at_s=OLD_S + 1)
    assert reading.lines() == []
    assert reading.events == [f"{tmp_path / 'a.jsonl'}: cannot be read: Permission denied"]
    monkeypatch.undo()
    write(tmp_path / "a.jsonl", entry(3, "a"), at_s=OLD_S + 2)
    assert reading.lines() == [entry(1, "a"), entry(2, "a"), entry(3, "a")]


def test_a_file_that_could_not_be_read_is_tried_again_each_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", entry(1))
    reading = Reading(tmp_path)
    assert reading.lines() == [entry(1)]
    refuse(monkeypatch, "open", errno.EIO, lambda path: path.endswith("a.jsonl"))
    write(path, entry(2), at_s=NOW_S)
    for _ in range(70):
        assert reading.lines() == []
    assert reading.events == [f"{path}: cannot be read: {os.strerror(errno.EIO)}"]
    monkeypatch.undo()
    (piece,) = [piece for _ in range(60) for piece in reading.pieces()]
    assert [line.value.decode() for line in piece.lines] == [entry(2)]
    assert piece.received_ms is None
    # From then on it is like any other file.
    write(path, entry(3), at_s=NOW_S + 1)
    (piece,) = reading.pieces()
    assert piece.received_ms is not None


def test_a_file_that_is_replaced_between_two_looks_is_not_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", entry(1))
    reading = Reading(tmp_path)
    assert reading.lost() == []
    write(tmp_path / "copy", entry(1), entry(2)).replace(path)
    assert list(reading.transcripts.pieces()) == []
    assert reading.lines() == [entry(1), entry(2)]
    assert reading.events == []


@pytest.mark.parametrize("is_later", [False, True], ids=["while it reads", "between two runs"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE])
@pytest.mark.parametrize(
    ("function", "place"),
    [("stat", "p/a.jsonl"), ("stat", "p"), ("stat", ""), ("scandir", "p"), ("scandir", "")],
)
def test_what_cannot_be_looked_at_is_reported_and_not_taken_for_deleted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    place: str,
    number: int,
    is_later: bool,
) -> None:
    path = write(tmp_path / "p" / "a.jsonl", entry(1))
    reading = Reading(tmp_path)
    assert reading.lines() == [entry(1)]
    refused = str(tmp_path / place)
    refuse(monkeypatch, function, number, lambda path: path == refused)
    if is_later:
        reading.start()
    for _ in range(3):
        reading.clock.at_s += 30  # folders are listed again
        assert reading.lines() == []
    assert reading.events == [f"{refused}: cannot be read: {os.strerror(number)}"]
    monkeypatch.undo()
    write(path, entry(2), at_s=OLD_S + 1)
    reading.clock.at_s += 30
    (piece,) = reading.pieces()
    assert [line.value.decode() for line in piece.lines] == [entry(2)]
    assert piece.received_ms is None
    path.unlink()
    assert reading.lost() == ["a.jsonl"]


def test_many_files_that_cannot_be_looked_at_are_reported_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcd":
        write(tmp_path / "p" / f"{name}.jsonl", entry(1, name))
    reading = Reading(tmp_path)
    assert len(reading.lines()) == 4
    refuse(monkeypatch, "stat", errno.EACCES, lambda path: path.endswith(".jsonl"))
    assert reading.lines() == []
    first = tmp_path / "p" / "a.jsonl"
    assert reading.events == [f"{first} and 3 more: cannot be read: Permission denied"]


def test_a_link_that_cannot_be_followed_does_not_hide_the_files_of_its_folder(
    tmp_path: Path,
) -> None:
    write(tmp_path / "a.jsonl", entry(1))
    loop = tmp_path / "loop.jsonl"
    loop.symlink_to(loop)
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere.jsonl")
    reading = Reading(tmp_path)
    assert reading.lines() == [entry(1)]
    assert reading.events == [f"{loop}: cannot be read: {os.strerror(errno.ELOOP)}"]


def test_a_file_from_before_1970_is_known_at_the_next_start(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", entry(1), at_s=-1_000)
    reading = Reading(tmp_path)
    assert reading.lines() == [entry(1)]
    reading.start()
    assert reading.lines() == []
    write(path, entry(2), at_s=-900)
    assert [piece.modified_ms for piece in reading.pieces()] == [0]


@pytest.mark.parametrize("mark", [b"", b"[]", b"{}", b"\xff"])
def test_a_file_whose_mark_cannot_be_read_counts_as_lost(tmp_path: Path, mark: bytes) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.jsonl", entry(1, name))
    reading = Reading(tmp_path)
    assert len(reading.lines()) == 2
    reading.marks[str(tmp_path / "a.jsonl")] = mark
    reading.start()
    assert reading.lost() == ["a.jsonl"]
    assert reading.lines() == [entry(1, "a")]


def test_an_empty_file_is_known_too(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", end="")
    reading = Reading(tmp_path)
    assert reading.lines() == []
    assert list(reading.marks) == [str(tmp_path / "a.jsonl")]
    write(tmp_path / "a.jsonl", entry(1), at_s=OLD_S + 1)
    assert reading.lines() == [entry(1)]
