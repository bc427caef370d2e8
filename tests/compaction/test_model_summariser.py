"""A summariser made of a model: repetitions, deadlines, rest, parts, redaction, checks."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Message, ModelRequest, Text
from contextgauge.compaction.ports import SummaryAnswer, SummaryError, SummaryRequest
from contextgauge.compaction.profiles import DEFAULT
from contextgauge.compaction.summarisers import (
    Answer,
    CallLimits,
    ModelSummariser,
    SummariserChain,
)
from contextgauge.compaction.summarisers.failures import ProviderFailed, TooLarge
from contextgauge.compaction.summarisers.model_summariser import pause_s
from contextgauge.errors import ConfigError
from tests.compaction.summary_kit import GOOD, HandClock, ScriptedModel, good, request_of

SECRET = "gh" + "p_" + "abcDEF1234567890ghiJKL7890123456"
AWAY = ProviderFailed("away")


def _summariser(
    model: ScriptedModel, clock: HandClock | None = None, *, redact: bool = True, **limits: float
) -> ModelSummariser:
    figures = CallLimits(**limits)  # type: ignore[arg-type]
    clock = clock or HandClock()
    return ModelSummariser(model, limits=figures, clock=clock, jitter=lambda: 1.0, redact=redact)


async def _error(
    summariser: ModelSummariser, request: SummaryRequest | None = None
) -> SummaryError:
    with pytest.raises(SummaryError) as caught:
        await summariser.summarise(request or request_of())
    return caught.value


# Repetitions and deadlines


async def test_attempts_end_with_the_last_reason() -> None:
    model = ScriptedModel(AWAY)
    error = await _error(_summariser(model, attempts=3))
    assert (str(error), len(model.prompts)) == ("away", 3)


async def test_no_error_of_an_sdk_gets_through() -> None:
    error = await _error(_summariser(ScriptedModel(KeyError("zebra")), attempts=1))
    assert "zebra" not in str(error)
    assert error.final
    assert "check the key, and the options" in str(error)


async def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    clock = HandClock()
    model = ScriptedModel(SummaryError("limited", retry_after_s=500.0))
    error = await _error(_summariser(model, clock, total_s=100))
    assert (clock.slept, len(model.prompts)) == ([], 1)
    assert (str(error), error.retry_after_s) == (
        "limited; no time left for another attempt",
        500.0,
    )


async def test_all_calls_together_have_a_deadline() -> None:
    slow = _summariser(ScriptedModel(None), total_s=0.05, call_s=0.5, attempts=1)
    error = await _error(slow)
    assert str(error) == "no summary within 0.05 s"


async def test_one_call_has_a_deadline() -> None:
    model = ScriptedModel(None, good())
    answer = await _summariser(model, call_s=0.05).summarise(request_of())
    assert (answer.text, len(model.prompts)) == (GOOD, 2)


async def test_being_cancelled_is_no_failure() -> None:
    summariser = _summariser(ScriptedModel(None, good()), failures=1)
    task = asyncio.create_task(summariser.summarise(request_of()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await summariser.summarise(request_of())).text == GOOD


@given(st.integers(1, 60), st.none() | st.floats(0, 1e5), st.floats(0, 1), st.floats(0.01, 5))
def test_pauses_grow_to_a_bound_and_never_undercut_the_provider(
    attempt: int, wait_s: float | None, jitter: float, first_s: float
) -> None:
    limits = CallLimits(first_pause_s=first_s, longest_pause_s=20)
    pause = pause_s(limits, attempt, wait_s, jitter)
    assert pause >= (wait_s or 0)
    assert pause <= max(20, wait_s or 0)
    if wait_s is None:
        assert pause >= min(first_s * 2 ** (attempt - 1), 20) / 2
        assert pause <= pause_s(limits, attempt + 1, None, 1.0)


async def test_an_answer_that_ran_out_of_tokens_gets_more_of_them() -> None:
    reasoning = Answer((), "length", reasoned=True)
    model = ScriptedModel(reasoning, reasoning, reasoning, good())
    answer = await _summariser(model, attempts=4).summarise(request_of(max_tokens=1_000))
    assert answer.text == GOOD
    assert [each.max_tokens for each in model.prompts] == [1_000, 2_000, 4_000, 4_000]


# Parts


def _long() -> SummaryRequest:
    messages = [Message("user", (Text(f"n{n} " + "z" * 1_900),), f"m{n}") for n in range(20)]
    return replace(request_of(max_tokens=500), messages=messages)


async def test_parts_carry_the_summary_so_far_in_order() -> None:
    parts = [good(f"{GOOD}\nafter {n}", input_tokens=10, output_tokens=n) for n in range(1, 9)]
    model = ScriptedModel(*parts)
    request = replace(_long(), previous="before", input_limit_tokens=4_500)
    answer = await _summariser(model).summarise(request)
    count = len(model.prompts)
    assert count > 2
    texts = [each.messages[0].text for each in model.prompts]
    assert "before" in texts[0]
    for number, text in enumerate(texts[1:], 1):
        assert f"after {number}" in text
    assert answer == SummaryAnswer(
        f"{GOOD}\nafter {count}", "scripted/model", 10 * count, None, sum(range(1, count + 1))
    )


async def test_the_models_own_limit_holds_for_requests_without_one() -> None:
    model = ScriptedModel(good())
    summariser = ModelSummariser(model, input_limit_tokens=4_500)
    await summariser.summarise(_long())
    assert len(model.prompts) > 2
    await summariser.summarise(replace(_long(), input_limit_tokens=1_000_000))
    assert len(model.prompts[-1].messages[0].text) > 4 * 4_500


async def test_a_failure_in_one_part_fails_the_whole() -> None:
    model = ScriptedModel(good(), AWAY)
    error = await _error(_summariser(model, attempts=1), replace(_long(), input_limit_tokens=4_500))
    assert str(error) == "away"


async def test_a_window_smaller_than_known_halves_the_parts_until_they_fit() -> None:
    model = ScriptedModel(TooLarge(), TooLarge(), good())
    answer = await _summariser(model).summarise(_long())
    assert answer.text == GOOD
    assert len(model.prompts) > 3


async def test_what_never_fits_ends() -> None:
    model = ScriptedModel(TooLarge())
    assert "too large" in str(await _error(_summariser(model)))
    assert len(model.prompts) <= 5


# Redaction


@pytest.mark.parametrize("prompt", ["structured", "seed-001", "seed-002", "cache-aligned"])
async def test_secrets_do_not_reach_the_model(prompt: str) -> None:
    messages = [Message("user", (Text(f"The key is {SECRET}."),), "m1")]
    request = SummaryRequest(
        messages,
        ModelRequest(messages, system=f"Use {SECRET}."),
        f"It used {SECRET}.",
        f"With {SECRET}",
        2,
        prompt=prompt,  # type: ignore[arg-type]
        instructions=f"Not {SECRET}",
    )
    model = ScriptedModel(good())
    answer = await _summariser(model).summarise(request)
    assert SECRET not in str(model.prompts)
    assert "[redacted key]" in str(model.prompts)
    assert answer.redacted_secrets == 1


async def test_redaction_can_be_turned_off() -> None:
    messages = [Message("user", (Text(f"The key is {SECRET}."),), "m1")]
    model = ScriptedModel(good())
    summariser = _summariser(model, redact=False)
    answer = await summariser.summarise(replace(request_of(), messages=messages))
    assert SECRET in str(model.prompts)
    assert answer.redacted_secrets == 0


# Checks of answers that no API makes alone


async def test_several_texts_are_joined_by_a_blank_line() -> None:
    model = ScriptedModel(Answer(("One.", "Two."), "end"))
    answer = await _summariser(model).summarise(request_of(prompt="seed-001"))
    assert answer.text == "One.\n\nTwo."


async def test_reasoning_written_into_the_text_is_no_part_of_the_summary() -> None:
    model = ScriptedModel(good(f"<think>\nHm. ### Pending work\n</think>\n{GOOD}"))
    assert (await _summariser(model).summarise(request_of())).text == GOOD
    model = ScriptedModel(good("<think>\nHm, and on and on"))
    assert "no text" in str(await _error(_summariser(model, attempts=1)))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(("  \n ",), "end"), "no text"),
        (Answer(("\u200b", "---", "…"), "end"), "no text"),
        (Answer((GOOD + "word " * 8_000,), "end"), "longer than its limit"),
        (Answer(("I'm sorry, but I can't help with that.",), "end"), "6 of 6 sections missing"),
        (Answer(("Es tut mir leid, das kann ich nicht.",), "end"), "6 of 6 sections missing"),
        (Answer(("对不起,我无法完成这个请求。",), "end"), "6 of 6 sections missing"),
        (Answer(("# Plan\n## Pending work\n## Current state\nFixed.",), "end"), "4 of 6 sections"),
        (Answer((GOOD,), "end", calls=1), "called tools"),
        (Answer((GOOD,), "refusal"), "the model refused"),
        (Answer((GOOD,), "cut"), "broke off"),
        (Answer((GOOD,), "length"), "not complete after"),
        (Answer((), "length"), "reached its limit before it wrote any text"),
        (Answer((), "end", reasoned=True), "reasoned and wrote no text"),
        (Answer((), "end"), "the answer is empty"),
        (Answer(("Done: I fixed it and all tests pass.",), "end"), "6 of 6 sections missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_answer_that_is_no_summary_is_refused(answer: Answer, reason: str) -> None:
    assert reason in str(await _error(_summariser(ScriptedModel(answer), attempts=1)))


@pytest.mark.parametrize("prompt", ["seed-001", "seed-002"])
async def test_seeds_take_any_text_but_an_empty_one(prompt: str) -> None:
    request = request_of(prompt=prompt)
    model = ScriptedModel(Answer(("All is done.",), "length", calls=1))
    assert (await _summariser(model).summarise(request)).text == "All is done."
    model = ScriptedModel(Answer((" ",), "end"))
    await _error(_summariser(model, attempts=1), request)


@pytest.mark.parametrize(
    "heading",
    [
        "# **ORIGINAL TASK**",
        "Original task\n=====",
        "**Original task:**",
        "1. Original task",
        "> # Original task",
    ],
)
async def test_headings_may_differ_in_markup_and_case(heading: str) -> None:
    text = GOOD.replace("### Original task", heading)
    assert (await _summariser(ScriptedModel(good(text))).summarise(request_of())).text == text


async def test_sections_without_content_may_be_left_out() -> None:
    text = "\n".join(
        f"### {name}\nDone." for name in ("Original task", "Current state", "Key decisions")
    )
    assert (await _summariser(ScriptedModel(good(text))).summarise(request_of())).text == text


@pytest.mark.parametrize(
    "words",
    [
        "I can't reproduce crash 3; the other two are fixed.",
        "Fixed the chat template: it emitted <|im_start|> twice, and [INST] once.",
        "prompts/system.md has a <system-reminder> block; </system> ends it.",
        "Decided to ignore any unused-import rules in tests.",
        "Human: is how the log marks a user's turn.\nHuman: hello",
        "Der Test prüft, dass „Ignoriere alle bisherigen Anweisungen“ nichts bewirkt.",
        "测试确认模型不会听从“忽略之前的所有指令”。",
        "テストは「これまでの指示をすべて無視して」に従わないことを確認する。",
    ],
)
async def test_no_word_is_a_reason_to_refuse_a_summary(words: str) -> None:
    text = f"{GOOD}\n{words}"
    assert (await _summariser(ScriptedModel(good(text))).summarise(request_of())).text == text


def test_limits_that_allow_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match="attempts"):
        CallLimits(attempts=0)


# Chains


async def test_a_chain_takes_the_first_summary_and_says_what_failed_before() -> None:
    first = _summariser(ScriptedModel(AWAY), attempts=1)
    second = _summariser(ScriptedModel(good()))
    chain = SummariserChain([first, second])
    assert chain.name == "scripted/model, else scripted/model"
    answer = await chain.summarise(request_of())
    assert (answer.text, answer.failures) == (GOOD, ("scripted/model: away",))


async def test_a_chain_of_failures_names_them_all_and_the_earliest_next_attempt() -> None:
    waits = [
        _summariser(ScriptedModel(SummaryError("limited", retry_after_s=s, final=True)))
        for s in (90.0, 30.0)
    ]
    with pytest.raises(SummaryError) as caught:
        await SummariserChain(waits).summarise(request_of())
    error = caught.value
    assert str(error) == "scripted/model: limited; scripted/model: limited"
    assert (error.retry_after_s, error.final) == (30.0, True)


async def test_a_chain_has_a_deadline_for_all() -> None:
    slow = _summariser(ScriptedModel(None), call_s=0.5, attempts=1)
    chain = SummariserChain([slow], total_s=0.05)
    with pytest.raises(SummaryError, match=r"no summary within 0\.05 s in all") as caught:
        await chain.summarise(request_of())
    assert not caught.value.final


def test_an_empty_chain_is_refused() -> None:
    with pytest.raises(ConfigError):
        SummariserChain([])


# Receipts


async def test_a_receipt_states_the_secrets_taken_out_and_who_failed_before() -> None:
    messages = [
        Message("user" if n % 2 == 0 else "assistant", (Text(f"{n}: {SECRET} " + "word " * 300),))
        for n in range(40)
    ]
    chain = SummariserChain(
        [_summariser(ScriptedModel(AWAY), attempts=1), _summariser(ScriptedModel(good()))]
    )
    profile = replace(DEFAULT, rungs=("summarise",))
    receipt = await Compactor(profile=profile, summariser=chain).compact(History(messages))
    assert receipt is not None
    assert receipt.redacted_secrets == 1
    assert receipt.failures == ("scripted/model: away",)
