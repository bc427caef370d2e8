"""Compactions as checkpoints: which of a session's lines are its history there.

A session can go on from just before a compaction, with all that its model saw, or from right after
it, with the summary and what was kept. What follows the summary without continuing the conversation
belongs to the compaction, as files that a runtime restores.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from contextgauge.compaction.formats import write_messages
from contextgauge.compaction.history import Edit, History
from contextgauge.compaction.messages import ContextCompaction, FormatName, Message
from contextgauge.compaction.reading.conversation import QUEUED, ConversationReading
from contextgauge.compaction.reading.lines import Line
from contextgauge.errors import ConfigError
from contextgauge.normalise.fork_form import ForkForm
from schemas.records import Json

_SAME_MS: Final = 60_000
"""Between the reports of one compaction. No two are so near each other but those of a test."""


class HeldContext(NamedTuple):
    """What a fork's model sees: its first `lines` of the session have the history.

    `is_whole`: nothing that the model saw there is missing in them.
    """

    lines: int
    messages: int
    is_whole: bool


class SessionCheckpoint(NamedTuple):
    """A compaction of the main chain: the context before and after it."""

    before: HeldContext
    after: HeldContext


class BoundaryReport(NamedTuple):
    """A compaction's boundary as one reader knows it: its record's id, and milliseconds of 1970."""

    id: str
    time_ms: int | None


class _Reader:
    """A conversation, read up to a line and further."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._at = 0
        self.reading = ConversationReading()

    def to(self, end: int) -> HeldContext:
        """Read the lines before one, and return what the model sees then."""
        for index in range(self._at, end):
            _add(self.reading, self._lines[index], index)
        self._at = max(self._at, end)
        reading = self.reading
        is_whole = not (reading.is_incomplete or reading.is_without_text)
        return HeldContext(end, len(reading.history.active), is_whole)


def checkpoints(
    lines: Sequence[Line], boundaries: Sequence[int], form: ForkForm | None
) -> list[SessionCheckpoint]:
    """Return the checkpoints of a session, by the places of its boundaries' lines.

    `form` is that of the session's runtime, None where it has none.
    """
    reader, listed = _Reader(lines), []
    for boundary in boundaries:
        begin = boundary if form is None else form.begin(lines, boundary)
        before = reader.to(begin)
        reader.to(boundary + 1)
        after = reader.to(_end_of(lines, boundary, reader.reading, form))
        listed.append(SessionCheckpoint(before, after))
    return listed


def same_boundaries(
    some: Sequence[BoundaryReport], others: Sequence[BoundaryReport]
) -> dict[str, int]:
    """Return which of the others each boundary is, by its id; those that are none are left out.

    Their numbers say nothing: each reader counts what it has read. A boundary that telemetry
    reported first has another id (R34), and the same time; one that could be several is none.
    """
    places = {each.id: index for index, each in enumerate(others)}
    ids = {each.id for each in some}
    shared = {each: places[each] for each in ids & places.keys()}
    near = [
        (each.id, index)
        for each in some
        if each.id not in shared
        for index, other in enumerate(others)
        if other.id not in ids and _is_near(each.time_ms, other.time_ms)
    ]
    by_id, by_place = Counter(each for each, _ in near), Counter(index for _, index in near)
    only = {each: index for each, index in near if by_id[each] == by_place[index] == 1}
    return shared | only


def _is_near(one_ms: int | None, other_ms: int | None) -> bool:
    return one_ms is not None and other_ms is not None and abs(one_ms - other_ms) <= _SAME_MS


class SeenContext(NamedTuple):
    """What a model sees after some lines, and which model it is.

    `prompts` are those that no line has, by the id of the line right before which it saw them.
    """

    messages: Sequence[Message]
    model: str | None
    prompts: Mapping[str, Sequence[str]]


def seen_context(lines: Sequence[Line]) -> SeenContext:
    """Return what the model sees after these lines."""
    reader = _Reader(lines)
    reader.to(len(lines))
    history, prompts = reader.reading.history, defaultdict[str, list[str]](list)
    for each in history.everything:
        line, is_queued, _ = each.id.partition(QUEUED)
        if is_queued:
            prompts[line].append(each.text)
    return SeenContext(history.active, reader.reading.model, prompts)


def with_known(
    messages: Sequence[Message], time_ms: int | None, tokens_before: int | None
) -> list[Message]:
    """Return messages whose compaction's marker has what is known of it elsewhere.

    `time_ms` is in milliseconds since 1970.
    """
    return [
        each.with_blocks(
            replace(
                block,
                timestamp_ms=time_ms if block.timestamp_ms is None else block.timestamp_ms,
                context_size_before=tokens_before
                if block.context_size_before is None
                else block.context_size_before,
            )
            if isinstance(block, ContextCompaction)
            else block
            for block in each.blocks
        )
        if each.compaction is not None
        else each
        for each in messages
    ]


def before_compaction(history: History, number: int) -> History:
    """Return a kept conversation as it was just before its compaction of that number, from 1.

    Raises ConfigError where it has no such compaction.
    """
    entries = history.after_compaction(number).entries[:-1]
    # A runtime's own compaction is read as two steps: all is archived, and the summary comes.
    return History.replay(entries[:-1] if _archives(entries) else entries)


def _archives(entries: Sequence[object]) -> bool:
    last = entries[-1] if entries else None
    return isinstance(last, Edit) and last.receipt is None


def written(messages: Sequence[Message], format_name: FormatName) -> list[tuple[str, Json]]:
    """Return messages in a format, each with the id of the message that it is of.

    A runtime's instructions are left out, of which another has its own, and what cannot be
    expressed in the format.
    """
    return [
        (message.id, item)
        for message in messages
        if message.role != "system"
        for item in write_messages([message], format_name)
    ]


def _end_of(
    lines: Sequence[Line], boundary: int, reading: ConversationReading, form: ForkForm | None
) -> int:
    """Return where the lines of a compaction end: before the one that continues with something."""
    trial = reading.copy()
    known = {each.id for each in trial.history.active}
    for index in range(boundary + 1, len(lines)):
        if form is not None and form.begins_turn(lines[index]):
            return index
        _add(trial, lines[index], index)
        if any(_goes_on(each) for each in trial.history.active if each.id not in known):
            return index
    return len(lines)


def _goes_on(message: Message) -> bool:
    return message.compaction is None and (message.role != "user" or message.is_user_turn)


def _add(reading: ConversationReading, line: Line, at: int) -> None:
    with suppress(ConfigError):  # which makes the conversation incomplete
        reading.add(line, f"m{at}")
