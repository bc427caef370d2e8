"""Our strategies: the engine as a caller uses it, with the benchmark's budget as its target."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from bench.compaction.contenders import Budget, Contender, Kind, Session
from bench.compaction.summaries import StandInSummariser, Style
from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.engine.extractive import ExtractiveSummariser
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Message, open_calls
from contextgauge.compaction.ports import Summariser
from contextgauge.compaction.profiles import DEFAULT, RUNGS, SEED_001, SEED_002, SEED_004, Profile
from contextgauge.compaction.summary_call import NoSummaryError

DUE_AT: Final = 0.6
"""Below what a session has after each round, and above all budgets."""


class EngineSession:
    """A session that the engine compacts. A compaction that fails leaves it as it was."""

    def __init__(self, profile: Profile, summariser: Summariser, budget: Budget) -> None:
        share = budget.tokens / budget.window_tokens
        self._call = ModelCall(window_tokens=budget.window_tokens)
        self._history = History()
        self._compactor = Compactor(
            profile=replace(
                profile,
                compact_at=DUE_AT,
                warn_at=None,
                compact_to=share,
                system_reserve_tokens=0,
                output_reserve_tokens=0,
                safety_tokens=0,
                summary_tokens=budget.summary_tokens,
                target_tokens=None,
            ),
            summariser=summariser,
            now_ms=lambda: 0,
        )

    @property
    def active(self) -> Sequence[Message]:
        """What the model would see."""
        return self._history.active

    def extend(self, messages: Sequence[Message]) -> None:
        """Add messages; after the first answer the engine judges its last compaction."""
        first = next(
            (
                count
                for count in range(1, len(messages) + 1)
                if any(each.role == "assistant" for each in messages[:count])
                and not open_calls(messages[:count])
            ),
            len(messages),
        )
        self._history.extend(messages[:first])
        asyncio.run(self._compactor.before_call(self._history, self._call))
        self._history.extend(messages[first:])

    def compact(self) -> None:
        """Compact as before a call of the model, or as asked for where nothing is due."""
        asyncio.run(self._compact())

    async def _compact(self) -> None:
        prepared = await self._compactor.before_call(self._history, self._call)
        if prepared.receipt is None:
            with suppress(NoSummaryError):
                await self._compactor.compact(self._history, self._call)


def _engine(profile: Profile, *, extractive: bool = False) -> Callable[[Budget, Style], Session]:
    def begin(budget: Budget, style: Style) -> Session:
        summariser = ExtractiveSummariser() if extractive else StandInSummariser(style)
        return EngineSession(profile, summariser, budget)

    return begin


def our_contenders() -> list[Contender]:
    """Return the default, what it consists of, and the seeds' profiles."""
    unpinned = replace(DEFAULT, carry=False)
    summary = replace(DEFAULT, rungs=("summarise",))
    seeds: list[tuple[Profile, Kind]] = [(each, "seed") for each in (SEED_001, SEED_002, SEED_004)]
    return [
        Contender("default", "ours", "extractive summary", _engine(DEFAULT, extractive=True)),
        Contender("default, stand-in", "ours", "summary of the stand-in", _engine(DEFAULT)),
        Contender("default without pins", "rung", "nothing carried by code", _engine(unpinned)),
        *(
            Contender(
                f"only {rung}",
                "rung",
                "one rung of the default",
                _engine(replace(DEFAULT, rungs=(rung,))),
            )
            for rung in RUNGS
            if rung != "summarise"
        ),
        Contender("only summarise", "rung", "one rung of the default", _engine(summary)),
        *(
            Contender(each.name, kind, "the profile, summary of the stand-in", _engine(each))
            for each, kind in seeds
        ),
    ]
