"""R1 to R3: which message counts, for which session and chain, in any spelling."""

import json

import pytest

from contextgauge.normalise.signals import InputMessage
from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionSummary,
    ContextLimits,
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
    one,
    reset,
    rollout,
    session,
    side,
    status,
    summary,
    system,
    token_count,
    usage,
    user,
)


def test_r01_a_message_names_its_own_session_before_the_container() -> None:
    records = Given().take(assistant(read=100, session_id="own"), hint="container")
    assert one(records, ContextReading).session_id == "own"


def test_r01_the_session_may_change_within_one_stream() -> None:
    given = Given()
    given.take(assistant("a", read=100, session_id="one"), hint="one")
    records = given.take(assistant("b", read=100, session_id="two"), hint="one")
    assert one(records, ContextReading).session_id == "two"
    assert sorted(given.sessions()) == ["one", "two"]


def test_r01_a_transcript_line_names_it_in_camel_case() -> None:
    records = Given().take(line(assistant(read=100)), hint="file")
    assert one(records, ContextReading).session_id == SESSION


def test_r01_after_clear_a_line_belongs_to_its_session_not_to_its_process() -> None:
    given = Given()
    process = {"session_id": "of-the-process"}
    given.take(line(user("<command-name>/clear</command-name>")))
    records = given.take(line(assistant(read=62_166), 1) | process)
    assert one(records, ContextReading).session_id == SESSION
    records = given.take(line(boundary({"trigger": "manual", "pre_tokens": 115_665}), 2))
    records += given.take(line(summary(isCompactSummary=True), 3) | process)
    records += given.take(line(assistant("msg_2", read=58_460), 4) | process)
    assert one(records, CompactionSummary).session_id == SESSION
    assert one(records, CompactionComplete).tokens_saved == 57_205
    assert list(given.sessions()) == [SESSION]


def test_r02_of_two_names_of_an_agent_the_transcripts_counts() -> None:
    records = Given().take(side(assistant(read=100), "a1") | {"agent_id": "other"})
    assert one(records, ContextReading).chain == "a1"


def test_r01_else_the_container_names_the_session() -> None:
    body = assistant(read=100)
    del body["session_id"]
    assert one(Given().take(body, hint="key"), ContextReading).session_id == "key"


def test_r01_a_rollout_line_belongs_to_the_rollouts_session() -> None:
    records = Given().take(token_count({"input_tokens": 9}, 9), hint="rollout-id")
    assert one(records, ContextReading).session_id == "rollout-id"


def test_r01_a_rollouts_session_is_its_session_meta_id() -> None:
    head = rollout("session_meta", {"id": "rollout-id", "cli_version": "0.40.0"})
    assert one(Given().take(head), SessionInfo).session_id == "rollout-id"
    assert one(Given().take(head, hint="key"), SessionInfo).session_id == "key"


@pytest.mark.parametrize("wrong", [5, None, "", ["s"], {"id": "s"}])
def test_r01_a_session_of_a_wrong_type_is_none(wrong: object) -> None:
    records = Given().take(assistant(read=100, session_id=wrong), hint="key")
    assert one(records, ContextReading).session_id == "key"


@pytest.mark.parametrize(
    "body", [assistant(read=100), user(), compacting(), boundary(), init(), reset()]
)
@pytest.mark.parametrize("hint", [None, ""])
def test_r01_a_message_that_could_emit_and_has_no_session_is_a_dead_letter(
    body: Body, hint: str | None
) -> None:
    without = {key: value for key, value in body.items() if key != "session_id"}
    assert Given().dead(without, hint) == "no_session"


@pytest.mark.parametrize(
    "body",
    [
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        {"type": "summary", "summary": "text", "leafUuid": "u"},
        {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed"}},
        {"type": "queue-operation", "operation": "enqueue"},
        {},
    ],
)
def test_r01_an_ignorable_message_without_a_session_is_just_ignored(body: Body) -> None:
    given = Given()
    assert given.dead(body) is None
    assert given.sessions() == {}


@pytest.mark.parametrize("blank", [b"", b" ", b"\t\r", b"\n"])
def test_r01_blank_lines_are_ignored(blank: bytes) -> None:
    taken = Deriver(RULES).derive(InputMessage(blank))
    assert taken.dead is None
    assert taken.records == ()


def test_r02_neither_parent_nor_sidechain_is_main_whatever_the_agent_id() -> None:
    assert one(Given().take(assistant(read=9, agent_id="a1")), ContextReading).chain == "main"
    assert one(Given().take(line(assistant(read=9))), ContextReading).chain == "main"


def test_r02_a_subagent_is_named_by_its_agent_id() -> None:
    stream = assistant(read=9, parent_tool_use_id="toolu_1", agent_id="a1")
    assert one(Given().take(stream), ContextReading).chain == "a1"
    assert one(Given().take(side(assistant(read=9), "b2")), ContextReading).chain == "b2"


def test_r02_else_by_the_tool_use_that_runs_it() -> None:
    records = Given().take(assistant(read=9, parent_tool_use_id="toolu_1"))
    assert one(records, ContextReading).chain == "toolu_1"


def test_r02_a_tool_use_once_seen_with_an_agent_maps_to_it() -> None:
    given = Given()
    given.take(assistant("a", read=9, parent_tool_use_id="toolu_1", agent_id="a1"))
    records = given.take(assistant("b", read=9, parent_tool_use_id="toolu_1"))
    assert one(records, ContextReading).chain == "a1"
    other = given.take(assistant("c", read=9, parent_tool_use_id="toolu_2"))
    assert one(other, ContextReading).chain == "toolu_2"


def test_r02_else_sidechain() -> None:
    records = Given().take(side(assistant(read=9), None))
    assert one(records, ContextReading).chain == "sidechain"
    assert one(Given().take(side(assistant(read=9), "")), ContextReading).chain == "sidechain"


def test_r02_a_sidechain_that_is_false_is_main() -> None:
    records = Given().take(line(assistant(read=9), isSidechain=False, agentId="a1"))
    assert one(records, ContextReading).chain == "main"


def test_r02_a_subagent_never_touches_the_main_chain() -> None:
    given = Given()
    given.take(assistant("m", read=50_000))
    before = given.chain()
    given.take(
        side(assistant("s", read=90_000, model="gpt-4"), "a1"),
        side(boundary({"trigger": "auto"}), "a1"),
        side(user(), "a1"),
        side(assistant("s2", read=900, model="gpt-4"), "a1"),
    )
    assert given.chain() == before


def test_r02_a_subagent_that_calls_itself_main_does_not_touch_it_either() -> None:
    given = Given()
    given.take(assistant("m", read=50_000))
    before = given.chain()
    records = given.take(side(assistant("s", read=90_000), "main"))
    assert one(records, ContextReading).chain != "main"
    assert given.chain() == before


def test_r02_at_most_64_chains_and_the_least_recent_leaves() -> None:
    given = Given()
    given.take(assistant("m", read=100))
    for number in range(63):
        given.take(side(assistant(f"s{number}", read=100), f"agent{number}"))
    assert len(given.session().chains) == 64
    given.take(side(assistant("again", read=200), "agent0"))
    given.take(side(assistant("one more", read=100), "newcomer"))
    chains = given.session().chains
    assert len(chains) == 64
    assert "agent1" not in chains
    assert {"main", "agent0", "agent2", "newcomer"} <= set(chains)


def test_r02_a_session_that_began_with_64_subagents_makes_room_for_main() -> None:
    given = Given()
    for number in range(64):
        given.take(side(assistant(f"s{number}", read=100), f"agent{number}"))
    given.take(line(assistant("m", read=100)))
    chains = given.session().chains
    assert len(chains) == 64
    assert "main" in chains
    assert "agent0" not in chains


def test_r02_no_more_tool_uses_are_remembered_than_chains() -> None:
    given = Given()
    for number in range(70):
        frame = assistant(
            f"s{number}", read=100, parent_tool_use_id=f"toolu_{number}", agent_id="a"
        )
        given.take(frame)
    assert len(given.session().facts.aliases) == 64
    records = given.take(assistant("late", read=7, parent_tool_use_id="toolu_69"))
    assert one(records, ContextReading).chain == "a"


def test_r03_a_subtype_of_a_wrong_type_is_as_if_absent() -> None:
    early = any_message("system", status="compacting")
    odd = any_message("system", subtype=5, status="compacting")
    assert kinds(session().take(early)) == kinds(session().take(odd)) == ["compaction_start"]


@pytest.mark.parametrize(
    "body",
    [
        any_message("tool_progress", data=1),
        any_message("prompt_suggestion"),
        system("api_retry", attempt=1),
        system("thinking_tokens", estimated_tokens=150),
        system("local_command"),
        status("requesting"),
        any_message("system", subtype=7),
        {"type": 5, "session_id": SESSION},
        {"type": ["assistant"], "session_id": SESSION},
    ],
)
def test_r03_unknown_types_and_subtypes_are_ignored(body: Body) -> None:
    given = Given()
    assert given.take(body, hint="key") == []
    assert given.sessions() == {}


def test_r03_unknown_fields_are_ignored() -> None:
    frame = assistant(read=900, inside={"later": [{"x": 1}]}, diagnostics={"y": 2})
    assert one(Given().take(frame), ContextReading).used_tokens == 900


def test_r03_snake_and_camel_case_spell_the_same_thing() -> None:
    metadata = {"trigger": "auto", "pre_tokens": 155_201, "post_tokens": 5_000, "duration_ms": 9}
    stream = one(Given().take(boundary(metadata)), CompactBoundary)
    disk = one(Given().take(line(boundary(metadata))), CompactBoundary)
    assert (stream.trigger, stream.pre_tokens, stream.post_tokens, stream.duration_ms) == (
        "auto", 155_201, 5_000, 9
    )  # fmt: skip
    assert (disk.trigger, disk.pre_tokens, disk.post_tokens, disk.duration_ms) == (
        "auto", 155_201, 5_000, 9
    )  # fmt: skip


def test_r03_a_request_id_has_both_spellings() -> None:
    given = Given()
    given.take(assistant(None, read=10, request_id="req_1"))
    assert given.take(assistant(None, read=10, requestId="req_1")) == []


def test_r03_keys_come_in_any_order() -> None:
    frame = assistant(read=900)
    turned = {key: frame[key] for key in reversed(frame)}
    turned["message"] = {key: frame["message"][key] for key in reversed(frame["message"])}
    assert Given().take(turned)[1:] == Given().take(frame)[1:]


def test_r03_a_message_may_be_a_bare_string() -> None:
    given = Given()
    given.take(user() | {"message": "do the thing"})
    given.take(boundary())
    records = given.take(user() | {"message": "What was done.", "isSynthetic": True})
    assert one(records, CompactionSummary).summary == "What was done."
    assert one(given.records, CompactBoundary).messages_since_last == 1


def test_r03_content_may_be_a_string_or_a_list() -> None:
    given = Given()
    given.take(user("text"), user([{"type": "text", "text": "text"}]), user([]), user(None))
    assert one(given.take(boundary()), CompactBoundary).messages_since_last == 4


@pytest.mark.parametrize("wrong", ["9", 9.0, True, -1, None, [9], 2**60])
def test_r03_a_count_of_a_wrong_type_is_absent(wrong: object) -> None:
    records = Given().take(
        assistant(read=900, inside={"usage": usage(read=900) | {"input_tokens": wrong}})
    )
    reading = one(records, ContextReading)
    assert reading.input_tokens is None
    assert reading.used_tokens == 900


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("usage", "text"),
        ("usage", [1]),
        ("usage", None),
        ("id", 5),
        ("model", ["m"]),
        ("content", 3),
    ],
)
def test_r03_wrong_types_inside_a_message_raise_nothing(field: str, wrong: object) -> None:
    given = Given()
    given.take(assistant(read=9, inside={field: wrong}))
    assert given.chain().total == 1


def test_r03_a_wrong_compact_result_is_absent() -> None:
    given = Given()
    given.take(compacting(), status(None, compact_result=5))
    assert given.session().attempt.phase == "ended"


def test_r03_a_sidechain_of_a_wrong_type_is_absent() -> None:
    records = Given().take(line(assistant(read=9), isSidechain="true"))
    assert one(records, ContextReading).chain == "main"


def test_r03_a_uuid_of_a_wrong_type_is_absent() -> None:
    first, second = (assistant(f"r{number}", read=9, uuid=5) for number in (1, 2))
    assert len(every(Given().take(first, second), ContextReading)) == 2


def test_r01_a_session_id_has_at_most_16_k_characters() -> None:
    long, longer = "語" * 10_000, "語" * 16_385
    records = Given().take(user(session_id=long), init(session_id=long))
    assert one(records, SessionInfo).session_id == long
    for hint in (None, "", longer, "key"):
        taken = Given().deriver.derive(
            InputMessage(json.dumps(init(session_id=longer)).encode(), hint)
        )
        assert taken.dead is not None
        assert taken.dead.reason == "no_session"


def test_r03_an_overlong_name_is_absent() -> None:
    fits, longer = "m" * 1_024, "m" * 1_025
    assert one(Given().take(init(model=fits)), SessionInfo).model == fits
    info = one(Given().take(init(model=longer, cwd="/" * 16_385, version="x")), SessionInfo)
    assert (info.model, info.cwd) == (None, None)
    reading = one(Given().take(assistant("r" * 1_025, read=9, model=longer)), ContextReading)
    assert (reading.model, reading.response_id) == (None, None)
    side_line = side(assistant(read=9), agent=longer)
    assert one(Given().take(side_line), ContextReading).chain != longer


def test_r05_a_message_whose_record_could_not_be_written_is_too_large() -> None:
    numbers = "1e15," * 700_000
    head = '{"type": "system", "subtype": "compact_boundary", "session_id": "s", "uuid": "u"'
    value = f'{head}, "compact_metadata": {{"x": [{numbers}0]}}}}'.encode()
    assert len(value) < 4 * 1024 * 1024
    deriver = Deriver(RULES)
    taken = deriver.derive(InputMessage(value, "s"))
    assert taken.dead is not None
    assert (taken.dead.reason, taken.records, deriver.end_steps()) == ("too_large", (), [])
    small = value.replace(numbers.encode(), b"1e15," * 300_000)
    assert len(deriver.derive(InputMessage(small, "s")).records) == 1


def test_r12_an_excessive_number_of_categories_is_ignored() -> None:
    rows = [{"id": "x"}] * 1_001
    body = {"totalTokens": 5, "categories": rows}
    answer = {"type": "control_response", "response": {"response": body}}
    record = one(session(init()).take(answer, hint=SESSION), ContextLimits)
    assert (record.total_tokens, record.categories) == (5, None)
