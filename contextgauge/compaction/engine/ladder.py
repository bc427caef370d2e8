"""The ladder: which rungs run, in order, until the conversation is small enough.

Everything here is pure and works on estimates of the messages alone; the budget is what the
whole request leaves them. The last rung is the summary: `preparation` says what it is about.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from contextgauge.compaction.counting import Counter
from contextgauge.compaction.engine.compaction_receipt import LadderStep
from contextgauge.compaction.engine.tool_arguments import Edited, shorten_arguments
from contextgauge.compaction.engine.tool_results import clear_results, deduplicate, fitting
from contextgauge.compaction.messages import Message
from contextgauge.compaction.profiles import Profile, RungName

REASONS: Final[dict[RungName, str]] = {
    "deduplicate": "the same result stands again later",
    "clear-results": "old results; the history keeps them",
    "shorten-arguments": "long texts in the arguments of old calls",
    "summarise": "older messages, archived",
}


@dataclass(frozen=True, slots=True)
class Climb:
    """Where the ladder stands: messages, their estimated tokens, and what was done so far."""

    messages: tuple[Message, ...]
    tokens: int
    steps: tuple[LadderStep, ...] = ()


def tokens_of(messages: Sequence[Message], counter: Counter) -> int:
    """Return an estimate of messages, tokens."""
    return sum(map(counter.message, messages))


def climb(
    at: Climb,
    profile: Profile,
    counter: Counter,
    budget_tokens: int,
    *,
    offers_recall: bool = False,
) -> Climb:
    """Run the rungs that need no summary, in the profile's order, until the budget is met."""
    for rung in profile.rungs:
        if at.tokens <= budget_tokens:
            break
        if rung == "summarise":
            continue
        excess = at.tokens - budget_tokens
        if rung == "clear-results":
            at = clear_only(at, profile, counter, excess, offers_recall=offers_recall)
        elif rung == "deduplicate":
            at = _stepped(at, rung, deduplicate(at.messages, profile), counter)
        else:
            old = range(max(0, len(at.messages) - profile.keep_last))
            edited = shorten_arguments(at.messages, profile, old, counter, excess)
            at = _stepped(at, rung, edited, counter)
    return at


def clear_only(
    at: Climb, profile: Profile, counter: Counter, excess_tokens: int, *, offers_recall: bool
) -> Climb:
    """Clear old results; also as a step of its own, below the threshold of a compaction (004)."""
    edited = clear_results(
        at.messages, profile, counter, excess_tokens, offers_recall=offers_recall
    )
    return _stepped(at, "clear-results", edited, counter)


def _stepped(at: Climb, rung: RungName, edited: Edited, counter: Counter) -> Climb:
    if not edited.changed:
        return at
    tokens = at.tokens
    for before, after in zip(at.messages, edited.messages, strict=True):
        if after is not before:
            tokens += counter.message(after) - counter.message(before)
    step = LadderStep(rung, at.tokens, tokens, edited.changed, REASONS[rung])
    return Climb(tuple(edited.messages), tokens, (*at.steps, step))


def shorten_large(
    messages: tuple[Message, ...],
    room_tokens: int | None,
    profile: Profile,
    counter: Counter,
) -> tuple[tuple[Message, ...], tuple[LadderStep, ...]]:
    """Shorten the largest of some messages until all fit; None is no bound."""
    shorter = tuple(fitting(messages, room_tokens, profile, counter))
    pairs = zip(messages, shorter, strict=True)
    changed = tuple(before.id for before, after in pairs if before != after)
    if not changed:
        return messages, ()
    before, after = tokens_of(messages, counter), tokens_of(shorter, counter)
    reason = "latest messages that are too large together"
    return shorter, (LadderStep("shorten-message", before, after, changed, reason),)


def shorten_only(at: Climb, profile: Profile, counter: Counter, budget_tokens: int) -> Climb:
    """Shorten what is too large alone where no message can leave: the last rung without a summary.

    Profiles that keep their latest messages whatever their size have none.
    """
    if profile.keep_share is None or at.tokens <= budget_tokens:
        return at
    messages, steps = shorten_large(at.messages, budget_tokens, profile, counter)
    return Climb(messages, tokens_of(messages, counter), (*at.steps, *steps))
