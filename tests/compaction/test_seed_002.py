"""Seed 002: a compaction layer. What its document says, by its profile."""

import json
from collections.abc import Sequence
from typing import ClassVar

import pytest

from contextgauge.compaction import (
    CompactionDone,
    Compactor,
    History,
    Message,
    ModelCall,
    Prepared,
    SummaryError,
    SummaryRequest,
)
from contextgauge.compaction.counting import Seed002Counter
from contextgauge.compaction.displays import log_line
from contextgauge.compaction.engine.request_size import window_of_call
from contextgauge.compaction.engine.trigger import Idle, Unreachable
from contextgauge.compaction.messages import ModelRequest, Text, ToolCall
from contextgauge.compaction.profiles import SEED_002
from contextgauge.compaction.summarisers.prompts import render
from tests.compaction.conversations import call, orphans, result, said
from tests.compaction.test_compactor import Log, Scripted, talk

CALL = ModelCall(model="gpt-4o")
COUNT = Seed002Counter()
SUMMARY = "## Session Summary (Round 1)"


def sized(tokens: int, count: int = 60) -> list[Message]:
    """A system message and talk, together of exactly so many tokens by the seed's count."""
    messages = [said("system", "You are an agent."), *talk(count, 400)]
    missing = tokens - sum(map(COUNT.message, messages))
    text = messages[3].text + "x" * 4 * missing
    return [*messages[:3], Message(messages[3].role, (Text(text),)), *messages[4:]]


async def step(
    messages: Sequence[Message] | History, *answers: str | SummaryError, call_: ModelCall = CALL
) -> Prepared:
    history = messages if isinstance(messages, History) else History(messages)
    compactor = Compactor(profile="seed-002", summariser=Scripted(*answers or (SUMMARY,)))
    return await compactor.before_call(history, call_)


@pytest.mark.parametrize(("tokens", "due"), [(93_599, False), (93_600, True)])
async def test_compaction_is_due_at_exactly_the_threshold(tokens: int, due: bool) -> None:
    messages = sized(tokens)
    assert sum(map(COUNT.message, messages)) == tokens
    assert ((await step(messages)).receipt is not None) == due


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o", 128_000),
        ("gpt-4-turbo", 128_000),
        ("gpt-4", 8_192),
        ("claude-3-5-sonnet-20240620", 200_000),
        ("claude-3-haiku-20240307", 200_000),
        ("a-model-that-nobody-knows", 128_000),
    ],
)
def test_windows_of_the_seeds_models(model: str, window: int) -> None:
    known = window_of_call(SEED_002, ModelCall(model=model), None)
    assert known is not None
    assert known.tokens == window


async def test_a_window_below_the_reserves_is_reported_as_unreachable() -> None:
    """The seed's threshold for `gpt-4` is negative: it would compact before every call."""
    assert (await step(talk(40), call_=ModelCall(model="gpt-4"))).decision == Unreachable()


@pytest.mark.parametrize(("count", "compacted"), [(10, False), (11, True)])
async def test_eleven_messages_or_fewer_are_left_alone(count: int, compacted: bool) -> None:
    history = History([said("system", "s"), *talk(count)])
    compactor = Compactor(profile="seed-002", summariser=Scripted("short"))
    assert (await compactor.compact(history, CALL) is not None) == compacted


@pytest.mark.parametrize("count", [0, 1, 11])
async def test_without_a_system_message_the_first_one_stays(count: int) -> None:
    history = History(talk(count))
    compactor = Compactor(profile="seed-002", summariser=Scripted("short"))
    assert await compactor.compact(history, CALL) is None
    history.extend(talk(12))
    first = history.active[0]
    assert await compactor.compact(history, CALL) is not None
    assert history.active[0] == first
    assert history.active[1].text == "short"
    assert history.active[1].compaction is not None


async def test_an_empty_conversation_is_returned_as_it_is() -> None:
    assert await step([]) == Prepared((), Idle("below_threshold"))


async def test_of_50_messages_12_are_left_with_the_summary_second() -> None:
    messages = [said("system", "s"), said("user", "Build an app.")]
    for number in range(24):
        messages += [call(f"c{number}"), result(f"c{number}", "x" * 17_000)]
    prepared = await step(messages)
    assert len(messages) == 50
    assert [each.role for each in prepared.messages] == [
        "system",
        "assistant",
        *["assistant", "tool"] * 5,
    ]
    marker = prepared.messages[1].compaction
    assert marker is not None
    assert marker.summary == SUMMARY
    assert [each.blocks for each in prepared.messages[2:]] == [
        each.blocks for each in messages[-10:]
    ]


async def test_a_result_at_the_boundary_brings_its_call() -> None:
    messages = sized(90_000, 40)
    messages += [
        Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}"))),
        result("a", "x" * 20_000),
        result("b"),
        *talk(8),
    ]
    prepared = await step(messages)
    assert prepared.receipt is not None
    assert len(prepared.messages) == 2 + 11
    assert orphans(list(prepared.messages)) == set()


async def test_nothing_is_summarised_between_a_summary_and_the_latest_messages() -> None:
    history = History(sized(95_000))
    compactor = Compactor(profile="seed-002", summariser=Scripted(SUMMARY))
    assert await compactor.compact(history, CALL) is not None
    before = list(history.active)
    assert await compactor.compact(history, CALL) is None
    assert list(history.active) == before


async def test_a_failed_summary_leaves_the_messages() -> None:
    history = History(sized(127_000))
    before = list(history.active)
    assert list((await step(history, SummaryError("500"))).messages) == before


async def test_later_rounds_are_given_the_former_summary_and_replace_it() -> None:
    summariser = Scripted("## Session Summary one", "## Session Summary two", "three")
    compactor = Compactor(profile="seed-002", summariser=summariser)
    history = History(sized(95_000))
    for _ in range(3):
        await compactor.compact(history, CALL)
        history.extend(talk(12))
    assert [each.number for each in summariser.requests] == [1, 2, 3]
    assert [each.previous for each in summariser.requests] == [
        None,
        "## Session Summary one",
        "## Session Summary two",
    ]
    assert all(
        message.compaction is None for each in summariser.requests for message in each.messages
    )
    assert [each.compaction.summary for each in history.active if each.compaction] == ["three"]


async def test_the_task_is_the_first_text_of_the_user_among_the_messages() -> None:
    """In later rounds that is a later one, as in the seed: the former summary has the first."""
    summariser = Scripted("one", "two")
    compactor = Compactor(profile="seed-002", summariser=summariser)
    history = History([said("system", "s"), said("user", "Build it."), *talk(20)])
    await compactor.compact(history, CALL)
    history.extend(talk(12))
    await compactor.compact(history, CALL)
    assert [each.task[:10] for each in summariser.requests] == ["Build it.", "10: word wo"[:10]]


def test_without_a_task_the_prompt_says_so() -> None:
    messages = [said("assistant", "hello")]
    request = SummaryRequest(messages, ModelRequest(messages), None, "", 1, "seed-002")
    assert "## Original User Task\nUnknown task\n" in render(request).messages[0].text


async def test_an_event_has_the_figures_and_ids_of_what_was_compacted() -> None:
    log = Log()
    history = History(sized(95_000))
    compactor = Compactor(profile="seed-002", summariser=Scripted(SUMMARY), hooks=log.hooks())
    before = [each.id for each in history.active]
    await compactor.before_call(history, CALL)
    done = log.events[-1]
    assert isinstance(done, CompactionDone)
    receipt = done.receipt
    assert (receipt.number, receipt.tokens_before) == (1, 95_000)
    assert receipt.tokens_after == sum(map(COUNT.message, history.active))
    assert receipt.archived_ids == tuple(before[1:51])
    assert history.active[1].compaction is not None
    assert history.active[1].compaction.summary == SUMMARY
    assert done.seed_002() == {
        "round": 1,
        "tokensBefore": 95_000,
        "tokensAfter": receipt.tokens_after,
        "summaryContent": SUMMARY,
        "compactedMessageIds": before[1:51],
    }
    assert log_line(1, receipt.tokens_before, receipt.tokens_after, receipt.messages_archived) == (
        f"[Compaction] Round 1: 95000 → {receipt.tokens_after} tokens (50 messages summarized)"
    )


async def test_only_the_messages_count_and_no_reported_size() -> None:
    heavy = ModelCall(model="gpt-4o", system="s" * 400_000, tools=(json.dumps("t" * 40_000),))
    assert (await step(sized(93_000), call_=heavy)).decision == Idle("below_threshold")


class _Counting(Seed002Counter):
    """Remembers what it counted."""

    counted: ClassVar[list[str]] = []

    def message(self, message: Message) -> int:
        self.counted.append(message.id)
        return super().message(message)


async def test_each_message_is_counted_once_in_a_step() -> None:
    history = History(sized(95_000))
    ids = [each.id for each in history.active]
    counter = _Counting()
    compactor = Compactor(profile="seed-002", summariser=Scripted(SUMMARY), counter=counter)
    assert (await compactor.before_call(history, CALL)).receipt is not None
    assert sorted(each for each in counter.counted if each in ids) == sorted(ids)
