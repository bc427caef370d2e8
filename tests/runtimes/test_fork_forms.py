"""Forks in the forms of runtimes: sessions that inherit sizes and compactions (R30)."""

from typing import Any

import pytest

from contextgauge.normalise.claude_code.fork import FORK as CLAUDE_CODE
from contextgauge.normalise.codex.fork import FORK as CODEX
from contextgauge.normalise.fork_form import ForkForm, NewFork, PastCompaction
from contextgauge.records import Json
from schemas.records import CompactBoundary, ContextReading, SessionInfo
from tests.core.given import Body, Given, assistant, every, moment, one, user

ORIGIN = "11111111-0000-4000-8000-000000000001"
RANDOM = "22222222-0000-4000-8000-000000000002"
MADE_MS = 1_793_600_000_000
AUTO: Json = {"trigger": "auto", "preTokens": 167_000}


def new(form: ForkForm, *past: PastCompaction, folder: str = "/repo") -> NewFork:
    fork_id = form.new_id(MADE_MS, RANDOM)
    return NewFork(fork_id, ORIGIN, MADE_MS, folder, "claude-sonnet-5", "a fork", past)


def line(body: Body, uuid: str, parent: str | None, at: float = 0, **more: object) -> Body:
    own = {"uuid": uuid, "parentUuid": parent, "sessionId": ORIGIN, "isSidechain": False}
    return {**body, "version": "2.1.332", "cwd": "/repo", "timestamp": moment(at), **own, **more}


def boundary(uuid: str, last: str, at: float) -> Body:
    body = {"type": "system", "subtype": "compact_boundary", "compactMetadata": AUTO}
    return line(body, uuid, None, at, logicalParentUuid=last)


TRANSCRIPT = [
    {"type": "mode", "sessionId": ORIGIN},
    line(user(), "a", None, slug="a-plan"),
    line({"type": "progress"}, "p", "a", 1),
    line({"type": "progress"}, "q", "p", 1),
    line(assistant("1", read=160_000), "b", "q", 2),
    line(user(), "s", None, 2, isSidechain=True),
    boundary("c", "b", 3),
    line(user("What was done."), "d", "c", 3, isCompactSummary=True),
    {"type": "content-replacement", "sessionId": ORIGIN, "replacements": []},
    line(assistant("2", read=30_000), "e", "d", 4),
]


def derived(lines: list[dict[str, Json]], session: str, *own: Body) -> Given:
    given = Given()
    given.take(*lines, *own, hint=session)
    return given


def test_a_copied_transcript_is_linked_without_what_only_a_screen_needs() -> None:
    fork = new(CLAUDE_CODE)
    copied: list[dict[str, Any]] = list(CLAUDE_CODE.copy(TRANSCRIPT, fork, {}))
    *lines, title = copied
    assert {each["sessionId"] for each in copied} == {RANDOM}
    assert [each.get("uuid") for each in lines] == ["a", "b", "c", "d", None, "e"]
    linked = [each for each in lines if "uuid" in each]
    assert [each["parentUuid"] for each in linked] == [None, "a", None, "c", "d"]
    assert linked[1]["forkedFrom"] == {"sessionId": ORIGIN, "messageUuid": "b"}
    assert "slug" not in linked[0]
    assert (title["type"], title["customTitle"]) == ("custom-title", "a fork")


def test_prompts_that_no_line_has_are_lines_before_the_one_whose_model_saw_them() -> None:
    copied: list[dict[str, Any]] = list(
        CLAUDE_CODE.copy(TRANSCRIPT, new(CLAUDE_CODE), {"b": ["Hurry.", "Go on."]})
    )
    _, first, second, answer = copied[:4]
    assert [each["message"]["content"] for each in (first, second)] == ["Hurry.", "Go on."]
    parents = [each["parentUuid"] for each in (first, second, answer)]
    assert parents == ["a", first["uuid"], second["uuid"]]
    assert (first["type"], first["timestamp"], first["cwd"]) == ("user", moment(2), "/repo")
    assert (answer["uuid"], len({each["uuid"] for each in (first, second, answer)})) == ("b", 3)


def test_a_copied_transcript_inherits_and_its_own_compactions_count_once() -> None:
    copied = list(CLAUDE_CODE.copy(TRANSCRIPT, new(CLAUDE_CODE), {}))
    own = [line(assistant("3", read=50_000), "f", "e", 90_000), boundary("g", "f", 90_001)]
    given = derived(copied, RANDOM, *({**each, "sessionId": RANDOM} for each in own))
    readings = [(each.used_tokens, each.inherited) for each in every(given.records, ContextReading)]
    assert readings == [(160_000, True), (30_000, True), (50_000, None)]
    assert [each.inherited for each in every(given.records, CompactBoundary)] == [True, None]
    assert {each.session_id for each in every(given.records, CompactBoundary)} == {RANDOM}


MESSAGES: list[tuple[str, Json]] = [
    ("m1", {"role": "user", "content": "What was done."}),
    ("m2", {"role": "assistant", "content": "Then I went on."}),
    ("m3", {"role": "system", "content": "Only for a machine."}),
    ("m4", "no message"),
    ("m5", {"role": "user", "content": [{"type": "text", "text": "Go on."}]}),
]
PAST = (PastCompaction("auto", 167_000, MADE_MS - 9_000), PastCompaction(None, None, None))


def test_a_written_transcript_has_the_compactions_before_its_messages() -> None:
    lines: list[dict[str, Any]] = list(CLAUDE_CODE.write(MESSAGES, new(CLAUDE_CODE, *PAST)))
    *written, _ = lines
    assert [each["type"] for each in written] == ["system", "system", "user", "assistant", "user"]
    assert [each["parentUuid"] for each in written[2:]] == [each["uuid"] for each in written[1:4]]
    assert [each.get("isCompactSummary") for each in written[2:]] == [True, None, None]
    assert written[3]["message"]["content"] == [{"type": "text", "text": "Then I went on."}]
    given = derived(lines, RANDOM)
    boundaries = [(each.trigger, each.inherited) for each in every(given.records, CompactBoundary)]
    assert boundaries == [("auto", True), (None, True)]
    assert every(given.records, SessionInfo)[-1].forked_from == ORIGIN
    assert every(given.records, ContextReading) == []


def test_a_transcript_whose_model_is_unknown_has_answers_all_the_same() -> None:
    fork = new(CLAUDE_CODE)._replace(model=None)
    first, answer, *_ = CLAUDE_CODE.write(MESSAGES, fork)
    assert "isCompactSummary" not in first
    assert answer["message"]["model"] == "unknown"  # type: ignore[call-overload, index]


def test_a_transcript_is_written_to_the_folder_of_its_project() -> None:
    assert CLAUDE_CODE.path(new(CLAUDE_CODE, folder="/a/b.c")) == f"-a-b-c/{RANDOM}.jsonl"
    with pytest.raises(ValueError, match="is too long"):
        CLAUDE_CODE.path(new(CLAUDE_CODE, folder="/a" * 101))


def rollout(kind: str, payload: Json, at: float = 0) -> Body:
    return {"timestamp": moment(at), "type": kind, "payload": payload}


def count(used: int, at: float) -> Body:
    usage: Json = {"input_tokens": used, "output_tokens": 1, "total_tokens": used + 1}
    info: Json = {"last_token_usage": usage, "total_token_usage": usage}
    return rollout("event_msg", {"type": "token_count", "info": info}, at)


def answer(text: str, at: float = 0, role: str = "assistant") -> Body:
    item: Json = {
        "type": "message",
        "role": role,
        "content": [{"type": "output_text", "text": text}],
    }
    return rollout("response_item", item, at)


TURN = rollout("event_msg", {"type": "task_started", "turn_id": "t"}, 2)
COMPACTED = rollout("compacted", {"message": "Prefix\nAll is done.", "replacement_history": []}, 4)
ROLLOUT = [
    rollout("event_msg", {"type": "other"}),
    rollout("session_meta", {"id": ORIGIN, "cwd": "/repo", "parent_thread_id": "p"}),
    answer("Go on.", 1, "user"),
    count(240_000, 1),
    COMPACTED,
    count(30_000, 5),
]


def test_a_copied_rollout_has_a_head_of_its_own_and_inherits() -> None:
    fork = new(CODEX)
    copied: list[dict[str, Any]] = list(CODEX.copy(ROLLOUT, fork, {}))
    assert copied[1:] == ROLLOUT[2:]
    head = copied[0]["payload"]
    assert (head["id"], head["forked_from_id"], head["cwd"]) == (fork.id, ORIGIN, "/repo")
    assert "parent_thread_id" not in head
    given = derived(copied, fork.id, count(31_000, 100_000), rollout("compacted", {}, 100_001))
    assert [each.inherited for each in every(given.records, CompactBoundary)] == [True, None]
    readings = every(given.records, ContextReading)
    assert [(each.used_tokens, each.inherited) for each in readings] == [
        (240_000, True),
        (30_000, True),
        (31_000, None),
    ]


def test_a_written_rollout_has_whole_items_and_the_compactions_before_them() -> None:
    fork = new(CODEX, *PAST)
    call: Json = {"type": "function_call", "call_id": "c"}
    lines: list[dict[str, Any]] = list(CODEX.write([*MESSAGES, ("m6", call)], fork))
    items = [each["payload"] for each in lines if each["type"] == "response_item"]
    assert items[0]["content"] == [{"type": "input_text", "text": "What was done."}]
    assert items[1]["content"] == [{"type": "output_text", "text": "Then I went on."}]
    assert {each["type"] for each in (items[0], items[4])} == {"message"}
    assert (items[3], items[-1]) == ("no message", call)
    given = derived(lines, fork.id)
    assert [each.inherited for each in every(given.records, CompactBoundary)] == [True, True]
    assert one(given.records, SessionInfo).forked_from == ORIGIN


@pytest.mark.parametrize(
    ("before", "begin"),
    [
        ([answer("Go on.", 1, "user")], 1),
        ([TURN, answer("Go on.", 1, "user"), answer("All is done.", 3)], 2),
        ([answer("Other words.", 1), TURN, count(9, 2), answer("All is done.", 3)], 1),
        ([answer("", 1)], 1),
        ([rollout("response_item", {"type": "reasoning"}, 1)], 1),
        ([], 0),
    ],
)
def test_a_compactions_own_turn_and_answer_are_not_of_the_context_before_it(
    before: list[Body], begin: int
) -> None:
    assert CODEX.begin([*before, COMPACTED], len(before)) == begin


def test_a_fork_of_codex_has_an_id_with_its_time_and_a_file_of_that_day() -> None:
    fork = new(CODEX)
    assert fork.id == "01a19ae4-1000-7000-8000-000000000002"
    assert CODEX.path(fork) == f"2026/11/02/rollout-2026-11-02T06-13-20-{fork.id}.jsonl"
    assert CODEX.is_line(ROLLOUT[1])
    assert CODEX.begins_turn(TURN)
    assert not CLAUDE_CODE.begins_turn(TURN)
    assert CLAUDE_CODE.is_line(TRANSCRIPT[1])
    assert CLAUDE_CODE.begin(TRANSCRIPT, 6) == 6
