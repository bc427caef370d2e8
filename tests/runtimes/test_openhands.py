"""R32: conversations of OpenHands' SDK: a file for each event, and what they cost in another."""

import json
from pathlib import Path
from typing import Any

from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.compaction.reading.transcripts import read_conversation
from contextgauge.normalise.openhands.events import usage_of
from contextgauge.normalise.runtimes import line_of
from contextgauge.normalise.signals import Usage
from schemas.records import (
    CompactionStart,
    CompactionSummary,
    ContextLimits,
    SessionInfo,
)
from streams.edge.files import reading as files
from streams.edge.files.opening import read_whole
from streams.edge.files.session_files import first_prompt
from tests.core.given import every, limits, one
from tests.library.privacy_kit import check_no_text, check_same_records
from tests.runtimes.documents_kit import Body, Documents, Publishing, records_of, write
from tests.runtimes.runtimes_kit import boundaries, sizes

SESSION = "11111111222233334444555555555555"
FOLDER = f".openhands/conversations/{SESSION}"
STATE = f"{FOLDER}/base_state.json"
WORDS = "a S3cret of mine"
BEGIN_S = 1_793_534_400
"""2026-11-01T12:00:00Z; the events' clock is two hours ahead."""


def event(kind: str, minute: int, source: str = "agent", **own: Any) -> Body:
    time = f"2026-11-01T14:{minute:02}:00.000001"
    return {"id": f"{kind}-{minute}", "timestamp": time, "source": source, "kind": kind, **own}


def asked(minute: int, words: str) -> Body:
    content = [{"type": "text", "text": words}]
    return event("MessageEvent", minute, "user", llm_message={"role": "user", "content": content})


def called(minute: int, response: str, call: str | None = None) -> Body:
    key = call or f"t{minute}"
    tool = {"id": key, "name": "terminal", "arguments": '{"command": "ls"}', "origin": "completion"}
    thought = [{"type": "text", "text": "I look."}]
    return event("ActionEvent", minute, tool_name="terminal", tool_call_id=key, tool_call=tool,
                 thought=thought, llm_response_id=response)  # fmt: skip


def result(minute: int, call: str) -> Body:
    observation = {"content": [{"type": "text", "text": "a.py"}], "kind": "TerminalObservation"}
    return event("ObservationEvent", minute, "environment", tool_name="terminal",
                 tool_call_id=call, observation=observation)  # fmt: skip


def condensed(minute: int, response: str, summary: str = "What was done.") -> Body:
    return event("Condensation", minute, "environment", forgotten_event_ids=["a", "b"],
                 summary=summary, summary_offset=1, llm_response_id=response)  # fmt: skip


def used(response: str, prompt: int, read: int = 0, window: int = 128_000) -> Body:
    return {"model": "gpt-5.1", "prompt_tokens": prompt, "completion_tokens": 40,
            "cache_read_tokens": read, "cache_write_tokens": 0, "reasoning_tokens": 0,
            "context_window": window, "per_turn_token": prompt + 40,
            "response_id": response}  # fmt: skip


def metrics(*usages: Body, minutes: tuple[int, ...] = ()) -> Body:
    costs = [{"model": "gpt-5.1", "cost": 0.1, "timestamp": BEGIN_S + each * 60 - 2.5}
             for each in minutes]  # fmt: skip
    return {"model_name": "gpt-5.1", "token_usages": list(usages), "costs": costs}


def state(**by_usage: Body) -> Body:
    return {"id": "11111111-2222-3333-4444-555555555555", "agent": {"llm": {}, "kind": "Agent"},
            "workspace": {"working_dir": "/repo", "kind": "LocalWorkspace"},
            "stats": {"usage_to_metrics": by_usage}, "execution_status": "idle"}  # fmt: skip


def events(*listed: Body) -> Documents:
    return {f"{FOLDER}/events/event-{number:05}-{number:032x}.json": each
            for number, each in enumerate(listed)}  # fmt: skip


LISTED = (
    event("SystemPromptEvent", 0, system_prompt={"type": "text", "text": "You are."}, tools=[]),
    asked(1, "mend the parser"),
    called(2, "r1", "t2"),
    called(2, "r1", "t3") | {"id": "second"},
    result(3, "t2"),
    result(3, "t3") | {"id": "third"},
    event("CondensationRequest", 4, "environment"),
    condensed(5, "c1"),
    called(6, "r2"),
)
AGENT = metrics(used("r1", 100_000, 90_000), used("r2", 20_000), minutes=(2, 6))
CONDENSER = metrics(used("c1", 95_000), minutes=(5,))
CAPTURE = {**events(*LISTED), STATE: state(default=AGENT, condenser=CONDENSER)}


def test_a_conversation_has_sizes_windows_and_a_folder(tmp_path: Path) -> None:
    records = records_of(tmp_path, CAPTURE)
    assert {each.data.session_id for each in records} == {SESSION}
    assert sizes(records) == [(100_000, 128_000), (20_000, 128_000)]
    info = every(records, SessionInfo)[-1]
    assert (info.runtime, info.cwd) == ("openhands", "/repo")
    assert first_prompt(tmp_path / STATE) == "mend the parser"
    assert [Path(each.name).name for each in files.expand([str(tmp_path)])] == ["base_state.json"]


def test_a_condensation_has_its_start_summary_cost_and_duration(tmp_path: Path) -> None:
    records = records_of(tmp_path, CAPTURE)
    one(records, CompactionStart)
    (boundary,) = boundaries(records)
    assert (boundary.pre_tokens, boundary.duration_ms) == (100_000, 60_000)
    assert boundary.metadata == {"forgotten_events": 2}
    assert boundary.receipt is not None
    assert boundary.receipt.summary_input_tokens == 95_000
    assert one(records, CompactionSummary).summary == "What was done."


def test_the_zone_of_times_is_that_of_the_costs(tmp_path: Path) -> None:
    records = records_of(tmp_path, CAPTURE)
    assert records[-1].time_ms == (BEGIN_S + 360) * 1_000
    unknown = {**events(*LISTED), STATE: state(default=metrics(used("r1", 9)))}
    assert {each.time_ms for each in records_of(tmp_path / "b", unknown)} == {None}


def test_a_window_that_is_not_reported_is_unknown(tmp_path: Path) -> None:
    measured = metrics(used("r1", 9, window=0), minutes=(2,))
    records = records_of(tmp_path, {**events(*LISTED[:3]), STATE: state(default=measured)})
    assert limits(one(records, ContextLimits)) == (None, "unknown")


def test_of_a_conversation_that_goes_on_only_what_is_new_is_sent(tmp_path: Path) -> None:
    write(tmp_path, {**events(*LISTED[:3]), STATE: state()})
    publishing = Publishing(tmp_path)
    assert len(publishing.sent()) == 4
    measured = metrics(used("r1", 100_000))
    write(tmp_path, {**events(*LISTED[:5]), STATE: state(default=measured)})
    assert [each["id"] for each in publishing.sent()] == ["ActionEvent-2", "second", "ObservationEvent-3"]  # fmt: skip  # noqa: E501
    assert publishing.reported == []


def test_the_conversation_is_what_the_model_sees(tmp_path: Path) -> None:
    write(tmp_path, {**events(*LISTED[:6]), STATE: state(default=AGENT)})
    read = read_conversation(read_whole(str(tmp_path / STATE)))
    assert [each.role for each in read.request.messages] == [
        *("user", "assistant", "assistant", "tool", "tool")
    ]
    assert (read.request.model, read.window_tokens) == ("gpt-5.1", 128_000)
    reading = ConversationReading()
    for usage in ({}, {"usage": used("r1", 9)}):
        reading.add(called(2, "r1") | usage, "key")
    assert len(reading.history.active) == 1
    write(tmp_path, CAPTURE)
    after = read_conversation(read_whole(str(tmp_path / STATE)))
    assert [each.text for each in after.request.messages] == ["What was done.", "I look."]


def test_without_texts_the_records_are_the_same() -> None:
    own = {"sessionId": SESSION}
    spoken = (
        asked(1, WORDS),
        called(2, "r1") | {"usage": used("r1", 9), "reasoning_content": WORDS},
        condensed(3, "c1", WORDS) | {"usage": used("c1", 8)},
        called(4, "r2") | {"usage": used("r2", 7)},
    )
    lines = [json.dumps({**each, **own}).encode() for each in spoken]
    assert check_same_records(lines) > 5
    check_no_text(lines)


def test_answers_and_broken_arguments_are_read() -> None:
    content = {"content": [{"type": "text", "text": "Done."}]}
    answer = event("MessageEvent", 1, llm_message=content, llm_response_id="r1")
    broken = called(2, "r2")
    broken["tool_call"]["arguments"] = "{"
    answers: list[Any] = []
    for body in (answer, broken, event("MessageEvent", 3, llm_message=content)):
        read = line_of(body).conversation
        assert read is not None
        message: Any = read(body)
        answers.append((message["message"].get("id"), message["message"]["content"][-1]))
    assert answers[0] == ("r1", {"type": "text", "text": "Done."})
    assert answers[1][1]["input"] == {}
    assert answers[2] == (None, {"type": "text", "text": "Done."})


def test_what_is_not_as_it_should_be_says_nothing(tmp_path: Path) -> None:
    times = {**called(2, "r1"), "timestamp": "noon"}
    damaged = {**condensed(3, "c1"), "forgotten_event_ids": 3, "timestamp": None}
    measured = metrics(used("r1", 0), minutes=(2,))
    state_of = {**events(times, damaged), STATE: state(default=measured, odd={})}
    (boundary,) = boundaries(records_of(tmp_path, state_of))
    assert (boundary.metadata, boundary.receipt) == ({}, None)


def test_another_agents_cached_tokens_are_next_to_its_input() -> None:
    assert usage_of(used("r1", 5, 90)) == Usage(5, 0, 90)
