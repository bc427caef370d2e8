"""R4 and R5: messages that come again, and messages that cannot be read."""

import json

import pytest

from contextgauge.normalise.signals import InputMessage
from schemas.messages import DeadLetter
from schemas.records import (
    CompactBoundary,
    CompactionStart,
    ContextReading,
    SessionInfo,
)
from streams.flow.derive.deriver import Deriver
from tests.core.given import (
    RULES,
    SESSION,
    Body,
    Given,
    any_message,
    assistant,
    boundary,
    compacting,
    every,
    init,
    kinds,
    line,
    message_delta,
    one,
    reset,
    rollout,
    session,
    side,
    summary,
    system,
    token_count,
    user,
)


@pytest.mark.parametrize(
    "body",
    [
        assistant(read=90_000),
        user(),
        compacting(),
        boundary({"trigger": "auto", "pre_tokens": 9}),
        init(),
        reset(),
        system("hook_started", hook_event="PreCompact", hook_name="PreCompact:auto"),
        line(assistant(read=90_000)),
        rollout("session_meta", {"id": "r", "cwd": "/repo", "cli_version": "0.40"}),
    ],
)
def test_r04_a_duplicate_message_is_ignored(body: Body) -> None:
    given = Given()
    given.take(body, hint="r")
    before = dict(given.sessions())
    assert given.take(body, hint="r") == []
    assert given.sessions() == before


def test_r04_a_message_delta_is_relevant_too() -> None:
    given = Given()
    delta = message_delta(47)
    given.take(assistant("a", read=10), delta, assistant("b", read=20))
    given.take(delta)
    assert one(given.take(assistant("c", read=30)), ContextReading).previous_output_tokens is None


def test_r04_duplicates_are_detected_by_cause_and_never_by_text() -> None:
    given = Given()
    first = user("the same words")
    given.take(first, user("the same words"), first | {"message": {"content": "others"}})
    assert one(given.take(boundary()), CompactBoundary).messages_since_last == 2


def test_r04_a_line_without_a_uuid_is_known_by_its_bytes() -> None:
    given = Given()
    body = token_count({"input_tokens": 9}, 9)
    assert kinds(given.take(body, hint="r"))[-1] == "context_reading"
    assert given.take(body, hint="r") == []
    assert len(every(given.take(body | {"extra": 1}, hint="r"), ContextReading)) == 0


def test_r04_a_resumed_session_that_rewrites_its_lines_gives_nothing_new() -> None:
    given = Given()
    lines = [
        line(user(), 0),
        line(assistant("a", read=150_000), 5),
        line(boundary({"trigger": "auto", "pre_tokens": 150_000}), 9),
        line(summary() | {"isCompactSummary": True}, 10),
        line(assistant("b", read=20_000), 12),
    ]
    assert given.take(*lines)
    assert given.take(*lines) == []


def test_r04_all_messages_of_a_session_are_known() -> None:
    given = Given()
    lines = [user("first"), boundary({"trigger": "auto"})]
    lines += [user(str(number)) for number in range(6_000)]
    given.take(*lines)
    assert given.take(*lines) == []
    assert given.chain().total == 6_001


def test_r04_an_ignorable_flood_does_not_push_known_causes_out() -> None:
    given = Given()
    first = user("first")
    given.take(first)
    given.take(*(any_message("progress", data={"n": number}) for number in range(5_000)))
    given.take(first)
    assert given.chain().total == 1


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"type": "\xff"}', "not_utf8"),
        (b"{", "not_json"),
        (b"no", "not_json"),
        (b'{"a": 1} {"b": 2}', "not_json"),
        (b'\xef\xbb\xbf{"a": 1}', "byte_order_mark"),
        (b'{"a":' * 1025 + b"1" + b"}" * 1025, "too_deep"),
        (b"[]", "not_object"),
        (b"null", "not_object"),
        (b'"text"', "not_object"),
        (b" " * (8 * 1024 * 1024) + b"{}", "too_large"),
    ],
)
def test_r05_an_unreadable_message_is_a_dead_letter(value: bytes, reason: str) -> None:
    given = Given()
    assert given.dead(value, "s") == reason
    assert given.sessions() == {}


def test_r05_lone_surrogates_are_json() -> None:
    body = json.dumps(user("half \ud800 a character")).encode()
    assert b"\\ud800" in body
    taken = Deriver(RULES).derive(InputMessage(body))
    assert taken.dead is None
    assert taken.session_id == SESSION


def test_r05_a_message_on_the_wrong_partition_is_misrouted() -> None:
    wrong = DeadLetter("misrouted", "set the producer's partitioner to murmur2")
    deriver = Deriver(RULES, lambda session: wrong if session == SESSION else None)
    assert deriver.derive(InputMessage(json.dumps(user()).encode())).dead == wrong
    assert deriver.end_steps() == []
    elsewhere = json.dumps(user(session_id="other")).encode()
    assert deriver.derive(InputMessage(elsewhere)).dead is None


def test_r05_nothing_else_is_a_dead_letter() -> None:
    given = Given()
    for body in (
        assistant(inside={"usage": {"input_tokens": "many"}}),
        assistant(read=9, timestamp="yesterday"),
        init(None, cwd=5) | {"model": []},
        user({"deep": [{}]}),
        boundary() | {"compact_metadata": "gone"},
        system("status", status={"is": "odd"}),
        compacting(session_id="s" * 10_000),
        compacting(session_id="line\nbreak\x00"),
    ):
        assert given.dead(body) is None
    assert one(given.take(compacting(session_id="\x7f")), CompactionStart).session_id == "\x7f"
    assert every(given.take(init(session_id="x")), SessionInfo)


def test_facts_in_a_line_of_two_spellings_give_one_record() -> None:
    turn = line(rollout("turn_context", {"model": "gpt-5"}) | {"session_id": SESSION})
    assert kinds(session().take(turn)).count("session_info") == 1


def test_a_line_that_fills_facts_gives_one_record_however_it_comes_again() -> None:
    given = Given()
    first = side(any_message("progress"), cwd=None)
    assert kinds(given.take(first)) == ["session_info"]
    assert given.take(first | {"cwd": "/repo"}) == []
    assert kinds(given.take(side(any_message("progress")))) == ["session_info"]


def test_facts_in_another_line_of_a_known_id_are_no_second_record() -> None:
    given = Given()
    message = line(compacting(), cwd=None)
    assert "session_info" in kinds(given.take(message))
    again = message | {"cwd": "/repo", "isSidechain": True, "agentId": "a1b2"}
    assert given.take(again) == []
