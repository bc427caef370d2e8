"""When a summariser rests: after failures of its provider, not of one conversation."""

from dataclasses import replace

import pytest

from contextgauge.compaction.ports import SummaryError, SummaryRequest
from contextgauge.compaction.summarisers import Answer
from contextgauge.compaction.summarisers.failures import ProviderFailed, TooLarge
from tests.compaction.summary_kit import GOOD, HandClock, ScriptedModel, good, request_of
from tests.compaction.test_model_summariser import AWAY, _error, _summariser


def of(task: str) -> SummaryRequest:
    return replace(request_of(), task=task)


async def test_after_failures_it_rests_and_says_until_when() -> None:
    clock, model = HandClock(), ScriptedModel(AWAY)
    summariser = _summariser(model, clock, attempts=1, failures=2, rest_s=60)
    assert (await _error(summariser, of("one"))).retry_after_s is None
    second = await _error(summariser, of("two"))
    assert str(second) == "away; failed for 2 conversations in a row, next attempt in 60 s"
    assert second.retry_after_s == 60
    clock.now_s += 45
    third = await _error(summariser, of("three"))
    assert str(third) == ("not asked: it failed for 2 conversations in a row; next attempt in 15 s")
    assert third.retry_after_s == 15
    assert len(model.prompts) == 2


async def test_failures_of_the_same_conversation_count_once() -> None:
    """A conversation that always fails, by its length for example, says little of the others."""
    model = ScriptedModel(AWAY)
    summariser = _summariser(model, attempts=1)
    for task in (*["one"] * 5, *["two"] * 5):
        assert (await _error(summariser, of(task))).retry_after_s is None
    assert (await _error(summariser, of("three"))).retry_after_s == 60
    assert len(model.prompts) == 11


async def test_each_further_failure_doubles_the_rest_up_to_a_bound() -> None:
    clock = HandClock()
    summariser = _summariser(
        ScriptedModel(AWAY), clock, attempts=1, failures=1, rest_s=60, longest_rest_s=200
    )
    rests = []
    for _ in range(4):
        error = await _error(summariser)
        rests.append(error.retry_after_s)
        clock.now_s += error.retry_after_s or 0
    assert rests == [60, 120, 200, 200]


async def test_a_provider_may_ask_for_a_longer_rest() -> None:
    model = ScriptedModel(ProviderFailed("limited", retry_after_s=900))
    error = await _error(_summariser(model, attempts=1, failures=1, rest_s=60))
    assert error.retry_after_s == 900


async def test_a_success_ends_the_count_of_failures() -> None:
    model = ScriptedModel(AWAY, good(), AWAY, good())
    summariser = _summariser(model, attempts=1, failures=2)
    await _error(summariser, of("one"))
    await summariser.summarise(request_of())
    await _error(summariser, of("two"))
    assert (await summariser.summarise(request_of())).text == GOOD


@pytest.mark.parametrize(
    "step",
    [
        SummaryError("HTTP 400: the provider refused the request as wrong"),
        TooLarge(),
        Answer(("Done: I fixed it.",), "end"),
        Answer((GOOD,), "refusal"),
        Answer((GOOD,), "length"),
        Answer((), "end"),
        Answer((GOOD,), "end", calls=1),
    ],
    ids=str,
)
async def test_failures_of_a_conversation_do_not_keep_others_from_being_summarised(
    step: Answer | SummaryError,
) -> None:
    model = ScriptedModel(step)
    summariser = _summariser(model, attempts=1, failures=1)
    for _ in range(3):
        assert "next attempt" not in str(await _error(summariser))
    model.script = [good()]
    assert (await summariser.summarise(request_of())).text == GOOD


async def test_an_unusable_answer_shows_that_the_provider_answers() -> None:
    model = ScriptedModel(AWAY, Answer((), "end"), AWAY, good())
    summariser = _summariser(model, attempts=1, failures=2)
    for task in ("one", "two", "three"):
        await _error(summariser, of(task))
    assert (await summariser.summarise(request_of())).text == GOOD


@pytest.mark.parametrize("step", [Answer((GOOD,), "cut"), None], ids=["cut", "hanging"])
async def test_a_provider_whose_answers_do_not_arrive_rests(step: Answer | None) -> None:
    summariser = _summariser(ScriptedModel(step), attempts=1, failures=1, call_s=0.01)
    assert "next attempt in 60 s" in str(await _error(summariser))
