"""R7, R9, R12, R27, R28: what streams and the app server report in seldom ways."""

import pytest

from contextgauge.containers import Scout
from contextgauge.normalise import session_of
from schemas.records import ContextLimits, ContextReading, ContextReset, SessionInfo
from streams.core.projection.project import project
from tests.core.given import (
    ANSWER,
    MODEL,
    SESSION,
    START_MS,
    Body,
    Given,
    assistant,
    every,
    init,
    message_delta,
    message_start,
    one,
    record_of,
    rollout,
    session,
    stream_event,
    token_count,
    usage,
    usage_answer,
    user,
)

THREAD: Body = {"id": SESSION, "cliVersion": "0.146.0", "cwd": "/repo"}
SENT_MS = START_MS + 5_000


def answered(**result: object) -> Body:
    return {"id": 2, "result": {"thread": THREAD, **result}}


def updated(**fields: object) -> Body:
    last = {"inputTokens": 17_463, "cachedInputTokens": 11_008, "cacheWriteInputTokens": 400}
    sizes = {"last": last, "total": {"totalTokens": 17_531}, "modelContextWindow": 258_400}
    params = {"threadId": SESSION, "tokenUsage": sizes}
    return {"method": "thread/tokenUsage/updated", "params": params, **fields}


def ended(**counts: int) -> Body:
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": counts}
    return stream_event(delta)


def test_r28_a_notification_has_the_time_at_which_it_was_sent() -> None:
    given = session(answered(), updated(emittedAtMs=SENT_MS))
    assert record_of(given.records, ContextReading).time_ms == SENT_MS


def test_r28_the_time_of_an_item_comes_before_that_of_its_notification() -> None:
    item = {"threadId": SESSION, "startedAtMs": START_MS, "item": {"type": "contextCompaction"}}
    records = session({"method": "item/started", "params": item, "emittedAtMs": SENT_MS}).records
    assert records[0].time_ms == START_MS


def test_r12_the_answer_to_a_threads_start_names_its_model() -> None:
    given = session(answered(model="gpt-5.6-sol"), updated())
    facts = one(given.records, SessionInfo)
    assert (facts.runtime, facts.runtime_version, facts.cwd) == ("codex", "0.146.0", "/repo")
    assert facts.model == "gpt-5.6-sol"
    reading = one(given.records, ContextReading)
    assert (reading.model, reading.window) == ("gpt-5.6-sol", 258_400)


def test_r12_an_answer_without_a_model_has_the_threads_facts() -> None:
    assert one(session(answered()).records, SessionInfo).model is None


@pytest.mark.parametrize("result", [None, "ok", {}, {"thread": {}}, {"data": []}])
def test_r1_another_answer_says_nothing(result: object) -> None:
    assert not Given().take({"id": 3, "result": result}, hint=SESSION)
    body: Body = {"id": 3, "result": result}
    assert session_of(body, None) is None


def test_r7_what_codex_writes_to_the_cache_is_inside_its_input() -> None:
    last = {"input_tokens": 30_000, "cached_input_tokens": 10_000}
    given = session()
    given.take(rollout("session_meta", {"id": SESSION}), hint=SESSION)
    count_message = token_count({**last, "cache_write_input_tokens": 18_000}, 1)
    reading = one(given.take(count_message, hint=SESSION), ContextReading)
    assert (reading.used_tokens, reading.input_tokens) == (30_000, 2_000)
    assert (reading.cache_creation_tokens, reading.cache_read_tokens) == (18_000, 10_000)
    count_message = token_count({**last, "cache_write_input_tokens": 90_000}, 2)
    cut = one(given.take(count_message, hint=SESSION), ContextReading)
    assert (cut.used_tokens, cut.input_tokens, cut.cache_creation_tokens) == (30_000, 0, 20_000)


def test_r7_parts_without_a_whole_are_what_is_known() -> None:
    given = Given()
    count_message = token_count({"cache_write_input_tokens": 400}, 1)
    reading = one(given.take(count_message, hint=SESSION), ContextReading)
    assert (reading.used_tokens, reading.cache_creation_tokens) == (400, 400)
    assert (reading.input_tokens, reading.cache_read_tokens) == (None, None)


def test_r27_turns_that_codex_rolls_back_leave_the_size_unknown() -> None:
    given = Given()
    rolled_back = rollout("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    given.take(token_count({"input_tokens": 90_000}, 1), hint=SESSION)
    reset = one(given.take(rolled_back, hint=SESSION), ContextReset)
    assert reset.reason == "rollback"
    assert (given.chain().used, given.chain().messages) == (None, 1)
    view = None
    for offset, record in enumerate(given.records):
        view = project(view, record, offset)
    assert view is not None
    chain = view.chains["main"]
    assert (chain.used_tokens, chain.messages, chain.state) == (None, 1, "unknown")
    after = given.take(token_count({"input_tokens": 60_000}, 2), hint=SESSION)
    assert one(after, ContextReading).messages == 2


def test_r9_a_size_that_only_the_end_reports_is_the_responses() -> None:
    given = session(message_start("msg_1"))
    start = stream_event(
        {"type": "message_start", "message": {"id": "msg_2", "model": MODEL, "usage": usage()}}
    )
    assert not every(given.take(start), ContextReading)
    records = given.take(ended(input_tokens=40, cache_read_input_tokens=90_000, output_tokens=7))
    reading = one(records, ContextReading)
    assert (reading.used_tokens, reading.response_id, reading.messages) == (90_040, None, 2)
    assert not given.take(ended(input_tokens=50, output_tokens=9))
    assert given.chain().output == 9


def test_r9_the_end_of_a_measured_response_is_no_reading() -> None:
    given = session(message_start("msg_1", read=1_000))
    assert not given.take(message_delta(12))


def test_r9_an_end_without_input_counts_measures_nothing() -> None:
    given = session(assistant("msg_1"))
    assert not given.take(ended(input_tokens=0, output_tokens=7))
    assert not given.take(ended(output_tokens=8))
    assert given.chain().output == 8


def test_r9_the_line_that_repeats_the_ends_counts_is_no_second_reading() -> None:
    given = session(assistant("msg_1"))
    assert every(given.take(ended(input_tokens=40, output_tokens=7)), ContextReading)
    assert not every(given.take(assistant("msg_1", fresh=40)), ContextReading)


def test_r10_a_context_usage_answer_of_no_tokens_is_no_size() -> None:
    given = session(init())
    records = given.take(usage_answer(**{**ANSWER, "totalTokens": 0}), hint=SESSION)
    assert one(records, ContextLimits).total_tokens is None


def test_r1_a_stream_gives_its_session_to_the_lines_before_it() -> None:
    scout = Scout()
    assert not scout.is_known
    for body in (usage_answer(**ANSWER), init(), user()):
        scout.look(body)
    scout.note({"sessionId": SESSION})
    assert scout.is_known
    assert not scout.is_settled
    assert scout.container("file", "fallback").hint == SESSION


def test_r1_lines_before_several_sessions_belong_to_none_of_them() -> None:
    scout = Scout()
    scout.look(usage_answer(**ANSWER))
    scout.look(init())
    scout.note({"session_id": "another"})
    assert scout.is_settled
    assert scout.container("file", None).hint is None


def test_r1_a_stream_that_names_no_session_has_the_callers() -> None:
    scout = Scout()
    scout.look(usage_answer(**ANSWER))
    assert scout.container("file", "fallback").hint == "fallback"


def test_the_runtimes_own_account_keeps_the_size_that_it_is_of() -> None:
    given = session(init(), assistant(read=50_000))
    given.take(usage_answer(**ANSWER), hint=SESSION)
    view = None
    for offset, record in enumerate(given.records):
        view = project(view, record, offset)
    assert view is not None
    assert (view.chains["main"].categories_tokens, view.chains["main"].used_tokens) == (
        122_300,
        50_000,
    )


def test_r09_events_of_the_apis_stream_need_no_frame() -> None:
    start = {"type": "message_start", "message": {"id": "msg_1", "usage": usage(5, 0, 90_000)}}
    end = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}}
    given = Given()
    given.take(start, end, start | {"message": {"id": "msg_2", "usage": usage(9)}}, hint=SESSION)
    sizes = [
        (reading.used_tokens, reading.previous_output_tokens)
        for reading in every(given.records, ContextReading)
    ]
    assert sizes == [(90_005, None), (9, 7)]
