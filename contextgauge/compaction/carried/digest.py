"""The digest: the conversation in order and as it was written, carried by code across compactions.

A user's turn is carried whole; of what the agent wrote its beginning, and right before a short turn
of the user its end too, where the question or proposal stands that the turn answers. Of a failed
call the line that says why, and of the agent's list of what is to be done its last state. No word's
meaning is looked at: order tells which of two statements is the later one, and only size decides
what is left out (`digest_room`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from contextgauge.compaction.carried.compaction_text import last_number
from contextgauge.compaction.carried.digest_groups import END_SHARE, FAILURE_END_SHARE, cut
from contextgauge.compaction.carried.digest_room import within
from contextgauge.compaction.carried.failure_lines import failure_in
from contextgauge.compaction.carried.file_ledger import ledger
from contextgauge.compaction.carried.text_actions import calls_of
from contextgauge.compaction.carried.todo_lists import todo_list
from contextgauge.compaction.messages import (
    Carried,
    DigestEntry,
    FileUse,
    Message,
    Speaker,
    images_of,
)

STORED_CHARACTERS: Final = 400_000
"""Of a digest, about 100,000 tokens: more than a compaction's text has room for in most windows."""

TURN_CHARACTERS: Final = 60_000
"""Of one user's turn, so that a pasted file leaves room for the others."""

AGENT_CHARACTERS: Final = 1_800
"""Of an agent's text: its points, and what a text without much room may show."""

ERROR_CHARACTERS: Final = 360
"""Of a failure: what failed and why, without the trace."""

DATA_CHARACTERS: Final = 400
"""Of other text in the user's role: what it is, for example instructions of a runtime."""

INSTRUCTIONS_CHARACTERS: Final = 20_000
"""Of such text before the agent's first: what a project tells its agents, for example."""


class PlacedEntry(NamedTuple):
    """An entry, and the position of the message that it was taken from."""

    position: int
    entry: DigestEntry


def carry(carried: Carried, messages: Sequence[Message]) -> Carried:
    """Return what is carried on with messages that are about to be archived."""
    new = [each.entry for each in entries_of(messages, last_number(carried))]
    return carried_on(carried, new, ledger(carried.files, messages))


def carried_on(carried: Carried, new: Sequence[DigestEntry], files: Sequence[FileUse]) -> Carried:
    """Return what is carried on with new entries, and the files of all messages so far."""
    entries = [*carried.entries, *new]
    entries = [entries[place] for place in latest(entries)]
    shown = within(entries, STORED_CHARACTERS)
    omitted = sum(each.speaker != "user" for each in entries)
    omitted -= sum(each.speaker != "user" for each in shown)
    return Carried(tuple(shown), tuple(files), carried.omitted + omitted)


def entries_of(messages: Sequence[Message], number: int = 0) -> list[PlacedEntry]:
    """Return what is carried of messages; `number` turns of the user came before them."""
    reading = _Reading(number)
    for position, message in enumerate(messages):
        if message.role != "system" and message.compaction is None:
            reading.read(position, message)
    return reading.placed


class _Reading:
    """Reads messages in order."""

    def __init__(self, number: int) -> None:
        self.placed: list[PlacedEntry] = []
        self._number = number
        self._has_begun = number > 0

    def read(self, position: int, message: Message) -> None:
        def put(speaker: Speaker, text: str, characters: int, end_share: float = 0) -> None:
            entry = DigestEntry(self._number, message.id, speaker, text)
            self.placed.append(PlacedEntry(position, cut(entry, characters, end_share)))

        if message.role == "assistant":
            self._has_begun = True
            if (text := message.text) and not text.isspace():
                put("agent", text, AGENT_CHARACTERS, END_SHARE)
            for todos in filter(None, map(todo_list, calls_of(message))):
                put("todos", todos, AGENT_CHARACTERS * 10)
            return
        outputs = [(each.text, each.is_error) for each in message.results]
        outputs.append((message.data_text, False))
        for output, is_error in outputs:
            if failure := failure_in(output, is_error=is_error):
                put("tool", failure, ERROR_CHARACTERS, FAILURE_END_SHARE)
                self._leave_out(len(output))
        if (
            (data := message.data_text)
            and not data.isspace()
            and not failure_in(data, is_error=False)
        ):
            put("data", data, DATA_CHARACTERS if self._has_begun else INSTRUCTIONS_CHARACTERS)
        if message.is_user_turn:
            text = self._turn(message)
            put("user", text, TURN_CHARACTERS, END_SHARE)

    def _turn(self, message: Message) -> str:
        """Count a turn; return the user's own words, and what images came with them."""
        self._number += 1
        text, images = message.user_text, images_of(message.blocks)
        return f"{text}{text and ' '}[{images}]" if images else text

    def _leave_out(self, characters: int) -> None:
        last = self.placed[-1]
        entry = last.entry
        entry = replace(entry, omitted=max(0, characters - len(entry.text) - len(entry.end)))
        self.placed[-1] = last._replace(entry=entry)


def latest(entries: Sequence[DigestEntry]) -> list[int]:
    """Return the places of entries but for older lists of todos and what others say again."""
    again: set[tuple[Speaker, str]] = set()
    places: list[int] = []
    for place in range(len(entries) - 1, -1, -1):
        entry = entries[place]
        if (key := said_again(entry)) is not None:
            if key in again:
                continue
            again.add(key)
        places.append(place)
    return places[::-1]


def said_again(entry: DigestEntry) -> tuple[Speaker, str] | None:
    """Return what a later entry must have in common to replace this one; None: nothing does."""
    if entry.speaker == "user":
        return None
    return entry.speaker, "" if entry.speaker == "todos" else entry.text
