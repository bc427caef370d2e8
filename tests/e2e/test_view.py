"""`contextgauge view` as a process: killed and stopped, started twice, with nothing given."""

import json
import signal
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal_kit import Terminal
from tests.commands import Command
from tests.core.given import moment
from tests.e2e.view_kit import View
from tests.edge.follower_kit import Codex
from tests.edge.test_origins import derived, head, history, thread
from tests.flow.local_view_kit import Run, contents, figures, write_sample
from tests.patience import PATIENCE_S
from tests.runtimes.opencode_database import OpencodeDatabase


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Some 80 MB of transcripts: reading them takes seconds."""
    for seed in range(1, 7):
        write_sample(tmp_path / "projects" / str(seed), seed)
    return tmp_path / "projects"


def test_a_view_that_is_killed_while_it_reads_loses_and_doubles_nothing(
    command: Command, tmp_path: Path, folder: Path
) -> None:
    state, files, kills = tmp_path / "state", len(list(folder.rglob("*.jsonl"))), 0
    for _ in range(3):
        view = View(command, state, str(folder))
        view.process.send_signal(signal.SIGSTOP)
        read = _files_read(view.file())
        while _files_read(view.file()) == read < files:
            assert view.process.poll() is None
            view.process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
            view.process.send_signal(signal.SIGSTOP)
        kills += _files_read(view.file()) < files
        view.process.kill()
        view.process.wait()
    assert kills, "it was never killed before the end"
    view = View(command, state, str(folder))
    view.wait_until_read()
    assert view.stop() == 0
    whole = tmp_path / "whole"
    Run(folder, whole).all()
    # The offsets of records may differ: which session comes first depends on what is unread.
    assert figures(view.file()) == figures(whole)
    for table in ("states", "files"):
        assert contents(view.file())[table] == contents(whole)[table]


def _files_read(file: Path) -> int:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        count: int = connection.execute("SELECT count(*) FROM files").fetchone()[0]
        return count


@pytest.mark.extended
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_cleanly_while_it_reads(
    command: Command, tmp_path: Path, folder: Path, number: signal.Signals
) -> None:
    view = View(command, tmp_path / "state", str(folder))
    assert view.stop(number) == 0
    _, errors = view.process.communicate()
    assert "Traceback" not in errors


@pytest.mark.extended
def test_a_second_view_shows_where_the_first_one_is(command: Command, tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "projects")
    view = View(command, tmp_path / "state", str(folder))
    second = command("view", str(folder), STATE_FOLDER=str(tmp_path / "state"))
    assert second.returncode == 0
    assert view.address in second.stdout
    other = View(command, tmp_path / "state", str(folder / "streams"))
    other.wait_until_read()
    view.wait_until_read()
    assert other.sessions().keys() < view.sessions().keys()


@pytest.mark.extended
def test_the_transcripts_of_this_machine_are_found_and_those_that_come_later(
    command: Command, tmp_path: Path
) -> None:
    sample = write_sample(tmp_path / "sample")
    claude, codex = tmp_path / "claude", tmp_path / "codex"
    (claude / "projects").mkdir(parents=True)
    (sample / "-srv-repo").rename(claude / "projects" / "-srv-repo")
    command.environment |= {"CLAUDE_CONFIG_DIR": str(claude), "CODEX_HOME": str(codex)}
    view = View(command, tmp_path / "state")
    view.wait_until_read()
    assert {session["identity"]["runtime"] for session in view.sessions().values()} == {
        "claude-code"
    }
    (codex / "sessions").mkdir(parents=True)
    for path in (sample / "codex").iterdir():
        path.rename(codex / "sessions" / path.name)
    end_s = time.monotonic() + PATIENCE_S
    while not any(each["identity"]["runtime"] == "codex" for each in view.sessions().values()):
        assert time.monotonic() < end_s
        time.sleep(0.05)


@pytest.mark.extended
def test_what_codex_puts_away_stays_in_the_view_and_in_its_totals(
    command: Command, tmp_path: Path
) -> None:
    home, claude = tmp_path / "codex", tmp_path / "claude"
    command.environment |= {"CLAUDE_CONFIG_DIR": str(claude), "CODEX_HOME": str(home)}
    names = [f"rollout-2026-08-16T14-07-04-{thread(number)}.jsonl" for number in (1, 2, 3)]
    first, second, third = rollouts = [Codex(home, name) for name in names]
    for number, codex in enumerate(rollouts, 1):
        lines = [head(number), *history(number, 16, 0)[0]]
        stamped = ({**line, "timestamp": moment(n)} for n, line in enumerate(lines))
        codex.append(*map(json.dumps, stamped))
    records = [record.id for record in derived(home)]
    view = View(command, tmp_path / "state")
    view.wait_until_read()
    sessions, totals = _derived_in(view), _compactions(view)
    assert list(sessions) == [thread(number) for number in (1, 2, 3)]
    assert totals["measured"] == 6
    marks = (f"mark-{number}" for number in range(100))

    def assert_nothing_changes(view: View) -> None:
        """Look until a line is shown that is written now: so all before it was seen."""
        mark = next(marks)
        _transcript(claude / "projects" / f"{mark}.jsonl", mark, mark)
        end_s, is_seen = time.monotonic() + PATIENCE_S, False
        while not is_seen:
            assert time.monotonic() < end_s
            is_seen = mark in view.sessions()
            assert (_derived_in(view), _compactions(view)) == (sessions, totals)

    first.compress()
    second.put_away()
    assert_nothing_changes(view)
    second.compress()
    first.put_away()
    assert_nothing_changes(view)
    assert view.stop() == 0
    third.put_away()
    view = View(command, tmp_path / "state")
    view.wait_until_read()
    first.take_back()
    first.decompress()
    assert_nothing_changes(view)
    assert [record.id for record in derived(home)] == records
    # It goes on where it was; and what is deleted is gone.
    (more, *_), _ = history(9, 1, 5_000_000)
    first.append(json.dumps(more))
    view.wait(lambda: _derived_in(view)[thread(1)]["sequence"] > sessions[thread(1)]["sequence"])
    assert _compactions(view) == totals
    second.place.unlink()
    view.wait(lambda: thread(2) not in view.sessions())
    assert view.stop() == 0
    _, errors = view.process.communicate()
    assert "cannot be read" not in errors


def _derived_in(view: View) -> dict[str, dict[str, Any]]:
    """Return Codex's sessions; those that are derived again have other positions."""
    fields = ("position", "sequence", "compactions")
    return {
        name: {field: session[field] for field in fields}
        for name, session in sorted(view.sessions().items())
        if session["identity"]["runtime"] == "codex"
    }


def _compactions(view: View) -> dict[str, Any]:
    total = view.get("v1/stats")["total"]
    return {name: total[name] for name in ("measured", "saved_tokens", "unknown_trigger")}


@pytest.mark.extended
def test_wrong_arguments_are_a_clear_error(command: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, message in (
            (["nowhere"], "nowhere: no such file or folder"),
            (["x" * 300], "xxx: File name too long"),
            (["--host", "192.0.2.1", "."], "name another --host or --port"),
            (["--port", port, "."], f"port {port}"),
        ):
            done = command("view", *arguments, STATE_FOLDER=str(tmp_path))
            assert done.returncode == 2
            assert message in done.stderr
            assert "Traceback" not in done.stderr


@pytest.mark.extended
def test_without_arguments_a_terminal_shows_the_view_and_a_pipe_the_help(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = write_sample(tmp_path / "sample")
    (tmp_path / "claude").mkdir()
    sample.rename(tmp_path / "claude" / "projects")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    terminal = Terminal(100, 20, [], {"STATE_FOLDER": str(tmp_path / "state")})
    terminal.wait(lambda text: "16 transcripts, 12 sessions" in text)
    assert "The page is at http://127.0.0.1:" in terminal.text
    terminal.press("\x03")
    assert terminal.end() == 0
    terminal.close()
    done = command()
    assert done.returncode == 2
    assert "COMMAND [ARGS]" in done.stderr


@pytest.mark.extended
def test_a_file_that_is_no_transcript_is_reported(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text("no JSON\n" * 3)
    view = View(command, tmp_path / "state", str(path))
    view.wait_until_read()
    assert view.stop(signal.SIGINT) == 0
    _, errors = view.process.communicate()
    assert f"{path}: 3 lines could not be read" in errors


@pytest.mark.extended
def test_a_wrong_line_that_comes_while_following_is_reported(
    command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "projects" / "s.jsonl"
    _transcript(path, "s", "first")
    view = View(command, tmp_path / "state", str(path.parent))
    view.wait_until_read()
    assert view.process.stderr is not None
    assert "1 transcript, 1 session" in view.process.stderr.readline()
    with path.open("a") as file:
        file.write("no JSON\n" * 2)
    assert f"{path}: 2 lines could not be read" in view.process.stderr.readline()
    assert view.stop(signal.SIGINT) == 0


def _transcript(path: Path, session_id: str, prompt: str, **more: object) -> None:
    """Append a prompt and its answer to a transcript, as Claude Code writes them."""
    usage = {"input_tokens": 40_000, "output_tokens": 1}
    answer = {"id": f"msg_{prompt}", "model": "claude-sonnet-4-5", "usage": usage, "content": []}
    common = {"sessionId": session_id, "timestamp": "2026-11-22T10:00:00.000Z", **more}
    lines = (
        {"type": "user", "message": {"role": "user", "content": prompt}},
        {"type": "assistant", "message": {"type": "message", "role": "assistant", **answer}},
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line | common) + "\n" for line in lines)


@pytest.mark.extended
def test_titles_are_the_first_prompts_and_shown_on_request_only(
    command: Command, tmp_path: Path
) -> None:
    one, two, three = (f"258c7280-ae70-4798-800f-00000000000{number}" for number in (1, 2, 3))
    folder = tmp_path / "projects"
    _transcript(folder / "-srv" / f"{one}.jsonl", one, "Fix the parser")
    _transcript(folder / "-srv" / f"{one}.jsonl", one, "and then the tests")
    agent = folder / "-srv" / one / "subagents" / "agent-a1.jsonl"
    _transcript(agent, one, "Look at the parser", isSidechain=True, agentId="a1")
    # Whose prompts are whose in a file of several sessions is not known.
    _transcript(folder / "-srv" / "both.jsonl", two, "Plant an orchard")
    _transcript(folder / "-srv" / "both.jsonl", three, "Water it")
    for options, expected in ((["--titles"], "Fix the parser"), ([], None)):
        view = View(command, tmp_path / "state", str(folder), *options)
        view.wait_until_read()
        titles = {name: session["title"] for name, session in view.sessions().items()}
        assert titles == {one: expected, two: None, three: None}
        assert view.get(f"v1/sessions/{one}")["session"]["title"] == expected
        assert view.stop() == 0


@pytest.mark.extended
def test_titles_are_served_to_this_machine_only(command: Command, tmp_path: Path) -> None:
    done = command("view", "--titles", "--host", "192.0.2.1", ".", STATE_FOLDER=str(tmp_path))
    assert done.returncode == 2
    assert "leave out --host, or --titles" in done.stderr


@pytest.mark.extended
def test_a_window_that_the_status_line_is_given_is_shown_of_what_was_read_before(
    command: Command, tmp_path: Path
) -> None:
    message = {"id": "m", "model": "claude-sonnet-4-5", "usage": {"input_tokens": 150_000}}
    line = {"type": "assistant", "sessionId": "s-1", "isSidechain": False, "message": message}
    path = tmp_path / "s-1.jsonl"
    path.write_text(json.dumps(line) + "\n")
    view = View(command, tmp_path / "state", str(path))
    view.wait_until_read()
    assert view.sessions()["s-1"]["chains"]["main"]["used_percent"] == 75.0
    given = {
        "session_id": "s-1",
        "transcript_path": str(path),
        "model": {"id": "claude-sonnet-4-5[1m]"},
        "context_window": {"context_window_size": 1_000_000},
    }
    command("statusline", stdin=json.dumps(given), STATE_FOLDER=str(tmp_path / "state"))

    def percent() -> float | None:
        """Return what the page shows; the session is gone for a moment while it is read again."""
        chains = view.sessions().get("s-1", {"chains": {}})["chains"]
        return chains["main"]["used_percent"] if chains else None

    view.wait(lambda: percent() == 15.0)
    assert view.stop() == 0


@pytest.mark.extended
def test_a_runtimes_database_is_followed_and_what_it_loses_vanishes(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "opencode").mkdir()
    runtime = OpencodeDatabase(tmp_path / "opencode" / "opencode.db", time.time_ns() // 1_000_000)
    for number, name in enumerate(("ses_1", "ses_2"), 1):
        runtime.session(name)
        runtime.execute("UPDATE session SET title = 'Parser ' || id WHERE id = ?", name)
        runtime.answer(name, fresh=number)
    arguments = (str(runtime.path), "--titles")
    view = View(command, tmp_path / "state", *arguments)

    def sizes() -> dict[str, int]:
        return {
            name: each["chains"]["main"]["used_tokens"] for name, each in view.sessions().items()
        }

    view.wait(lambda: sizes() == {"ses_1": 1, "ses_2": 2})
    titles = {name: each["title"] for name, each in view.sessions().items()}
    assert titles == {"ses_1": "Parser ses_1", "ses_2": "Parser ses_2"}
    runtime.answer("ses_1", fresh=3)
    view.wait(lambda: sizes() == {"ses_1": 3, "ses_2": 2})
    assert view.stop() == 0
    runtime.execute("DELETE FROM session WHERE id = 'ses_2'")
    runtime.answer("ses_1", fresh=4)
    view = View(command, tmp_path / "state", *arguments)
    view.wait(lambda: sizes() == {"ses_1": 4})
    assert view.stop() == 0
    runtime.close()
