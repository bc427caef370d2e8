"""Codex beyond its readings (R1, R6, R9, R12, R20, R29): rollouts, the app server, `codex exec`."""

import pytest

from contextgauge.normalise.codex.lines import copy_key
from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionProgress,
    CompactionStart,
    CompactionTiming,
    ContextLimits,
    ContextReading,
    ContextWarning,
    SessionInfo,
)
from tests.core.given import (
    START_MS,
    Body,
    Given,
    every,
    kinds,
    limits,
    one,
    rollout,
    token_count,
)

THREAD = "0199-thread"
MODEL = "gpt-5-codex"


def turn_context(model: str = MODEL, at: float = 0) -> Body:
    return rollout("turn_context", {"model": model, "cwd": "/repo"}, at)


def task_started(window: int | None) -> Body:
    return rollout("event_msg", {"type": "task_started", "model_context_window": window})


def compacted(at: float = 0) -> Body:
    return rollout("compacted", {"message": "", "compaction_response_id": f"resp_{at}"}, at)


def item_completed(duration_ms: int | None = 3_069, **item: object) -> Body:
    payload: Body = {
        "type": "item_completed",
        "thread_id": THREAD,
        "item": {"type": "ContextCompaction", "id": "i1"} | item,
        "completed_at_ms": START_MS + 9_000,
    }
    if duration_ms is not None:
        payload["started_at_ms"] = START_MS + 9_000 - duration_ms
    return rollout("event_msg", payload)


def notified(method: str, **params: object) -> Body:
    return {"method": method, "params": {"threadId": THREAD, **params}}


def item(event: str, at: int, item_id: str = "i1", **params: object) -> Body:
    """Return a notification of a compaction's item; `at` in seconds."""
    time = {"startedAtMs" if event == "started" else "completedAtMs": START_MS + at * 1_000}
    body = {"type": "contextCompaction", "id": item_id}
    return notified(f"item/{event}", turnId="t1", item=body, **time, **params)


def token_usage(used: int, total: int, **extra: object) -> Body:
    usage = {
        "last": {"inputTokens": used, "cachedInputTokens": used // 2, "outputTokens": 7},
        "total": {"inputTokens": total, "totalTokens": total},
        "modelContextWindow": 272_000,
    }
    return notified("thread/tokenUsage/updated", turnId="t1", tokenUsage=usage, **extra)


def rolled(*bodies: Body) -> Given:
    """Return a rollout's session after these lines."""
    given = Given()
    given.take(*bodies, hint="r")
    return given


def windows(given: Given) -> list[tuple[str | None, int | None]]:
    return [(record.model, record.window) for record in every(given.records, ContextLimits)]


def test_r12_a_tasks_window_is_the_next_turns_models() -> None:
    given = rolled(turn_context("gpt-4"), task_started(258_400), turn_context())
    assert windows(given) == [("gpt-4", 8_192), (MODEL, 258_400)]
    given.take(turn_context("gpt-4", at=9), hint="r")
    assert windows(given)[-1] == ("gpt-4", 8_192), "it was never the other model's"


def test_r12_without_another_turn_a_tasks_window_is_the_current_models() -> None:
    given = rolled(turn_context(), task_started(258_400))
    assert windows(given) == [(MODEL, 200_000)]
    records = given.take(token_count({"input_tokens": 25_840}, 25_840, window=None), hint="r")
    assert limits(one(records, ContextLimits)) == (258_400, "runtime")
    assert one(records, ContextReading).used_percent == 10.0


def test_r12_a_tasks_window_serves_one_turn_only() -> None:
    given = rolled(turn_context(), task_started(258_400), turn_context(at=1))
    given.take(turn_context("gpt-4", at=2), hint="r")
    assert windows(given) == [(MODEL, 200_000), (MODEL, 258_400), ("gpt-4", 8_192)]


def test_r12_a_readings_own_window_comes_before_its_tasks() -> None:
    given = rolled(turn_context(), task_started(258_400))
    reading = given.take(token_count({"input_tokens": 9}, 9, window=272_000), hint="r")
    assert one(reading, ContextReading).window == 272_000


def test_r12_a_repeated_count_is_no_reading_between_a_task_and_its_turn() -> None:
    count = token_count({"input_tokens": 100}, 100, window=1_000)
    again = token_count({"input_tokens": 100}, 100, window=1_000, at=1)
    given = rolled(turn_context("aaa"), count, task_started(5_000), again, turn_context("bbb"))
    assert windows(given)[-1] == ("bbb", 5_000)


@pytest.mark.parametrize("window", [None, 0, "258400"])
def test_r12_a_task_without_a_window_says_nothing(window: int | None) -> None:
    assert not rolled(turn_context()).take(task_started(window), hint="r")


def test_r29_an_items_duration_is_its_compactions() -> None:
    given = rolled(token_count({"input_tokens": 200_000}, 200_000), compacted())
    boundary_id = next(r.id for r in given.records if isinstance(r.data, CompactBoundary))
    timing = one(given.take(item_completed(), hint="r"), CompactionTiming)
    assert (timing.boundary_id, timing.duration_ms, timing.duration_source) == (
        boundary_id, 3_069, "reported"
    )  # fmt: skip
    later = given.take(token_count({"input_tokens": 9_000}, 209_000), hint="r")
    assert one(later, CompactionComplete).duration_ms == 3_069


def test_r29_a_duration_may_come_after_the_completion() -> None:
    given = rolled(compacted(), token_count({"input_tokens": 9_000}, 209_000))
    assert one(given.records, CompactionComplete).duration_ms is None
    assert one(given.take(item_completed(), hint="r"), CompactionTiming).duration_ms == 3_069


def test_r29_a_boundary_has_one_timing_at_most() -> None:
    given = rolled(compacted(), item_completed())
    assert not given.take(item_completed(4_000), hint="r")


@pytest.mark.parametrize(
    "line",
    [
        item_completed(None),
        item_completed(-1),
        item_completed(0),
        item_completed(type="AgentMessage"),
        rollout("event_msg", {"type": "item_completed", "item": None}),
    ],
)
def test_r29_without_a_duration_of_a_compaction_there_is_no_timing(line: Body) -> None:
    assert not rolled(compacted()).take(line, hint="r")


def test_r29_a_duration_without_a_boundary_is_nothing() -> None:
    assert not rolled().take(item_completed(), hint="r")


def test_r29_the_compacting_calls_own_usage_is_no_reading() -> None:
    usage = {"input_tokens": 250_000, "output_tokens": 900}
    record = rollout("token_usage_record", {"response_id": "resp_0", "usage": usage})
    given = rolled(token_count({"input_tokens": 200_000}, 200_000), record, compacted())
    assert [reading.used_tokens for reading in every(given.records, ContextReading)] == [200_000]


def test_r10_counts_of_zero_after_a_compaction_are_no_reading() -> None:
    """Their total is the thread's, or an estimate: never the size."""
    given = rolled(token_count({"input_tokens": 200_000}, 200_000), compacted())
    empty = token_count({"input_tokens": 0, "cached_input_tokens": 0, "total_tokens": 4_623}, 11)
    assert not every(given.take(empty, hint="r"), ContextReading)
    assert not every(given.records, ContextWarning)[1:]


def test_r29_the_app_servers_compaction_has_a_start_a_boundary_and_a_duration() -> None:
    given = Given()
    given.take(token_usage(200_000, 200_000))
    assert one(given.records, ContextReading).used_tokens == 200_000
    assert limits(every(given.records, ContextLimits)[-1]) == (272_000, "runtime")
    start = one(given.take(item("started", 10)), CompactionStart)
    completed = given.take(item("completed", 13))
    boundary = one(completed, CompactBoundary)
    assert (boundary.attempt_id, boundary.duration_ms, boundary.duration_source) == (
        start.attempt_id, 3_000, "paired"
    )  # fmt: skip
    assert (boundary.pre_tokens, boundary.trigger) == (200_000, None)
    assert not given.take(notified("thread/compacted", turnId="t1"))
    assert one(given.take(token_usage(9_000, 209_000)), CompactionComplete).tokens_saved == 191_000


def test_r11_a_usage_between_an_items_start_and_end_is_the_compacting_calls() -> None:
    given = Given()
    given.take(token_usage(240_000, 240_000))
    start = one(given.take(item("started", 10)), CompactionStart)
    assert not given.take(token_usage(241_000, 481_000), token_usage(0, 482_000))
    completed = given.take(item("completed", 13), notified("thread/compacted", turnId="t1"))
    boundary = one(completed, CompactBoundary)
    assert (boundary.attempt_id, boundary.duration_ms) == (start.attempt_id, 3_000)
    assert boundary.pre_tokens == 240_000
    again = token_usage(241_000, 481_000, note="sent once more")
    assert not every(given.take(again), ContextReading), "it is known by its total"
    assert one(given.take(token_usage(9_000, 490_000)), ContextReading).used_tokens == 9_000


def test_r29_a_duration_is_never_an_earlier_boundarys() -> None:
    given = Given()
    given.take(notified("thread/compacted", turnId="t1"), token_usage(9, 9))
    given.take(item("started", 10), notified("thread/compacted", turnId="t2", timestamp=13))
    timing = every(given.take(item("completed", 13, startedAtMs=START_MS)), CompactionTiming)
    second = every(given.records, CompactBoundary)[-1]
    assert (second.number, [t.duration_ms for t in timing]) == (2, [13_000])


def test_r29_the_two_forms_are_one_boundary_in_either_order() -> None:
    given = Given()
    assert kinds(given.take(notified("thread/compacted", turnId="t1"))) == ["compact_boundary"]
    second = given.take(item("completed", 13, startedAtMs=START_MS + 11_000))
    assert one(second, CompactionTiming).duration_ms == 2_000
    assert kinds(second) == ["compaction_timing"]


@pytest.mark.parametrize("form", ["thread/compacted", "item/completed"])
def test_r29_one_form_alone_is_a_boundary_each_time(form: str) -> None:
    given = Given()
    for number in range(3):
        body = {"type": "contextCompaction", "id": f"i{number}"}
        records = given.take(notified(form, turnId=f"t{number}", item=body))
        assert one(records, CompactBoundary).number == number + 1


def test_r29_after_a_reading_the_other_form_is_another_compaction() -> None:
    given = Given()
    given.take(notified("thread/compacted", turnId="t1"), token_usage(9_000, 9_000))
    assert one(given.take(item("completed", 20)), CompactBoundary).number == 2


def test_r29_after_a_start_the_other_form_is_another_compaction() -> None:
    given = Given()
    given.take(item("completed", 13), item("started", 20, "i2"))
    second = one(given.take(notified("thread/compacted", turnId="t2")), CompactBoundary)
    assert (second.number, second.attempt_id is None) == (2, False)


def test_r18_a_turns_end_loses_the_app_servers_attempt() -> None:
    given = Given()
    given.take(item("started", 10))
    lost = one(given.take(notified("turn/completed", turn={"id": "t1"})), CompactionFailed)
    assert lost.outcome == "unknown"


@pytest.mark.parametrize("kind", ["agentMessage", "commandExecution", None])
def test_r29_other_items_move_nothing(kind: str | None) -> None:
    body = notified("item/started", item={"type": kind, "id": "i1"})
    assert not Given().take(body)


def test_r01_a_notification_belongs_to_its_thread() -> None:
    given = Given()
    given.take(token_usage(9, 9), token_usage(8, 8) | {"params": {
        **token_usage(8, 8)["params"], "threadId": "other"}})  # fmt: skip
    assert {record.data.session_id for record in given.records} == {THREAD, "other"}


def test_records_the_app_server_reports_facts_of_its_thread() -> None:
    thread = {"id": THREAD, "cwd": "/repo", "cliVersion": "0.157.1"}
    info = one(
        Given().take({"method": "thread/started", "params": {"thread": thread}}), SessionInfo
    )
    assert (info.session_id, info.runtime, info.runtime_version, info.cwd) == (
        THREAD, "codex", "0.157.1", "/repo"
    )  # fmt: skip


def test_r06_the_usage_of_codex_exec_is_a_sum_and_no_reading() -> None:
    given = Given()
    started = given.take({"type": "thread.started", "thread_id": THREAD})
    assert one(started, SessionInfo).runtime == "codex"
    usage = {"input_tokens": 900_000, "cached_input_tokens": 800_000, "output_tokens": 9}
    assert not given.take({"type": "turn.completed", "usage": usage}, hint=THREAD)


def test_r15_a_started_item_is_no_heartbeat_of_another() -> None:
    given = Given()
    given.take(item("started", 0))
    assert every(given.take(item("started", 30, "i2")), CompactionProgress)
    late = given.take(item("started", 400, "i3"))
    assert kinds(late) == ["compaction_failed", "compaction_start"]


@pytest.mark.parametrize(
    "body",
    [
        {"type": "thread.started"},
        {"method": "item/started"},
        {"method": "turn/started", "params": {"threadId": THREAD}},
    ],
)
def test_r03_other_messages_of_codex_say_nothing(body: Body) -> None:
    assert not Given().take(body, hint=THREAD)


def test_r28_a_head_without_an_id_names_no_thread() -> None:
    given = Given()
    given.take(rollout("session_meta", {"cwd": "/repo", "cli_version": "0.120.0"}), hint=THREAD)
    assert one(given.records, SessionInfo).cwd == "/repo"
    assert all(chain.thread is None for chain in given.session(THREAD).chains.values())


@pytest.mark.parametrize("payload", [{"type": "agent_message"}, {"type": "token_count"}])
def test_r30_what_has_no_size_and_is_no_compaction_is_not_looked_for_in_the_origin(
    payload: Body,
) -> None:
    assert copy_key(rollout("event_msg", payload)) is None


def test_r30_a_size_and_a_compaction_are_known_in_a_copy_whatever_its_time() -> None:
    size = {"type": "token_count", "info": {"total_token_usage": {"total_tokens": 9}}}
    keys = {copy_key(rollout("event_msg", size, at=second)) for second in (1, 2)}
    keys |= {copy_key(rollout("compacted", {"message": "x"}, at=second)) for second in (1, 2)}
    assert len(keys) == 2
    assert None not in keys
