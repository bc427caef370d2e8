"""What fills the window of a session, by its transcript: `contextgauge status FILE`."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from contextgauge.compaction.displays.window_parts import ToolTokens, WindowPart
from contextgauge.normalise.adapter import NO_TEXT
from streams.cli.filling import Filling, filling_of_session
from streams.cli.inputs import sources_of
from streams.cli.screen.breakdown import filled_by
from streams.cli.sessions import status
from streams.cli.transcripts import Replay, ReplayedSession, session_of
from streams.edge.files.folders import write_folder
from streams.flow.simulator import SimulationOptions, simulate
from tests.cli.test_render import _shown
from tests.edge.follower_kit import add

NAMES = iter(range(10_000))


def _line(kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    """Return a line of a transcript of Claude Code."""
    message = {"role": "assistant" if kind == "assistant" else "user", "content": content}
    own = {"type": kind, "sessionId": "s", "uuid": str(next(NAMES)), "message": message}
    return own | fields


def _answer(name: str, size: int, *blocks: dict[str, Any]) -> dict[str, Any]:
    line = _line("assistant", list(blocks) or [{"type": "text", "text": "a" * 40}])
    usage = {"input_tokens": 10, "cache_read_input_tokens": size - 10, "output_tokens": 5}
    line["message"] |= {"id": name, "model": "claude-sonnet-4-5", "usage": usage}
    return line


def _call(call: str, tool: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": tool, "input": {"path": "p" * 20}}


def _result(call: str, characters: int) -> dict[str, Any]:
    part = {"type": "tool_result", "tool_use_id": call, "content": "r" * characters}
    return _line("user", [part])


def _session(tmp_path: Path, *lines: dict[str, Any]) -> ReplayedSession:
    path = tmp_path / f"{next(NAMES)}.jsonl"
    linked, before = [], None
    for line in lines:
        linked.append(line | {"parentUuid": before, "isSidechain": False})
        before = line["uuid"]
    add(path, *map(json.dumps, linked))
    return session_of(str(path))


def _kinds(parts: Filling | None) -> dict[str, int]:
    assert isinstance(parts, tuple)
    return {part.kind: part.tokens for part in parts}


WORK = (
    _line("user", "u" * 400),
    _answer("m1", 20_000, _call("c1", "Read")),
    _result("c1", 8_000),
    _answer("m2", 22_400, _call("c2", "Bash")),
    _result("c2", 2_000),
    _answer("m3", 23_000),
    _line("user", "what no response has read yet"),
)


def test_parts_sum_to_the_size_that_was_measured(tmp_path: Path) -> None:
    session = _session(tmp_path, *WORK)
    parts = filling_of_session(session)
    kinds = _kinds(parts)
    assert sum(kinds.values()) == session.view.chains["main"].used_tokens == 23_000
    assert list(kinds) == ["overhead", "user", "assistant", "tool_calls", "tool_results"]
    assert kinds["overhead"] == 20_000 - 102
    assert isinstance(parts, tuple)
    (results,) = [part for part in parts if part.kind == "tool_results"]
    assert [each.name for each in results.tools] == ["Read", "Bash"]
    assert results.tools[0].tokens > 3 * results.tools[1].tokens


def test_what_was_before_the_last_compaction_is_not_in_the_window(tmp_path: Path) -> None:
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "sessionId": "s",
        "uuid": "b",
        "compactMetadata": {"trigger": "auto", "preTokens": 23_500},
    }
    summary = _line("user", "s" * 4_000, isCompactSummary=True)
    compacted = (*WORK, boundary, summary)
    assert filling_of_session(_session(tmp_path, *compacted)) == "the size is unknown"
    after = _session(tmp_path, *compacted, _line("user", "u" * 40), _answer("m4", 19_000))
    kinds = _kinds(filling_of_session(after))
    assert "tool_results" not in kinds
    assert kinds["summary"] == 1_000
    assert kinds["overhead"] == 19_000 - 1_000 - 10 - 2 * 2
    grown = (_answer("m4", 19_000, _call("c3", "Grep")), _result("c3", 4_000))
    later = _session(tmp_path, *compacted, *grown, _answer("m5", 20_010))
    assert _kinds(filling_of_session(later))["tool_results"] > 900


def test_what_a_runtime_attached_is_a_kind_of_its_own(tmp_path: Path) -> None:
    attached = {
        "type": "attachment",
        "sessionId": "s",
        "uuid": str(next(NAMES)),
        "attachment": {"type": "nested_memory", "content": {"type": "File", "text": "m" * 4_000}},
    }
    ask, *rest = WORK
    kinds = _kinds(filling_of_session(_session(tmp_path, ask, attached, *rest)))
    assert 1_000 <= kinds["attachments"] <= 1_300  # scaled to what was measured
    assert sum(kinds.values()) == 23_000


def test_results_that_were_cleared_are_left_out(tmp_path: Path) -> None:
    cleared = {
        "type": "system",
        "subtype": "microcompact_boundary",
        "sessionId": "s",
        "uuid": str(next(NAMES)),
        "microcompactMetadata": {"tokensSaved": 2_000, "compactedToolIds": ["c1"]},
    }
    session = _session(tmp_path, *WORK[:5], cleared, _answer("m3", 21_000))
    parts = filling_of_session(session)
    assert isinstance(parts, tuple)
    (results,) = [each for each in parts if each.tools]
    assert [each.name for each in results.tools] == ["Bash"]
    unknown = cleared | {"microcompactMetadata": {"tokensSaved": 2_000}, "uuid": "e"}
    for edits in ((unknown,), (unknown, cleared), (cleared, unknown)):
        session = _session(tmp_path, *WORK[:5], *edits, _answer("m3", 21_000))
        reason = "the file does not say which results were removed"
        assert filling_of_session(session) == reason


def test_a_transcript_that_lacks_messages_is_not_estimated(tmp_path: Path) -> None:
    reason = "the file lacks some of what the model sees"
    assert filling_of_session(_session(tmp_path, *WORK[1:])) == reason
    no_text = _line("user", "u" * 400, **{NO_TEXT: True})
    assert filling_of_session(_session(tmp_path, no_text, *WORK[1:])) == reason


def test_an_answer_of_another_file_is_not_looked_for_in_vain(tmp_path: Path) -> None:
    session = _session(tmp_path, *WORK)
    other = _session(tmp_path, _line("user", "u"), _answer("m9", 9_000))
    moved = session._replace(source=other.source)
    reason = "the messages that were measured are not in the file"
    assert filling_of_session(moved) == reason
    assert filling_of_session(moved._replace(records=[])) == reason


def test_a_sessions_own_file_is_read_whatever_is_read_before_it(tmp_path: Path) -> None:
    """A compaction's own call comes first: its boundary tells of it (R11)."""
    session = _session(tmp_path, *WORK)
    path = session.source.path
    assert path is not None
    for name in ("agent-acompact-1", "agent-a1"):
        line = WORK[0] | {"isSidechain": True, "agentId": name[6:], "uuid": name}
        add(path.with_suffix("") / "subagents" / f"{name}.jsonl", json.dumps(line))
    again = session_of(str(path))
    assert again.source.path == path
    assert filling_of_session(again) == filling_of_session(session)


def test_a_runtimes_own_account_is_not_estimated(tmp_path: Path) -> None:
    categories = [{"id": "messages", "name": "Messages", "kind": "used", "tokens": 3_000}]
    usage = {"totalTokens": 23_000, "maxTokens": 200_000, "categories": categories}
    answer = {"subtype": "success", "request_id": "r", "response": usage}
    line = {"type": "control_response", "session_id": "s", "uuid": "c", "response": answer}
    session = _session(tmp_path, *WORK, line)
    assert session.view.chains["main"].categories is not None
    assert filling_of_session(session) is None


def test_a_subagents_own_file_and_a_pipe_are_not_estimated(tmp_path: Path) -> None:
    side = [json.dumps(line | {"isSidechain": True, "agentId": "a"}) for line in WORK]
    add(tmp_path / "side.jsonl", *side)
    side_chain = session_of(str(tmp_path / "side.jsonl"))
    assert filling_of_session(side_chain) == "the main conversation is not in the file"
    session = _session(tmp_path, *WORK)
    piped = session._replace(source=session.source._replace(path=None))
    assert filling_of_session(piped) == "a pipe is read only once"


def test_lines_of_another_session_are_not_counted(tmp_path: Path) -> None:
    session = _session(tmp_path, *WORK)
    assert session.source.path is not None
    other = [
        json.dumps(line | {"sessionId": "other", "uuid": f"o{n}"}) for n, line in enumerate(WORK)
    ]
    add(tmp_path / "s.jsonl", *other, session.source.path.read_text().strip())
    both = Replay(sources_of([str(tmp_path / "s.jsonl")])).one()
    assert filling_of_session(both) == filling_of_session(session)


@pytest.mark.extended
@pytest.mark.parametrize("provider", ["claude", "codex"])
def test_the_parts_of_simulated_sessions_sum_up(tmp_path: Path, provider: str) -> None:
    options = SimulationOptions(providers=(provider,), sessions=12, turns=12, seed=3)
    write_folder(tmp_path / "p", ((each.file, each.value) for each in simulate(options)))
    counted = 0
    for path in sorted((tmp_path / "p").rglob("*.jsonl")):
        if "subagents" in path.parts or path.name.startswith("agent-"):
            continue
        session = session_of(str(path))
        parts = filling_of_session(session)
        if not isinstance(parts, tuple):
            continue
        counted += 1
        kinds = _kinds(parts)
        assert sum(kinds.values()) == session.view.chains["main"].used_tokens
        assert kinds["overhead"] > 5_000
        assert kinds["tool_results"] > kinds["tool_calls"]
        if provider == "codex":
            assert kinds["system"] > 0
    assert counted >= 3


def test_the_box_and_the_json_have_the_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = _session(tmp_path, *WORK)
    path = str(session.source.path)
    status(path)
    shown = capsys.readouterr().out
    assert "Filled by" in shown
    assert "System, tools, memory  ~19,898" in shown
    assert "  Read" in shown
    status(path, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert sum(part["tokens"] for part in document["filling"]) == 23_000
    assert document["filling"][0] == {"kind": "overhead", "tokens": 19_898, "tools": []}
    os.truncate(path, 0)
    add(Path(path), *map(json.dumps, WORK[1:]))
    status(path)
    reason = "the file lacks some of what the model sees"
    assert f"unknown: {reason}" in capsys.readouterr().out
    status(path, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["filling"], document["filling_unknown"]) == (None, reason)


def test_few_tools_are_shown_one_by_one() -> None:
    tools = [(f"Tool{number}", 100 - number) for number in range(7)]
    part = WindowPart("tool_results", 679, tuple(map(_tool, tools)))
    shown = _shown(filled_by([part]))
    assert "Tool3" in shown
    assert "Tool4" not in shown
    assert "3 other tools" in shown
    assert "~285" in shown
    few = WindowPart("tool_results", 490, tuple(map(_tool, [*tools[:4], (None, 94)])))
    assert "unknown" in _shown(filled_by([few]))


def _tool(each: tuple[str | None, int]) -> ToolTokens:
    return ToolTokens(*each)
