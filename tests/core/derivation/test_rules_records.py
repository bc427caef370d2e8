"""The records: the envelope, common fields, order."""

from typing import Any

import pytest

from schemas.records import (
    ContextReading,
)
from streams.core.derivation.rules_config import RULES_VERSION, Rules, version_of
from tests.core.given import (
    CATALOG,
    MODEL,
    RULES,
    SESSION,
    Given,
    assistant,
    every,
    init,
    line,
    message_delta,
    message_start,
    one,
    record_of,
    session,
    side,
    system,
    token_count,
    user,
)


def test_envelope_sequence_counts_within_the_session() -> None:
    given = Given()
    given.take(init(), init(session_id="other"), assistant(read=90_000))
    given.take(assistant("b", read=9, session_id="other"))
    for name in (SESSION, "other"):
        numbers = [record.sequence for record in given.records if record.data.session_id == name]
        assert numbers == list(range(1, len(numbers) + 1))


def test_envelope_subject_type_and_rules() -> None:
    record = record_of(session(init()).take(side(assistant(read=9))), ContextReading)
    assert (record.subject, record.kind, record.type) == (
        "a1b2", "context_reading", "contextgauge.context_reading.v1"
    )  # fmt: skip
    assert record.rules == RULES.tag


def test_envelope_rules_change_with_the_configuration() -> None:
    others = [
        Rules(CATALOG, thresholds=(80, 90)),
        Rules(CATALOG, configured_windows={"x": 5}),
        Rules(CATALOG, default_window=5),
    ]
    assert len({RULES.tag, *(rules.tag for rules in others)}) == 4
    assert {version_of(rules.tag) for rules in (RULES, *others)} == {RULES_VERSION}
    assert Rules(CATALOG).tag == RULES.tag


@pytest.mark.parametrize(
    "wrong",
    [
        {"thresholds": ()},
        {"thresholds": (50, 50)},
        {"thresholds": (90, 80)},
        {"thresholds": (0, 50)},
        {"default_window": 0},
        {"configured_windows": {"m": 0}},
        {"configured_windows": {"m": 5, "m[1m]": 6}},
    ],
)
def test_envelope_invalid_rules_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"threshold|window"):
        Rules(CATALOG, **wrong)  # type: ignore[arg-type]


def test_common_fields_are_on_every_record() -> None:
    frame = side(assistant("s", read=9), subagent_type="explorer", task_id="of-the-line")
    reading = one(session(init()).take(frame), ContextReading)
    assert (reading.session_id, reading.chain, reading.model) == (SESSION, "a1b2", MODEL)
    assert (reading.subagent_type, reading.task_id) == ("explorer", "of-the-line")


def test_common_a_publishers_header_names_the_task_first() -> None:
    reading = one(
        Given().take(assistant(read=9, task_id="field"), task_id="header"), ContextReading
    )
    assert reading.task_id == "header"
    assert one(Given().take(assistant(read=9)), ContextReading).task_id is None


def test_common_the_task_is_the_source_messages_and_never_that_of_a_task_message() -> None:
    given = session(assistant("a", read=9, task_id="t1"), system("task_started", task_id="t2"))
    assert one(given.take(assistant("b", read=9)), ContextReading).task_id is None


def test_common_a_subagents_type_stays_with_its_chain() -> None:
    given = session(side(assistant("s", read=9), subagent_type="explorer"))
    assert one(given.take(side(assistant("t", read=9))), ContextReading).subagent_type == "explorer"
    assert one(given.take(assistant("m", read=9)), ContextReading).subagent_type is None
    changed = given.take(side(assistant("u", read=9), subagentType="planner"))
    assert one(changed, ContextReading).subagent_type == "planner"


@pytest.mark.parametrize(
    "spelling",
    [("toolUseResult", "agentId", "agentType"), ("tool_use_result", "agent_id", "agent_type")],
)
@pytest.mark.parametrize("is_first", [False, True])
def test_r2_a_subagents_result_names_its_type(
    spelling: tuple[str, str, str], *, is_first: bool
) -> None:
    outer, agent_id, agent_type = spelling
    result: dict[str, Any] = {outer: {agent_id: "a1b2", agent_type: "explorer", "totalTokens": 9}}
    given = session() if is_first else session(side(assistant("s", read=9)))
    assert given.take(user(**result)) == []
    assert one(given.take(side(assistant("t", read=9))), ContextReading).subagent_type == "explorer"
    assert one(given.take(assistant("m", read=9)), ContextReading).subagent_type is None


def test_r2_results_of_agents_without_lines_take_the_place_of_no_chain() -> None:
    given = session(*(side(assistant(f"s{n}", read=9), f"agent{n}") for n in range(40)))
    given.take(*(user(toolUseResult={"agentId": f"x{n}", "agentType": "y"}) for n in range(90)))
    for n in (0, 39):
        reading = one(given.take(side(assistant(f"t{n}", read=9), f"agent{n}")), ContextReading)
        assert reading.messages_total == 2
    given.take(*(side(assistant(f"u{n}", read=9), f"later{n}") for n in range(20)))
    reading = one(given.take(side(assistant("v", read=9), "agent0")), ContextReading)
    assert reading.messages_total == 3


@pytest.mark.parametrize(
    "result",
    [
        {"agentId": "a1b2"},
        {"agentType": "explorer"},
        {"agentId": "a1b2", "agentType": 7},
        {"agentId": "main", "agentType": "explorer"},
    ],
)
def test_r2_a_result_without_agent_or_type_names_no_type(result: dict[str, object]) -> None:
    given = session(side(assistant("s", read=9)), user(toolUseResult=result))
    assert one(given.take(side(assistant("t", read=9))), ContextReading).subagent_type is None
    assert one(given.take(assistant("m", read=9)), ContextReading).subagent_type is None


def test_common_main_never_has_a_subagent_type() -> None:
    given = session(assistant("m", read=9, subagent_type="explorer"))
    assert one(given.records, ContextReading).subagent_type is None


def test_reading_previous_output_is_a_transcripts_last_line_of_the_response_before() -> None:
    given = session(
        line(assistant("a", read=9, output=1)),
        line(assistant("a", read=9, output=212)),
        line(assistant("b", read=10, output=3)),
    )
    records = every(given.records, ContextReading)
    assert [one.previous_output_tokens for one in records] == [None, 212]
    assert one(given.take(line(assistant("c", read=9))), ContextReading).previous_output_tokens == 3


def test_reading_previous_output_is_a_rollouts_last_line() -> None:
    given = Given()
    for number in (1, 2):
        last = {"input_tokens": 9, "output_tokens": 40 + number}
        reading = one(given.take(token_count(last, number * 9), hint="r"), ContextReading)
        assert reading.previous_output_tokens == (None if number == 1 else 41)


def test_reading_previous_output_of_a_stream_is_its_message_deltas() -> None:
    given = session(message_start("a", read=9), assistant("a", 2, read=9), message_delta(47))
    assert one(given.take(message_start("b", read=10)), ContextReading).previous_output_tokens == 47


def test_reading_previous_output_of_a_streams_assistant_frame_is_a_stub() -> None:
    given = session(assistant("a", read=9, output=1))
    assert one(given.take(assistant("b", read=9)), ContextReading).previous_output_tokens is None


def test_reading_a_message_delta_without_a_response_ends_nothing() -> None:
    given = session(init())
    assert given.take(message_delta(47)) == []
    reading = one(given.take(assistant("a", read=9)), ContextReading)
    assert reading.previous_output_tokens is None


def test_reading_previous_output_belongs_to_the_chain() -> None:
    given = session(line(assistant("a", read=9, output=50)))
    assert (
        one(given.take(side(assistant("s", read=9))), ContextReading).previous_output_tokens is None
    )


def test_reading_a_further_reading_of_a_response_has_the_same_previous_output() -> None:
    given = session(line(assistant("a", read=9, output=50)), line(assistant("b", read=9, output=8)))
    reading = one(given.take(line(assistant("b", read=10, output=9))), ContextReading)
    assert reading.previous_output_tokens == 50
