"""Compactions as their callers see them: the goal is spent, and nothing that fits is lost."""

import random
from dataclasses import replace

import pytest

from contextgauge.compaction.carried.audit import audit
from contextgauge.compaction.carried.compaction_text import compose, read_text
from contextgauge.compaction.carried.digest import carry
from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Carried, Message, Text, ToolResult
from contextgauge.compaction.ports import SummaryAnswer, SummaryRequest
from contextgauge.compaction.profiles import DEFAULT
from tests.compaction.conversations import call, result, said, session
from tests.compaction.test_digest import WINDOW, compacted, filler, marker_of
from tests.linear_time import is_linear


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_five_compactions_lose_nothing_that_fits(language: str) -> None:
    rng = random.Random(language)
    facts: list[str] = []
    history, compactor = History(), Compactor(profile=replace(DEFAULT, compact_to=0.3))
    call_ = ModelCall(window_tokens=30_000)
    for round_ in range(5):
        for number in range(6):
            value = f"v{rng.randrange(10**9)}"
            text = f"不要超过 {value}。" if language == "zh" else f"no more than {value}"
            facts.append(value)
            question = f"q{rng.randrange(10**9)}"
            facts.append(question)
            history.extend(
                [
                    said("user", text),
                    call(f"c{round_}-{number}"),
                    result(f"c{round_}-{number}", f"line of {value}\n" * 800),
                    said("assistant", "I read it. " * 20 + f"Shall I take {question}?"),
                    said("user", "好" if language == "zh" else "ok"),
                ]
            )
        receipt = await compactor.compact(history, call_)
        assert receipt is not None
        assert receipt.tokens_after <= receipt.target_tokens
    seen = "\n".join(message.text for message in history.active)
    assert [fact for fact in facts if fact not in seen] == []
    marker = marker_of(history)
    assert audit(marker.summary, marker.carried) == []
    assert marker.number >= 4


@pytest.mark.parametrize("size", [200, 1_600, 6_000])
async def test_the_goal_is_spent_and_not_passed(size: int) -> None:
    history = History([said("user", "Never touch main."), *filler(800_000 // size, size)])
    receipt = await Compactor().compact(history, ModelCall(window_tokens=200_000))
    assert receipt is not None
    assert 0.95 * receipt.target_tokens < receipt.tokens_after <= receipt.target_tokens
    assert "] Never touch main." in marker_of(history).summary


async def test_the_latest_messages_are_the_least_that_stays() -> None:
    history = History(filler(40, 4_000))
    last = [each.id for each in history.active[-10:]]
    await Compactor(profile=replace(DEFAULT, compact_to=0.3)).compact(history, WINDOW)
    assert history.active[-1].id == last[-1]
    history = History(filler(400, 200))
    last = [each.id for each in history.active[-10:]]
    await Compactor().compact(history, ModelCall(window_tokens=8_000))
    assert [each.id for each in history.active][-10:] == last


async def test_a_compaction_on_request_saves_the_share_that_one_in_need_would() -> None:
    history = History(filler(40, 4_000))
    before = sum(map(ESTIMATE.message, history.active))
    await Compactor().compact(history, ModelCall(window_tokens=1_000_000))
    after = sum(map(ESTIMATE.message, history.active))
    assert 0.5 < after / before < 0.6


class Reader:
    """Notes what it is asked to summarise."""

    name = "reader"

    def __init__(self) -> None:
        self.results: list[str] = []

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        self.results = [each.text for message in request.messages for each in message.results]
        return SummaryAnswer("It was read.")


async def test_a_summariser_sees_results_as_they_came() -> None:
    reader = Reader()
    history = History(session(60, characters=2_000))
    cleared = (await Compactor(summariser=reader).before_call(history, WINDOW)).receipt
    assert cleared is not None
    assert [step.rung for step in cleared.steps] == ["clear-results"]
    assert await Compactor(summariser=reader).compact(history, WINDOW) is not None
    assert len(reader.results) > 10
    assert not [each for each in reader.results if each.startswith("[Result of")]


async def test_the_text_quotes_errors_and_not_notices_of_cleared_results() -> None:
    messages = []
    for number in range(60):
        failure = ToolResult(
            f"c{number}", (Text(f"ImportError: no foo{number}\n" * 80),), "sh", is_error=True
        )
        messages += [call(f"c{number}", "sh"), Message("tool", (failure,))]
    marker = await compacted([said("user", "Fix it."), *messages])
    assert "ImportError: no foo3\n" in marker.summary
    assert "cleared to save context" not in marker.summary


@pytest.mark.parametrize("offered", [False, True])
async def test_what_is_left_out_is_named_only_where_it_can_be_recalled(*, offered: bool) -> None:
    messages = [said("user", f"{n}: " + "x" * 5_000, id=f"u{n}") for n in range(30)]
    marker = await compacted(messages, replace(WINDOW, recall=offered))
    read = read_text(marker.summary)
    assert read is not None
    assert read.entries[0].omitted > 0
    assert ("u0]" in marker.summary, ": recall m1" in marker.summary) == (offered, offered)


def test_the_time_of_a_compaction_grows_with_the_conversation_and_no_faster() -> None:
    rng = random.Random(1)
    messages = [
        said("assistant" if n % 4 else "user", " ".join(rng.choices(["ab", "cd.py", "ef"], k=400)))
        for n in range(1_600)
    ]
    assert sum(map(ESTIMATE.message, messages)) > 400_000

    def compact(size: int) -> None:
        carried = carry(Carried(), messages[:size])
        compose("", carried, number=1, budget_tokens=50_000, counter=ESTIMATE)

    assert is_linear(compact, len(messages))
