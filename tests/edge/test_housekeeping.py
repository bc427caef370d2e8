"""A transcript that its runtime compresses, archives or takes back stays the same one."""

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contextgauge.errors import ConfigError
from streams.edge.files import reading as files
from streams.edge.files.housekeeping import archive_of, known_path, places
from streams.edge.files.names import group_of, name_of
from streams.edge.files.watch import TranscriptFinder, source_of
from tests.edge.follower_kit import ROLLOUT, Bench, Codex, add, compressed, entry
from tests.edge.test_local_transcripts import OLD_S, Reading

THREAD, LATER = "01a00ae5-0000-7000-8000-000000000001", "01a00ae5-0000-7000-8000-00000000000f"
REVERTED = ROLLOUT.replace(".jsonl", f"_{LATER}.jsonl")

Step = Callable[[Codex], None]
STEPS: list[Step] = [Codex.compress, Codex.decompress, Codex.put_away, Codex.take_back]


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.edge.files.follower.POLL_S", 0.0)


@pytest.mark.parametrize(
    "place",
    [
        f"/u/sessions/2026/08/16/{ROLLOUT}",
        f"/u/sessions/2026/08/16/{ROLLOUT}.zst",
        f"/u/archived_sessions/{ROLLOUT}",
        f"/u/archived_sessions/{ROLLOUT}.zst",
        f"/u/sessions/{ROLLOUT}",
    ],
)
def test_a_rollout_is_known_by_one_path_wherever_it_lies(place: str) -> None:
    assert known_path(place) == f"/u/sessions/2026/08/16/{ROLLOUT}"
    assert place in places(place)
    assert set(places(known_path(place))) <= set(places(place))
    assert source_of(place).session == ROLLOUT.removesuffix(".jsonl")
    assert group_of(place) == (False, THREAD)


@pytest.mark.parametrize(
    ("place", "known", "others"),
    [
        ("/p/a.jsonl", "/p/a.jsonl", ["/p/a.jsonl.zst"]),
        ("/p/a.jsonl.zst", "/p/a.jsonl", ["/p/a.jsonl"]),
        ("/u/sessions/a.jsonl", "/u/sessions/a.jsonl", ["/u/sessions/a.jsonl.zst"]),
        (
            "sessions/rollout-x.jsonl",
            "sessions/rollout-x.jsonl",
            [
                "archived_sessions/rollout-x.jsonl",
                "sessions/rollout-x.jsonl.zst",
                "archived_sessions/rollout-x.jsonl.zst",
            ],
        ),
        ("/p/what.zst", "/p/what.zst", ["/p/what.zst.zst"]),
    ],
)
def test_other_transcripts_are_known_by_their_plain_names(
    place: str, known: str, others: list[str]
) -> None:
    assert known_path(place) == known
    assert [each for each in places(place) if each != place] == others


def test_the_archive_is_that_of_codex() -> None:
    assert archive_of("/u/.codex/sessions") == "/u/.codex/archived_sessions"
    assert archive_of("/u/.codex/sessions/2026/08") == "/u/.codex/archived_sessions"
    assert archive_of("/u/.claude/projects") is None


def test_the_name_of_a_later_rollout_names_its_session_first() -> None:
    assert name_of(REVERTED).session == name_of(ROLLOUT + ".zst").session == THREAD
    assert name_of(f"{THREAD}.jsonl").session == THREAD
    assert name_of("agent-1.jsonl").session is None
    assert group_of(f"/u/sessions/2026/08/17/{REVERTED}") == group_of(f"/u/sessions/{ROLLOUT}")


def found(*paths: Path) -> list[str]:
    """Return where the transcripts of paths lie."""
    return [each.place for each in TranscriptFinder(map(str, paths)).look(0.0)]


def test_of_a_plain_and_a_compressed_file_the_plain_one_counts(tmp_path: Path) -> None:
    plain = tmp_path / "sessions" / "2026" / "08" / "16" / ROLLOUT
    add(plain, entry(1), entry(2))
    packed = plain.with_name(ROLLOUT + ".zst")
    packed.write_bytes(compressed(entry(1).encode() + b"\n"))
    for named in (tmp_path, plain.parent, plain, packed):
        assert found(named) == [str(plain)]
        assert [each.place for each in files.find([str(named)])] == [str(plain)]
    assert {each.path for each in files.expand([str(packed), str(tmp_path)])} == {plain}
    archived = tmp_path / "archived_sessions" / ROLLOUT
    add(archived, entry(1))
    assert found(tmp_path / "sessions") == [str(plain)]


def test_archived_rollouts_come_with_their_folder_their_day_and_their_name(tmp_path: Path) -> None:
    codex, other = Codex(tmp_path), Codex(tmp_path, ROLLOUT.replace("08-16", "09-01"))
    other.day = other.day.parent.parent / "09" / "01"
    other.place = other.day / other.place.name
    for each in (codex, other):
        each.append(entry(1))
    name = codex.place
    codex.put_away()
    other.put_away()
    codex.compress()
    assert found(tmp_path / "sessions") == [str(codex.place), str(other.place)]
    assert found(tmp_path / "sessions" / "2026" / "08") == [str(codex.place)]
    assert found(name) == found(codex.place) == [str(codex.place)]
    assert found(codex.archive) == [str(codex.place), str(other.place)]
    assert found(tmp_path / "sessions", codex.archive) == [str(codex.place), str(other.place)]
    assert TranscriptFinder([str(name)]).missing == []
    assert [each.place for each in files.find([str(name)])] == [str(codex.place)]
    for folders in (["sessions"], ["sessions", "archived_sessions"], ["archived_sessions"]):
        finder = TranscriptFinder((), [str(tmp_path / each) for each in folders])
        assert [each.place for each in finder.look(0.0)] == [str(codex.place), str(other.place)]
    with pytest.raises(ConfigError, match="no such file"):
        files.find([str(tmp_path / "sessions" / "2026" / "08" / "16" / "no.jsonl")])


def test_a_session_folder_has_its_compressed_main_file(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl.zst").write_bytes(compressed(entry(1).encode() + b"\n"))
    add(tmp_path / "s" / "subagents" / "agent-a.jsonl", entry(2))
    assert [Path(place).name for place in found(tmp_path / "s")] == [
        "s.jsonl.zst",
        "agent-a.jsonl",
    ]
    (tmp_path / "t.jsonl.zst").write_bytes(compressed(entry(3).encode() + b"\n"))
    (tmp_path / "t").mkdir()
    assert found(tmp_path / "t") == [str(tmp_path / "t.jsonl.zst")]
    (tmp_path / "t" / "mine.jsonl.zst").write_bytes(b"")
    assert found(tmp_path / "t") == [str(tmp_path / "t" / "mine.jsonl.zst")]


@pytest.mark.parametrize("is_listed", ["before", "after"])
def test_a_file_that_moves_while_its_folders_are_listed_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_listed: str
) -> None:
    """It is taken back: its folder was listed before, and the archive is listed after that."""
    codex = Codex(tmp_path)
    codex.append(entry(1))
    codex.put_away()
    finder = TranscriptFinder([str(tmp_path / "sessions")])
    assert [each.place for each in finder.look(0.0)] == [str(codex.place)]
    scandir = os.scandir

    def moving(path: str) -> Any:
        listed = scandir(path)
        if Path(path) == (codex.day if is_listed == "before" else codex.archive):
            monkeypatch.undo()
            codex.take_back()
        return listed

    monkeypatch.setattr(os, "scandir", moving)
    for _ in range(2):
        assert [each.path for each in finder.look(100.0)] == [str(codex.day / ROLLOUT)]
    codex.place.unlink()
    assert finder.look(200.0) == []


@pytest.mark.parametrize("is_later", [False, True], ids=["while it reads", "between two runs"])
@pytest.mark.parametrize("steps", [STEPS, STEPS[2:], [Codex.put_away, Codex.compress]], ids=len)
def test_a_view_reads_nothing_again_and_loses_nothing(
    tmp_path: Path, steps: list[Step], is_later: bool
) -> None:
    codex = Codex(tmp_path)
    codex.append(entry(1), entry(2), at_s=OLD_S)
    reading = Reading(tmp_path / "sessions")
    assert reading.lines() == [entry(1), entry(2)]
    for step in steps:
        step(codex)
        if is_later:
            reading.start()
        assert reading.lines() == []
        assert list(reading.marks) == [str(codex.day / ROLLOUT)]
    codex.append(entry(3))
    assert reading.lines() == [entry(3)]
    assert reading.events == []
    codex.place.unlink()
    assert reading.lost() == [ROLLOUT]


@pytest.mark.parametrize("is_later", [False, True], ids=["while it follows", "between two runs"])
@pytest.mark.parametrize("named", ["sessions", f"sessions/2026/08/16/{ROLLOUT}"])
def test_a_follower_sends_nothing_again_and_misses_nothing(
    tmp_path: Path, named: str, is_later: bool
) -> None:
    codex = Codex(tmp_path)
    codex.append(entry(1), entry(2))
    bench = Bench([str(tmp_path / named)])
    assert bench.places() == [(ROLLOUT, 1, "s"), (ROLLOUT, 2, "s")]
    for number, step in enumerate([*STEPS, Codex.put_away, Codex.compress], 3):
        step(codex)
        if is_later:
            bench.restart()
        assert bench.lines() == []
        assert {position.path for position in bench.follower.positions()} == {
            str(codex.day / ROLLOUT)
        }
        codex.append(entry(number))
        assert bench.places() == [(ROLLOUT, number, "s")]
    assert bench.events == []


def test_lines_that_follow_a_plain_copy_are_live(tmp_path: Path) -> None:
    codex = Codex(tmp_path)
    codex.append(entry(1), at_s=OLD_S)
    codex.compress()
    bench, reading = Bench([str(tmp_path)]), Reading(tmp_path)
    assert [piece.live for piece in bench.pieces()] == [False]
    assert [piece.received_ms for piece in reading.pieces()] == [None]
    codex.decompress()
    assert bench.lines() == reading.lines() == []
    codex.append(entry(2))
    assert [piece.live for piece in bench.pieces()] == [True]
    (piece,) = reading.pieces()
    assert piece.received_ms is not None
    codex.compress()
    assert bench.pieces() == []
    other = Codex(tmp_path, ROLLOUT.replace("14-07", "15-00"))
    other.append(entry(3))
    other.compress()
    assert [piece.live for piece in bench.pieces()] == [False]


def test_a_compressed_file_that_did_not_change_is_not_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex = Codex(tmp_path)
    codex.append(entry(1), at_s=OLD_S)
    codex.compress()
    bench, reading = Bench([str(tmp_path)], follow=False), Reading(tmp_path)
    assert bench.lines() == reading.lines() == [entry(1)]

    def refused(path: str, *_: object) -> int:
        raise AssertionError(path)

    monkeypatch.setattr(os, "open", refused)
    for _ in range(3):
        bench.restart()
        reading.start()
        assert bench.lines() == reading.lines() == []
    assert bench.follower.already_sent == 1
    progress = reading.transcripts.progress()
    assert progress is not None
    assert progress.is_done


@pytest.mark.parametrize("number", range(12))
def test_whatever_is_done_to_a_rollout_each_line_is_read_once(tmp_path: Path, number: int) -> None:
    """In any order, with lines written between, and with restarts of the readers."""
    chance = random.Random(number)  # noqa: S311 -- nothing secret
    codex, written = Codex(tmp_path), 1
    codex.append(entry(0))
    # The readers' clock is that of the files: everything is written now.
    bench, reading = Bench([str(tmp_path / "sessions")]), Reading(tmp_path / "sessions")
    sent, shown = list[str](), list[str]()
    for _ in range(60):
        match chance.randrange(8):
            case 0:
                codex.compress()
            case 1:
                codex.decompress()
            case 2 if codex.place.parent == codex.day:
                codex.put_away()
            case 2:
                codex.take_back()
            case 3 | 4:
                for _ in range(chance.randrange(1, 4)):
                    codex.append(entry(written))
                    written += 1
            case 5:
                sent += bench.lines()
            case 6:
                shown += reading.lines()
            case _:
                bench.restart()
                reading.start()
    sent, shown = sent + bench.lines(), shown + reading.lines()
    assert sent == shown == [entry(each) for each in range(written)]
    assert bench.events == reading.events == []


def test_a_rewritten_rollout_is_noticed_in_each_form(tmp_path: Path) -> None:
    codex = Codex(tmp_path)
    codex.append(entry(1), entry(2), at_s=OLD_S)
    bench, reading = Bench([str(tmp_path)]), Reading(tmp_path)
    assert bench.lines() == reading.lines() == [entry(1), entry(2)]
    codex.place.unlink()
    codex.append(entry(7), entry(8), at_s=OLD_S)
    codex.compress()
    assert reading.lost() == [ROLLOUT]
    assert bench.lines() == reading.lines() == [entry(7), entry(8)]
    codex.place.write_bytes(compressed(entry(9).encode() + b"\n"))
    assert reading.lost() == [ROLLOUT]
    assert bench.lines() == reading.lines() == [entry(9)]


def test_an_archive_that_cannot_be_looked_at_is_not_taken_for_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex = Codex(tmp_path)
    codex.append(entry(1), at_s=OLD_S)
    codex.put_away()
    reading = Reading(tmp_path / "sessions")
    assert reading.lines() == [entry(1)]
    really: dict[str, Callable[..., Any]] = {
        name: getattr(os, name) for name in ("stat", "scandir")
    }

    def refusing(name: str) -> Callable[..., Any]:
        def refused(path: Any, *more: Any, **options: Any) -> Any:
            if str(path).startswith(str(codex.archive)):
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
            return really[name](path, *more, **options)

        return refused

    for name in really:
        monkeypatch.setattr(os, name, refusing(name))
    for _ in range(2):
        reading.clock.at_s += 100
        assert reading.lines() == []
        reading.start()
    assert set(reading.events) == {
        f"{codex.archive}: cannot be read: {os.strerror(errno.EIO)}",
    }


def test_what_cannot_be_opened_for_a_moment_at_the_start_is_read_later(tmp_path: Path) -> None:
    codex = Codex(tmp_path)
    codex.append(*(entry(number) for number in range(50)))
    bench = Bench([str(tmp_path / "sessions")])
    assert len(bench.lines()) == 50
    codex.append(entry(50))
    codex.compress()
    with pytest.MonkeyPatch.context() as patch:

        def refuse(_path: str, _begin: int, _mark: str) -> None:
            raise PermissionError(13, "Permission denied")

        patch.setattr("streams.edge.files.tail.open_content", refuse)
        bench.restart()
        assert bench.lines() == []
        assert bench.follower.unreadable == 1
    assert bench.lines() == [entry(50)]
