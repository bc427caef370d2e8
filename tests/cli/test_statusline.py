"""The status line: the views' own figures from a transcript's tail, and a true line always."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.views import SessionView
from streams.cli.statusline import command as bare
from streams.cli.statusline.figures import figures_of
from streams.cli.statusline.line import draw
from streams.cli.transcripts import session_of
from streams.edge.files.folders import write_folder
from streams.flow.simulator import SimulationOptions, simulate
from tests import captures

NOW_MS = 1_800_000_000_000


def view_of(transcript: Path) -> SessionView:
    """The session's view as `status FILE` has it."""
    return session_of(str(transcript)).view


@pytest.fixture(scope="module")
def transcripts(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, str]]:
    """Transcripts of main chains in the shapes of real ones, and of simulated sessions."""
    folder = tmp_path_factory.mktemp("projects")
    options = SimulationOptions(sessions=12, turns=30, providers=("claude",))
    write_folder(folder, ((each.file, each.value) for each in simulate(options)))
    paths = [
        path
        for path in sorted(folder.rglob("*.jsonl"))
        if "agent-" not in path.name and b'"sessionId"' in path.read_bytes()
    ]
    for name in captures.TRANSCRIPTS:
        path = folder / f"{name}.jsonl"
        path.write_bytes(b"\n".join(captures.TRANSCRIPTS[name]()))
        paths.append(path)
    return [(path, _session_of(path)) for path in paths]


def _session_of(path: Path) -> str:
    match = re.search(rb'"sessionId": ?"([^"]+)"', path.read_bytes())
    assert match is not None
    return match[1].decode()


def told(given: dict[str, Any] | bytes, **environment: str) -> tuple[str, list[str], list[str]]:
    """Return the line for what Claude Code gives, what was told and what was complained of.

    Of a longer transcript the line of the prompt at which all of it has been read.
    """
    text = given if isinstance(given, bytes) else json.dumps(given).encode()
    plain = {"NO_COLOR": "1", "COLUMNS": "200"}
    plain["HOME"] = os.devnull  # no settings of the developer
    while True:
        reasons: list[str] = []
        complaints: list[str] = []
        line = bare.statusline(text, plain | environment, reasons.append, complaints.append)
        if not any(reason.startswith("only a part of ") for reason in reasons):
            return line, reasons, complaints


def expected(view: SessionView, width: int = 196) -> str:
    return draw(figures_of(view), NOW_MS, width, in_colour=False)


def test_a_transcript_alone_gives_the_line_of_its_view(transcripts: list[tuple[Path, str]]) -> None:
    compacted = 0
    for path, session_id in transcripts:
        view = view_of(path)
        line, reasons, complaints = told({"session_id": session_id, "transcript_path": str(path)})
        assert line == expected(view), path
        assert reasons[-1] == "from the transcript"
        assert complaints == []
        compacted += "compaction" in line
    assert compacted >= 2


@pytest.mark.shared
def test_a_real_transcript_gives_the_line_of_its_view(shared: Path) -> None:
    for path in (shared / "fixtures" / "claude-code").glob("*.jsonl"):
        session_id = _session_of(path)
        line, _, complaints = told({"session_id": session_id, "transcript_path": str(path)})
        assert (line, complaints) == (expected(view_of(path)), []), path


def test_a_rollout_alone_gives_the_line_of_its_view(tmp_path: Path) -> None:
    recording = captures.Recording("codex", model="gpt-5.2-codex", window=258_400).begin()
    recording.prompt().respond(9_100).compact().prompt("x" * 5_000).respond(41_000)
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"\n".join(recording.take()))
    line, reasons, complaints = told({"transcript_path": str(path)})
    assert line == expected(view_of(path))
    assert line.startswith("gpt-5.2-codex █░░░░░░░░░ 15% 41K/258K · 1 compaction, last ")
    assert (reasons[-1], complaints) == ("from the transcript", [])


@pytest.mark.shared
def test_a_real_rollout_gives_the_line_of_its_view(shared: Path) -> None:
    line, _, _ = told({"transcript_path": str(shared / "fixtures" / "codex" / "crud.jsonl")})
    assert line == "gpt-5.2-codex ░░░░░░░░░░ 3% 9.7K/258K"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no session: it is empty"),
        ("# Title\n", "no line (of 1) could be derived: this does not look like"),
        ('{"type": "summary"}\n', "has no session: no line (of 1) has a size, a compaction or"),
    ],
)
def test_a_person_learns_why_a_file_gives_no_figures(
    text: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "README.md"
    path.write_text(text)
    given = json.dumps({"transcript_path": str(path)}).encode()
    complaints: list[str] = []
    bare.statusline(given, {}, lambda _: None, complaints.append, is_patient=True)
    assert len(complaints) == 1
    assert complaints[0].startswith(str(path))
    assert problem in complaints[0]
    _, reasons, complaints = told(given)
    nothing = f"{path}: no size, compaction or model in the transcript yet"
    assert (reasons[-1], complaints) == (nothing, [])


@pytest.mark.parametrize("name", ["auto_compaction", "several_lines"])
def test_a_transcript_cut_anywhere_gives_the_line_of_its_view(name: str, tmp_path: Path) -> None:
    path = tmp_path / "part.jsonl"
    lines = captures.TRANSCRIPTS[name]()
    for end in range(len(lines) // 20, len(lines), max(1, len(lines) // 20)):
        path.write_bytes(b"".join(line + b"\n" for line in lines[: end + 1]))
        match = re.search(rb'"sessionId": ?"([^"]+)"', path.read_bytes())
        if match is None:
            continue  # only a summary line so far
        session_id = match[1].decode()
        line, _, _ = told({"session_id": session_id, "transcript_path": str(path)})
        assert line == expected(view_of(path)), end


def _line(session_id: str, kind: str, **fields: Any) -> bytes:
    common = {"sessionId": session_id, "type": kind, "isSidechain": False}
    return json.dumps(common | fields).encode()


def _response(number: int, tokens: int, *, sidechain: bool = False) -> bytes:
    usage = {"input_tokens": 10, "cache_read_input_tokens": tokens - 10}
    message = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": usage}
    return _line("s", "assistant", message=message, isSidechain=sidechain, uuid=f"u{number}")


def _boundary(number: int, **metadata: Any) -> bytes:
    return _line(
        "s",
        "system",
        subtype="compact_boundary",
        uuid=f"b{number}",
        compactMetadata={"trigger": "auto", "preTokens": 160_000} | metadata,
    )


def _filler(size: int) -> bytes:
    return _line("s", "user", message={"content": "x" * size})


@pytest.fixture
def transcript(tmp_path: Path) -> Callable[..., str]:
    """Write a transcript and return the line for it."""

    def line_of(*lines: bytes, session_id: str = "s", **more: Any) -> str:
        path = tmp_path / "s.jsonl"
        path.write_bytes(b"\n".join(lines))
        given = {"session_id": session_id, "transcript_path": str(path)} | more
        return told(given)[0]

    return line_of


def test_after_a_boundary_the_size_is_unknown_and_never_zero(
    transcript: Callable[..., str],
) -> None:
    line = transcript(_response(1, 160_000), _boundary(1, durationMs=42_500))
    assert line == ("claude-sonnet-4-5 ·········· unknown of 200K · 1 compaction, last 42.5 s")
    assert "%" not in line
    assert "0%" not in transcript(_boundary(1))
    measured = transcript(_response(1, 160_000), _boundary(1), _response(2, 30_000))
    assert " 15% 30K/200K · compacts in ~130K · 1 compaction" in measured


def test_after_a_reset_the_size_is_unknown(transcript: Callable[..., str]) -> None:
    clear = _line("s", "user", message={"content": "<command-name>/clear</command-name>"})
    assert " unknown of 200K" in transcript(_response(1, 160_000), clear)
    assert " 15% 30K/200K" in transcript(_response(1, 160_000), clear, _response(2, 30_000))


def test_a_subagent_does_not_count(transcript: Callable[..., str]) -> None:
    assert " 30% 60K/200K" in transcript(
        _response(1, 60_000), _response(2, 190_000, sidechain=True)
    )


def test_a_compaction_under_way_is_shown_as_in_the_view(transcript: Callable[..., str]) -> None:
    started = _line("s", "system", subtype="status", status="compacting", uuid="c")
    assert " compacting at 30% 60K/200K" in transcript(_response(1, 60_000), started)


def test_a_subagents_compaction_is_counted_as_in_the_view(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    boundary = json.loads(_boundary(1, durationMs=5_000)) | {"isSidechain": True, "agentId": "a"}
    path.write_bytes(_response(1, 60_000) + b"\n" + json.dumps(boundary).encode())
    line, _, _ = told({"session_id": "s", "transcript_path": str(path)})
    assert line == expected(view_of(path))


def test_the_window_from_claude_code_decides_when_compaction_is_expected(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = [_response(1, 167_000), _boundary(1, preTokens=167_000), _response(2, 150_000)]
    path.write_bytes(b"\n".join(lines))
    given: dict[str, Any] = {"session_id": "s", "transcript_path": str(path)}
    assert " 75% 150K/200K · compacts in ~17K · 1 compaction" in told(given)[0]
    context = {"context_window_size": 1_000_000}
    assert " 15% 150K/1M · 1 compaction" in told(given | {"context_window": context})[0]


def test_a_line_that_is_being_written_is_skipped(transcript: Callable[..., str]) -> None:
    assert " 30% " in transcript(_response(1, 60_000), _response(2, 99_000)[:-30])


def test_windows_are_those_of_the_settings_and_the_catalog(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    given = {"session_id": "s", "transcript_path": str(path)}
    path.write_bytes(_response(1, 60_000))
    windows = '{"claude-sonnet-4": 120000}'
    assert " 50% 60K/120K" in told(given, CONTEXTGAUGE_WINDOWS=windows)[0]
    context = {"context_window_size": 200_000}
    assert (
        " 50% 60K/120K"
        in told(given | {"context_window": context}, CONTEXTGAUGE_WINDOWS=windows)[0]
    )
    path.write_bytes(_response(1, 60_000).replace(b"claude-sonnet-4-5", b"strange"))
    assert " ~60% 60K/~100K" in told(given, CONTEXTGAUGE_DEFAULT_WINDOW="100000")[0]
    path.write_bytes(_response(1, 250_000) + b"\n" + _response(2, 60_000))
    assert told(given)[0] == "claude-sonnet-4-5 ·········· 60K/unknown"


def test_lines_of_other_sessions_do_not_count(transcript: Callable[..., str]) -> None:
    other = _response(2, 150_000).replace(b'"sessionId": "s"', b'"sessionId": "t"')
    assert " 30% " in transcript(_response(1, 60_000), other)
    # A file that names another session throughout, as a resumed one did once, still tells.
    assert " 30% " in transcript(_response(1, 60_000), session_id="resumed")


def test_the_window_and_model_from_claude_code_are_used(
    transcript: Callable[..., str],
) -> None:
    model = {"id": "claude-sonnet-4-5[1m]", "display_name": "Sonnet 4.5"}
    context = {"context_window_size": 200_000}
    assert transcript(_response(1, 60_000), model=model).startswith("Sonnet 4.5 ")
    assert " 6% 60K/1M" in transcript(_response(1, 60_000), model=model, context_window=context)
    wide = {"context_window_size": 400_000}
    assert " 15% 60K/400K" in transcript(_response(1, 60_000), context_window=wide)
    wrong = transcript(_response(1, 250_000), context_window=context)
    assert " 250K/unknown" in wrong
    assert "%" not in wrong


def test_without_redis_and_transcript_the_input_is_used() -> None:
    usage = {"input_tokens": 500, "cache_read_input_tokens": 79_500, "output_tokens": 9_000}
    context = {"context_window_size": 200_000, "current_usage": usage, "used_percentage": 44}
    model = {"id": "claude-opus-4-5", "display_name": "Opus 4.5"}
    given = {"session_id": "s", "model": model, "context_window": context}
    line, _, complaints = told(given)
    assert line == "Opus 4.5 ████░░░░░░ 40% 80K/200K"
    assert complaints == []
    line, _, complaints = told(given | {"transcript_path": "/nowhere/at/all.jsonl"})
    assert line == "Opus 4.5 ████░░░░░░ 40% 80K/200K"
    assert "no such file" in complaints[0]
    fresh = given | {"context_window": context | {"current_usage": None, "used_percentage": None}}
    assert told(fresh)[0] == "Opus 4.5 ·········· unknown of 200K"
    only_percent = given | {"context_window": context | {"current_usage": None}}
    assert told(only_percent)[0] == "Opus 4.5 ████░░░░░░ 44% of 200K"


ODD: list[Any] = [None, 0, -1, True, 1.5, 10**400, "", "\x1b[2J\n", [], [{}], {}, {"a": None}]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_a_field_of_a_wrong_type_is_ignored(odd: Any) -> None:
    fields = ("session_id", "transcript_path", "cwd", "model", "context_window", "workspace")
    for name in fields:
        line, _, _ = told({"session_id": "s", name: odd})
        assert line
        assert line.isprintable()
    for holder, name in (
        ("model", "id"),
        ("model", "display_name"),
        ("context_window", "context_window_size"),
        ("context_window", "used_percentage"),
        ("context_window", "current_usage"),
    ):
        assert told({"session_id": "s", holder: {name: odd}})[0].isprintable()


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_input_that_is_not_an_object_gives_a_short_line(text: bytes) -> None:
    line, _, complaints = told(text)
    assert line == "contextgauge: no session was given"
    assert "docs/STATUSLINE.md" in complaints[0]


def test_a_name_cannot_control_the_terminal() -> None:
    line, _, _ = told({"model": {"display_name": "\x1b]0;x\x07\nnext"}})
    assert "\x1b" not in line
    assert "\n" not in line
