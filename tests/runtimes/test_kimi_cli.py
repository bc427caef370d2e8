"""Kimi CLI: a session's wires, as version 1.49.0 writes them; all values are made up."""

from pathlib import Path
from typing import Any

import pytest

from contextgauge.errors import ConfigError
from schemas.records import (
    CompactBoundary,
    CompactionStart,
    ContextReading,
    ContextReset,
    SessionInfo,
)
from streams.edge.files import reading as files
from streams.edge.files.session_files import SessionFiles, first_prompt
from streams.edge.files.session_reading import SessionReading
from tests.core.given import Given, every, one
from tests.runtimes.runtimes_kit import (
    Body,
    Capture,
    boundaries,
    figures,
    records_of,
    shortened,
    sizes,
    without_texts,
    write,
)

SESSION = "1c490000-0000-4000-8000-00000000c0a1"
FOLDER = f".kimi/sessions/{'0f' * 16}/{SESSION}"
WIRE, AGENT = f"{FOLDER}/wire.jsonl", f"{FOLDER}/subagents/a7/wire.jsonl"
WORDS = "Meier's contract"
HEAD = {"type": "metadata", "protocol_version": "1.10"}


def sent(kind: str, at_s: float, **payload: Any) -> Body:
    message = {"type": kind, "payload": payload}
    return {"timestamp": 1_785_000_000 + at_s, "message": message}


def status(key: str, at_s: float, other: int, read: int, window: int = 262_144) -> Body:
    usage = {
        "input_other": other,
        "output": 10,
        "input_cache_read": read,
        "input_cache_creation": 0,
    }
    size = other + read
    return sent(
        "StatusUpdate",
        at_s,
        context_usage=size / window,
        context_tokens=size,
        max_context_tokens=window,
        token_usage=usage,
        message_id=key,
    )


NO_STATUS = sent(
    "StatusUpdate",
    4.5,
    context_usage=None,
    max_context_tokens=None,
    token_usage=None,
    message_id="p",
    plan_mode=True,
)
MAIN = [
    HEAD,
    sent("TurnBegin", 1.25, user_input=[{"type": "text", "text": f"Read {WORDS}"}]),
    sent("StepBegin", 1.5, n=1),
    sent("ContentPart", 2.5, type="text", text=WORDS),
    status("m1", 3.5, 4_000, 180_000),
    NO_STATUS,
    sent("SubagentEvent", 5, agent_id="a7", event={"type": "StatusUpdate", "payload": {}}),
    sent("CompactionBegin", 10.0),
    sent("CompactionEnd", 31.5),
    status("m2", 40.5, 12_000, 0),
    sent("TurnEnd", 41.5),
]
CAPTURE: Capture = {WIRE: MAIN, AGENT: [HEAD, status("s1", 6.5, 5_000, 2_000, 131_072)]}


def test_sizes_and_windows_are_those_of_each_step(tmp_path: Path) -> None:
    records = records_of(tmp_path, CAPTURE)
    assert {record.data.session_id for record in records} == {SESSION}
    assert sizes(records) == [(184_000, 262_144), (12_000, 262_144)]
    assert sizes(records, "a7") == [(7_000, 131_072)]
    (info,) = every(records, SessionInfo)
    assert info.runtime == "kimi-cli"
    assert records[-1].time_ms == 1_785_000_006_500


def test_a_compaction_has_its_start_its_end_and_its_sizes(tmp_path: Path) -> None:
    records = records_of(tmp_path, CAPTURE)
    (boundary,) = boundaries(records)
    assert (boundary.pre_tokens, boundary.pre_tokens_source) == (184_000, "last_reading")
    assert (boundary.duration_ms, boundary.trigger) == (21_500, None)


def test_a_subagent_without_a_wire_is_a_chain_of_its_sessions_wire(tmp_path: Path) -> None:
    """As wires before March 2026 have it; a public one has 62 such steps next to 81 of its own."""
    step = status("s1", 0, 5_000, 2_000, 131_072)["message"]
    own = sent("SubagentEvent", 6.5, task_tool_call_id="t1", event=step)
    again = sent("SubagentEvent", 7, agent_id="a7", task_tool_call_id="t1", event=step)
    records = records_of(tmp_path, {WIRE: [*MAIN[:5], own, again, *MAIN[6:]]})
    assert sizes(records) == [(184_000, 262_144), (12_000, 262_144)]
    assert sizes(records, "t1") == [(7_000, 131_072)]


@pytest.mark.parametrize(
    ("share", "window"),
    [(184_000 / 262_144, 262_144), (0.702, None), (5e-324, None), (1, None), (2.0, None)],
)
def test_a_window_that_is_not_named_is_that_of_the_share(share: float, window: int | None) -> None:
    step = status("m1", 3.5, 4_000, 180_000)
    payload = step["message"]["payload"] | {"context_usage": share, "max_context_tokens": None}
    given = Given()
    given.take(HEAD, step | {"message": step["message"] | {"payload": payload}}, hint=SESSION)
    assert [each.window for each in every(given.records, ContextReading)] == [window]


def test_a_command_is_no_message(tmp_path: Path) -> None:
    asked = sent("TurnBegin", 9.5, user_input="/compact the parser")
    cleared = sent("TurnBegin", 50.5, user_input=[{"type": "text", "text": "/clear"}])
    records = records_of(tmp_path, {WIRE: [*MAIN[:5], asked, *MAIN[7:], cleared]})
    assert one(records, CompactionStart).trigger_reason == "manual"
    assert one(records, CompactBoundary).trigger == "manual"
    assert one(records, ContextReset).reason == "clear"


@pytest.mark.parametrize("words", ["/compactor", "see /clear", "", None])
def test_other_words_are_a_message(words: object) -> None:
    given = Given()
    given.take(HEAD, sent("SteerInput", 1.5, user_input=words), hint=SESSION)
    assert given.chain(session_id=SESSION).messages == 1


@pytest.mark.parametrize("time", [True, "12", 0, 1e300, 1_000.5])
def test_a_time_that_is_none_is_unknown(time: object) -> None:
    given = Given()
    body = {**status("m1", 1.5, 5, 5), "timestamp": time}
    given.take(body, hint=SESSION)
    assert {record.time_ms for record in given.records} <= {None}


@pytest.mark.parametrize("message", [{}, {"type": "StatusUpdate", "payload": None}])
def test_a_message_without_its_parts_gives_nothing(message: object) -> None:
    given = Given()
    given.take({"timestamp": 1_785_000_000.5, "message": message}, hint=SESSION)
    assert given.records == []


def test_published_without_texts_or_shortened_the_figures_are_the_same(tmp_path: Path) -> None:
    asked = sent("TurnBegin", 9.5, user_input=f"/compact {WORDS}")
    begun = sent("TurnBegin", 9.6, user_input=WORDS)["message"]
    own = [
        sent("SubagentEvent", 9.6, task_tool_call_id="t1", event=each)
        for each in (begun, status("s2", 0, 5_000, 2_000)["message"])
    ]
    capture = {WIRE: [*MAIN[:7], asked, *own, *MAIN[7:]], AGENT: CAPTURE[AGENT]}
    shown = figures(records_of(tmp_path / "whole", capture))
    assert figures(without_texts(tmp_path / "a", capture, WORDS)) == shown
    long = sent("TurnBegin", 1.25, user_input=[{"type": "text", "text": WORDS * 300}])
    capture = {**capture, WIRE: [HEAD, long, *capture[WIRE][2:]]}
    assert figures(shortened(tmp_path / "b", capture, 1_500)) == shown


def test_files_next_to_the_wires_are_left_out(tmp_path: Path) -> None:
    context = [{"role": "_usage", "token_count": 5}]
    others = {
        f"{FOLDER}/{each}.jsonl": context for each in ("context", "context_1", "context_sub_1")
    }
    folder = write(tmp_path, {**CAPTURE, **others})
    read = [str(each.path) for each in files.expand([str(folder)])]
    assert read == [str(folder / WIRE), str(folder / AGENT)]


def test_the_list_of_messages_is_refused_with_what_to_read_instead(tmp_path: Path) -> None:
    path = write(tmp_path, {"context.jsonl": [{"role": "_usage", "token_count": 5}]})
    with pytest.raises(ConfigError, match=r"in the file wire\.jsonl next to it"):
        files.expand([str(path / "context.jsonl")])


def test_all_files_of_a_session_come_with_its_wire_or_its_folder(tmp_path: Path) -> None:
    folder = write(tmp_path, CAPTURE)
    assert [each.session for each in files.expand([str(folder / FOLDER)])] == [SESSION] * 2
    reading = SessionReading(str(folder / WIRE), {})
    lines = [line for block in reading.lines(10**6) for line in block]
    assert {line.thread_id for line in lines} == {None, "a7"}
    assert {line.session_hint for line in lines} == {SESSION}
    listed = SessionFiles([folder])
    assert listed.path(SESSION) == folder / WIRE
    assert listed.titles([SESSION]) == {SESSION: f"Read {WORDS}"}
    assert first_prompt(folder / AGENT) is None


def test_the_window_of_a_subagents_unknown_model_is_not_the_sessions() -> None:
    given = Given()
    given.take(HEAD, status("m1", 3.5, 4_000, 46_000), hint=SESSION)
    given.take(HEAD, status("s1", 4.5, 5_000, 0, 32_768), hint=SESSION, thread_id="a7")
    given.take(status("m2", 5.5, 4_000, 47_000), hint=SESSION)
    readings = every(given.records, ContextReading)
    assert [each.window for each in readings if each.chain == "main"] == [262_144, 262_144]
