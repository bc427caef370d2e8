"""Seed 004: context management. What its document says, by its profile."""

from dataclasses import replace

import pytest

from contextgauge.compaction import (
    CompactionDone,
    Compactor,
    ContextWarned,
    CumulativeTokens,
    History,
    Message,
    ModelCall,
    load_history,
    store_history,
)
from contextgauge.compaction.displays import (
    ContextStatus,
    context_box,
    header_text,
    status_text,
    warning_line,
)
from contextgauge.compaction.engine.request_size import window_of_call
from contextgauge.compaction.engine.trigger import Due, Idle, Warn
from contextgauge.compaction.messages import ApiUsage
from contextgauge.compaction.profiles import SEED_004
from tests.compaction.conversations import call, result, said, session
from tests.compaction.test_compactor import Log, Scripted, talk

CALL = ModelCall(window_tokens=128_000)


def answered(tokens: int, count: int = 30) -> History:
    """A conversation whose last answer reported that it and its context have so many tokens."""
    history = History(talk(count))
    history.append(said("assistant", "ok", usage=ApiUsage(tokens - 100, 100)))
    return history


def compactor(log: Log | None = None) -> Compactor:
    return Compactor(
        profile="seed-004", summariser=Scripted("What was done."), hooks=(log or Log()).hooks()
    )


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4", 8_192),
        ("gpt-4-turbo", 128_000),
        ("gpt-4o", 128_000),
        ("claude-3-opus", 200_000),
        ("claude-3-sonnet", 200_000),
        ("claude-3-haiku", 200_000),
        ("gemini-1.5-pro", 2_000_000),
        ("gemini-1.5-flash", 1_000_000),
    ],
)
def test_windows_of_the_seeds_models(model: str, window: int) -> None:
    known = window_of_call(SEED_004, ModelCall(model=model), None)
    assert known is not None
    assert known.tokens == window


@pytest.mark.parametrize(
    ("tokens", "decision"),
    [
        (102_399, Idle("below_threshold")),
        (102_400, Warn()),
        (115_199, Warn()),
        (115_200, Due(overflow=False)),
    ],
)
async def test_it_warns_at_exactly_80_and_compacts_at_exactly_90_percent(
    tokens: int, decision: object
) -> None:
    prepared = await compactor().before_call(answered(tokens), CALL)
    assert prepared.decision == decision


async def test_the_events_of_a_conversation_come_in_order() -> None:
    log = Log()
    history = answered(103_000)
    engine = compactor(log)
    await engine.before_call(history, CALL)
    history.append(said("assistant", "ok", usage=ApiUsage(116_000, 100)))
    prepared = await engine.before_call(history, CALL)
    assert log.names() == ["context-warning", "auto-compacting", "compaction-complete"]
    warned, done = log.events[0], log.events[-1]
    assert isinstance(warned, ContextWarned)
    assert isinstance(done, CompactionDone)
    assert warning_line(warned.tokens, warned.window.tokens).startswith("⚠️ Context usage at 80% -")
    assert done.receipt is prepared.receipt
    assert done.receipt.tokens_after < done.receipt.tokens_before


async def test_many_quick_answers_are_warned_of_once() -> None:
    log = Log()
    history, engine = answered(103_000), compactor(log)
    for number in range(10):
        history.append(said("assistant", "ok", usage=ApiUsage(103_000 + number, 100)))
        await engine.before_call(history, CALL)
    assert log.names() == ["context-warning"]


async def test_after_a_compaction_it_is_warned_of_again() -> None:
    log = Log()
    history, engine = answered(103_000), compactor(log)
    await engine.before_call(history, CALL)
    await engine.compact(history, CALL)
    history.append(said("assistant", "ok", usage=ApiUsage(104_000, 100)))
    await engine.before_call(history, CALL)
    assert log.names() == ["context-warning", "compaction-complete", "context-warning"]


async def test_without_reported_usage_four_characters_are_a_token() -> None:
    history = History([said("user", "x" * 4 * 60_000), said("user", "x" * 4 * 42_400)])
    prepared = await compactor().before_call(history, CALL)
    assert prepared.decision == Warn()
    assert history.tokens == CumulativeTokens()


async def test_a_stored_session_keeps_its_counts_and_does_not_warn_again() -> None:
    log = Log()
    history = answered(103_000)
    await compactor(log).before_call(history, CALL)
    again = load_history(store_history(history))
    await compactor(log).before_call(again, CALL)
    assert log.names() == ["context-warning"]
    assert again.tokens == history.tokens
    assert (again.tokens.input, again.tokens.output, again.tokens.total) == (102_900, 100, 103_000)


async def test_a_fork_has_the_counts_of_what_it_holds() -> None:
    history = answered(50_000)
    fork = history.fork()
    fork.append(said("assistant", "ok", usage=ApiUsage(60_000, 5)))
    assert (history.tokens.total, fork.tokens.total) == (50_000, 110_005)
    assert history.fork("cg-m3").tokens.total == 0


async def test_counts_of_the_session_outlive_a_compaction() -> None:
    history = answered(116_000)
    await compactor().before_call(history, CALL)
    assert history.rounds == 1
    assert history.tokens.total == 116_000


async def test_a_very_short_session_is_shown_and_left_alone() -> None:
    history = History([said("user", "hello")])
    assert await compactor().compact(history, CALL) is None
    status = ContextStatus(window_tokens=128_000, conversation_tokens=4, active=1, total=1)
    assert header_text(1, 1, status.tokens, 128_000) == "Context: 1/1 msgs (0%)"
    assert status_text(status.tokens, 128_000) == "Context: 0% (4/128K tokens)"
    assert "Status: Uncompressed" in context_box(status)


async def test_old_results_are_cleared_from_100_000_tokens_but_for_three_and_memory() -> None:
    messages = [said("user", "go")]
    for number in range(8):
        name = "memory" if number == 0 else "read"
        messages += [call(f"c{number}", name), result(f"c{number}", f"{number} " * 25_000, name)]
    history = History(messages)
    prepared = await compactor().before_call(history, CALL)
    assert prepared.decision == Idle("below_threshold")
    cleared = [
        index
        for index, each in enumerate(history.active)
        if each.results and "cleared to save context" in each.results[0].text
    ]
    assert cleared == [4]
    history.extend(
        [call("c8"), result("c8", "8 " * 25_000), call("c9"), result("c9", "9 " * 25_000)]
    )
    await compactor().before_call(history, CALL)
    texts = [each.results[0].text for each in history.active if each.results]
    assert "cleared" not in texts[0]
    assert all("cleared" not in each for each in texts[-3:])
    assert history.rounds == 0


async def test_the_first_layer_prunes_and_the_second_summarises() -> None:
    pruned = History(session(40, characters=4_000))
    small = replace(SEED_004, clear_at_tokens=None)
    engine = Compactor(profile=small, summariser=Scripted("What was done."))
    first = await engine.before_call(pruned, ModelCall(window_tokens=40_000))
    assert first.receipt is not None
    assert {each.rung for each in first.receipt.steps} == {"clear-results"}
    talked = History(talk(400))
    second = await engine.before_call(talked, ModelCall(window_tokens=40_000))
    assert second.receipt is not None
    assert "summarise" in {each.rung for each in second.receipt.steps}


async def test_the_system_prompt_and_memory_stay() -> None:
    history = History([said("system", "You are an agent."), *talk(3)])
    memory = history.append(said("user", "Memory: deploy on Fridays never."))
    history.extend(talk(40))
    receipt = await compactor().compact(history, replace(CALL, keep_ids=frozenset({memory.id})))
    assert receipt is not None
    assert history.active[0].text == "You are an agent."
    assert memory in history.active
    latest: list[Message] = list(history.everything)[-11:-1]
    assert list(history.active)[-10:] == latest
