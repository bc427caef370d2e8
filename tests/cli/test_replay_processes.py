"""Replays of folders by several processes: the same bytes in the same order, and how they end."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from contextgauge.errors import ConfigError
from streams.cli import deriving
from streams.cli.exits import Exit
from streams.cli.inputs import sources_of
from streams.cli.transcripts import Replay
from streams.edge.files.folders import write_folder
from streams.flow.simulator import SimulationOptions, sample_sessions, simulate
from tests.commands import Command, command_environment, listen_to_signals

ROOT = Path(__file__).parents[2]

_SCRIPT = """
import os, signal, sys
from streams.cli import app, deriving

deriving._FORK_BYTES, deriving._TASK_BYTES = 1, 1
fork, task = os.fork, deriving.Derivation._task

def shown_fork():
    pid = fork()
    if pid:
        print("process", pid, file=sys.stderr, flush=True)
    return pid

def deadly_task(self, sources):
    if any("deadly" in source.name for source in sources):
        os.kill(os.getpid(), signal.SIGKILL)
    return task(self, sources)

os.fork, deriving.Derivation._task = shown_fork, deadly_task
app.main()
"""


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each session of a folder, however small, is a task of its own."""
    monkeypatch.setattr(deriving, "_FORK_BYTES", 1)
    monkeypatch.setattr(deriving, "_TASK_BYTES", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sessions of all runtimes, some in two files, broken lines and an empty file."""
    folder = tmp_path / "projects"
    sample = sample_sessions(SimulationOptions())
    write_folder(folder, ((each.file, each.value) for each in sample))
    files = sorted(folder.rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    for number, path in enumerate(files[-4:]):
        lines = path.read_bytes().splitlines(keepends=True)
        half = len(lines) // 2
        path.write_bytes(b"".join(lines[:half]))
        # The later file begins with lines that are known, as a copy of a session does.
        copy = folder / f"zz-resumed-{number}.jsonl"
        copy.write_bytes(b"".join(lines[half // 2 :]))
    main = next(path for path in files if path.with_suffix("").is_dir())
    agent = next(main.with_suffix("").rglob("agent-*.jsonl"))
    agent.rename(main.parent / agent.name)
    for path in files[:3]:
        if path.exists():
            path.write_bytes(path.read_bytes() + b'{"broken\n[]\n\n')
    (folder / "empty.jsonl").write_bytes(b"")
    return folder


def _replayed(folder: Path, processes: int) -> tuple[list[bytes], list[tuple[str, int, str]]]:
    dead: list[tuple[str, int, str]] = []
    replay = Replay(
        sources_of([str(folder)]),
        on_dead=lambda line, letter: dead.append((line.file, line.number, letter.reason)),
        processes=processes,
    )
    return [line for lines in replay.lines() for line in lines], dead


def _command(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, *arguments],
        cwd=ROOT,
        env=command_environment({}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=listen_to_signals,  # noqa: PLW1509 -- sets two signals, no more
        start_new_session=True,
    )


def _pids(errors: bytes) -> list[int]:
    return [int(line.split()[1]) for line in errors.splitlines() if line.startswith(b"process ")]


def _are_gone(pids: Sequence[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.extended
@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("processes", [1, 2, 5])
def test_tasks_give_in_any_number_of_processes_what_all_files_at_once_give(
    folder: Path,
    processes: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(deriving, "_FORK_BYTES", 1 << 30)
        whole = _replayed(folder, 1)
    errors = capsys.readouterr().err
    assert len(whole[0]) > 100
    assert {reason for _, _, reason in whole[1]} >= {"not_json", "not_object"}
    assert _replayed(folder, processes) == whole
    assert capsys.readouterr().err == errors


@pytest.mark.extended
@pytest.mark.usefixtures("small_tasks")
def test_views_of_several_processes_are_those_of_one(folder: Path) -> None:
    sources = sources_of([str(folder)])
    views = Replay(sources, processes=1).views()
    assert list(Replay(sources, processes=3).views().items()) == list(views.items())


@pytest.mark.extended
@pytest.mark.usefixtures("small_tasks")
def test_processes_wait_while_much_is_held_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.edge.forks._HELD_BYTES", 1)
    assert _replayed(folder, 3) == _replayed(folder, 1)


@pytest.mark.extended
@pytest.mark.usefixtures("small_tasks")
def test_a_file_that_cannot_be_read_ends_it_where_its_turn_comes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open = os.open

    def refuse(path: str, *more: int) -> int:
        if Path(path).name == "zz-resumed-1.jsonl":
            raise PermissionError(13, "Permission denied")
        return real_open(path, *more)

    monkeypatch.setattr("os.open", refuse)
    given: dict[int, list[bytes]] = {}
    for processes in (1, 3):
        lines = given[processes] = []
        parts = Replay(sources_of([str(folder)]), processes=processes).lines()
        with pytest.raises(ConfigError, match=r"zz-resumed-1\.jsonl: Permission denied"):
            lines.extend(line for some in parts for line in some)
    assert given[1] == given[3]
    assert given[1]


@pytest.mark.usefixtures("small_tasks")
def test_the_session_of_lines_without_one_serves_all_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = {"input_tokens": 5, "output_tokens": 1}
    for number in range(4):
        message = {"id": f"m{number}", "model": "claude-sonnet-4-5", "usage": usage}
        line = json.dumps({"type": "assistant", "message": message})
        (tmp_path / f"{number}.jsonl").write_text(f"{line}\n")
    given = []
    for processes in (1, 2):
        replay = Replay(sources_of([str(tmp_path)]), "mine", processes=processes)
        given.append([line for lines in replay.lines() for line in lines])
    assert given[0] == given[1]
    assert {json.loads(line)["data"]["session_id"] for line in given[0]} == {"mine"}
    assert "is not used" not in capsys.readouterr().err


def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    sessions = simulate(SimulationOptions(sessions=8, turns=20, providers=("claude",)))
    write_folder(tmp_path / "p", ((each.file, each.value) for each in sessions))
    process = _command("replay", "--processes", "3", str(tmp_path / "p"))
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()  # its pipe is full soon, and the command waits for a reader
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    alone = _command("replay", "--processes", "1", str(tmp_path / "p"))
    assert alone.stdout is not None
    alone.stdout.readline()
    os.killpg(alone.pid, signal.SIGINT)
    alone.communicate()
    pids = _pids(errors)
    assert len(pids) == 3
    assert _are_gone(pids)
    assert process.returncode == alone.returncode
    assert b"Traceback" not in errors


def test_processes_end_where_the_reader_has_gone(folder: Path) -> None:
    process = _command("replay", "--processes", "2", str(folder))
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate()
    assert process.returncode == 0
    assert len(_pids(errors)) == 2
    assert _are_gone(_pids(errors))


@pytest.mark.extended
def test_a_process_that_dies_is_an_error_after_whole_lines(folder: Path) -> None:
    victim = sorted(folder.glob("zz-resumed-*.jsonl"))[2]
    victim.rename(victim.with_name("zz-resumed-2-deadly.jsonl"))
    process = _command("replay", "--processes", "2", str(folder))
    output, errors = process.communicate()
    assert process.returncode == Exit.STOPPED
    assert b"one of 2 processes died (signal SIGKILL)" in errors
    assert b"Use --processes 1" in b" ".join(errors.split())
    whole = b"".join(line + b"\n" for line in _replayed(folder, 1)[0])
    assert output
    assert output.endswith(b"\n")
    assert whole.startswith(output)
    assert _are_gone(_pids(errors))


def test_a_topic_has_no_processes(command: Command) -> None:
    done = command("replay", "--topic", "messages", "--processes", "2")
    assert (done.returncode, "--processes is for paths" in done.stderr) == (Exit.WRONG, True)
