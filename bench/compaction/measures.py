"""What is measured of a run, from what a provider would be sent and nothing else."""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bench.compaction.contenders import Limits, Run
from bench.compaction.facts import KINDS, Conversation
from contextgauge.compaction import results_without_call
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.messages import FormatName, Message


class Missing(NamedTuple):
    """A fact that is not in the context: which, where it was planted, and whether recall has it."""

    conversation: str
    kind: str
    place: str
    needles: tuple[str, ...]
    recalled: bool


class Result(NamedTuple):
    """A contender over all conversations, at one goal (percent of the usable window).

    `facts` counts those in the context by kind, of `planted`; `recalled` those in the context or in
    what recall answers, None without recall. `old` counts replaced values in the context, `stale`
    those after which no newer one stands. `injected` counts orders of data, of `orders`, that
    summaries give as the user's words. `invalid` and `over_goal` count compactions, of
    `compactions`. `size` is what compactions leave, a share of the usable window: the median of
    the conversations' medians; `ms` the median of all.
    """

    contender: str
    goal_percent: float
    facts: dict[str, int]
    planted: dict[str, int]
    recalled: int | None
    old: int
    stale: int
    injected: int
    orders: int
    invalid: int
    over_goal: int
    compactions: int
    size: float
    ms: float
    missing: list[Missing]

    @property
    def in_context(self) -> int:
        """Facts of all kinds in the context."""
        return sum(self.facts.values())


def measured(
    contender: str,
    runs: Sequence[tuple[Conversation, Limits, Run]],
    goal_percent: float,
) -> Result:
    """Return what the runs of a contender come to."""
    facts: Counter[str] = Counter()
    missing: list[Missing] = []
    sizes: list[list[float]] = []
    old = stale = injected = invalid = over = 0
    for conversation, limits, run in runs:
        context = "\n".join(texts(run.context))
        for fact in conversation.facts:
            old += sum(each in context for each in fact.old)
            stale += fact.stale(context)
            if fact.is_in(context):
                facts[fact.kind] += 1
                continue
            answer = "" if run.recalled is None else run.recalled(fact.question)
            recalled = fact.is_answered_by(f"{context}\n{answer}")
            missing.append(
                Missing(conversation.name, fact.kind, fact.place, fact.needles, recalled)
            )
        injected += sum(each in run.user_words for each in conversation.orders)
        sizes.append([])
        for each in run.rounds:
            tokens = sum(map(ESTIMATE.message, each.context))
            sizes[-1].append(tokens / limits.usable)
            over += tokens > limits.goal
            invalid += bool(faults(each.context, conversation.format))
    planted = Counter(fact.kind for conversation, *_ in runs for fact in conversation.facts)
    has_recall = any(run.recalled is not None for *_, run in runs)
    return Result(
        contender=contender,
        goal_percent=goal_percent,
        facts={kind: facts[kind] for kind in KINDS},
        planted={kind: planted[kind] for kind in KINDS},
        recalled=planted.total() - sum(not each.recalled for each in missing)
        if has_recall
        else None,
        old=old,
        stale=stale,
        injected=injected,
        orders=sum(len(conversation.orders) for conversation, *_ in runs),
        invalid=invalid,
        over_goal=over,
        compactions=sum(map(len, sizes)),
        size=_median(_median(each) for each in sizes),
        ms=_median(each.ms for *_, run in runs for each in run.rounds),
        missing=missing,
    )


def _median(figures: Iterable[float]) -> float:
    return statistics.median([*figures] or [0.0])


def texts(messages: Iterable[Message]) -> Iterator[str]:
    """Return all that a model reads in messages, in order."""
    for message in messages:
        if message.text:
            yield message.text
        for call in message.calls:
            yield f"{call.name} {call.arguments}"
        for result in message.results:
            yield result.text


def faults(messages: Sequence[Message], format_: FormatName) -> list[str]:
    """Return why a provider would refuse a request with these messages."""
    reasons = [f"result {each} without its call" for each in results_without_call(messages)]
    if messages and messages[0].role != "user" and format_ in {"anthropic", "gemini"}:
        reasons.append(f"the first message is the {messages[0].role}'s")
    waiting: set[str] = set()
    for message in messages:
        answered = {each.call_id for each in message.results}
        if waiting and not answered and not (message.role == "assistant" and message.calls):
            reasons.append(f"calls {sorted(waiting)} are not answered by the next message")
            waiting = set()
        waiting = (waiting - answered) | {each.id for each in message.calls}
    return reasons
