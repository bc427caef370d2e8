"""`sessions`, `status`, `events` and `replay --view` of transcripts: no broker and no Redis."""

import json
import os
import re
from pathlib import Path

import pytest

from streams.cli.inputs import is_path
from streams.edge.files.folders import write_folder
from streams.flow.simulator import SimulationOptions, sample_sessions
from tests.cli.terminal_kit import Terminal
from tests.commands import Command

CLAUDE = SimulationOptions(providers=("claude",))


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A projects folder with the transcripts of the sample."""
    folder = tmp_path_factory.mktemp("projects")
    files = [each for each in sample_sessions(CLAUDE) if "/" in each.file]
    write_folder(folder, ((each.file, each.value) for each in files))
    return folder


@pytest.fixture(scope="module")
def transcript(projects: Path) -> Path:
    """A transcript with a compaction, and subagents in the folder next to it."""
    return next(
        path
        for path in sorted(projects.rglob("*.jsonl"))
        if b"compact_boundary" in path.read_bytes() and path.with_suffix("").is_dir()
    )


@pytest.mark.extended
def test_sessions_lists_those_of_a_folder(command: Command, projects: Path) -> None:
    done = command("sessions", str(projects))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    names = {path.stem for path in projects.rglob("*.jsonl") if "agent-" not in path.name}
    assert {line.split()[0] for line in lines[1:]} >= names
    assert "srv/repo" in done.stdout
    listed = json.loads(command("sessions", "--json", str(projects)).stdout)
    assert len(listed) == len(lines) - 1
    few = command("sessions", "--limit", "1", str(projects))
    assert f"1 of {len(listed)}: --limit shows more" in few.stderr


@pytest.mark.extended
def test_nothing_is_cut_in_a_pipe(command: Command, projects: Path) -> None:
    command.environment["COLUMNS"] = ""
    lines = command("sessions", str(projects)).stdout.splitlines()
    assert "…" not in "".join(lines)
    assert lines[0].split() == [
        *("Session", "Folder", "Runtime", "Model", "Context"),
        *("Tokens", "Until", "Messages", "Compactions", "Active"),
    ]
    assert all(re.match(r"[0-9a-f-]{36}  ", line) for line in lines[1:])


@pytest.mark.extended
@pytest.mark.parametrize("columns", [80, 120])
def test_a_piped_table_fits_the_columns_that_are_asked_for(
    command: Command, projects: Path, columns: int
) -> None:
    command.environment["COLUMNS"] = str(columns)
    lines = command("sessions", str(projects)).stdout.splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[0].split()[0] == "Session"


@pytest.mark.extended
def test_status_shows_the_session_of_a_path(command: Command, transcript: Path) -> None:
    for path in (transcript, transcript.with_suffix("")):
        box = command("status", str(path)).stdout
        assert f"Context of {transcript.stem}" in box
        assert "used · " in box
    line = command("status", "--line", str(transcript)).stdout
    assert re.fullmatch(r"Context: \d+% \(\d+K/\d+K tokens\)\n", line)
    view = json.loads(command("status", "--json", str(transcript)).stdout)
    assert view["session_id"] == transcript.stem


def _response(session_id: str, number: int, tokens: int) -> dict[str, object]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": tokens - 10}
    message = {"id": f"m{number}", "model": "claude-sonnet-4-5", "usage": usage}
    line = {"type": "assistant", "sessionId": session_id, "isSidechain": False}
    return {**line, "uuid": f"{session_id}{number}", "message": message}


@pytest.fixture
def two_sessions(tmp_path: Path) -> Path:
    """Two sessions of a model; where one was compacted, the other is expected to be."""
    boundary = {"type": "system", "subtype": "compact_boundary", "sessionId": "one", "uuid": "b"}
    metadata = {"compactMetadata": {"trigger": "auto", "preTokens": 160_000}}
    one = [_response("one", 1, 160_000), boundary | metadata, _response("one", 2, 30_000)]
    two = [_response("two", number, 30_000 + 10_000 * number) for number in range(1, 4)]
    for name, lines in (("one", one), ("two", two)):
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(x)}\n" for x in lines))
    return tmp_path


def test_sessions_of_paths_learn_from_each_other(command: Command, two_sessions: Path) -> None:
    sessions = json.loads(command("sessions", "--json", str(two_sessions)).stdout)
    until = {each["session_id"]: each["status"]["until_compaction"]["main"] for each in sessions}
    assert (until["one"]["tokens"], until["one"]["source"]) == (130_000, "learned_session")
    assert (until["two"]["tokens"], until["two"]["source"]) == (100_000, "learned_model")
    table = command("sessions", str(two_sessions)).stdout
    assert "~100K" in next(line for line in table.splitlines() if line.startswith("two"))
    alone = json.loads(command("status", "--json", str(two_sessions / "two.jsonl")).stdout)
    assert alone["status"]["until_compaction"] == {}


def test_json_has_the_status_that_the_text_shows(command: Command, two_sessions: Path) -> None:
    path = str(two_sessions / "one.jsonl")
    status = json.loads(command("status", "--json", path).stdout)["status"]
    assert status["leading_chain"] == "main"
    assert (status["state"], status["severity"]) == ("measured", "normal")
    assert status["until_compaction"]["main"] == {
        "tokens": 130_000,
        "responses": None,
        "threshold_tokens": 160_000,
        "source": "learned_session",
        "estimated": True,
        "setting": None,
    }
    assert "Compacts in  ~130,000 tokens" in command("status", path).stdout


@pytest.mark.extended
def test_events_shows_the_timeline_of_a_path(command: Command, transcript: Path) -> None:
    folded = command("events", str(transcript)).stdout
    assert re.search(r"\d steps +10% to \d0%", folded)
    assert "compaction_complete" in folded
    assert "context_reading" not in folded
    whole = command("events", "--all", "--readings", str(transcript)).stdout
    assert " steps " not in whole
    assert "context_reading" in whole
    lines = command("events", "--json", "--readings", str(transcript)).stdout.splitlines()
    derived = command("replay", str(transcript.with_suffix(""))).stdout.splitlines()
    kinds = [json.loads(line)["type"] for line in derived]
    assert [json.loads(line)["type"] for line in lines] == [
        kind for kind in kinds if "compaction_progress" not in kind
    ]


@pytest.mark.extended
def test_a_transcript_stands_for_its_session_with_its_subagents(
    command: Command, projects: Path
) -> None:
    subagent = next(
        path for path in sorted(projects.rglob("agent-*.jsonl")) if "compact" not in path.name
    )
    folder = subagent.parent.parent
    transcript = folder.with_suffix(".jsonl")
    for arguments in (
        ["query", "cost-by-session"],
        ["replay"],
        ["status", "--json"],
        ["events", "--json", "--readings"],
    ):
        of_file = command(*arguments, str(transcript))
        assert (of_file.stderr, of_file.stdout) == ("", command(*arguments, str(folder)).stdout)
    both = [
        command("replay", *map(str, paths)).stdout
        for paths in ((transcript, folder), (folder, transcript))
    ]
    assert both == [command("replay", str(folder)).stdout] * 2
    shown = [json.loads(line)["subject"] for line in of_file.stdout.splitlines()]
    assert len(set(shown)) > 1


@pytest.mark.extended
def test_a_path_with_several_sessions_names_what_shows_them(
    command: Command, projects: Path
) -> None:
    done = command("status", str(projects))
    assert (done.returncode, done.stdout) == (1, "")
    assert "sessions: name the file of one" in done.stderr
    stream = command("simulate", "--sample").stdout
    done = command("events", "-", stdin=stream)
    assert "12 sessions: name the file of one, or add `--session ID`" in done.stderr


@pytest.mark.extended
def test_one_of_several_sessions_is_shown_by_its_id(command: Command, tmp_path: Path) -> None:
    stream = tmp_path / "several.jsonl"
    stream.write_text(command("simulate", "--sample").stdout)
    listed = json.loads(command("sessions", str(stream), "--json").stdout)
    wanted = listed[-1]["session_id"]
    shown = json.loads(command("status", str(stream), "--session", wanted, "--json").stdout)
    assert shown["session_id"] == wanted
    missing = command("events", str(stream), "--session", "not-there")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr.endswith("no session begins with not-there\n")
    unnamed = command("status", str(stream), "--session", "")
    assert "an empty name" in unnamed.stderr


def test_a_missing_path_is_reported(command: Command) -> None:
    for name in ("status", "events", "sessions"):
        done = command(name, "./nowhere.jsonl")
        assert (done.returncode, done.stdout) == (2, "")
        assert "no such file or folder" in done.stderr


@pytest.mark.extended
def test_titles_come_from_the_transcripts_on_request_only(
    command: Command, projects: Path, tmp_path: Path
) -> None:
    body = {
        "type": "user",
        "sessionId": "s",
        "uuid": "u",
        "parentUuid": None,
        "isSidechain": False,
        "timestamp": "2026-02-11T20:31:53.000Z",
        "cwd": "/srv/shop/app",
        "message": {"role": "user", "content": "Repair the \x1b[31mlogin page"},
    }
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(body) + "\n")
    command.environment["HOME"] = str(tmp_path)
    titled = command("sessions", "--titles", str(path)).stdout
    assert "Repair the \\x1b[31mlogin page" in titled
    assert "shop/app" in titled
    for arguments in (["sessions"], ["sessions", "--json"], ["status"], ["events"], ["replay"]):
        assert "Repair" not in command(*arguments, str(path)).stdout
    both = command("sessions", "--titles", "--json", str(path))
    assert both.returncode == 2
    none = command("sessions", "--titles", str(projects))
    assert "Title" in none.stdout or "no titles" in none.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-", True),
        ("./a", True),
        ("~/a", True),
        ("/a/b", True),
        ("a.jsonl", True),
        ("streams", True),  # a folder that is here
        ("258c7280", False),
        ("agents/reviewer", False),
        ("", False),
        ("a" * 300, False),  # longer than a file's name may be
        ("a\0b", False),
    ],
)
def test_paths_are_distinguished_from_session_ids(
    text: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    assert is_path(text) == expected


def test_a_view_is_a_panel_on_a_terminal_and_json_in_a_pipe(
    command: Command, transcript: Path
) -> None:
    piped = command("replay", "--view", str(transcript)).stdout
    assert json.loads(piped)["session_id"] == transcript.stem
    terminal = Terminal(80, 50, ["replay", "--view", str(transcript)], {})
    try:
        text = terminal.wait(lambda text: "╰" in text)
        assert f"Context of {transcript.stem}" in text
        assert "% used · " in text
        assert terminal.end() == 0
    finally:
        terminal.close()


@pytest.mark.extended
def test_a_view_has_the_configured_tokens_until_compaction_as_status_has(
    transcript: Path,
) -> None:
    settings = {"COMPACTION_THRESHOLDS": '{"claude": 150000}'}
    for arguments in (["status"], ["replay", "--view"]):
        terminal = Terminal(100, 60, [*arguments, str(transcript)], settings)
        try:
            assert " · configured" in terminal.wait(lambda text: "╰" in text), arguments
        finally:
            terminal.close()


@pytest.mark.extended
@pytest.mark.parametrize("columns", [80, 100, 200])
def test_no_line_wraps_on_a_terminal(projects: Path, columns: int) -> None:
    terminal = Terminal(columns, 30, ["sessions", str(projects)], {})
    try:
        terminal.end()
        lines = [line for line in terminal.lines if line.strip()]
        names = {path.stem for path in projects.rglob("*.jsonl") if "agent-" not in path.name}
        starts = [line[:8] for line in lines[1:]]
        assert len(starts) == len(set(starts)) >= len(names)
        assert {name[:8] for name in names} <= set(starts)
        assert "Folder" in lines[0] or columns == 80
    finally:
        terminal.close()


def test_a_session_that_no_line_needs_is_reported(command: Command, two_sessions: Path) -> None:
    done = command("replay", "--session", "two", str(two_sessions))
    assert done.returncode == 0
    records = [json.loads(line)["data"] for line in done.stdout.splitlines()]
    assert {each["session_id"] for each in records} == {"one", "two"}
    assert "--session two is not used: it is for lines without a session" in done.stderr
    assert "`contextgauge replay FILE`" in done.stderr
    answer = {"type": "assistant", "message": {"id": "m", "usage": {"prompt_tokens": 900}}}
    needed = command("replay", "--session", "two", "-", stdin=json.dumps(answer))
    assert json.loads(needed.stdout.splitlines()[0])["data"]["session_id"] == "two"
    assert needed.stderr == ""


@pytest.mark.extended
def test_figures_of_a_newer_version_that_are_not_read_are_shown_once(
    command: Command, tmp_path: Path
) -> None:
    start = '{"type":"session.start","data":{"sessionId":"s","copilotVersion":"9.0"}}'
    line = '{"type":"session.sizes","data":{"inputTokens":9},"id":"a"}'
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join([start, *[line] * 12, ""]))
    shown = "12 lines of type session.sizes of Copilot CLI 9.0 carry usage that this version does"
    for arguments in (["replay"], ["sessions"], ["status"]):
        assert command(*arguments, str(path)).stderr == f"{shown} not read\n"


def test_a_transcript_with_some_wrong_lines_is_derived(
    command: Command, transcript: Path, tmp_path: Path
) -> None:
    path, right = tmp_path / "wrong.jsonl", tmp_path / "right.jsonl"
    right.write_bytes(transcript.read_bytes())
    path.write_bytes(b"wrong\n" * 30 + transcript.read_bytes())
    done = command("replay", str(path))
    assert done.returncode == 0
    assert done.stdout == command("replay", str(right)).stdout.replace(
        os.fspath(right), os.fspath(path)
    )
    assert len(done.stderr.splitlines()) == 22
