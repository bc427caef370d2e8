"""The rule guard: which of the user's turns the model still sees after a boundary.

A turn is kept if it is there word for word, in the summary, in a message that stayed or in what a
tool returned; paraphrased if a passage that is no tool's has enough of it in any script
(`turn_overlap.py`); else it is lost. Each is compared whole: code does not know which of them is a
rule. Turns that are too short to be judged, and those that an earlier boundary lost, are left out;
those whose comparison would take too long are unknown.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from contextgauge.compaction.engine.cutting import middle_cut
from contextgauge.compaction.history import Edit, History
from contextgauge.compaction.messages import (
    ContextCompaction,
    Message,
    Opaque,
    Text,
    ToolResult,
)
from contextgauge.normalise.claude_code.messages import MAX_PIN, MAX_PINS
from schemas.records import Json
from streams.core.control.turn_overlap import (
    THRESHOLD,
    GuardWork,
    SeenText,
    Turn,
    can_be_judged,
    plain,
)

NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:contextgauge:pins-checked")


class PinsCheck(NamedTuple):
    """The user's turns that are there, word for word or in other words, and those that are not.

    `unknown` ones are not there word for word, and looking for other words would take too long:
    for so many later turns, or among so many passages that have the same n-grams.
    """

    kept: tuple[str, ...]
    paraphrased: tuple[str, ...]
    lost: tuple[str, ...]
    unknown: tuple[str, ...] = ()


class AroundBoundary(NamedTuple):
    """What the model saw just before the latest boundary, and what it sees now.

    `turns` are the user's by message, from the start or the last reset to the boundary.
    """

    turns: dict[str, str]
    before: tuple[Message, ...]
    after: tuple[Message, ...]


class SeenBefore:
    """Which of the user's turns the model saw before a boundary."""

    def __init__(self, around: AroundBoundary, turns: Sequence[Turn], work: GuardWork) -> None:
        """Take the user's turns, for their weights: see `SeenText`."""
        self._present = {plain(each.user_text) for each in around.before}
        summaries = (each for each in around.before if each.compaction is not None)
        self._summaries = seen_text(summaries, turns, work)

    def has(self, turn: Turn) -> bool:
        """Return whether a turn was there, or in what an earlier boundary left of it."""
        return turn.plain in self._present or (self._summaries.overlap(turn) or 0) >= THRESHOLD


def judged_turns(around: AroundBoundary, work: GuardWork) -> list[Turn] | None:
    """Return the user's turns that are long enough to be judged, each once, the latest first.

    None where `work` has no room to compare them with what was before.
    """
    texts = list(filter(can_be_judged, around.turns.values()))
    if not work.folds([*texts, *(each.user_text for each in around.before)]):
        return None
    by_text = {turn.plain: turn for turn in map(Turn, reversed(texts))}
    return list(by_text.values())


def check_pins(around: AroundBoundary, work: GuardWork | None = None) -> PinsCheck:
    """Return which turns that the model saw before a boundary it sees after it.

    All that grows with their length is taken from `work`; what it has no room for is unknown.
    """
    work = GuardWork() if work is None else work
    turns = judged_turns(around, work)  # the latest first: the work has a bound
    if turns is None:
        return PinsCheck((), (), (), tuple(filter(can_be_judged, around.turns.values())))
    after = seen_text(around.after, turns, work)
    before = SeenBefore(around, turns, work)
    check: tuple[list[str], list[str], list[str], list[str]] = [], [], [], []
    preserved, paraphrased, lost, unknown = check
    # First what takes little time: the rest may take all that is left.
    are_there = [after.has(turn) for turn in turns]
    for turn, is_there in zip(turns, are_there, strict=True):
        if is_there:
            preserved.append(turn.text)
            continue
        share = None if is_there is None else after.overlap(turn)
        if share is not None and share >= THRESHOLD:
            paraphrased.append(turn.text)
        elif before.has(turn):
            (unknown if share is None else lost).append(turn.text)
    return PinsCheck(*(tuple(reversed(each)) for each in check))


def around_boundary(history: History) -> AroundBoundary | None:
    """Return the conversation before its latest compaction, and what the model sees now.

    None where there was none that is known with what was before it, or where what the model sees
    cannot be read: an encrypted summary.
    """
    around: AroundBoundary | None = None
    for _, around in _changes(history):  # noqa: B007 -- the last one
        pass
    if around is None or not around.before or any(map(is_unreadable, history.active)):
        return None
    return around._replace(after=tuple(history.active))


def boundaries(history: History) -> Iterator[tuple[int, AroundBoundary]]:
    """Yield each compaction with the place of its entry: the conversation before and after it.

    One of which nothing is known that was before it is left out.
    """
    for place, around in _changes(history):
        if around is not None and around.before:
            yield place, around


def _changes(history: History) -> Iterator[tuple[int, AroundBoundary | None]]:
    """Yield each compaction of which is known what was before it, and None for each reset."""
    active: list[Message] = []
    turns: dict[str, str] = {}
    removal: AroundBoundary | None = None
    """What was before the latest removal of messages: a runtime's summary may follow it."""
    for place, entry in enumerate(history.entries):
        if isinstance(entry, Message) and entry.compaction is None:
            active.append(entry)
            if entry.role == "assistant":
                removal = None
            continue
        former = AroundBoundary(turns | _turns(active), tuple(active), ())
        if isinstance(entry, Edit):
            active = entry.on(active)
        else:
            active = [*(each for each in active if each.role == "system"), entry]
        known = {each.id for each in former.before}
        if not known <= {each.id for each in active}:
            removal = former
        markers = [each.id for each in active if each.compaction is not None]
        if not markers:
            turns = {}  # a reset: there is nothing that would have to be kept
            yield place, None
        elif not known.issuperset(markers):
            around, removal = removal or former, None
            turns = around.turns
            yield place, around._replace(after=tuple(active))


def message_of(
    check: PinsCheck, session_id: str, boundary_id: str, at: str, *, has_texts: bool
) -> dict[str, Json]:
    """Return the message that reports a check; `at` is its time, as RFC 3339.

    Its id follows from the boundary's, so what is published twice is known. Of many lost turns the
    first and the latest are quoted; without `has_texts` they are only counted.
    """
    lost = check.lost
    if len(lost) > MAX_PINS:
        lost = (*lost[: MAX_PINS // 2], *lost[-(MAX_PINS // 2) :])
    excerpts: list[Json] = [middle_cut(turn, MAX_PIN) for turn in lost]
    return {
        "type": "system",
        "subtype": "pins_checked",
        "session_id": session_id,
        "uuid": str(uuid.uuid5(NAMESPACE, boundary_id)),
        "timestamp": at,
        "boundary_id": boundary_id,
        "kept": len(check.kept) + len(check.paraphrased),
        "lost": excerpts if has_texts else [],
        "lost_count": len(check.lost),
    }


def _turns(messages: Iterable[Message]) -> dict[str, str]:
    return {each.id: each.user_text for each in messages if each.user_text}


def is_unreadable(message: Message) -> bool:
    """Return whether a message has what an API compacted, encrypted."""
    return any(isinstance(block, Opaque) and "compaction" in block.kind for block in message.blocks)


def seen_text(messages: Iterable[Message], turns: Sequence[Turn], work: GuardWork) -> SeenText:
    """Return what the model reads in messages; see `SeenText`."""
    own, quoted = texts_of(messages)
    return SeenText([text for _, text in own], [text for _, text in quoted], turns, work)


class MessageText(NamedTuple):
    """A text of a message."""

    message_id: str
    text: str


def texts_of(messages: Iterable[Message]) -> tuple[list[MessageText], list[MessageText]]:
    """Return the texts of messages, and apart those that tools returned."""
    own: list[MessageText] = []
    quoted: list[MessageText] = []
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ContextCompaction):
                own.append(MessageText(message.id, block.summary))
            elif isinstance(block, Text):
                own.append(MessageText(message.id, block.text))
            elif isinstance(block, ToolResult):
                quoted.append(MessageText(message.id, block.text))
    return own, quoted
