"""Files in reading order: what a boundary needs before it, and of copies the last one last."""

import json
import os
from pathlib import Path

import pytest

from schemas.records import CompactBoundary, ContextReading
from streams.edge.files import reading as files
from streams.edge.files.session_files import SessionFiles
from streams.edge.files.watch import TranscriptFinder
from tests.core.derivation.test_rules_responses import AUTOMATIC, own_call
from tests.core.given import SESSION, Body, assistant, boundary, line
from tests.edge.follower_kit import entry
from tests.edge.test_local_transcripts import OLD_S, Reading, write
from tests.edge.test_origins import derived


def save(path: Path, *bodies: Body, at_s: float = OLD_S) -> Path:
    return write(path, *map(json.dumps, bodies), at_s=at_s)


def found(*paths: Path) -> list[Path]:
    """Return the files of paths in the order in which a follower reads them."""
    return [Path(each.path) for each in TranscriptFinder(map(str, paths)).look(0.0)]


def replayed(*paths: Path) -> list[Path | None]:
    """Return the files of paths in the order in which they are read once."""
    return [source.path for source in files.expand(map(str, paths))]


@pytest.mark.parametrize("named", ["p", "p/s"], ids=["a project", "a session"])
def test_a_compactions_own_call_comes_before_its_session(tmp_path: Path, named: str) -> None:
    main, agents = tmp_path / "p" / "s.jsonl", tmp_path / "p" / "s" / "subagents"
    names = ["agent-acompact-1.jsonl", "deep/agent-acompact-2.jsonl"]
    others = ["agent-a.jsonl", "agent-b-acompact.jsonl", "deep/agent-a.jsonl"]
    for name in (*names, *others):
        write(agents / name, entry(1))
    write(main, entry(2))
    order = [*(agents / name for name in names), main, *(agents / name for name in others)]
    assert found(tmp_path / named) == replayed(tmp_path / named) == order
    assert Reading(tmp_path / "p").names() == [
        str(path.relative_to(tmp_path / "p")) for path in order
    ]


@pytest.mark.parametrize("named", [".", SESSION], ids=["a project", "a session"])
def test_a_boundary_that_is_read_from_a_folder_has_its_own_calls_time_and_cost(
    tmp_path: Path, named: str
) -> None:
    save(tmp_path / f"{SESSION}.jsonl", line(boundary(AUTOMATIC), 187))
    own = tmp_path / SESSION / "subagents" / "agent-acompact-1.jsonl"
    save(own, *own_call("c", 100, 186.5))
    (bound,) = [
        record.data
        for record in derived(tmp_path / named)
        if isinstance(record.data, CompactBoundary)
    ]
    assert (bound.duration_ms, bound.duration_source) == (87_000, "derived")
    assert bound.receipt is not None


@pytest.mark.shared
def test_the_boundary_of_a_real_folder_has_its_own_calls_time_and_cost(shared: Path) -> None:
    folder = shared / "fixtures" / "claude-code" / "258c7280-ae70-4798-800f-63464d01a85d"
    bounds = [record.data for record in derived(folder) if isinstance(record.data, CompactBoundary)]
    assert [bound.duration_source for bound in bounds] == ["derived"]
    assert bounds[0].receipt is not None


@pytest.mark.parametrize("last", ["a", "z"])
def test_of_copies_of_a_session_the_one_that_was_written_last_is_read_last(
    tmp_path: Path, last: str
) -> None:
    """Copies take each other's turns, with their subagents; other sessions keep theirs."""
    first = "z" if last == "a" else "a"
    for folder, at_s in ((first, OLD_S), (last, OLD_S + 50)):
        write(tmp_path / folder / "s.jsonl", entry(1), at_s=at_s)
        write(tmp_path / folder / "s" / "subagents" / "agent-a.jsonl", entry(2), at_s=OLD_S)
        write(tmp_path / folder / f"only-in-{folder}.jsonl", entry(3), at_s=OLD_S)
    copies = [
        [tmp_path / folder / "s.jsonl", tmp_path / folder / "s" / "subagents" / "agent-a.jsonl"]
        for folder in (first, last)
    ]
    order = [tmp_path / "a" / "only-in-a.jsonl", *copies[0]]
    order += [tmp_path / "z" / "only-in-z.jsonl", *copies[1]]
    assert found(tmp_path) == replayed(tmp_path) == order
    assert (
        found(tmp_path / "a", tmp_path / "z") == replayed(tmp_path / "a", tmp_path / "z") == order
    )
    read = [tmp_path / name for name in Reading(tmp_path).names()]
    assert [path for path in read if "only" not in path.name] == [*copies[0], *copies[1]]
    # One that is written to meanwhile is the last one from then on.
    finder = TranscriptFinder([str(tmp_path)])
    finder.look(0.0)
    os.utime(tmp_path / first / "s.jsonl", (OLD_S + 99, OLD_S + 99))
    assert [Path(each.path) for each in finder.look(1.0)][-2:] == copies[0]


@pytest.mark.parametrize("last", ["a", "z"])
def test_the_present_size_is_that_of_the_copy_that_was_written_last(
    tmp_path: Path, last: str
) -> None:
    """Both folders begin with one history, and each went on alone."""
    first = "z" if last == "a" else "a"
    common = line(assistant("m1", read=40_000), 10)
    for folder, size, at_s in ((first, 62_000, OLD_S), (last, 150_000, OLD_S + 50)):
        path = tmp_path / folder / f"{SESSION}.jsonl"
        save(path, common, line(assistant(f"m-{folder}", read=size), 20), at_s=at_s)
    data = [record.data for record in derived(tmp_path)]
    sizes = [each.used_tokens for each in data if isinstance(each, ContextReading)]
    assert sizes == [40_000, 62_000, 150_000]
    assert SessionFiles([tmp_path]).path(SESSION) == tmp_path / last / f"{SESSION}.jsonl"


def test_a_loose_own_call_comes_before_its_session_too(tmp_path: Path) -> None:
    names = ["agent-acompact-1.jsonl", "s.jsonl", "agent-a.jsonl"]
    for name in names:
        write(tmp_path / name, entry(1))
    assert found(tmp_path) == replayed(tmp_path) == [tmp_path / name for name in names]
