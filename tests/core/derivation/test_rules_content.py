"""R35: what messages contain, by sizes and hashes."""

import json
from dataclasses import replace

import pytest

from contextgauge.compaction.reading.content_facts import CONTENT_FIELD, content_facts
from contextgauge.delivery.content_measures import measured
from contextgauge.delivery.shorten import shorten
from contextgauge.json_codec import dumps
from schemas.records import CompactBoundary, Record, ToolUse, UserTurn
from streams.flow.simulator import SimulationOptions, simulate
from tests.core.given import (
    RULES,
    SESSION,
    Body,
    Given,
    assistant,
    boundary,
    every,
    line,
    one,
    rollout,
    side,
    summary,
    user,
)

CONTENT = replace(RULES, content=True)
PATH = "/repo/secret/app.py"


def call(name: str = "Read", use: str = "toolu_1", **arguments: object) -> Body:
    block = {"type": "tool_use", "id": use, "name": name, "input": arguments}
    return assistant(None, inside={"content": [block]})


def result(text: str, use: str = "toolu_1", **extra: object) -> Body:
    return user([{"type": "tool_result", "tool_use_id": use, "content": text} | extra])


def both(session: Given, *bodies: Body) -> list[Record]:
    return [record for body in bodies for record in session.take(body)]


def test_r35_a_call_and_its_result_are_measured_and_nothing_of_their_text_is_kept() -> None:
    session = Given(CONTENT)
    records = both(session, call(file_path=PATH), result("häuser", is_error=True))
    made, came = every(records, ToolUse)
    arguments = json.dumps({"file_path": PATH}, separators=(",", ":"))
    assert (made.part, made.tool, made.use_id) == ("call", "Read", "toolu_1")
    assert (made.bytes, made.changes_files, made.is_error) == (len(arguments), False, None)
    assert made.tokens_estimated == -(-len(arguments) // 4)
    assert made.input_hash is not None
    assert len(made.path_hashes) == 1
    assert (came.part, came.tool, came.use_id) == ("result", None, "toolu_1")
    assert (came.bytes, came.tokens_estimated, came.is_error) == (7, 2, True)
    assert PATH not in repr(records)
    assert "secret" not in repr(records)


def test_r35_the_same_input_and_path_have_the_same_hashes() -> None:
    session = Given(CONTENT)
    first, again, other, edit = every(
        both(
            session,
            call(file_path=PATH),
            call(use="toolu_2", file_path=PATH),
            call(use="toolu_3", file_path=PATH, limit=5),
            call("Edit", "toolu_4", file_path=PATH, old_string="a", new_string="b"),
        ),
        ToolUse,
    )
    assert first.input_hash == again.input_hash != other.input_hash
    assert first.path_hashes == other.path_hashes == edit.path_hashes
    assert edit.changes_files is True


def test_r35_a_turn_of_the_user_is_measured_and_what_a_harness_or_tool_says_is_none() -> None:
    session = Given(CONTENT)
    turn = one(session.take(user("Fix the café")), UserTurn)
    assert (turn.characters, turn.tokens_estimated) == (12, 3)
    assert not every(both(session, user("Caveat", isMeta=True), result("done")), UserTurn)
    after = both(session, boundary({"trigger": "auto", "pre_tokens": 9}), summary("It was long."))
    assert every(after, CompactBoundary)
    assert not every(after, UserTurn)


def test_r35_a_prompt_of_a_subagent_is_no_turn_of_a_person() -> None:
    session = Given(CONTENT)
    records = both(session, side(user("Look for it")), side(call(file_path=PATH)))
    assert len(every(records, ToolUse)) == 1
    assert not every(records, UserTurn)


def test_r35_a_compactions_own_call_has_no_content() -> None:
    session = Given(CONTENT)
    own = "acompact-fffbd0"
    named = {"parent_tool_use_id": "toolu_1", "agent_id": own}
    records = both(session, side(user("Sum it up"), own), call(file_path=PATH) | named)
    assert not every(records, ToolUse)
    assert not every(records, UserTurn)


def test_r35_codex_items_are_measured_too() -> None:
    session = Given(CONTENT)
    item = {"type": "function_call", "name": "shell", "call_id": "call_1", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "four"}
    person: Body = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Go on"}],
    }
    bodies = [
        rollout("response_item", each, second) for second, each in enumerate((person, item, output))
    ]
    records = [record for body in bodies for record in session.take(body, hint=SESSION)]
    assert one(records, UserTurn).characters == 5
    made, came = every(records, ToolUse)
    assert (made.tool, made.use_id, came.use_id, came.bytes) == ("shell", "call_1", "call_1", 4)
    assert not every(
        session.take(rollout("response_item", {"type": "message"}, 9), hint=SESSION), ToolUse
    )


def test_r35_an_answer_of_an_api_is_measured() -> None:
    session = Given(CONTENT)
    block = {"type": "tool_use", "id": "toolu_9", "name": "Bash", "input": {"command": "ls"}}
    body = {"type": "message", "role": "assistant", "id": "msg_7", "content": [block]}
    answer = body | {"session_id": SESSION, "usage": {"input_tokens": 5}}
    assert one(session.take(answer), ToolUse).tool == "Bash"


def test_r35_a_message_that_is_known_or_a_copy_counts_once() -> None:
    session = Given(CONTENT)
    body = call(file_path=PATH)
    assert every(session.take(body), ToolUse)
    assert not session.take(body)
    copied = line(call(use="toolu_8", file_path=PATH), forkedFrom={"sessionId": "other"})
    assert one(session.take(copied), ToolUse).inherited is True


def test_r35_a_subagents_calls_are_of_its_chain_and_a_compactions_own_calls_of_none() -> None:
    session = Given(CONTENT)
    assert one(session.take(side(call(file_path=PATH))), ToolUse).chain == "a1b2"
    assert not every(session.take(side(call(use="toolu_5"), "acompact-1")), ToolUse)


def test_r35_words_are_no_name_of_a_tool() -> None:
    session = Given(CONTENT)
    assert one(session.take(call("please delete the customers")), ToolUse).tool is None


@pytest.mark.parametrize("provider", ["claude", "codex"])
def test_r35_all_other_records_are_the_same(provider: str) -> None:
    plain, measuring = Given(), Given(CONTENT)
    options = SimulationOptions(sessions=2, turns=12, providers=(provider,))
    others, added = [], 0
    for each in simulate(options):
        others += [
            (record.id, record.data)
            for record in plain.take(json.loads(each.named()), agent_id="planner")
        ]
        for record in measuring.take(json.loads(each.named()), agent_id="planner"):
            if isinstance(record.data, ToolUse | UserTurn):
                added += 1
            else:
                assert (record.id, record.data) == others.pop(0)
    assert added
    assert not others


def test_r35_a_message_without_its_texts_says_what_was_measured_of_them() -> None:
    body = call(file_path=PATH) | {"supersedes": []}
    with_key = measured(body, b"key")
    assert content_facts(body | with_key) == content_facts(body, b"key")
    assert content_facts(body, b"key") != content_facts(body)
    assert measured(user([])) == {}


def test_r35_a_shortened_message_says_what_was_measured_before() -> None:
    body = result("word " * 40_000)
    value = dumps(body)
    shortened = shorten(body, value, 20_000, dumps)
    assert shortened is not None
    assert content_facts(shortened) == content_facts(body)


def test_r35_what_a_foreign_publisher_writes_there_is_left_out() -> None:
    rows = [
        7,
        {"part": "call"},
        {"part": "other", "characters": 1, "tokens": 1},
        {"part": "call", "bytes": -1, "tokens": 2},
        {"characters": 3, "tokens": 1},
        {"part": "result", "bytes": 4, "tokens": 1, "is_error": "no", "path_hashes": [5, "ab"]},
    ]
    session = Given(CONTENT)
    records = session.take(user("gone", contextgauge_no_text=True) | {CONTENT_FIELD: rows})
    assert one(records, UserTurn).characters == 3
    use = one(records, ToolUse)
    assert (use.bytes, use.is_error, use.path_hashes) == (4, None, ("ab",))
    assert not every(session.take(user("x", contextgauge_no_text=True)), UserTurn)
    assert not every(
        session.take(user("x", contextgauge_no_text=True) | {CONTENT_FIELD: 5}), UserTurn
    )
