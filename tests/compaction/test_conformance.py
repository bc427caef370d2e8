"""The engine against compaction-conformance-kit: five rounds within a share of the transcript.

A loop: each round a fifth of the transcript comes, and the conversation is compacted. What was
superseded may stay, since code deletes nothing that was said: `stale` counts where it is there, and
`unmarked` where nothing tells that it is old, since it stands last.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import compaction_kit as kit
import pytest
from compaction_kit.testing import assert_no_flags, check_compactor

from contextgauge.compaction import Compactor, History, ModelCall, Profile
from contextgauge.compaction.counting import message_tokens
from contextgauge.compaction.messages import Message, Role, Text

ROUNDS = 5
SEEDS = [*range(1, 11), *range(1_000, 1_010)]

ADDITIVE = {"g-purge-tool", "g-prep-counter", "g-external-data"}
"""Prohibitions of which the kit calls an older one stale once a second one names another tool,
substance or kind of data. Both hold: the engine keeps both."""

PROFILE = Profile(
    output_reserve_tokens=0, warn_at=None, compact_at=1.0, compact_to=1.0, keep_last=0
)
"""The window is the budget."""


class Characters:
    """The kit's budgets are in characters."""

    def text(self, text: str) -> int:
        return len(text)

    def message(self, message: Message) -> int:
        return message_tokens(message, self)


class Engine:
    """One conversation, compacted again and again."""

    name = "contextgauge"

    def __init__(self) -> None:
        self._history = History()

    def compact(
        self, turns: list[kit.Turn], round_num: int = 1, budget_chars: int | None = None
    ) -> kit.CompactedContext:
        """Compact turns; from the second round on the kit hands the first one's text back."""
        if round_num == 1:
            self._history = History()
            self.extend(turns)
        return self.compacted(round_num, budget_chars or 1_000_000)

    def extend(self, turns: Iterable[kit.Turn]) -> None:
        self._history.extend(Message(_ROLES[each.role], (Text(each.text),)) for each in turns)

    def compacted(self, number: int, budget: int) -> kit.CompactedContext:
        compactor = Compactor(profile=PROFILE, counter=Characters())
        asyncio.run(compactor.compact(self._history, ModelCall(window_tokens=budget)))
        text = "\n".join(each.text for each in self._history.active)
        return kit.CompactedContext(text=text, compactor_name=self.name, round_num=number)


_ROLES: dict[str, Role] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}

Build: TypeAlias = Callable[[int], tuple[Any, ...]]


@dataclass(frozen=True)
class Score:
    """Items; of those that supersede another one: where that is there, and where it stands last."""

    items: int = 0
    kept: int = 0
    superseding: int = 0
    stale: int = 0
    unmarked: int = 0
    over_budget: int = 0

    def __add__(self, other: "Score") -> "Score":
        names = [each.name for each in fields(Score)]
        return Score(**{name: getattr(self, name) + getattr(other, name) for name in names})


def _sessions(
    build: Build, seeds: Iterable[int]
) -> Iterator[tuple[kit.SeededSession, list[kit.Canary]]]:
    for seed in seeds:
        session, canaries = build(seed)[:2]
        yield session, canaries


OUTPUT = "The build wrote a line of its log, and nothing of it concerns anybody later on.\n" * 12


def among_work(turns: Iterable[kit.Turn]) -> Iterator[kit.Turn]:
    """Yield turns with the output of a tool after each answer: the kit has only words of people."""
    for turn in turns:
        yield turn
        if turn.role == "assistant":
            yield kit.Turn("tool", OUTPUT)


def rounds_of(turns: Sequence[kit.Turn], share: float) -> Iterator[str]:
    """Yield the context after each of the rounds."""
    engine = Engine()
    budget = round(share * sum(len(each.text) for each in turns))
    for number in range(ROUNDS):
        engine.extend(turns[number * len(turns) // ROUNDS : (number + 1) * len(turns) // ROUNDS])
        yield engine.compacted(number + 1, budget).text


def score(build: Build, seeds: Iterable[int], share: float, *, work: bool = True) -> Score:
    total = Score()
    probe = kit.BehaviorProbe()
    for session, canaries in _sessions(build, seeds):
        turns = list(among_work(session.transcript())) if work else session.transcript()
        budget = round(share * sum(len(each.text) for each in turns))
        *_, text = texts = list(rounds_of(turns, share))
        total += Score(over_budget=sum(len(each) > budget for each in texts))
        for canary in canaries:
            total += Score(items=1, kept=probe.probe(canary, text).survived)
            old = [text.lower().rfind(each.lower()) for each in canary.superseded_tokens]
            if old and canary.id not in ADDITIVE:
                new = max(text.lower().rfind(each.lower()) for each in canary.required_tokens)
                total += Score(superseding=1, stale=max(old) >= 0, unmarked=max(old) > new)
    return total


BUILDERS: dict[str, Build] = {
    "randomized": kit.build_random_session,
    "semantic": kit.build_semantic_session,
    "semantic held-out": kit.build_semantic_heldout_session,
    "generated": kit.build_generated_session,
}


@pytest.mark.extended
@pytest.mark.parametrize("share", [0.2, 0.3])
@pytest.mark.parametrize("corpus", BUILDERS)
def test_all_items_stay_and_nothing_superseded_stands_last(corpus: str, share: float) -> None:
    result = score(BUILDERS[corpus], SEEDS, share)
    assert result.kept == result.items
    assert result.superseding
    assert (result.unmarked, result.over_budget) == (0, 0)


def test_prohibitions_that_differ_both_stay() -> None:
    for session, canaries in _sessions(kit.build_generated_session, SEEDS):
        *_, text = rounds_of(list(among_work(session.transcript())), 0.2)
        for each in canaries:
            tokens = (*each.required_tokens, *each.superseded_tokens)
            assert each.id not in ADDITIVE or all(token in text.lower() for token in tokens)


def test_scripted_agent_of_the_kit_acts_right_after_five_rounds() -> None:
    agent = kit.SimulatedAgent()
    *_, text = rounds_of(list(among_work(kit.build_seeded_session().transcript())), 0.2)
    for canary in kit.seeded_canaries():
        assert agent.answer_direct(canary, text).found, canary.id
        assert agent.answer_behavior(canary, text).found, canary.id
        assert agent.answer_exact_use(canary, text).found, canary.id


def test_report_of_the_kit_has_no_flags() -> None:
    assert_no_flags(check_compactor(Engine(), rounds=ROUNDS, budget_fraction=0.3))


if __name__ == "__main__":  # the figures of docs/COMPACTION.md
    for work in (True, False):
        for percent in (20, 30):
            print("with tools" if work else "the kit's own", f"{percent} %")  # noqa: T201
            for name, builder in BUILDERS.items():
                print(f"  {name}: {score(builder, SEEDS, percent / 100, work=work)}")  # noqa: T201
