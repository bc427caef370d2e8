"""The ladder: which rungs run, in order, until the conversation is small enough.

Everything here is pure and works on estimates of the messages alone; the budget is what the
whole request leaves them. The summary itself is written outside: `prepare` says what it is about,
`finish` puts it in its place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from contextgauge.compaction.carried.audit import audit
from contextgauge.compaction.carried.compaction_text import (
    TASK_SHARE,
    compose,
    required,
    task_text,
    title,
)
from contextgauge.compaction.carried.pins import carry
from contextgauge.compaction.carried.unmarked_text import without_nesting
from contextgauge.compaction.counting import ROLE_TOKENS, Counter
from contextgauge.compaction.engine.compaction_receipt import LadderStep
from contextgauge.compaction.engine.extractive import floor
from contextgauge.compaction.engine.selection import Division, select
from contextgauge.compaction.engine.tool_arguments import Edited, shorten_arguments
from contextgauge.compaction.engine.tool_results import clear_results, deduplicate, fitting
from contextgauge.compaction.messages import (
    Carried,
    ContextCompaction,
    Message,
    Text,
    first_turn,
)
from contextgauge.compaction.profiles import Profile, RungName, share_of

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


@dataclass(frozen=True, slots=True)
class Summarising:
    """What the summary is about: the division, what code carries, and the room for its text.

    `replaced_tokens` is the size of what the text takes the place of, `overhead_tokens` of what
    else its message has; `task` is the first request.
    """

    selection: Division
    tail: tuple[Message, ...]
    carried: Carried
    task: str
    previous: str | None
    number: int
    replaced_tokens: int
    overhead_tokens: int
    room_tokens: int
    steps: tuple[LadderStep, ...]


class Staying(NamedTuple):
    """Why no message can leave."""

    reason: str


def prepare(
    at: Climb,
    profile: Profile,
    counter: Counter,
    *,
    budget_tokens: int,
    number: int,
    keep_ids: frozenset[str] = frozenset(),
    original: Callable[[str], Message | None] = lambda _id: None,
    must: bool = False,
) -> Summarising | Staying:
    """Divide the messages; all are staying where too few would leave, or too little.

    Too little is less than what code carries would take of it again, unless it `must` be: then
    the least important is left out. `original` gives a message before it was cleared or
    shortened: what code carries is taken from there.
    """
    keep_tokens = (
        None if profile.keep_share is None else share_of(budget_tokens, profile.keep_share)
    )
    selection = select(
        at.messages,
        keep_last=profile.keep_last,
        keep_tokens=keep_tokens,
        counter=counter,
        keep_ids=keep_ids,
        keep_first=profile.keep_first,
    )
    staying = tokens_of(selection.head, counter) + tokens_of(selection.tail, counter)
    replaced = at.tokens - staying
    count = len(selection.leaving)
    if count < max(1, profile.minimum_messages):
        what = f"{len(selection.tail)} of {len(at.messages)} messages are recent"
        return Staying(f"{what}, {len(selection.head)} always stay, and {count} could leave")
    if replaced < profile.minimum_tokens:
        return Staying(
            f"the {count} older messages have {replaced:,} tokens, and a summary is made of "
            f"{profile.minimum_tokens:,} or more"
        )
    tail, steps = shorten_large(selection.tail, keep_tokens, profile, counter)
    marker = selection.previous.compaction if selection.previous else None
    carried = marker.carried if marker else Carried()
    former = None
    if profile.carry:
        sources = [original(each.id) or each for each in selection.leaving]
        if marker is None:
            sources, former = without_nesting(sources)
        carried = carry(carried, sources)
    number = former.number + 1 if former else number
    needed = _needed(carried, number, counter)
    most = max(MINIMUM_ROOM_TOKENS, replaced * 3 // 4)
    if needed > most and not must:
        return Staying(
            f"the {count} older messages have {replaced:,} tokens, and what must not be lost of "
            f"them takes {needed:,}"
        )
    room = budget_tokens - tokens_of(selection.head, counter) - tokens_of(tail, counter)
    return Summarising(
        selection,
        tail,
        carried,
        carried.task or first_turn(at.messages),
        (marker.prose or marker.summary) if marker else (former.summary if former else None),
        number,
        replaced,
        ROLE_TOKENS + counter.text(profile.continuation or ""),
        # What code carries comes before the budget: a goal is only a wish.
        min(max(MINIMUM_ROOM_TOKENS, room, needed), most),
        steps,
    )


MINIMUM_ROOM_TOKENS: Final = 200
"""A summary's room where the rest leaves none: headings and the most important pins."""


def _needed(carried: Carried, number: int, counter: Counter) -> int:
    """Return the room that what code carries needs; the user's plain statements have the rest."""
    text = compose("", required(carried), number=number, budget_tokens=None, counter=counter)
    # Each line may be rounded up on its own.
    needed = counter.text(text) + text.count("\n") + 1
    # The task gets its share of what the title leaves.
    return max(
        needed, counter.text(title(number)) + 1 + TASK_SHARE * counter.text(task_text(carried.task))
    )


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


def document(
    work: Summarising, prose: str, profile: Profile, counter: Counter, floor_text: Callable[[], str]
) -> str | None:
    """Return the whole text of the compaction's message around a summariser's prose.

    What code carries is audited after all shortening: None where the prose left something out that
    there is room for, so that the floor is taken instead.
    """
    if not profile.carry:
        return prose
    text = compose(
        prose,
        work.carried,
        number=work.number,
        budget_tokens=work.room_tokens,
        counter=counter,
    )
    missing = audit(text, work.carried)
    if missing and len(audit(floor_text(), work.carried)) < len(missing):
        return None
    return text


def floor_document(work: Summarising, counter: Counter) -> str:
    """Return the deterministic text, which needs no summariser."""
    return floor(
        work.selection.leaving,
        work.carried,
        number=work.number,
        budget_tokens=work.room_tokens,
        counter=counter,
    )


def finish(
    work: Summarising,
    marker: ContextCompaction,
    profile: Profile,
    restored: Sequence[str] = (),
) -> tuple[Message, ...]:
    """Return the active conversation with the compaction's message in its place."""
    texts = [*restored, *([profile.continuation] if profile.continuation else ())]
    message = Message(profile.summary_role, (marker, *map(Text, texts)))
    return (*work.selection.head, message, *work.tail)
