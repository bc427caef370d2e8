"""Without texts: the records stay the same but for the texts in them, and no text is left."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.containers import Line
from contextgauge.delivery.blanks import LEFT_OUT
from contextgauge.delivery.privacy import MARK, strip_text
from schemas.messages import DeadLetter
from schemas.records import CompactionSummary
from streams import codec
from streams.flow.simulator import PROVIDERS, SimulationOptions, sample_sessions, simulate
from tests import captures
from tests.core.given import assistant, boundary, compacting, one, rollout, summary, user
from tests.core.strategies import SESSIONS, Action, write
from tests.library.privacy_kit import (
    KEY,
    check_no_text,
    check_same_records,
    derived,
    sent,
    stripped,
    stub,
)


@given(SESSIONS)
def test_any_session_gives_the_same_records(plan: tuple[list[Action], bool]) -> None:
    actions, transcript = plan
    check_same_records(write("s-1", actions, transcript=transcript))


@pytest.mark.extended
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_gives_the_same_records(provider: str) -> None:
    sample, more = (
        SimulationOptions(seed=3, providers=(provider,)),
        SimulationOptions(seed=5, providers=(provider,)),
    )
    lines = [message.named() for message in (*sample_sessions(sample), *simulate(more, 1_500))]
    assert check_same_records(lines) > 20
    check_no_text(lines)


@pytest.mark.parametrize("name", captures.TRANSCRIPTS)
def test_a_transcript_gives_the_same_records(name: str) -> None:
    lines = captures.TRANSCRIPTS[name]()
    assert check_same_records(lines) > 0
    check_no_text(lines)


def test_rare_frames_give_the_same_records() -> None:
    session = captures.plan("claude-stream", rare=0.9, turns=20, is_partial=True)
    (lines,) = captures.files_of(session).values()
    assert check_same_records(lines) > 0
    check_no_text(lines)


@pytest.mark.extended
@pytest.mark.shared
def test_real_and_constructed_messages_give_the_same_records(shared: Path) -> None:
    for path in (*shared.glob("fixtures/**/*.jsonl"), *shared.glob("samples/sequences/*.jsonl")):
        lines = path.read_bytes().splitlines()
        assert (check_same_records(lines) > 0) != ("acompact" in path.name), path
        check_no_text(lines)
    for path in shared.glob("samples/*.json"):
        lines = [json.dumps(json.loads(path.read_bytes())["message"]).encode()]
        check_same_records(lines)
        check_no_text(lines)


WORDS = st.sampled_from(["S3cret", "a S3cret of mine", "src/S3cret.py", "", "<S3cret>", "S3cret\n"])
"""What a user may write anywhere."""

UNKNOWN = st.recursive(
    st.one_of(WORDS, st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False)),
    lambda inner: st.one_of(
        # A name like a runtime's own field stays where a runtime's object stands.
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a S3cret", "S3cret?", ""]), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(UNKNOWN, UNKNOWN)
def test_text_is_removed_from_every_position(one: Any, other: Any) -> None:
    bodies = [
        user(one, toolUseResult=other, attachment=one, summary=other),
        user([{"type": "tool_result", "tool_use_id": "t", "content": one, "extra": other}]),
        user([{"type": "text", "text": one}, other]),
        {"type": "user", "session_id": "s", "message": one, "prompt": other},
        assistant(inside={"content": [{"type": "tool_use", "name": one, "input": other}]}),
        assistant(inside={"content": [{"type": "thinking", "thinking": one}], "choices": other}),
        assistant(inside={"usage": {"input_tokens": 3, "note": one, "more": {"deep": other}}}),
        boundary({"trigger": "auto", "userContext": one, "list": [other], "o": {"p": one}}),
        {"type": "control_request", "request": {"subtype": "can_use_tool", "input": {
            "session_id": "s", "status": one, "model": other, "cwd": one, "type": one}}},
        {"type": "control_request", "request": {"subtype": "hook_callback", "input": {
            "hook_event_name": "PreCompact", "custom_instructions": one, "tool_input": other}}},
        {"type": "control_response", "response": {"response": {"memoryFiles": one, "x": other}}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": one, "cwd": other}},
        {"type": "response_item", "payload": {"type": "f", "arguments": one, "output": other}},
        {"type": "compacted", "payload": {"message": one, "replacement_history": other}},
        {"type": "turn_context", "payload": {"summary": one, "user_instructions": other}},
        {"type": "what is new", "payload": one, "request": other, "response": one},
        {"type": "stream_event", "event": {"type": "content_block_delta", "delta": {
            "type": "text_delta", "text": one}, "content_block": other}},
        {"object": "chat.completion", "choices": one, "output": [{"type": "m", "content": other}]},
        {"candidates": one, "usageMetadata": {"promptTokenCount": 3, "a": other}},
    ]  # fmt: skip
    for body in bodies:
        assert "S3cret" not in json.dumps(stripped(body)), body
        check_same_records([codec.dumps(body | {"session_id": "s"})])


@pytest.mark.parametrize(
    "given",
    [
        {"hook_event_name": "S3cret", "model": "S3cret", "task_id": "S3cret", "cwd": "S3cret"},
        {"session_id": {"note": "S3cret"}},
        {"sessionId": ["S3cret"]},
    ],
)
def test_what_a_tool_is_given_is_removed_whatever_its_fields_are_called(given: Any) -> None:
    request = {"subtype": "can_use_tool", "input": given}
    assert "S3cret" not in json.dumps(stripped({"type": "control_request", "request": request}))


@pytest.mark.parametrize(
    "kind", [{"type": "autocompact_state"}, {"type": "system", "subtype": "autocompact_state"}]
)
def test_when_the_runtime_compacts_is_kept_in_both_forms(kind: dict[str, Any]) -> None:
    value = {"enabled": True, "threshold": 150_000, "source": "user"}
    body = {**kind, "uuid": "u", "session_id": "s", "value": value}
    assert stripped(body)["value"] == value
    check_same_records([codec.dumps(body)])


def test_field_names_that_may_be_text_are_removed() -> None:
    assert "S3cret" not in json.dumps(stripped(user(answers={"S3cret": {"S3cret": 1}})))
    bare = stripped({"type": "user", "my own words": {"more words": "x"}, "uuid": "u"})
    assert bare == {"type": "user", "uuid": "u", LEFT_OUT: 23, MARK: True}


def test_a_text_is_replaced_by_its_length() -> None:
    bare = stripped(user("hello"))
    assert bare["message"] == {"role": "user", "content": stub("hello")}
    assert stripped(user([{"type": "text", "text": "hi"}]))["message"]["content"] == [
        {"type": "text", "text": stub("hi")}
    ]
    assert stripped(user(""))["message"]["content"] == ""


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("<command-name>/clear</command-name>", "<command-name>/clear"),
        ("/compact keep the plan", "/compact"),
        ("<local-command-stdout>Compacted", "<local-command-"),
        ("<command-message>is running", "<command-"),
        ("/compacted", ""),
        ("no command", ""),
    ],
)
def test_the_prefix_that_identifies_a_command_is_kept(text: str, begin: str) -> None:
    assert stripped(user(text))["message"]["content"] == begin + stub(text)


def test_of_another_runtimes_line_no_command_is_kept() -> None:
    content: list[Any] = [{"type": "input_text", "text": "/compact my plan"}]
    bare = stripped(rollout("response_item", {"type": "message", "content": content}))
    assert bare["payload"]["content"][0]["text"] == stub("/compact my plan")


def test_a_command_without_arguments_is_kept() -> None:
    assert stripped(user("/compact"))["message"]["content"] == "/compact"


def test_a_type_keeps_its_type() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    bare = stripped(assistant(inside={"content": [block, "loose"]}))
    assert bare["message"]["content"] == [
        {"type": "tool_use", "id": "toolu_1", "name": stub("Bash"), "input": {LEFT_OUT: 9}},
        stub("loose"),
    ]
    result = {"type": "tool_result", "content": [{"type": "text", "text": "out"}], "is_error": True}
    bare = stripped(user([result], toolUseResult=["a", "bc"], imagePasteIds=[], meta={}))
    assert bare["message"]["content"][0] == {
        "type": "tool_result",
        "content": [{"type": "text", "text": stub("out")}],
        "is_error": True,
    }
    assert bare["toolUseResult"] == [stub("abc")]
    assert (bare["imagePasteIds"], bare["meta"]) == ([], {})


@pytest.mark.parametrize("name", ["toolUseResult", "tool_use_result"])
def test_an_agents_result_keeps_its_type_and_the_suffix_of_its_model(name: str) -> None:
    model = "claude-opus-4-6[1m]"
    agent: dict[str, Any] = {"prompt": "secret", "resolvedModel": model, "secret": 1}
    bare = stripped(user([]) | {name: agent})
    assert bare[name] == {"resolvedModel": model, LEFT_OUT: 50}
    bare = stripped(user([]) | {name: {**agent, "resolvedModel": "claude-opus-4-6"}})
    assert bare[name] == {LEFT_OUT: 46}
    typed = {"agentId": "a1b2", "agentType": "explorer"}
    bare = stripped(user([]) | {name: {"content": ["secret"], **typed}})
    assert {field: bare[name][field] for field in typed} == typed
    assert "secret" not in str(bare)


def test_content_nested_too_deeply_is_removed_whole() -> None:
    content: Any = "deep"
    for _ in range(5):
        content = [{"type": "tool_result", "content": content}]
    bare = json.dumps(stripped(user(content)))
    assert "deep" not in bare
    metadata: Any = {"tokens": 1}
    for _ in range(40):
        metadata = {"inner": metadata}
    left = stripped(boundary(metadata))["compact_metadata"]
    assert json.dumps(left).count("inner") < 40
    assert LEFT_OUT in json.dumps(left)


def test_ids_in_metadata_are_kept_and_other_strings_removed() -> None:
    uuid = "258c7280-ae70-4798-800f-63464d01a85d"
    metadata = {
        "trigger": "manual",
        "preTokens": 9,
        "preserved": [uuid, "toolu_01ABCDEFGH", "words of mine"],
        "userContext": "keep the plan",
        "my words": "x",
    }
    assert stripped(boundary(metadata))["compact_metadata"] == {
        "trigger": "manual",
        "preTokens": 9,
        "preserved": [uuid, "toolu_01ABCDEFGH", stub("words of mine")],
        "userContext": stub("keep the plan"),
        LEFT_OUT: 9,
    }


def test_an_error_still_shows_that_a_hook_blocked() -> None:
    body = {"type": "system", "subtype": "status", "status": None, "compact_result": "failed"}
    blocked = stripped(body | {"compact_error": "Blocked by the hook of Ann"})
    assert blocked["compact_error"] == f"blocked by a hook {stub('Blocked by the hook of Ann')}"
    assert stripped(body | {"compact_error": "too few"})["compact_error"] == stub("too few")
    assert blocked["status"] is None


def test_a_stripped_summary_still_gives_a_record() -> None:
    lines = [json.dumps(body).encode() for body in (compacting(), boundary(), summary("Done: x."))]
    assert one(derived(sent(lines)), CompactionSummary).summary == stub("Done: x.")


def test_overlong_names_remain_overlong() -> None:
    bare = stripped({"session_id": "s" * 20_000, "uuid": "u" * 2_000, "cwd": "/x", "version": 3})
    assert set(bare["session_id"]) == set(bare["uuid"]) == {"."}
    assert (len(bare["session_id"]), len(bare["uuid"])) == (16_385, 1_025)
    assert (bare["cwd"], bare["version"]) == ("/x", 3)
    usage = {"m" * 2_000: {"contextWindow": 5}, "opus 4": {"canonicalModel": "o", "note": "n"}}
    bare = stripped({"type": "result", "modelUsage": usage | {"no": "entry"}})
    assert bare["modelUsage"] == {
        "opus 4": {"canonicalModel": "o", "note": stub("n")},
        "no": stub("entry"),
        LEFT_OUT: 2_013,
    }
    assert stripped({"type": "result", "modelUsage": "none"})["modelUsage"] == stub("none")


def test_timestamps_are_kept_and_other_text_is_removed() -> None:
    assert stripped({"timestamp": "2026-11-01T12:00:00.000Z"})["timestamp"].startswith("2026")
    assert stripped({"timestamp": "tomorrow at noon"})["timestamp"] == stub("tomorrow at noon")
    assert stripped({"timestamp": "2" * 90})["timestamp"] == stub("2" * 90)
    assert stripped({"timestamp": 3})["timestamp"] == 3


def test_a_providers_object_type_is_kept() -> None:
    assert stripped({"object": "chat.completion"})["object"] == "chat.completion"
    assert stripped({"object": "response of mine"})["object"] == "response" + stub(
        "response of mine"
    )
    assert stripped({"object": "my own"})["object"] == stub("my own")
    assert stripped({"object": 3})["object"] == 3


def test_a_fork_keeps_its_origin() -> None:
    bare = stripped({"forked_from": {"session_id": "a", "title": "my words"}, "forkedFrom": "b"})
    assert bare["forked_from"] == {"session_id": "a", "title": stub("my words")}
    assert bare["forkedFrom"] == "b"


def test_nan_does_not_become_null() -> None:
    line = b'{"type":"system","subtype":"status","status":NaN,"session_id":"s"}'
    assert json.loads(sent([line])[0])["status"] == 0.0
    check_same_records([line])


def test_two_messages_that_differ_in_their_texts_alone_still_differ() -> None:
    first, second = (
        json.dumps({"type": "user", "session_id": "s", "message": text}).encode()
        for text in ("yes!", "no!!")
    )
    assert len(set(sent([first, second, first]))) == 2
    other_key = strip_text(Line("f", 1, first, len(first), None), b"other")
    assert isinstance(other_key, Line)
    assert other_key.value != sent([first])[0]
    assert other_key.size == len(other_key.value)


def test_the_input_message_is_not_modified() -> None:
    body = user([{"type": "text", "text": "x"}], request={"input": {"a": "b"}})
    before = json.dumps(body)
    stripped(body)
    assert json.dumps(body) == before


def test_unreadable_lines_become_dead_letters_with_a_reason() -> None:
    for value, reason in ((b"no json", "not_json"), (b"[]", "not_object"), (b"\xff", "not_utf8")):
        found = strip_text(Line("f", 1, value, len(value), "s"), KEY)
        assert isinstance(found, DeadLetter)
        assert found.reason == reason
    gigantic = strip_text(Line("f", 1, b'{"a":', 10**9, "s"), KEY)
    assert isinstance(gigantic, DeadLetter)
    assert gigantic.reason == "too_large"


def test_a_rollouts_head_keeps_where_its_own_history_begins() -> None:
    base = {"thread_id": "0199-thread", "end_ordinal_exclusive": 7, "note": "secret words"}
    payload = {"id": "0199-thread", "subagent_history_start_ordinal": 4, "history_base": base}
    bare = stripped({"type": "session_meta", "ordinal": 0, "payload": payload})
    assert bare["ordinal"] == 0
    assert bare["payload"]["subagent_history_start_ordinal"] == 4
    assert bare["payload"]["history_base"]["end_ordinal_exclusive"] == 7
    assert "secret" not in repr(bare)
