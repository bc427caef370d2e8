"""The engine against compaction-conformance-kit: five rounds within a share of the transcript.

`stale` counts replaced values that are in the text, `unmarked` those that no newer value follows.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import compaction_kit as kit
import pytest
from compaction_kit.testing import assert_no_flags, check_compactor

from contextgauge.compaction.carried.compaction_text import compose
from contextgauge.compaction.carried.digest import carry
from contextgauge.compaction.carried.unmarked_text import read_unmarked
from contextgauge.compaction.counting import message_tokens
from contextgauge.compaction.messages import Carried, Message, Role, Text

ROUNDS = 5
HELD_OUT = 1_000
SEEDS = [*range(1, 11), *range(HELD_OUT, HELD_OUT + 10)]

ADDITIVE = {"g-purge-tool", "g-prep-counter", "g-external-data"}
"""Prohibitions of which the kit calls an older one stale once a second one names another tool,
substance or kind of data. Both hold: the engine keeps both."""


class Characters:
    """The kit's budgets are in characters."""

    def text(self, text: str) -> int:
        return len(text)

    def message(self, message: Message) -> int:
        return message_tokens(message, self)


class Engine:
    """What code carries stays with the conversation, as in a history."""

    name = "contextgauge"

    def __init__(self) -> None:
        self.carried = Carried()

    def compact(
        self, turns: list[kit.Turn], round_num: int = 1, budget_chars: int | None = None
    ) -> kit.CompactedContext:
        return self._compact(_messages(turns, round_num), round_num, budget_chars)

    def _compact(
        self, messages: list[Message], number: int, budget: int | None
    ) -> kit.CompactedContext:
        self.carried = carry(self.carried, messages)
        text = compose("", self.carried, number=number, budget_tokens=budget, counter=Characters())
        return kit.CompactedContext(text=text, compactor_name=self.name, round_num=number)


class FromText(Engine):
    """Only the text is left, as in a provider's format."""

    name = "contextgauge, from text"

    def compact(
        self, turns: list[kit.Turn], round_num: int = 1, budget_chars: int | None = None
    ) -> kit.CompactedContext:
        if round_num > 1:
            read = read_unmarked(Message("user", (Text(turns[0].text),)))
            assert read is not None
            self.carried = read.carried
            turns = turns[1:]
        return super().compact(turns, round_num, budget_chars)


_ROLES: dict[str, Role] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def _messages(turns: Iterable[kit.Turn], number: int) -> list[Message]:
    return [
        Message(_ROLES[each.role], (Text(each.text),), id=f"{number}-{index}")
        for index, each in enumerate(turns)
    ]


Build: TypeAlias = Callable[[int], tuple[Any, ...]]


class Score(NamedTuple):
    canaries: int = 0
    survived: int = 0
    conflicts: int = 0
    stale: int = 0
    unmarked: int = 0
    over_budget: int = 0

    def __add__(self, other: object) -> "Score":
        assert isinstance(other, Score)
        return Score(*(a + b for a, b in zip(self, other, strict=True)))


def _sessions(
    build: Build, seeds: Iterable[int]
) -> Iterator[tuple[kit.SeededSession, list[kit.Canary]]]:
    for seed in seeds:
        session, canaries = build(seed)[:2]
        yield session, canaries


def score(engine: type[Engine], build: Build, seeds: Iterable[int], share: float) -> Score:
    total = Score()
    for session, canaries in _sessions(build, seeds):
        run = kit.run_conformance(
            session, engine(), rounds=ROUNDS, canaries=canaries, budget_fraction=share
        )
        last = run.rounds[-1]
        text = last.context.text.lower()
        for canary in canaries:
            survived = last.survived[canary.id]
            total += Score(1, survived)
            if canary.superseded_tokens and canary.id not in ADDITIVE:
                stale = max(text.rfind(each.lower()) for each in canary.superseded_tokens)
                newest = max(text.rfind(each.lower()) for each in canary.required_tokens)
                total += Score(0, 0, 1, stale >= 0, stale > newest)
        total += Score(over_budget=sum(not each.within_budget for each in run.rounds))
    return total


BUILDERS: dict[str, Build] = {
    "randomized": kit.build_random_session,
    "semantic": kit.build_semantic_session,
    "semantic held-out": kit.build_semantic_heldout_session,
    "generated": kit.build_generated_session,
}


WHOLE = 0.6
"""Of these transcripts, which repeat their filler, the user's turns are two thirds."""


@pytest.mark.parametrize("engine", [Engine, FromText])
@pytest.mark.parametrize("corpus", BUILDERS)
def test_everything_survives_where_the_users_turns_fit(corpus: str, engine: type[Engine]) -> None:
    result = score(engine, BUILDERS[corpus], SEEDS, WHOLE)
    assert result.survived == result.canaries
    assert (result.unmarked, result.over_budget) == (0, 0)


LEAST = {"randomized": 0.6, "semantic": 0.95, "semantic held-out": 0.95, "generated": 0.3}
"""Of what is laid down, in 30 %: less than the user's turns take, each once."""


@pytest.mark.parametrize("corpus", BUILDERS)
def test_of_a_flood_replaced_values_are_hardly_ever_the_latest_word(corpus: str) -> None:
    result = score(Engine, BUILDERS[corpus], SEEDS, 0.3)
    assert result.survived >= LEAST[corpus] * result.canaries
    assert result.unmarked <= 0.02 * result.conflicts
    assert result.over_budget == 0


def test_scripted_agent_of_the_kit_acts_right_after_five_rounds() -> None:
    session, canaries, agent = (
        kit.build_seeded_session(),
        kit.seeded_canaries(),
        kit.SimulatedAgent(),
    )
    run = kit.run_conformance(session, Engine(), rounds=ROUNDS, budget_fraction=WHOLE)
    text = run.rounds[-1].context.text
    for canary in canaries:
        assert agent.answer_direct(canary, text).found, canary.id
        assert agent.answer_behavior(canary, text).found, canary.id
        assert agent.answer_exact_use(canary, text).found, canary.id


def test_report_of_the_kit_has_no_flags() -> None:
    assert_no_flags(check_compactor(Engine(), rounds=ROUNDS, budget_fraction=0.3))
