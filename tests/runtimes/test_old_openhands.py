"""R32: OpenHands before 1.0, as version 0.62 writes it: an event is a file, or all are in one.

The shape is that of public trajectories (OpenHands/OpenHands has some for its tests, and
thefaftek-git/tls_scanner one of 210 events with three condensations); all values are made up.
"""

import json
from pathlib import Path
from typing import Any

from schemas.records import CompactionStart, CompactionSummary, SessionInfo
from streams.edge.files import reading as files
from streams.edge.files.session_files import first_prompt
from tests.core.given import every, one
from tests.library.privacy_kit import check_no_text, check_same_records
from tests.runtimes.documents_kit import Body, Documents, Publishing, records_of, write
from tests.runtimes.runtimes_kit import boundaries, sizes

SESSION = "0f3c-mend"
FOLDER = f".openhands/sessions/{SESSION}"
WORDS = "a S3cret of mine"
BEGIN_S = 1_752_192_000
"""2025-07-11T00:00:00Z; the events' clock is five hours behind."""


def event(number: int, source: str = "agent", **own: Any) -> Body:
    time = f"2025-07-10T19:{number:02}:02.508871"
    return {"id": number, "timestamp": time, "source": source, "message": WORDS, **own}


def asked(number: int, words: str = WORDS) -> Body:
    return event(number, "user", action="message", args={"content": words, "image_urls": None})


def of_call(number: int, response: str, prompt: int, read: int = 0) -> Body:
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": 40,
        "prompt_tokens_details": {"cached_tokens": read},
    }
    answer = {"id": response, "created": BEGIN_S + number * 60, "model": "gpt-5.1", "usage": usage}
    return {"tool_call_metadata": {"function_name": "execute_bash", "model_response": answer}}


def called(number: int, response: str, prompt: int, read: int = 0) -> Body:
    of_call_too = of_call(number, response, prompt, read)
    return event(number, action="run", args={"command": WORDS}, **of_call_too)


def result(number: int, response: str, prompt: int) -> Body:
    own: Body = {"observation": "run", "content": WORDS, "extras": {"command": WORDS}}
    return event(number, **own, **of_call(number, response, prompt))


def condensed(number: int, **forgotten: Any) -> Body:
    arguments = {"summary": "What was done.", "summary_offset": 1, **forgotten}
    return event(number, action="condensation", args=arguments)


EVENTS = [
    event(0, action="system", args={"content": WORDS}),
    asked(1),
    event(2, "environment", observation="agent_state_changed", content="", extras={}),
    called(3, "r1", 100_000, 90_000),
    called(4, "r1", 100_000, 90_000),
    result(5, "r1", 100_000),
    event(6, action="condensation_request", args={}),
    condensed(7, forgotten_events_start_id=2, forgotten_events_end_id=5),
    called(8, "r2", 20_000),
    event(9, action="message", args={"content": WORDS}, llm_metrics={"token_usages": []}),
    event(10, action="finish", args={}),
]


def documents(events: list[Body]) -> Documents:
    return {f"{FOLDER}/events/{each['id']}.json": each for each in events}


def test_a_session_has_sizes_a_condensation_and_times(tmp_path: Path) -> None:
    pages = {f"{FOLDER}/event_cache/0-25.json": EVENTS, f"{FOLDER}/metadata.json": {"id": 1}}
    records = records_of(tmp_path, {**documents(EVENTS), **pages})
    assert {each.data.session_id for each in records} == {SESSION}
    assert sizes(records) == [(100_000, None), (20_000, None)]
    one(records, CompactionStart)
    (boundary,) = boundaries(records)
    assert (boundary.pre_tokens, boundary.duration_ms) == (100_000, 60_000)
    assert boundary.metadata == {"forgotten_events": 4}
    assert one(records, CompactionSummary).summary == "What was done."
    assert every(records, SessionInfo)[-1].runtime == "openhands"
    assert records[-1].time_ms == (BEGIN_S + 8 * 60 + 2) * 1_000 + 508
    assert first_prompt(tmp_path / f"{FOLDER}/events/0.json") == WORDS
    assert [Path(each.name).name for each in files.expand([str(tmp_path)])] == ["0.json"]


def test_a_trajectory_that_was_saved_has_the_same_sizes(tmp_path: Path) -> None:
    condensations = [
        condensed(6, forgotten_event_ids=[2, 3]),
        condensed(7, forgotten_event_ids=None),
    ]
    listed = [*EVENTS[:6], *condensations, *EVENTS[8:]]
    records = records_of(tmp_path, {"trajectory.json": listed})
    assert {each.data.session_id for each in records} == {"trajectory.json"}
    assert sizes(records) == [(100_000, None), (20_000, None)]
    assert [each.metadata for each in boundaries(records)] == [{"forgotten_events": 2}, {}]
    assert {each.time_ms for each in records if each.kind == "context_reading"} == {
        (BEGIN_S + minute * 60) * 1_000 for minute in (3, 8)
    }


def test_of_a_session_that_goes_on_only_what_is_new_is_sent(tmp_path: Path) -> None:
    write(tmp_path, documents(EVENTS[:4]))
    publishing = Publishing(tmp_path)
    assert [each["id"] for each in publishing.sent()] == [0, 1, 2, 3]
    write(tmp_path, documents(EVENTS))
    assert [each["id"] for each in publishing.sent()] == [4, 5, 6, 7, 8, 9, 10]
    assert publishing.reported == []


def test_without_texts_the_records_are_the_same() -> None:
    lines = [json.dumps({**each, "sessionId": SESSION}).encode() for each in EVENTS]
    assert check_same_records(lines) > 5
    check_no_text(lines)
