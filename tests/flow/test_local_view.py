"""The local file of `contextgauge view`: the figures of the transcripts that are there, always."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from contextgauge.containers import Line
from contextgauge.errors import ConfigError, StopError
from contextgauge.normalise.unread_lines import UnreadKind, UnreadLine
from schemas.records import Record
from schemas.topics import MESSAGE_LIMIT_BYTES
from schemas.views import SessionView
from streams import codec
from streams.codec import view_codec
from streams.core.projection.project import project
from streams.edge.files import reading as files
from streams.edge.files.folders import write_folder
from streams.edge.sqlite.database import InUseError, Lock, delete_unused
from streams.edge.sqlite.store import SqliteStore
from streams.flow.derive.deriver import Deriver
from streams.flow.replay.replay import replay
from streams.flow.simulator import SimulationOptions, sample_sessions
from streams.flow.view.derivation import LocalDerivation
from streams.flow.view.other_process import derive_files
from streams.ports import TranscriptPiece
from tests.doubles.dump import fold_records
from tests.edge.follower_kit import add
from tests.flow.local_view_kit import RULES, Run, contents, figures, write_sample


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A projects folder."""
    return write_sample(tmp_path / "projects")


@pytest.mark.extended
def test_the_figures_are_those_of_a_replay(folder: Path, tmp_path: Path) -> None:
    Run(folder, tmp_path / "local").all()
    records: list[Record] = []
    views: dict[str, SessionView] = {}
    for derived in replay(Deriver(RULES), files.read(files.expand([str(folder)]))):
        records += derived.records
    for offset, record in enumerate(records):
        name = record.data.session_id
        views[name] = project(views.get(name), record, offset)
    stored = figures(tmp_path / "local")
    expected = {name: codec.loads(view_codec.encode(view)) for name, view in views.items()}
    for view in expected.values():
        del view["position"]
    assert stored["views"] == expected
    (documents,) = fold_records(records, 1)
    assert stored["stats"] == {
        name: codec.loads(each) for name, each in documents.stats.items() if name != b"partition"
    }


def test_figures_of_a_newer_version_that_are_not_read_are_counted(tmp_path: Path) -> None:
    start = '{"type":"session.start","data":{"sessionId":"s","copilotVersion":"9.0"}}'
    path = tmp_path / "projects" / "s" / "events.jsonl"
    add(path, start, *['{"type":"session.sizes","data":{"inputTokens":9},"id":"a"}'] * 12)
    run = Run(path.parent, tmp_path / "local").all()
    kind = UnreadKind(str(path), UnreadLine("session.sizes", "usage"), "copilot-cli", "9.0")
    assert run.derivation.unread == {kind: 12}
    lines = [line for block in files.read(files.expand([str(path)])) for line in block]
    piece = TranscriptPiece(str(path), lines, None, 0, b"{}")
    elsewhere = derive_files(RULES, MESSAGE_LIMIT_BYTES, [piece])
    assert elsewhere.unread == {kind: 12}
    other = Run(tmp_path / "none", tmp_path / "other").derivation
    other.take_derived(elsewhere)
    assert other.unread == {kind: 12}


def test_a_second_run_reads_nothing_that_is_unchanged(folder: Path, tmp_path: Path) -> None:
    first = Run(folder, tmp_path / "local").all()
    assert len(set(first.read)) == len(list(folder.rglob("*.jsonl")))
    before = contents(tmp_path / "local")
    assert Run(folder, tmp_path / "local").all().read == []
    assert contents(tmp_path / "local") == before


class KilledError(Exception):
    """The process was killed."""


@pytest.mark.extended
@pytest.mark.parametrize("last", [2, 4, 6])
def test_a_run_that_was_killed_between_commits_is_continued(
    folder: Path, tmp_path: Path, last: int
) -> None:
    Run(folder, tmp_path / "whole").all()

    def kill(pieces: int) -> None:
        if pieces == last:
            raise KilledError

    for _ in range(3):
        with pytest.raises(KilledError):
            Run(folder, tmp_path / "broken").all(kill)
    Run(folder, tmp_path / "broken").all()
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


@pytest.mark.extended
def test_what_is_added_later_is_read_on_with_the_stored_state(folder: Path, tmp_path: Path) -> None:
    whole = {path: path.read_bytes() for path in folder.rglob("*.jsonl")}
    for path, content in whole.items():
        path.write_bytes(content[: len(content) // 2])
        os.utime(path, (1_700_000_000, 1_700_000_000))
    Run(folder, tmp_path / "grown").all()
    # In the order of a replay: of two files of a session the first is complete before.
    for number, (path, content) in enumerate(sorted(whole.items())):
        path.write_bytes(content)
        os.utime(path, (1_800_000_000 + number, 1_800_000_000 + number))
        Run(folder, tmp_path / "grown").all()
    Run(folder, tmp_path / "fresh").all()
    grown, fresh = figures(tmp_path / "grown"), figures(tmp_path / "fresh")
    assert grown["views"].keys() == fresh["views"].keys()
    alone = {
        path.stem for path in whole if not (path.parent / path.stem / "subagents").is_dir()
    } & fresh["views"].keys()
    assert len(alone) >= 5
    for name in alone:
        assert grown["views"][name] == fresh["views"][name]


def _cut(folder: Path) -> None:
    path = max(folder.glob("streams/*.jsonl"), key=lambda path: path.stat().st_size)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 3]))


def _replace(folder: Path) -> None:
    one, other = sorted(folder.glob("streams/*.jsonl"))[:2]
    shutil.copy(one, other)


def _delete(folder: Path) -> None:
    largest = max(folder.glob("-srv-repo/*.jsonl"), key=lambda path: path.stat().st_size)
    largest.unlink()
    shutil.rmtree(largest.with_suffix(""), ignore_errors=True)


def _delete_subagent(folder: Path) -> None:
    next(iter(sorted(folder.rglob("subagents/agent-*.jsonl")))).unlink()


def _rename(folder: Path) -> None:
    path = min(folder.glob("-srv-repo/*.jsonl"))
    (folder / "other").mkdir()
    path.rename(folder / "other" / path.name)


@pytest.mark.extended
@pytest.mark.parametrize("change", [_cut, _replace, _delete, _delete_subagent, _rename])
@pytest.mark.parametrize("is_later", [False, True], ids=["while it reads", "between two runs"])
def test_after_any_change_the_figures_are_those_of_a_fresh_reading(
    folder: Path, tmp_path: Path, change: Callable[[Path], None], is_later: bool
) -> None:
    run = Run(folder, tmp_path / "changed").all()
    before = figures(tmp_path / "changed")
    change(folder)
    (run if not is_later else Run(folder, tmp_path / "changed")).all()
    Run(folder, tmp_path / "fresh").all()
    changed = figures(tmp_path / "changed")
    assert changed == figures(tmp_path / "fresh")
    assert changed["files"] != before["files"] or changed["views"] != before["views"]


@pytest.mark.extended
def test_hours_that_have_left_do_not_come_back_when_a_file_is_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    for seed, begin_s in enumerate((1_680_000_000, 1_767_225_600)):
        simulated = sample_sessions(SimulationOptions(seed=seed, start_ms=begin_s * 1_000))
        write_folder(folder / f"{seed}", ((each.file, each.value) for each in simulated))
        for path in (folder / f"{seed}").rglob("*.jsonl"):
            os.utime(path, (begin_s + 86_400, begin_s + 86_400))
        Run(folder, tmp_path / "file").all()
    _delete(folder / "0")
    Run(folder, tmp_path / "file").all()
    hours = {field for field, _ in contents(tmp_path / "file")["stats"] if b"hour:2" in field}
    assert {hour[:12] for hour in hours} == {b"hour:2026-01"}


@pytest.mark.extended
@pytest.mark.parametrize("pieces", [4, 6])
def test_what_was_read_just_before_another_file_is_lost_stays(
    folder: Path, tmp_path: Path, pieces: int
) -> None:
    run = Run(folder, tmp_path / "changed")

    def delete_the_first(read: int) -> None:
        if read == pieces:
            assert run.read[-1] != run.read[0]
            Path(run.read[0]).unlink()

    run.all(delete_the_first)
    Run(folder, tmp_path / "fresh").all()
    assert figures(tmp_path / "changed") == figures(tmp_path / "fresh")


@pytest.mark.parametrize("messages", [1, 3])
def test_a_copy_keeps_its_session_when_the_first_file_is_deleted(
    tmp_path: Path, messages: int
) -> None:
    folder = tmp_path / "projects"
    lines = [
        f'{{"sessionId": "moved", "uuid": "{number}", "type": "assistant", "message": {{"id": '
        f'"msg_{number}", "model": "claude-sonnet-4-5", "usage": {{"input_tokens": 9000}}}}}}'
        for number in range(messages)
    ]
    add(folder / "one" / "a.jsonl", *lines)
    run = Run(folder, tmp_path / "changed").all()
    add(folder / "other" / "a.jsonl", *lines)
    run.all()
    (folder / "one" / "a.jsonl").unlink()
    run.all()
    Run(folder, tmp_path / "fresh").all()
    changed = figures(tmp_path / "changed")
    assert changed["views"].keys() == {"moved"}
    assert changed == figures(tmp_path / "fresh")


@pytest.mark.extended
def test_other_rules_read_everything_again(folder: Path, tmp_path: Path) -> None:
    first = Run(folder, tmp_path / "local").all()
    again = Run(folder, tmp_path / "local", "other rules").all()
    assert sorted(again.read) == sorted(first.read)


@pytest.mark.extended
@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"x" * 5_000])
def test_a_damaged_file_is_filled_again(folder: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "local").write_bytes(content)
    Run(folder, tmp_path / "local").all()
    assert len(figures(tmp_path / "local")["views"]) == 12


def test_only_its_owner_may_read_the_file(folder: Path, tmp_path: Path) -> None:
    run = Run(folder, tmp_path / "state" / "local").all()
    for path in (tmp_path / "state").iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    run.store.close()


def test_a_file_that_cannot_be_written_is_a_clear_error(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "local").mkdir()
    with pytest.raises(ConfigError, match="CONTEXTGAUGE_STATE_FOLDER"):
        Run(folder, tmp_path / "local")
    run = Run(folder, tmp_path / "other")
    run.store.close()
    with pytest.raises(StopError, match="delete it"):
        run.all()


def test_a_second_writer_is_shown_where_the_first_one_serves(tmp_path: Path) -> None:
    first, second = Lock(tmp_path / "local"), Lock(tmp_path / "local")
    first.take()
    first.announce("http://127.0.0.1:8642/")
    with pytest.raises(InUseError) as refused:
        second.take()
    assert refused.value.address == "http://127.0.0.1:8642/"
    first.release()
    second.take()
    second.release()


def test_files_of_paths_that_are_viewed_no_more_are_deleted(tmp_path: Path) -> None:
    now_s = 2_000_000_000
    for name, days in (("own", 200), ("unused", 91), ("recent", 89), ("in use", 91)):
        path = tmp_path / f"{name}.sqlite3"
        path.touch()
        os.utime(path, (now_s - days * 86_400, now_s - days * 86_400))
    lock = Lock(tmp_path / "in use.sqlite3")
    lock.take()
    delete_unused(tmp_path / "own.sqlite3", now_s)
    assert {path.stem for path in tmp_path.glob("*.sqlite3")} == {"own", "recent", "in use"}


def test_rejected_lines_of_a_rewritten_file_are_counted_once(folder: Path, tmp_path: Path) -> None:
    run = Run(folder, tmp_path / "local")
    path = next(iter(sorted(folder.rglob("*.jsonl"))))
    path.write_bytes(b"{not json\n" + path.read_bytes())
    run.all()
    assert run.derivation.rejected == {str(path): 1}
    path.write_bytes(b"{not json\n")
    run.all()
    assert run.derivation.rejected == {str(path): 1}


def _exact(file: Path) -> dict[str, bool]:
    with sqlite3.connect(file) as connection:
        rows = connection.execute("SELECT path, is_exact FROM files")
        return {Path(os.fsdecode(path)).name: bool(is_exact) for path, is_exact in rows}


@pytest.mark.parametrize(
    ("line", "is_exact"),
    [
        ('{"type":"user","sessionId":"s","uuid":"1","timestamp":"2026-01-01T00:00:00Z"}', True),
        ('{"type":"user","sessionId":"s","uuid":"1","message":{"content":"x"}}', False),
        ('{"type":"nothing that counts"}', True),
        ("no JSON", False),
    ],
)
def test_a_line_that_got_its_arrivals_time_is_noted(
    tmp_path: Path, line: str, is_exact: bool
) -> None:
    """A later reading would give it no time, and would report one that cannot be derived."""
    store = SqliteStore(tmp_path / "local", "tag")
    derivation = LocalDerivation(RULES, store, lambda: None)
    value = line.encode()
    lines = [Line("a.jsonl", 1, value, len(value), "s")]
    derivation.take(TranscriptPiece("a.jsonl", lines, 1_000, 1_000, b"{}"))
    derivation.commit()
    assert _exact(tmp_path / "local") == {"a.jsonl": is_exact}
    derivation.take(TranscriptPiece("a.jsonl", (), None, 1_000, b"{}"))
    derivation.commit()
    assert _exact(tmp_path / "local") == {"a.jsonl": is_exact}
    derivation.remove(["a.jsonl"])
    derivation.take(TranscriptPiece("a.jsonl", (), None, 1_000, b"{}"))
    derivation.commit()
    assert _exact(tmp_path / "local") == {"a.jsonl": True}
    store.close()
