"""What a compaction's text is about, and how it takes its place. Pure.

`prepare` divides the messages and says what code carries of those that leave; the summary itself
is written outside, and `finish` puts the text in its place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, NamedTuple

from contextgauge.compaction.carried.audit import audit
from contextgauge.compaction.carried.compaction_text import (
    FILES_PERCENT,
    ONLY_RECORD_SHARE,
    SUMMARY_SHARE,
    compose,
    last_number,
    restored_text,
    surrounded,
)
from contextgauge.compaction.carried.digest import PlacedEntry, carried_on, entries_of
from contextgauge.compaction.carried.digest_room import TURNS_SHARE, USER_SHARE
from contextgauge.compaction.carried.file_ledger import ledger
from contextgauge.compaction.carried.unmarked_text import former_text
from contextgauge.compaction.counting import ROLE_TOKENS, Counter
from contextgauge.compaction.engine.compaction_receipt import LadderStep
from contextgauge.compaction.engine.ladder import Climb, shorten_large, tokens_of
from contextgauge.compaction.engine.selection import Division, divide, former_compaction, select
from contextgauge.compaction.engine.summary_checks import demoted
from contextgauge.compaction.engine.tail_growth import (
    TextSize,
    TextTokens,
    earliest_cut,
    most_of,
    text_size,
)
from contextgauge.compaction.messages import (
    Carried,
    ContextCompaction,
    FileUse,
    Message,
    Text,
    first_turn,
)
from contextgauge.compaction.profiles import Profile, share_of

MINIMUM_ROOM_TOKENS: Final = 200
"""A text's room where the rest leaves none: its title, and the first and newest turns."""


@dataclass(frozen=True, slots=True)
class Summarising:
    """What the summary is about: the division, what code carries, and the room for its text.

    `sources` are the leaving messages as they came, before anything of them was cleared.
    `replaced_tokens` is the size of what the text takes the place of, `overhead_tokens` of what
    else its message has; while the user's turns have no more than `turns_tokens` they are
    whole. `task` is the first request.
    """

    selection: Division
    sources: tuple[Message, ...]
    tail: tuple[Message, ...]
    carried: Carried
    task: str
    previous: str | None
    number: int
    replaced_tokens: int
    overhead_tokens: int
    room_tokens: int
    turns_tokens: int
    files_tokens: int
    prose_share: int
    steps: tuple[LadderStep, ...]
    offers_recall: bool


class Staying(NamedTuple):
    """Why no message can leave."""

    reason: str


class Aim(NamedTuple):
    """What a compaction is to leave: `budget_tokens` of messages, as the `number`th with a summary.

    `must`: the next request would not fit, so the user's turns are shortened where they leave too
    little. `requested`: though all fits, it saves the share that one in need would. A model may
    write `prose_tokens`. `offers_recall`: the agent can read what is left out.
    """

    budget_tokens: int
    number: int
    keep_ids: frozenset[str] = frozenset()
    must: bool = False
    requested: bool = False
    prose_tokens: int = 0
    offers_recall: bool = False


def prepare(
    at: Climb,
    profile: Profile,
    counter: Counter,
    aim: Aim,
    original: Callable[[str], Message | None] = lambda _id: None,
) -> Summarising | Staying:
    """Divide the messages; all are staying where too few would leave, or too little.

    Too little is less than the user's turns among them would take of it again, whole. `original`
    gives a message before it was cleared or shortened: the summary is about that, and what code
    carries is taken from there.
    """
    budget_tokens, keep_ids = aim.budget_tokens, aim.keep_ids
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
    goal = budget_tokens
    if keep_tokens is not None and aim.requested:
        goal = _requested_goal(at, profile, budget_tokens)
    preparation = _Preparation(
        at,
        profile,
        counter,
        budget_tokens,
        goal,
        tuple([original(each.id) or each for each in at.messages]),
        _former(at.messages, selection, aim.number, carries=profile.carry),
        aim.must,
        aim.offers_recall,
    )
    prose_tokens = max(
        min(aim.prose_tokens, budget_tokens // SUMMARY_SHARE),
        preparation.former.prose_tokens(counter, budget_tokens),
    )
    tokens = TextTokens(prose_tokens, preparation.turns_tokens, preparation.files_tokens)
    carried = preparation.carried_of(selection, tokens)
    if keep_tokens is not None:
        cut = preparation.earliest(selection, carried.size)
        if cut < len(at.messages) - len(selection.tail):
            fewer = divide(at.messages, cut, keep_ids=keep_ids, keep_first=profile.keep_first)
            work = preparation.summarising(fewer, carried, None)
            if isinstance(work, Summarising):
                return work
    return preparation.summarising(selection, carried, keep_tokens)


def _requested_goal(at: Climb, profile: Profile, budget_tokens: int) -> int:
    """Return the goal of a compaction without need: the share that one in need would leave."""
    share = profile.compact_to / profile.compact_at
    before = at.steps[0].tokens_before if at.steps else at.tokens
    budget = min(budget_tokens, share_of(before, share))
    return budget if budget < at.tokens else share_of(at.tokens, share)


class _Former(NamedTuple):
    """What the last compaction left: where its text stands, -1 for nowhere, and what it says.

    `others` is what else its message has, in a format without markers.
    """

    position: int
    number: int
    prose: str | None
    carried: Carried
    others: Message | None = None

    @property
    def prose_share(self) -> int:
        """As what part of a text the summary stays: a larger one if nothing else is carried."""
        return ONLY_RECORD_SHARE if self.prose and not self.carried.entries else SUMMARY_SHARE

    def prose_tokens(self, counter: Counter, budget_tokens: int) -> int:
        """Return what the summary may have."""
        return min(counter.text(self.prose or ""), budget_tokens // self.prose_share)


def _former(
    messages: Sequence[Message], selection: Division, number: int, *, carries: bool
) -> _Former:
    marker = former_compaction(selection.previous) if selection.previous else None
    if marker is not None:
        position = next(place for place, each in enumerate(messages) if each is selection.previous)
        number = max(number, marker.number + 1)
        # What is carried says it all where no model wrote a summary, unless others made the marker.
        prose = marker.prose or (None if marker.carried != Carried() else marker.summary)
        return _Former(position, number, prose, marker.carried)
    former = former_text(messages) if carries else None
    if former is not None and any(each is messages[former[0]] for each in selection.leaving):
        position, text = former
        others = text.others if text.others.blocks else None
        return _Former(position, text.number + 1, text.prose or None, text.carried, others)
    return _Former(-1, number, None, Carried())


class _CarriedEntries(NamedTuple):
    """What could be carried of all messages that may leave, each entry with its position."""

    entries: Sequence[PlacedEntry]
    files: Sequence[FileUse]
    size: TextSize


@dataclass(frozen=True, slots=True)
class _Preparation:
    """One compaction, whatever its division; `sources` are the messages as they came.

    `goal_tokens` is what is aimed at, and is no more than the budget.
    """

    at: Climb
    profile: Profile
    counter: Counter
    budget_tokens: int
    goal_tokens: int
    sources: tuple[Message, ...]
    former: _Former
    must: bool
    offers_recall: bool

    @property
    def turns_tokens(self) -> int:
        """What the user's turns may have together to be whole: all, where the messages fit."""
        fits = self.at.tokens <= self.budget_tokens
        return self.budget_tokens if fits else self.budget_tokens // TURNS_SHARE

    @property
    def files_tokens(self) -> int:
        """What the list of files may have: a share of the goal, whatever the text takes of it."""
        return self.goal_tokens * FILES_PERCENT // 100

    def carried_of(self, division: Division, tokens: TextTokens) -> _CarriedEntries:
        carried = self.former.carried
        sources, places = self._sources(division), self._leaving(division)
        placed: list[PlacedEntry] = []
        files: Sequence[FileUse] = carried.files
        if self.profile.carry:
            entries = entries_of(sources, last_number(carried))
            placed = [each._replace(position=places[each.position]) for each in entries]
            files = ledger(carried.files, sources)
        length = len(self.at.messages)
        return _CarriedEntries(
            placed, files, text_size(carried, placed, files, length, tokens, self.counter)
        )

    def earliest(self, division: Division, size: TextSize) -> int:
        """Return the earliest cut with which tail and text fit the goal."""
        after = self.former.position + max(1, self.profile.minimum_messages)
        return earliest_cut(self.at, division, size, self.counter, self.goal_tokens, after)

    def summarising(
        self, division: Division, all_carried: _CarriedEntries, tail_tokens: int | None
    ) -> Summarising | Staying:
        at, profile, counter, former = self.at, self.profile, self.counter, self.former
        staying = tokens_of(division.head, counter) + tokens_of(division.tail, counter)
        replaced = at.tokens - staying
        count = len(division.leaving)
        if count < (1 if self.must else max(1, profile.minimum_messages)):
            what = f"{len(division.tail)} of {len(at.messages)} messages are recent"
            return Staying(f"{what}, {len(division.head)} always stay, and {count} could leave")
        if replaced < (MINIMUM_ROOM_TOKENS if self.must else profile.minimum_tokens):
            return Staying(
                f"the {count} older messages have {replaced:,} tokens, and a summary is made of "
                f"{profile.minimum_tokens:,} or more"
            )
        carried = former.carried
        if profile.carry:
            cut = len(at.messages) - len(division.tail)
            new = [each.entry for each in all_carried.entries if each.position < cut]
            carried = carried_on(former.carried, new, all_carried.files)
        left = self.budget_tokens - tokens_of(division.head, counter)
        if tail_tokens is not None:
            text_tokens = all_carried.size.at(len(at.messages) - len(division.tail), left)
            tail_tokens = max(tail_tokens, left - text_tokens)
        tail, steps = shorten_large(division.tail, tail_tokens, profile, counter)
        left -= tokens_of(tail, counter)
        spare = left - self.budget_tokens + self.goal_tokens
        most = max(MINIMUM_ROOM_TOKENS, most_of(replaced))
        needed = _needed(carried, counter)
        if at.tokens <= self.budget_tokens:
            needed += _instructions(carried, counter)
        prose_tokens = former.prose_tokens(counter, self.budget_tokens)
        room = max(MINIMUM_ROOM_TOKENS, spare, min(left, needed + prose_tokens))
        if most < needed <= left and not self.must:
            return Staying(
                f"the {count} older messages have {replaced:,} tokens, and with the user's "
                f"turns whole the text has {needed:,}"
            )
        sources, previous = self._sources(division), division.previous
        if previous and not previous.compaction and division.leaving[0].id == previous.id:
            sources = (division.leaving[0], *sources)  # what stood behind 002's summary
        user = next((each.text for each in carried.entries if each.speaker == "user"), "")
        return Summarising(
            division,
            sources,
            tail,
            carried,
            user or first_turn(at.messages),
            former.prose,
            former.number,
            replaced,
            ROLE_TOKENS + counter.text(profile.continuation or ""),
            min(room, most),
            self.turns_tokens,
            self.files_tokens,
            former.prose_share,
            steps,
            self.offers_recall,
        )

    def _sources(self, division: Division) -> tuple[Message, ...]:
        """Return the leaving messages as they came; of the last text's what else it has."""
        others, position = self.former.others, self.former.position
        return tuple(
            others if others and place == position else self.sources[place]
            for place in self._leaving(division)
        )

    def _leaving(self, division: Division) -> list[int]:
        """Return the positions of the leaving messages, without that of the last text alone."""
        leaving = {id(each) for each in division.leaving}
        return [
            place
            for place, each in enumerate(self.at.messages)
            if id(each) in leaving and (place != self.former.position or self.former.others)
        ]


def _needed(carried: Carried, counter: Counter) -> int:
    """Return the tokens of a text that has the user's turns whole, and the others."""
    turns = [each for each in carried.entries if each.speaker == "user"]
    return int(sum(counter.text(each.text + each.end) for each in turns) / USER_SHARE)


def _instructions(carried: Carried, counter: Counter) -> int:
    """Return the tokens of data that comes before what the agent says."""
    before = takewhile(lambda each: each.speaker in ("user", "data"), carried.entries)
    return sum(counter.text(each.text) for each in before if each.speaker == "data")


def document(
    work: Summarising, prose: str, profile: Profile, counter: Counter, floor_text: Callable[[], str]
) -> str | None:
    """Return the whole text of the compaction's message around a summariser's prose.

    It is audited after all shortening: None where the prose left something out that there is room
    for, so that the floor is taken instead.
    """
    if not profile.carry:
        return prose
    text = _composed(work, prose, counter)
    missing = audit(text, work.carried)
    if missing and len(audit(floor_text(), work.carried)) < len(missing):
        return None
    return text


def floor_document(work: Summarising, counter: Counter) -> str:
    """Return the text without a summariser's words."""
    return _composed(work, work.previous or "", counter)


def _composed(work: Summarising, prose: str, counter: Counter) -> str:
    """Return the text; it names messages only where the agent can recall them."""
    entries = work.carried.entries
    if not work.offers_recall:
        entries = tuple([replace(each, message_id="") for each in entries])
    return compose(
        demoted(prose),
        replace(work.carried, entries=entries),
        number=work.number,
        budget_tokens=work.room_tokens,
        counter=counter,
        turns_tokens=work.turns_tokens,
        files_tokens=work.files_tokens,
        prose_share=work.prose_share,
    )


def finish(
    work: Summarising,
    marker: ContextCompaction,
    profile: Profile,
    restored: Sequence[str] = (),
) -> tuple[Message, ...]:
    """Return the active conversation with the compaction's message in its place."""
    text = surrounded(marker.summary)
    texts = [each if text is None else restored_text(each, text.nonce) for each in restored]
    texts += [profile.continuation] if profile.continuation else []
    message = Message(profile.summary_role, (marker, *map(Text, texts)))
    return (*work.selection.head, message, *work.tail)
