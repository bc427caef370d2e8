"""A local view that several processes read for: the same figures, whatever happens to them."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from schemas.topics import MESSAGE_LIMIT_BYTES
from streams.core.projection import statistics
from streams.edge.files import unread
from streams.edge.files.folders import write_folder
from streams.edge.files.unread import UnreadFile, UnreadFiles, seen_of
from streams.flow.simulator import SimulationOptions, sample_sessions, simulate
from streams.flow.view.derivation import LocalDerivation
from streams.flow.view.other_process import derive_files
from streams.ports import DerivedFiles
from streams.settings import load_settings
from streams.wiring import view as wiring_view
from streams.wiring.view import ReadingProcesses, other_processes
from tests.commands import command_environment, listen_to_signals
from tests.flow.local_view_kit import RULES, Run, contents, figures, write_sample

ROOT = Path(__file__).parents[2]

_SCRIPT = """
import os, sys
from streams.cli import app
from streams.edge.files import unread

unread._MANY_BYTES = unread._TASK_BYTES = 1
fork = os.fork

def shown_fork():
    pid = fork()
    if pid:
        print("process", pid, file=sys.stderr, flush=True)
    return pid

os.fork = shown_fork
os.sched_getaffinity = lambda _: {0, 1, 2}
app.main()
"""


@pytest.fixture(autouse=True)
def _small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "_MANY_BYTES", 1)
    monkeypatch.setattr(unread, "_TASK_BYTES", 1)


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def others(reports: list[str]) -> Iterator[ReadingProcesses | None]:
    with other_processes(load_settings({}), 2, reports.append) as processes:
        yield processes


def _resumed(folder: Path) -> Path:
    """Divide the largest sessions among two files each, add broken lines and an empty file."""
    files = sorted(folder.rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    for number, path in enumerate(files[-4:]):
        lines = path.read_bytes().splitlines(keepends=True)
        half = len(lines) // 2
        path.write_bytes(b"".join(lines[:half]) + b'{"broken\n')
        later = folder / f"later-{number}.jsonl"
        later.write_bytes(b"".join(lines[half // 2 :]))
        os.utime(path, (1_760_000_000, 1_760_000_000))
        os.utime(later, (1_750_000_000 - number, 1_750_000_000 - number))
    (folder / "empty.jsonl").write_bytes(b"")
    os.utime(folder / "empty.jsonl", (1_750_000_000, 1_750_000_000))
    return folder


@pytest.mark.extended
def test_processes_write_what_one_writes(
    tmp_path: Path, others: ReadingProcesses, reports: list[str]
) -> None:
    folder = write_sample(tmp_path / "p")
    Run(folder, tmp_path / "alone").all()
    several = Run(folder, tmp_path / "several", others=others).all()
    assert contents(tmp_path / "several") == contents(tmp_path / "alone")
    assert not any(path.endswith(".jsonl") and Path(path).stat().st_size for path in several.read)
    assert reports == []


@pytest.mark.extended
def test_sessions_in_several_files_are_read_in_order(
    tmp_path: Path, others: ReadingProcesses
) -> None:
    folder = _resumed(write_sample(tmp_path / "p"))
    alone = Run(folder, tmp_path / "alone").all()
    several = Run(folder, tmp_path / "several", others=others).all()
    assert figures(tmp_path / "several") == figures(tmp_path / "alone")
    assert several.derivation.rejected == alone.derivation.rejected
    assert {Path(path).name for path in several.read} >= {
        f"later-{each}.jsonl" for each in range(4)
    }


@pytest.mark.extended
def test_hours_and_models_are_counted_as_in_one_process(
    tmp_path: Path, others: ReadingProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that lie years apart, times that are ahead of the files' own, and too many models."""
    monkeypatch.setattr(statistics, "MAX_MODELS", 1)
    folder, day_s = tmp_path / "p", 24 * 3_600
    for number, at_s in enumerate((1_767_225_600, 1_680_000_000, 1_767_500_000, 1_720_000_000)):
        options = SimulationOptions(seed=number, start_ms=at_s * 1_000)
        part = folder / f"{number}"
        write_folder(part, ((each.file, each.value) for each in sample_sessions(options)))
        for place, path in enumerate(sorted(part.rglob("*.jsonl"))):
            changed_s = at_s + (place % 7 - 3) * day_s
            os.utime(path, (changed_s, changed_s))
    Run(folder, tmp_path / "alone").all()
    several = Run(folder, tmp_path / "several", others=others).all()
    assert not any(Path(path).stat().st_size for path in several.read)
    assert contents(tmp_path / "several")["stats"] == contents(tmp_path / "alone")["stats"]
    assert figures(tmp_path / "several") == figures(tmp_path / "alone")


def _derivations() -> int:
    return sum(isinstance(each, LocalDerivation) for each in gc.get_objects())


def test_a_process_keeps_nothing_of_the_files_that_it_has_derived(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "p")
    path = max(folder.rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    seen = seen_of(path.stat(), str(path))
    pieces = unread.read_whole([UnreadFile(str(path), seen, final=True)])
    gc.collect()
    gc.disable()
    before = _derivations()
    try:
        derived = derive_files(RULES, MESSAGE_LIMIT_BYTES, pieces)
        assert derived.changes.views.views
        del derived
        assert _derivations() == before
    finally:
        gc.enable()


@pytest.mark.extended
def test_what_is_reported_as_read_is_written(tmp_path: Path, others: ReadingProcesses) -> None:
    folder = write_sample(tmp_path / "p")
    sessions: list[int] = []

    class Observed:
        """Counts what is written once everything is reported as read."""

        stop = others.stop

        def results(self, tasks: Sequence[UnreadFiles]) -> Iterator[DerivedFiles | None]:
            """Yield what the processes derived."""
            for derived in others.results(tasks):
                yield derived
                progress = run.reading_progress()
                if progress is not None and progress.is_done:
                    sessions.append(len(contents(tmp_path / "several")["sessions"]))

    run = Run(folder, tmp_path / "several", others=Observed())
    run.all()
    Run(folder, tmp_path / "alone").all()
    assert sessions == [len(contents(tmp_path / "alone")["sessions"])]


@pytest.mark.extended
def test_a_file_that_changes_meanwhile_is_read_again(
    tmp_path: Path, others: ReadingProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_sample(tmp_path / "p")
    path = max(folder.rglob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    run = Run(folder, tmp_path / "several", others=others)
    tasks = run.for_others

    def tasks_then_growth() -> list[UnreadFiles]:
        found = tasks()
        lines = path.read_bytes()
        path.write_bytes(lines + b'{"broken\n')
        run.transcripts.look()
        return found

    monkeypatch.setattr(run, "for_others", tasks_then_growth)
    run.all()
    Run(folder, tmp_path / "alone").all()
    assert figures(tmp_path / "several") == figures(tmp_path / "alone")
    assert str(path) in run.read


@pytest.mark.extended
def test_a_process_that_dies_leaves_the_reading_to_this_one(
    tmp_path: Path, reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_sample(tmp_path / "p")
    whole = unread.read_whole

    def deadly(files: UnreadFiles) -> object:
        if any(file.path.endswith("/2.jsonl") for file in files):
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(files)

    victim = sorted(folder.rglob("*.jsonl"))[4]
    victim.rename(victim.with_name("2.jsonl"))
    monkeypatch.setattr(wiring_view, "read_whole", deadly)
    Run(folder, tmp_path / "alone").all()
    with other_processes(load_settings({}), 2, reports.append) as others:
        Run(folder, tmp_path / "several", others=others).all()
    assert figures(tmp_path / "several") == figures(tmp_path / "alone")
    assert reports == ["a process that reads died (signal SIGKILL): one process reads on alone"]


@pytest.mark.extended
def test_a_file_that_a_process_cannot_read_is_read_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_sample(tmp_path / "p")

    def refuse(_files: UnreadFiles) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(wiring_view, "read_whole", refuse)
    Run(folder, tmp_path / "alone").all()
    with other_processes(load_settings({}), 2, print) as others:
        Run(folder, tmp_path / "several", others=others).all()
    assert contents(tmp_path / "several") == contents(tmp_path / "alone")


@pytest.mark.extended
@pytest.mark.service
def test_ctrl_c_ends_all_processes_of_a_view(tmp_path: Path) -> None:
    options = SimulationOptions(sessions=20, turns=20, providers=("claude",))
    write_folder(tmp_path / "p", ((each.file, each.value) for each in simulate(options)))
    process = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, "view", "--port", "0", str(tmp_path / "p")],
        cwd=ROOT,
        env=command_environment({"STATE_FOLDER": str(tmp_path / "state")}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=listen_to_signals,  # noqa: PLW1509 -- sets two signals, no more
        start_new_session=True,
    )
    assert process.stdout is not None
    assert b"The page is at" in process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    pids = [int(line.split()[1]) for line in errors.splitlines() if line.startswith(b"process ")]
    assert process.returncode == 0
    assert len(pids) == 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
