"""R9 to R11: one response of many lines, and what never is a reading."""

import pytest

from schemas.records import CompactBoundary, ContextReading, ContextWarning, ReportedReceipt
from tests.core.derivation.state_kit import Store
from tests.core.given import (
    MODEL,
    SESSION,
    Body,
    Given,
    any_message,
    assistant,
    boundary,
    every,
    line,
    message_delta,
    message_start,
    one,
    plain,
    rollout,
    session,
    side,
    stream_event,
    system,
    token_count,
    usage,
    user,
)


def test_r09_lines_of_one_message_id_are_one_response() -> None:
    given = Given()
    lines = [line(assistant("msg_1", 3, 2_000, 160_000, output=out)) for out in (1, 212)]
    records = given.take(*lines)
    assert one(records, ContextReading).messages == 1
    assert given.chain().total == 1


def test_r09_without_a_message_id_the_request_id_names_the_response() -> None:
    given = Given()
    first = assistant(None, read=100, request_id="req_1")
    records = given.take(first, assistant(None, read=100, request_id="req_1"))
    assert one(records, ContextReading).response_id == "req_1"
    assert every(given.take(assistant(None, read=100, request_id="req_2")), ContextReading)


def test_r09_the_message_id_comes_before_the_request_id() -> None:
    given = Given()
    given.take(assistant("msg_1", read=100, request_id="req_1"))
    assert given.take(assistant("msg_1", read=100, request_id="req_2")) == []
    assert every(given.take(assistant("msg_2", read=100, request_id="req_1")), ContextReading)


def test_r09_a_further_line_is_a_reading_only_if_its_counts_differ() -> None:
    given = Given()
    given.take(assistant("msg_1", 3, 0, 100, output=1))
    assert given.take(assistant("msg_1", 3, 0, 100, output=90)) == []
    for changed in (
        assistant("msg_1", 4, 0, 100),
        assistant("msg_1", 4, 1, 100),
        assistant("msg_1", 4, 1, 101),
    ):
        assert one(given.take(changed), ContextReading).messages == 1


def test_r09_null_and_0_are_equal_counts() -> None:
    given = Given()
    given.take(assistant("msg_1", inside={"usage": {"input_tokens": 5}}))
    assert given.take(assistant("msg_1", 5, 0, 0)) == []


def test_r09_counts_are_compared_with_the_responses_latest_reading() -> None:
    given = Given()
    given.take(assistant("msg_1", read=100), assistant("msg_1", read=200))
    assert given.take(assistant("msg_1", read=200)) == []
    assert one(given.take(assistant("msg_1", read=100)), ContextReading).used_tokens == 100


def test_r09_the_last_32_responses_of_a_chain_are_remembered() -> None:
    given = Given()
    given.take(*(assistant(f"r{number}", read=100) for number in range(33)))
    assert given.take(assistant("r1", read=100)) == []
    assert one(given.take(assistant("r0", read=100)), ContextReading).messages_total == 34


def test_r09_a_subagent_has_responses_of_its_own() -> None:
    given = Given()
    given.take(assistant("msg_1", read=100))
    assert one(given.take(side(assistant("msg_1", read=100))), ContextReading).chain == "a1b2"


def test_r09_a_response_whose_first_line_has_no_counts_is_read_from_a_later_one() -> None:
    given = Given()
    assert not every(given.take(assistant("msg_1", inside={"usage": None})), ContextReading)
    assert one(given.take(assistant("msg_1", read=100)), ContextReading).messages == 1


def test_r09_lines_without_any_id_are_responses_of_their_own() -> None:
    given = Given()
    records = given.take(assistant(None, read=100), assistant(None, read=100))
    assert [reading.response_id for reading in every(records, ContextReading)] == [None, None]


def test_r09_message_start_is_a_reading_of_its_messages_id() -> None:
    given = Given()
    reading = one(given.take(message_start("msg_1", read=24_018)), ContextReading)
    assert (reading.response_id, reading.used_tokens) == ("msg_1", 24_020)
    assert given.take(assistant("msg_1", 2, 0, 24_018)) == []


def test_r09_message_delta_never_is_a_reading() -> None:
    given = Given()
    given.take(message_start("msg_1", read=24_018))
    assert given.take(message_delta(47)) == []
    assert given.chain().used == 24_020


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message_start"},
        {"type": "message_start", "message": {"id": "x", "model": "<synthetic>"}},
        {"type": "content_block_delta", "delta": {"text": "x"}},
        {"type": "message_stop"},
        {"type": "message_delta"},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
    ],
)
def test_r09_other_stream_events_are_ignored(event: Body) -> None:
    given = Given()
    assert given.take(stream_event(event), any_message("stream_event", event=1)) == []
    assert given.sessions() == {}


def test_r09_stop_reason_does_not_mark_the_last_line() -> None:
    given = Given()
    given.take(assistant("msg_1", read=100, inside={"stop_reason": "tool_use"}))
    assert given.take(assistant("msg_1", read=100, inside={"stop_reason": None})) == []
    late = assistant("msg_1", read=150, inside={"stop_reason": None})
    assert one(given.take(late), ContextReading).used_tokens == 150


def test_r09_codex_repeats_a_token_count_for_the_same_response() -> None:
    given = Given()
    last = {"input_tokens": 900, "cached_input_tokens": 100}
    records = given.take(token_count(last, 900, at=1), token_count(last, 900, at=2), hint="r")
    reading = one(records, ContextReading)
    assert (reading.response_id, reading.messages) == (None, 1)
    again = given.take(token_count(last, 1_800, at=3), hint="r")
    assert one(again, ContextReading).messages == 2


def test_r09_codex_without_a_total_cannot_repeat() -> None:
    first = token_count({"input_tokens": 900}, 900, at=1)
    second = token_count({"input_tokens": 900}, 900, at=2)
    for body in (first, second):
        del body["payload"]["info"]["total_token_usage"]
    assert len(every(Given().take(first, second, hint="r"), ContextReading)) == 2


def test_r10_a_synthetic_message_is_no_response_at_all() -> None:
    given = Given()
    given.take(assistant("a", read=100))
    assert given.take(assistant("b", read=900, model="<synthetic>")) == []
    assert given.take(line(assistant("c", read=900, model="<synthetic>"))) != []  # session_info
    assert (given.chain().total, given.chain().used) == (1, 100)


@pytest.mark.parametrize("name", ["isApiErrorMessage", "is_api_error_message"])
def test_r10_an_api_error_is_no_response_at_all(name: str) -> None:
    given = Given()
    assert given.take(assistant("b", read=900) | {name: True}) == []
    assert given.sessions() == {}


def test_r10_counts_that_are_all_zero_are_a_response_but_no_reading() -> None:
    given = Given()
    assert not every(given.take(assistant("a", output=50)), ContextReading)
    assert one(given.take(assistant("b", read=100)), ContextReading).messages == 2


@pytest.mark.parametrize(
    "body",
    [
        any_message("progress", data={"message": {"usage": usage(read=900)}}),
        system("task_progress", usage={"total_tokens": 18_234}, task_id="a1"),
        system("task_notification", usage={"total_tokens": 25_110}, task_id="a1"),
        system("task_started", task_id="a1"),
        any_message("tool_use_summary", usage=usage(read=900)),
    ],
)
def test_r10_progress_lines_and_task_totals_are_ignored(body: Body) -> None:
    given = Given()
    assert given.take(body) == []
    assert given.sessions() == {}


def test_r10_codex_info_null_is_no_reading() -> None:
    assert Given().take(token_count(None, 0), hint="r") == []
    assert Given().take(rollout("event_msg", {"type": "agent_message"}), hint="r") == []


def test_r10_codex_info_without_a_usage_reports_only_its_window() -> None:
    given = Given()
    body = rollout("event_msg", {"type": "token_count", "info": {"model_context_window": 272_000}})
    assert not every(given.take(body, hint="r"), ContextReading)
    assert (
        one(given.take(token_count({"input_tokens": 9}, 9), hint="r"), ContextReading).window
        == 272_000
    )


def test_r11_a_compactions_own_call_emits_nothing() -> None:
    given = Given()
    own = "acompact-fffbd0"
    given.take(
        side(user(), own),
        side(assistant("a", read=167_000), own),
        side(boundary({"trigger": "auto"}), own),
        assistant("b", read=9, parent_tool_use_id="toolu_1", agent_id=own),
        assistant("c", read=9, parent_tool_use_id="toolu_1"),
        assistant("d", read=9, parent_tool_use_id="toolu_1", agent_id=own),
    )
    assert not every(given.records, ContextReading)
    assert not every(given.records, CompactBoundary)
    assert not every(given.records, ContextWarning)


def own_call(answer: str, prompted: float, answered: float, call: str = "acompact-1") -> list[Body]:
    """The lines of a compaction's own call: the runtime's, its prompt, its answer in two lines."""
    return [
        side(user("<system-reminder>", isMeta=True), call, prompted - 500),
        side(user("Write a summary."), call, prompted),
        side(
            assistant(answer, fresh=3, creation=2_487, read=166_758, output=6), call, answered - 1
        ),
        side(assistant(answer, fresh=3, creation=2_487, read=166_758, output=900), call, answered),
    ]


AUTOMATIC = {"trigger": "auto", "pre_tokens": 167_094}


def test_r11_a_compactions_own_call_is_its_cost_and_its_duration() -> None:
    given = Given()
    given.take(*own_call("c", 100, 186.5))
    bound = one(given.take(line(boundary(AUTOMATIC), 187)), CompactBoundary)
    assert (bound.duration_ms, bound.duration_source) == (87_000, "derived")
    assert bound.receipt == ReportedReceipt(
        summary_input_tokens=169_248,
        summary_cache_read_tokens=166_758,
        summary_output_tokens=900,
    )
    assert bound.summary_cache_creation_tokens == 2_487
    other = one(given.take(line(boundary(AUTOMATIC), 188)), CompactBoundary)
    assert (other.duration_ms, other.receipt) == (None, None)


def test_r11_a_call_that_reports_no_cache_writes_gives_none() -> None:
    given = Given()
    answer = assistant("c", inside={"usage": {"input_tokens": 3, "output_tokens": 9}})
    given.take(side(user("Write a summary."), "acompact-1", 100), side(answer, "acompact-1", 186))
    bound = one(given.take(line(boundary(AUTOMATIC), 187)), CompactBoundary)
    assert bound.receipt
    assert bound.receipt.summary_input_tokens == 3
    assert bound.summary_cache_creation_tokens is None


def test_r11_a_call_whose_lines_have_one_time_was_written_at_once_and_has_no_duration() -> None:
    given = Given()
    given.take(*own_call("c", 186, 186))
    bound = one(given.take(line(boundary(AUTOMATIC), 186.3)), CompactBoundary)
    assert (bound.duration_ms, bound.duration_source) == (None, None)
    assert bound.receipt is not None


@pytest.mark.parametrize(
    ("answers", "output"),
    [
        ([(None, 6)], None),
        ([(None, 6), (None, 6)], None),
        ([(None, 6), (None, 900)], 900),
        ([(None, 6), (None, 900), (None, 900)], 900),
        ([(None, 6), ("end_turn", 6)], 6),
        ([("end_turn", 900)], 900),
        ([("end_turn", 900), (None, 6)], 900),
        ([(None, None), (None, 6)], None),
        ([("end_turn", None)], None),
    ],
)
def test_r11_a_count_that_only_begins_the_stream_is_not_what_the_summary_cost(
    answers: list[tuple[str | None, int | None]], output: int | None
) -> None:
    given = Given()
    for place, (reason, count) in enumerate(answers):
        answer = assistant("c", read=9, inside={"stop_reason": reason})
        answer["message"]["usage"]["output_tokens"] = count
        given.take(side(answer, "acompact-1", 100 + place))
    bound = one(given.take(line(boundary(AUTOMATIC), 110)), CompactBoundary)
    assert bound.receipt is not None
    assert (bound.receipt.summary_input_tokens, bound.receipt.summary_output_tokens) == (9, output)


def test_r11_the_counts_of_two_answers_say_nothing_of_each_other() -> None:
    given = Given()
    given.take(
        side(assistant("b", read=9, output=4), "acompact-1", 100),
        side(assistant("c", read=9, output=6), "acompact-1", 101),
    )
    bound = one(given.take(line(boundary(AUTOMATIC), 102)), CompactBoundary)
    assert bound.receipt is not None
    assert bound.receipt.summary_output_tokens is None


def test_r11_each_boundary_has_the_call_that_ended_before_it() -> None:
    given = Given()
    for place, begun_ms in enumerate((1_000, 2_000, 3_000)):
        given.take(
            *own_call(f"c{place}", begun_ms, begun_ms + 10 * place + 10, f"acompact-{place}")
        )
    records = given.take(
        line(boundary(AUTOMATIC), 1_011), line(assistant("a", read=9), 1_020),
        line(boundary(AUTOMATIC), 2_200),  # of a call that is not there: the second one failed
        line(boundary(AUTOMATIC), 3_031),
    )  # fmt: skip
    assert [data.duration_ms for data in every(records, CompactBoundary)] == [11_000, None, 31_000]


def test_r11_what_the_boundary_reports_itself_counts() -> None:
    given = Given()
    given.take(*own_call("c", 100, 186.5))
    bound = one(given.take(line(boundary(AUTOMATIC | {"duration_ms": 5}), 187)), CompactBoundary)
    assert (bound.duration_ms, bound.duration_source) == (5, "reported")
    assert bound.receipt is not None


def test_r11_a_call_without_a_prompt_or_a_boundary_without_a_time_has_no_duration() -> None:
    given = Given()
    given.take(*own_call("c", 100, 186.5)[2:])
    bound = one(given.take(line(boundary(AUTOMATIC), 187)), CompactBoundary)
    assert (bound.duration_ms, bound.receipt is None) == (None, False)
    given.take(*own_call("d", 300, 386))
    assert one(given.take(boundary(AUTOMATIC)), CompactBoundary).receipt is None


def test_r11_an_own_call_that_is_written_again_is_known_and_an_odd_line_says_nothing() -> None:
    given = Given()
    lines = own_call("c", 100, 186.5)
    given.take(*lines, *lines, side(any_message("progress"), "acompact-1"))
    given.take(side(plain({"role": "x"}), "acompact-1"), line(boundary(AUTOMATIC), 187))
    given.take(*lines)
    assert given.chain().calls == ()


def test_r11_own_calls_are_stored_with_the_session() -> None:
    given, store = Given(), Store()
    given.take(*own_call("c", 100, 186.5))
    store.put(None, given.session())
    given.sessions()[SESSION] = store.get()
    assert one(given.take(line(boundary(AUTOMATIC), 187)), CompactBoundary).duration_ms == 87_000


def test_r11_an_agent_that_only_contains_the_word_is_an_agent() -> None:
    records = Given().take(side(assistant("a", read=9), "my-acompact"))
    assert one(records, ContextReading).chain == "my-acompact"


def test_r11_an_openai_compactions_own_usage_is_no_reading() -> None:
    body = {
        "object": "response.compaction",
        "id": "resp_c1",
        "session_id": "s",
        "output": [{"id": "cmp_1", "type": "compaction", "encrypted_content": "opaque"}],
        "usage": {"input_tokens": 90_000, "input_tokens_details": {"cached_tokens": 0}},
    }
    records = Given().take(body)
    assert not every(records, ContextReading)
    assert every(records, CompactBoundary)


BARE: Body = {"type": "message", "role": "assistant", "id": "msg_1", "model": MODEL}


def test_r09_a_bare_answer_of_the_api_is_a_reading() -> None:
    records = session().take(BARE | {"usage": usage(5, 0, 90_000)}, hint=SESSION)
    assert one(records, ContextReading).used_tokens == 90_005


@pytest.mark.parametrize(
    "body",
    [
        BARE,
        BARE | {"usage": usage(5), "role": "user"},
        BARE | {"usage": usage(5), "model": "<synthetic>"},
        {"type": "response.completed"},
    ],
)
def test_r09_what_only_looks_like_a_bare_answer_is_none(body: Body) -> None:
    assert not every(Given().take(body, hint=SESSION), ContextReading)
