"""The digest: the conversation in order and as it was written, carried by code across compactions.

A user's turn is carried whole; of what the agent wrote its beginning, and right before a short turn
of the user its end too, where the question or proposal stands that the turn answers. Of a failed
call the line that says why, and of the agent's list of what is to be done its last state. No word's
meaning is looked at: order tells which of two statements is the later one, and only size decides
what is left out (`digest_room`).
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from contextgauge.compaction.carried.compaction_text import last_number
from contextgauge.compaction.carried.digest_room import SHORT_TURN_CHARACTERS, shortened, within
from contextgauge.compaction.carried.file_ledger import ledger
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

AGENT_CHARACTERS: Final = 1_200
"""Of the beginning of an agent's text: its point, and what a text without much room may show."""

QUESTION_CHARACTERS: Final = 600
"""Of its end: a question with its choices."""

ERROR_CHARACTERS: Final = 300
"""Of a failure: what failed and why, without the trace."""

DATA_CHARACTERS: Final = 400
"""Of other text in the user's role: what it is, for example instructions of a runtime."""

INSTRUCTIONS_CHARACTERS: Final = 20_000
"""Of such text before the agent's first: what a project tells its agents, for example."""

_SEARCHED_CHARACTERS: Final = 4_000
"""Of a result's beginning and end: one of them has the reason of a failure."""

_FAILURE: Final = re.compile(
    r"(?m)^(?:[\w.]*(?:Error|Exception)|error(?:\[\w+\])?|fatal|panic|FAILED)[ :(]"
    r"|(?i:\bexit(?:ed)?[ _]?(?:with )?(?:code|status)[\"']?[ :=]{1,3}[1-9])"
)
"""How programs say that they failed; formats without a flag for it have only that."""


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
    reading.answered()  # what comes next may be the answer to the last question
    return reading.placed


class _Reading:
    """Reads messages in order; the agent's last text is remembered until the user's next turn."""

    def __init__(self, number: int) -> None:
        self.placed: list[PlacedEntry] = []
        self._number = number
        self._asked: tuple[int, str] | None = None
        self._has_begun = number > 0

    def read(self, position: int, message: Message) -> None:
        def put(speaker: Speaker, text: str, beginning: int, end: int = 0) -> None:
            entry = DigestEntry(self._number, message.id, speaker, text)
            self.placed.append(PlacedEntry(position, shortened(entry, beginning, end)))

        if message.role == "assistant":
            self._has_begun = True
            if (text := message.text) and not text.isspace():
                self._asked = len(self.placed), text
                put("agent", text, AGENT_CHARACTERS)
            for todos in filter(None, map(todo_list, message.calls)):
                put("todos", todos, len(todos))
            return
        outputs = [(each.text, each.is_error) for each in message.results]
        outputs.append((message.data_text, False))
        for output, is_error in outputs:
            if failure := _failure(output, is_error=is_error):
                put("tool", failure, ERROR_CHARACTERS // 3, ERROR_CHARACTERS * 2 // 3)
                self._leave_out(len(output))
        if (
            (data := message.data_text)
            and not data.isspace()
            and not _failure(data, is_error=False)
        ):
            put("data", data, DATA_CHARACTERS if self._has_begun else INSTRUCTIONS_CHARACTERS)
        if message.is_user_turn:
            text = self._turn(message)
            put("user", text, TURN_CHARACTERS * 2 // 3, TURN_CHARACTERS // 3)

    def _turn(self, message: Message) -> str:
        """Count a turn; return the user's own words, and what images came with them."""
        self._number += 1
        text, images = message.user_text, images_of(message.blocks)
        if len(text) <= SHORT_TURN_CHARACTERS:
            self.answered()
        self._asked = None
        return f"{text}{text and ' '}[{images}]" if images else text

    def answered(self) -> None:
        """Give the entry of the agent's last text its end, too."""
        if self._asked is None:
            return
        place, text = self._asked
        whole = replace(self.placed[place].entry, text=text, end="", omitted=0)
        entry = shortened(whole, AGENT_CHARACTERS, QUESTION_CHARACTERS)
        self.placed[place] = self.placed[place]._replace(entry=entry)

    def _leave_out(self, characters: int) -> None:
        last = self.placed[-1]
        entry = last.entry
        entry = replace(entry, omitted=max(0, characters - len(entry.text) - len(entry.end)))
        self.placed[-1] = last._replace(entry=entry)


def _failure(text: str, *, is_error: bool) -> str:
    """Return what a result says of a failure, from the line on that says it; else nothing."""
    whole = text
    if len(text) > 2 * _SEARCHED_CHARACTERS:
        text = f"{text[:_SEARCHED_CHARACTERS]}\n{text[-_SEARCHED_CHARACTERS:]}"
    match = _FAILURE.search(text)
    if match is not None:
        return text[text.rfind("\n", 0, match.start()) + 1 :].strip()
    return whole.strip() if is_error else ""


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
