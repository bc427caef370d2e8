"""What the compaction engine would have left of a recorded conversation, at any of its requests.

The engine is given the messages as they came, without the summaries of the runtime's compactions,
and the measured size of each request that is compacted. It keeps what it made of them from one
compaction to the next.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from contextgauge.compaction import Compactor, History, ModelCall
from contextgauge.compaction.carried.compaction_text import user_turns
from contextgauge.compaction.engine.compaction_receipt import Receipt
from contextgauge.compaction.engine.trigger import TriggerState
from contextgauge.compaction.messages import ApiUsage, Message, open_calls
from contextgauge.compaction.profiles import Profile, profile_named
from streams.core.whatif.replay import Kept
from streams.core.whatif.turns import ChainLog, ChainTurn

PRUNE = "prune"
"""The strategy of the engine that shortens in place, and writes no summary."""


class Strategy(NamedTuple):
    """A strategy of the engine: a profile, or `prune`; `goal` is the share that it compacts to."""

    name: str
    goal: float | None = None

    def profile(self, share: float) -> Profile:
        """Return the profile for a request that is due at a share of the window.

        Without a goal it keeps the proportion of its own to its own threshold. Raises ConfigError
        for a name that is none.
        """
        base = profile_named("default" if self.name == PRUNE else self.name)
        if self.name == PRUNE:
            rungs = tuple(each for each in base.rungs if each != "summarise")
            base = replace(base, rungs=rungs, floor=False)
        own = min(1.0, share) * base.compact_to / base.compact_at
        goal = own if self.goal is None else self.goal
        # The replay says when it is due: at any size above the goal.
        return replace(base, compact_to=goal, compact_at=goal, warn_at=None, sizing="request")


def answers_of(log: ChainLog, everything: Sequence[Message]) -> list[int | None]:
    """Return where the answer of each response begins in a conversation; None: not found."""
    reported = [
        (place, each.usage.context)
        for place, each in enumerate(everything)
        if each.usage is not None
    ]
    begins: list[int | None] = []
    next_reported, before = 0, -1
    for turn in log.turns:
        fitting = (
            number
            for number in range(next_reported, len(reported))
            if reported[number][1] == turn.used
        )
        number = next(fitting, None)
        if number is None:
            begins.append(None)
            continue
        place = reported[number][0]
        begin = place
        while begin - 1 > before and everything[begin - 1].role == "assistant":
            begin -= 1
        begins.append(begin)
        next_reported, before = number + 1, place
    return begins


class EngineAfter:
    """Says what the engine leaves, for a replay of one chain: asked in the order of requests."""

    def __init__(
        self,
        log: ChainLog,
        everything: Sequence[Message],
        strategy: Strategy,
        window_tokens: int | None = None,
    ) -> None:
        self._log, self._everything = log, everything
        self._begins = answers_of(log, everything)
        self._strategy, self._window_tokens = strategy, window_tokens
        self._history, self._added, self._seen = History(), 0, 0

    def __call__(self, at: int, size: int) -> Kept | None:
        """Return what is left of a request of so many tokens; None: its messages are not known."""
        end = len(self._everything) if at == len(self._log.turns) else self._begins[at]
        if end is None:
            return None
        self._reset(at)
        for each in self._everything[self._added : end]:
            if each.compaction is None:
                self._history.append(replace(each, usage=None))
        self._added = max(self._added, end)
        receipts = self._compacted(self._log.turns[at - 1], size)
        if not receipts:
            return Kept(size)
        return Kept(
            receipts[-1].tokens_after,
            has_call=False,
            pins_kept=sum(map(_pins, self._history.active)),
            pins=self._history.turns,
            duration_ms=sum(each.duration_ms or 0 for each in receipts),
        )

    def _reset(self, at: int) -> None:
        """Begin again after a reset that came since the last request: what is before it is gone."""
        resets = (each for each in range(at, self._seen, -1) if self._log.between[each].is_reset)
        reset = next(resets, None)
        self._seen = at
        begin = None if reset is None else self._begins[reset - 1]
        if begin is None:
            return
        while begin < len(self._everything) and self._everything[begin].role == "assistant":
            begin += 1
        self._history, self._added = History(), max(self._added, begin)

    def _compacted(self, turn: ChainTurn, size: int) -> Sequence[Receipt]:
        history, window = self._history, self._window_tokens or turn.window
        if window is None or open_calls(history.active):
            return ()
        compactor = Compactor(profile=self._strategy.profile(size / window))
        call = ModelCall(model=turn.model, window_tokens=window, recall=False)
        self._report(compactor, call, size)
        history.trigger = TriggerState()  # how often it is compacted is the replay's to say
        before = len(history.receipts)
        asyncio.run(compactor.before_call(history, call))
        return history.receipts[before:]

    def _report(self, compactor: Compactor, call: ModelCall, size: int) -> None:
        """Give the last answer a size, so that the engine takes the request for that large."""
        history = self._history
        answer = next((each for each in reversed(history.active) if each.role == "assistant"), None)
        if answer is None:
            return
        history.amend(replace(answer, usage=ApiUsage(size, 0)))
        more = compactor.size(history, call).tokens - size
        history.amend(replace(answer, usage=ApiUsage(max(1, size - more), 0)))


def _pins(message: Message) -> int:
    """Return how many turns of the user a message is, or quotes as a compaction's text."""
    if message.compaction is not None:
        return user_turns(message.compaction.summary)
    return int(message.is_user_turn)
