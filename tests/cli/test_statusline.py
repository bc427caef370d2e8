"""The status line: the views' own figures from a transcript, and a true line always."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams.cli.statusline import statusline_command as bare


def prompted(given: dict[str, Any] | bytes, **environment: str) -> tuple[str, list[str], list[str]]:
    """Return the line for what Claude Code gives, the reasons and the complaints."""
    text = given if isinstance(given, bytes) else json.dumps(given).encode()
    plain = {"NO_COLOR": "1", "COLUMNS": "200"}
    plain["HOME"] = os.devnull  # no settings of the developer
    reasons: list[str] = []
    complaints: list[str] = []
    line = bare.statusline(text, plain | environment, reasons.append, complaints.append)
    return line, reasons, complaints


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no session: it is empty"),
        ("# Title\n", "no line (of 1) could be derived: this does not look like"),
        ("{}\n", "has no session: no line (of 1) has a size, a compaction or"),
        ('{"a": 1}\n', "is not known: its first JSON object has the fields a. contextgauge reads"),
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
    _, reasons, complaints = prompted(given)
    nothing = f"{path}: no size, compaction or model in the transcript yet"
    assert (reasons[-1], complaints) == (nothing, [])


def _line(session_id: str, kind: str, **fields: Any) -> bytes:
    common = {"sessionId": session_id, "type": kind, "isSidechain": False}
    return json.dumps(common | fields).encode()


def _response(number: int, tokens: int) -> bytes:
    usage = {"input_tokens": 10, "cache_read_input_tokens": tokens - 10}
    message = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": usage}
    return _line("s", "assistant", message=message, uuid=f"u{number}")


def _boundary(number: int, **metadata: Any) -> bytes:
    return _line(
        "s",
        "system",
        subtype="compact_boundary",
        uuid=f"b{number}",
        compactMetadata={"trigger": "auto", "preTokens": 160_000} | metadata,
    )


@pytest.fixture
def transcript(tmp_path: Path) -> Callable[..., str]:
    """Write a transcript and return the line for it."""

    def line_of(*lines: bytes, session_id: str = "s", **more: Any) -> str:
        path = tmp_path / "s.jsonl"
        path.write_bytes(b"\n".join(lines))
        given = {"session_id": session_id, "transcript_path": str(path)} | more
        return prompted(given)[0]

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


def test_the_window_from_claude_code_decides_when_compaction_is_expected(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = [_response(1, 167_000), _boundary(1, preTokens=167_000), _response(2, 150_000)]
    path.write_bytes(b"\n".join(lines))
    given: dict[str, Any] = {"session_id": "s", "transcript_path": str(path)}
    assert " 75% 150K/200K · compacts in ~17K · 1 compaction" in prompted(given)[0]
    context = {"context_window_size": 1_000_000}
    assert " 15% 150K/1M · 1 compaction" in prompted(given | {"context_window": context})[0]


def test_an_object_behind_a_torn_one_counts(transcript: Callable[..., str]) -> None:
    torn = _response(2, 90_000)[:100] + _response(3, 150_000)
    assert "150K/200K" in transcript(_response(1, 20_000), torn, b"")


def test_a_line_that_is_being_written_is_skipped(transcript: Callable[..., str]) -> None:
    assert " 30% " in transcript(_response(1, 60_000), _response(2, 99_000)[:-30])


def test_windows_are_those_of_the_settings_and_the_catalog(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    given = {"session_id": "s", "transcript_path": str(path)}
    path.write_bytes(_response(1, 60_000))
    windows = '{"claude-sonnet-4": 120000}'
    assert " 50% 60K/120K" in prompted(given, CONTEXTGAUGE_WINDOWS=windows)[0]
    context = {"context_window_size": 200_000}
    assert (
        " 50% 60K/120K"
        in prompted(given | {"context_window": context}, CONTEXTGAUGE_WINDOWS=windows)[0]
    )
    path.write_bytes(_response(1, 60_000).replace(b"claude-sonnet-4-5", b"strange"))
    assert " ~60% 60K/~100K" in prompted(given, CONTEXTGAUGE_DEFAULT_WINDOW="100000")[0]
    path.write_bytes(_response(1, 250_000) + b"\n" + _response(2, 60_000))
    assert prompted(given)[0] == "claude-sonnet-4-5 ·········· 60K/unknown"


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
    line, _, complaints = prompted(given)
    assert line == "Opus 4.5 ████░░░░░░ 40% 80K/200K"
    assert complaints == []
    line, _, complaints = prompted(given | {"transcript_path": "/nowhere/at/all.jsonl"})
    assert line == "Opus 4.5 ████░░░░░░ 40% 80K/200K"
    assert "no such file" in complaints[0]
    fresh = given | {"context_window": context | {"current_usage": None, "used_percentage": None}}
    assert prompted(fresh)[0] == "Opus 4.5 ·········· unknown of 200K"
    only_percent = given | {"context_window": context | {"current_usage": None}}
    assert prompted(only_percent)[0] == "Opus 4.5 ████░░░░░░ 44% of 200K"


ODD: list[Any] = [None, 0, -1, True, 1.5, 10**400, "", "\x1b[2J\n", [], [{}], {}, {"a": None}]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_a_field_of_a_wrong_type_is_ignored(odd: Any) -> None:
    fields = ("session_id", "transcript_path", "cwd", "model", "context_window", "workspace")
    for name in fields:
        line, _, _ = prompted({"session_id": "s", name: odd})
        assert line
        assert line.isprintable()
    for holder, name in (
        ("model", "id"),
        ("model", "display_name"),
        ("context_window", "context_window_size"),
        ("context_window", "used_percentage"),
        ("context_window", "current_usage"),
    ):
        assert prompted({"session_id": "s", holder: {name: odd}})[0].isprintable()


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_input_that_is_not_an_object_gives_a_short_line(text: bytes) -> None:
    line, _, complaints = prompted(text)
    assert line == "contextgauge: no session was given"
    assert "docs/STATUSLINE.md" in complaints[0]


def test_a_name_cannot_control_the_terminal() -> None:
    line, _, _ = prompted({"model": {"display_name": "\x1b]0;x\x07\nnext"}})
    assert "\x1b" not in line
    assert "\n" not in line
