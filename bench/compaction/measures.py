"""What is measured after each compaction, from what the model would see and nothing else."""

import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bench.compaction.calls import files_of
from bench.compaction.contenders import Budget, Contender, tokens_of
from bench.compaction.conversations import Conversation
from bench.compaction.summaries import Style
from contextgauge.compaction.messages import (
    Message,
    Text,
    ToolCall,
    ToolResult,
)


class Reading(NamedTuple):
    """One compaction of one session. Shares are 0 to 1, None where there is nothing to share.

    `constraints`: of all that hold so far, those whose exact value the context holds. `early` are
    those of the first round alone. `resolved`: of values that were replaced, those whose newest
    value the context holds. `stale`: those of which it holds an old value, and after that no newer
    one. `files`: of those read or changed so far, those whose path it holds. `orphans` are calls
    without a result and results without a call. `tokens` is an estimate of the messages.
    """

    constraints: float
    early: float
    resolved: float | None
    stale: float | None
    files: float
    changed_files: float
    orphans: int
    tokens: int
    over_budget: bool
    ms: float


def play(
    contender: Contender, conversation: Conversation, budget: Budget, style: Style
) -> list[Reading]:
    """Let a contender compact a session after each round, and measure."""
    session = contender.begin(budget, style)
    history: list[Message] = []
    readings: list[Reading] = []
    for number, messages in enumerate(conversation.rounds):
        session.extend(messages)
        history += messages
        began = time.perf_counter()
        session.compact()
        ms = (time.perf_counter() - began) * 1_000
        readings.append(_reading(session.active, history, conversation, number, budget, ms))
    return readings


def _reading(
    active: Sequence[Message],
    history: Sequence[Message],
    conversation: Conversation,
    number: int,
    budget: Budget,
    ms: float,
) -> Reading:
    context = "\n".join(_texts(active))
    constraints = [each for each in conversation.constraints if each.round <= number]
    replaced = [
        [value.value for value in given]
        for topic in conversation.topics
        if len(given := [each for each in topic.values if each.round <= number]) > 1
    ]
    files = files_of(history)
    tokens = tokens_of(active)
    return Reading(
        constraints=_share(each.value in context for each in constraints) or 0.0,
        early=_share(each.value in context for each in constraints if each.round == 0) or 0.0,
        resolved=_share(values[-1] in context for values in replaced),
        stale=_share(is_stale(values, context) for values in replaced),
        files=_share(path in context for path in files) or 0.0,
        changed_files=_share(path in context for path, changed in files.items() if changed) or 0.0,
        orphans=orphans(active),
        tokens=tokens,
        over_budget=tokens > budget.tokens,
        ms=ms,
    )


def _share(hits: Iterable[bool]) -> float | None:
    counted = list(hits)
    return sum(counted) / len(counted) if counted else None


def is_stale(values: Sequence[str], context: str) -> bool:
    """Return whether an old value stands in the context with no newer one after it."""
    newest = context.rfind(values[-1])
    return any(context.rfind(value) > newest for value in values[:-1])


def _texts(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for block in message.blocks:
            if isinstance(block, Text):
                yield block.text
            elif isinstance(block, ToolCall):
                yield f"{block.name} {block.arguments}"
            elif isinstance(block, ToolResult):
                yield block.text
        if message.compaction is not None:
            yield message.compaction.summary


def orphans(messages: Iterable[Message]) -> int:
    """Return how many calls have no result, and results no call before them."""
    calls: set[str] = set()
    alone = 0
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolCall):
                calls.add(block.id)
            elif isinstance(block, ToolResult):
                alone += block.call_id not in calls
                calls.discard(block.call_id)
    return alone + len(calls)


class Result(NamedTuple):
    """A contender over all sessions: means after the last round; time and tokens over all."""

    contender: str
    kind: str
    source: str
    budget_share: float
    style: Style
    constraints: float
    early: float
    resolved: float
    stale: float
    files: float
    changed_files: float
    orphans: int
    tokens_share: float
    over_budget: float
    ms: float
    constraints_by_round: tuple[float, ...]


def summed(
    contender: Contender, style: Style, budget: Budget, sessions: Sequence[Sequence[Reading]]
) -> Result:
    """Return what all sessions of a contender come to."""
    last = [each[-1] for each in sessions]
    every = [reading for each in sessions for reading in each]
    mean = statistics.fmean
    return Result(
        contender=contender.name,
        kind=contender.kind,
        source=contender.source,
        budget_share=round(budget.tokens / budget.window_tokens, 4),
        style=style,
        constraints=mean(each.constraints for each in last),
        early=mean(each.early for each in last),
        resolved=_known(each.resolved for each in last),
        stale=_known(each.stale for each in last),
        files=mean(each.files for each in last),
        changed_files=mean(each.changed_files for each in last),
        orphans=sum(each.orphans for each in every),
        tokens_share=mean(each.tokens for each in last) / budget.window_tokens,
        over_budget=mean(each.over_budget for each in every),
        ms=statistics.median(each.ms for each in every),
        constraints_by_round=tuple(
            mean(each[number].constraints for each in sessions)
            for number in range(len(sessions[0]))
        ),
    )


def _known(shares: Iterable[float | None]) -> float:
    return statistics.fmean(each for each in shares if each is not None)
