"""The status line of a transcript has the figures of `status FILE`, or marks them."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import ContextgaugeError
from streams.cli.hook_compaction import messages_of
from streams.cli.hook_input import HookInput
from streams.cli.screen.figures import duration, percent, thousands, tokens_left
from streams.cli.statusline import statusline_command as prompt
from streams.cli.statusline import transcript
from streams.cli.transcripts import session_of
from streams.codec.cloudevents import rfc3339
from streams.core.session_status import leading_chain, status_of
from streams.edge.files import session_reading
from streams.edge.files.folders import write_folder
from streams.edge.files.hook_messages import HookMessages
from streams.flow.replay.transcript_view import TranscriptSessions
from streams.flow.simulator import SimulationOptions, simulate
from tests import captures

_LINE = re.compile(
    r"(?:(?P<model>\S+) )?[█░·]{10} "
    r"(?:compacting (?:\S+ \S+ )?at )?(?:(?P<percent>~?<?\d+%)|unknown)?"
    r" ?(?:of (?P<of>~?[\d.]+[KM]?)|(?P<used>~?[\d.]+[KM]?)"
    r"/(?P<window>~?[\d.]+[KM]?|unknown\S*.*?))?"
    r"(?: · (?:compacts in|compaction is) (?P<until>~?[\d.]+[KM]?|due[^·]*?))?"
    r"(?: · (?:(?P<least>at least )?(?P<compactions>\d+) compactions?))?"
    r"(?:, last (?P<last>[^·]+))?"
)

_MARKED = ("percent", "of", "used", "window", "until")
"""Figures that may be marked as doubtful."""


def asked(path: Path, state: Path) -> tuple[str, list[str]]:
    """Return the line of a prompt, and why it is what it is."""
    reasons: list[str] = []
    environment = {
        "NO_COLOR": "1",
        "COLUMNS": "300",
        "CONTEXTGAUGE_STATE_FOLDER": str(state),
        "HOME": os.devnull,
    }
    given = json.dumps({"transcript_path": str(path)}).encode()
    return prompt.statusline(given, environment, reasons.append, reasons.append), reasons


def expected(path: Path) -> dict[str, str | None]:
    """Return the figures of `status FILE`, as a status line writes them. Raises as it does."""
    session = session_of(str(path))
    view = session.view
    chain, status = leading_chain(view), status_of(view, session.points)
    assert chain is not None
    until = status.until_compaction.get(chain.chain)
    counts = view.compactions
    own = [each for each in counts.last if each.outcome == "succeeded" and not each.inherited]
    took = own[-1].duration_ms if own else None
    number = counts.manual + counts.automatic + counts.idle + counts.unknown_trigger
    window = None if chain.window is None else thousands(chain.window)
    used = None if chain.used_tokens is None else thousands(chain.used_tokens)
    left = None if until is None else until.tokens
    return {
        "model": chain.model or view.identity.model,
        "percent": None if chain.used_percent is None else percent(chain.used_percent),
        "used": used,
        "window": None if used is None else window or "unknown",
        "of": window if used is None else None,
        "until": None if left is None else tokens_left(left, thousands),
        "compactions": str(number) if number else None,
        "last": None if took is None else duration(took),
    }


def differences(line: str, right: dict[str, str | None], *, is_whole: bool) -> list[str]:
    """Return what a line shows, unmarked, that `status` does not; and what it leaves out."""
    match = _LINE.fullmatch(line)
    assert match is not None, line
    wrong = []
    for name, figure in right.items():
        shown = match[name]
        if name == "compactions" and match["least"]:
            fits = int(shown) <= int(figure or 0) and not is_whole
        elif shown is not None and name in _MARKED and shown.startswith("~"):
            fits = not is_whole or shown == f"~{figure}" or figure is None
        elif name == "window" and figure == "unknown":
            fits = shown is None or shown.startswith("unknown")
        else:
            learned = name == "until" and shown is None
            fits = shown == figure or (shown is None and (not is_whole or learned))
        if not fits:
            wrong.append(f"{name}: {shown}, not {figure}: {line}")
    return wrong


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Sessions in the shapes of all captures, of all runtimes that are simulated."""
    folder = tmp_path_factory.mktemp("sessions")
    options = SimulationOptions(sessions=16, turns=24)
    write_folder(folder, ((each.file, each.value) for each in simulate(options)))
    made = {f"{name}.jsonl": make() for name, make in captures.TRANSCRIPTS.items()}
    made |= captures.auto_compaction() | {"rollout-1.jsonl": captures.rollout()}
    write_folder(folder / "captures", ((file, line) for file, of in made.items() for line in of))
    odd = {
        "resolved": [response(1, 120_000), resolved("claude-opus-4-6[1m]"), response(2, 190_000)],
        "early": [
            line
            for number in range(3)
            for line in (response(2 * number, 160_000), boundary(number, preTokens=167_000))
        ]
        + [response(9, 60_000)],
    }
    for name, lines in odd.items():
        (folder / f"{name}.jsonl").write_bytes(b"\n".join(lines))
    paths = [path for path in sorted(folder.rglob("*.jsonl")) if "agent-" not in path.name]
    assert len(paths) > 15
    return paths


def line_of(kind: str, **fields: Any) -> bytes:
    common = {"sessionId": "s", "type": kind, "isSidechain": False, "version": "2.1.232"}
    return json.dumps(common | fields).encode()


def response(number: int, tokens: int) -> bytes:
    usage = {"input_tokens": 3, "cache_read_input_tokens": tokens - 3}
    message = {"id": f"msg_{number}", "model": "claude-opus-4-6", "usage": usage}
    return line_of("assistant", message=message, uuid=f"u{number}")


def resolved(model: str) -> bytes:
    result = {"status": "completed", "agentId": "a", "resolvedModel": model}
    return line_of("user", message={"content": "x"}, toolUseResult=result, uuid="r")


def boundary(number: int, **metadata: Any) -> bytes:
    return line_of(
        "system",
        subtype="compact_boundary",
        uuid=f"b{number}",
        compactMetadata={"trigger": "auto", "preTokens": 160_000} | metadata,
    )


def prompts(path: Path, state: Path) -> Iterator[tuple[str, bool]]:
    """Yield the line of one prompt after the other, until all has been read."""
    for _ in range(1 + path.stat().st_size // 1_000):
        line, reasons = asked(path, state)
        is_whole = not any(reason.startswith("only a part of ") for reason in reasons)
        yield line, is_whole
        if is_whole:
            return
    raise AssertionError(f"{path} is never read to its end")


def _small_parts(monkeypatch: pytest.MonkeyPatch, part_bytes: int) -> None:
    monkeypatch.setattr(transcript, "PROMPT_BYTES", part_bytes)
    monkeypatch.setattr("streams.edge.files.tail._BLOCK_BYTES", part_bytes)
    monkeypatch.setattr(session_reading, "_END_BYTES", part_bytes // 4)


@pytest.mark.extended
def test_a_prompt_shows_what_status_shows(sessions: list[Path], tmp_path: Path) -> None:
    wrong: list[str] = []
    for path in sessions:
        right = expected(path)
        for line, is_whole in prompts(path, tmp_path):
            wrong += differences(line, right, is_whole=is_whole)
        wrong += differences(of_a_person(path), right, is_whole=True)
    assert wrong == []


@pytest.mark.extended
@pytest.mark.parametrize("part_bytes", [50_000, 200_000])
def test_while_a_long_transcript_is_read_what_may_be_wrong_is_marked(
    part_bytes: int, sessions: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _small_parts(monkeypatch, part_bytes)
    wrong: list[str] = []
    marked = 0
    for path in sessions:
        right = expected(path)
        for line, is_whole in prompts(path, tmp_path):
            wrong += differences(line, right, is_whole=is_whole)
            marked += not is_whole and "~" in line
    assert wrong == []
    assert marked > 10


def of_a_person(path: Path) -> str:
    """Return the line for one who names the file."""
    reasons: list[str] = []
    given = json.dumps({"transcript_path": str(path)}).encode()
    environment = {"NO_COLOR": "1", "COLUMNS": "300", "HOME": os.devnull}
    return prompt.statusline(given, environment, reasons.append, reasons.append, is_patient=True)


@pytest.mark.shared
def test_a_prompt_shows_what_status_shows_of_real_captures(shared: Path, tmp_path: Path) -> None:
    captured = [*(shared / "fixtures").rglob("*.json*"), *(shared / "field").glob("*.json*")]
    captured += (shared / "field").glob("*.zst")
    compared, wrong = 0, list[str]()
    for path in sorted(each for each in captured if "subagents" not in each.parts):
        try:
            right = expected(path)
        except ContextgaugeError:
            assert asked(path, tmp_path)[0] == of_a_person(path) == "·········· unknown"
            continue
        compared += 1
        for line, is_whole in prompts(path, tmp_path):
            wrong += differences(line, right, is_whole=is_whole)
        wrong += differences(of_a_person(path), right, is_whole=True)
    assert wrong == []
    assert compared > 10


def test_a_growing_transcript_is_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, state = tmp_path / "s.jsonl", tmp_path / "state"
    path.write_bytes(response(1, 20_000) + b"\n")
    asked(path, state)
    read: list[bytes] = []
    take = TranscriptSessions.take

    def noted(self: TranscriptSessions, lines: Any, **how: Any) -> None:
        read.extend(line.value for line in lines)
        take(self, lines, **how)

    monkeypatch.setattr(TranscriptSessions, "take", noted)
    added = [response(2, 160_000), boundary(1, durationMs=42_500), response(3, 30_000)]
    with path.open("ab") as file:
        file.write(b"\n".join([*added, response(4, 31_000)[:-9]]))
    line, _ = asked(path, state)
    assert line.endswith(" 15% 30K/200K · compacts in ~130K · 1 compaction, last 42.5 s")
    assert read == [*added, response(4, 31_000)[:-9]]
    read.clear()
    with path.open("ab") as file:
        file.write(response(4, 31_000)[-9:] + b"\n")
    assert " 15% 31K/200K " in asked(path, state)[0]
    assert read == [response(4, 31_000)]
    read.clear()
    assert " 15% 31K/200K " in asked(path, state)[0]
    assert read == []


def test_a_transcript_that_was_rewritten_is_read_again(tmp_path: Path) -> None:
    path, state = tmp_path / "s.jsonl", tmp_path / "state"
    path.write_bytes(b"\n".join([response(1, 160_000), boundary(1), response(2, 20_000)]))
    assert "1 compaction" in asked(path, state)[0]
    path.write_bytes(response(7, 70_000) + b"\n")
    assert asked(path, state)[0] == "claude-opus-4-6 ███░░░░░░░ 35% 70K/200K"
    agents = tmp_path / "s" / "subagents"
    agents.mkdir(parents=True)
    side = boundary(5).replace(b'"isSidechain": false', b'"isSidechain": true, "agentId": "a1"')
    (agents / "agent-a1.jsonl").write_bytes(side + b"\n")
    assert asked(path, state)[0].endswith(" 35% 70K/200K · 1 compaction")
    (agents / "agent-a1.jsonl").unlink()
    assert asked(path, state)[0].endswith(" 35% 70K/200K")


@pytest.mark.parametrize("damage", ["{", '{"tag": 1}', "tag", "parts", "marks", "views"])
def test_a_damaged_file_of_the_status_line_is_not_used(damage: str, tmp_path: Path) -> None:
    path, state = tmp_path / "s.jsonl", tmp_path / "state"
    path.write_bytes(response(1, 20_000) + b"\n")
    right, _ = asked(path, state)
    (stored,) = (state / "statusline-transcripts").iterdir()
    assert stored.stat().st_mode & 0o777 == 0o600
    document = json.loads(stored.read_bytes())
    is_field = damage in document
    stored.write_text(json.dumps(document | {damage: {"x": "y"}}) if is_field else damage)
    with path.open("ab") as file:
        file.write(response(2, 30_000) + b"\n")
    assert asked(path, state)[0] == right.replace("10% 20K", "15% 30K").replace("█░░", "█░░")


def test_where_nothing_can_be_stored_the_line_is_the_same(tmp_path: Path) -> None:
    path, state = tmp_path / "s.jsonl", tmp_path / "a-file"
    state.write_text("")
    path.write_bytes(response(1, 20_000) + b"\n")
    assert asked(path, state)[0] == "claude-opus-4-6 █░░░░░░░░░ 10% 20K/200K"


def test_a_start_that_a_hook_reported_shows_at_once(tmp_path: Path) -> None:
    path, state = tmp_path / "5f1c2d3e-0000-4000-8000-000000000001.jsonl", tmp_path / "state"
    messages, now_ms = HookMessages(str(state)), SystemClock().now_ms()

    def add(kind: str, ms: int, **fields: object) -> None:
        own = {"type": kind, "uuid": f"{kind} {ms}", "sessionId": path.stem, **fields}
        with path.open("a") as file:
            file.write(json.dumps({**own, "timestamp": rfc3339(now_ms + ms)}) + "\n")

    def hook(event: str, ms: int) -> None:
        given = HookInput(event, path.stem, str(path), {"trigger": "auto"})
        messages.add(path.stem, messages_of(given, now_ms + ms))

    def answer(key: str, ms: int, tokens: int) -> None:
        usage = {"input_tokens": 10, "cache_read_input_tokens": tokens - 10}
        message = {"id": key, "model": "claude-sonnet-4-5", "usage": usage}
        add("assistant", ms, message=message)

    answer("msg_1", -90_000, 160_000)
    assert "compacting" not in asked(path, state)[0]
    hook("PreCompact", -40_000)
    line, _ = asked(path, state)
    assert re.search(r"compacting 4\d s at 80%", line), line
    assert asked(path, state)[0].startswith(line[:20])
    metadata = {"trigger": "auto", "preTokens": 160_000}
    add("system", -10_000, subtype="compact_boundary", compactMetadata=metadata)
    hook("PostCompact", -9_900)
    answer("msg_2", -5_000, 20_000)
    line, _ = asked(path, state)
    assert "compacting" not in line
    assert "1 compaction, last 30" in line
    assert asked(path, state)[0] == line
