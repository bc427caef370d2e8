"""The text of a compaction: the summary, then what code carries, under headings.

The user's own words come last, so that they stand over what a summary makes of them. Each line
begins with the number of its turn among those that are carried: sections are by kind, and the
number says which of two statements in different sections is the later one. Where the
room is short the summary goes first, down to half of what it shares with the user's plain
statements, then these, then pins from the least important kind on, the newest staying longest,
then the ledger.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from contextgauge.compaction.carried.statements.held_pins import ELIDED
from contextgauge.compaction.counting import Counter
from contextgauge.compaction.messages import Carried, FileUse, Pin, PinKind

KINDS: Final[tuple[PinKind, ...]] = ("constraint", "preference", "goal", "fact", "request")
"""Kinds that belong in the text. Plain statements are in it as far as there is room."""

_ORDER: Final[tuple[PinKind, ...]] = (*KINDS[:-1], "statement", "request")
"""In the text the latest requests are last: those before them have become statements."""

_HEADINGS: Final[dict[PinKind, str]] = {
    "constraint": "## Constraints",
    "preference": "## Preferences",
    "goal": "## Goals",
    "fact": "## Facts",
    "request": "## Requests",
    "statement": "## What else the user wrote",
}
TASK_HEADING: Final = "## Task"
TASK_TURN: Final = "1. "
"""The task is the user's first turn."""

FILES_HEADING: Final = "## Files"
SUMMARY_HEADING: Final = "## Summary"

TASK_SHARE: Final = 4
"""A task of several pages gets a quarter of the room."""

_SHORT_TASK_SHARE: Final = 32
"""Where there is not even room for the pins: about a line."""


_NUMBERED: Final = re.compile(r"[0-9]+\. ")


def heading_of(kind: PinKind) -> str:
    """Return the heading under which pins of a kind stand."""
    return _HEADINGS[kind]


def task_lines(task: str) -> list[str]:
    """Return the lines of the task as they stand in the text."""
    return [line for line in task.splitlines() if line.strip()]


def task_text(task: str) -> str:
    """Return the task as it stands in the text, after the number of its turn."""
    return f"{TASK_TURN}{task}" if task else ""


def pin_lines(text: str) -> int:
    """Return the number of lines with the user's words in a compaction's text, but for the task."""
    headings, count, counts = set(_HEADINGS.values()), 0, False
    for line in text.splitlines():
        if line.startswith("## "):
            counts = line in headings
        elif counts:
            count += _NUMBERED.match(line) is not None
    return count


def title(number: int) -> str:
    """Return the first line."""
    return f"[Compaction {number}. The user's numbered turns win, later over earlier.]"


def compose(
    prose: str, carried: Carried, *, number: int, budget_tokens: int | None, counter: Counter
) -> str:
    """Return the whole text of a compaction's message, within the budget."""
    room = _Room(budget_tokens, counter)
    room.take(title(number))
    if (
        carried.task
        and budget_tokens is not None
        and _fits_whole(carried, number, budget_tokens, counter)
    ):
        task = task_text(carried.task)
        task = task if room.take(TASK_HEADING, task) else ""
    else:
        task = _task(task_text(carried.task), room, _short_of(carried.pins, room))
    turns = _turns(carried)
    pins = _pins(carried.pins, turns, room)
    files = _files(carried.files, room)
    pins["statement"] = _statements(carried.pins, turns, task, prose, room)
    summary = _summary(prose, room)
    parts = [title(number)]
    if summary:
        parts += [SUMMARY_HEADING, summary]
    if task:
        parts += [TASK_HEADING, task]
    for kind in _ORDER:
        if lines := pins[kind]:
            parts += [heading_of(kind), *lines]
    if files:
        parts += [FILES_HEADING, *files]
    return _fitting(parts, budget_tokens, counter)


def required(carried: Carried) -> Carried:
    """Return what belongs in the text: all but plain statements, whose turns still count."""
    pins = [each if each.kind != "statement" else replace(each, text="") for each in carried.pins]
    return replace(carried, pins=tuple(pins))


def _fits_whole(carried: Carried, number: int, budget_tokens: int, counter: Counter) -> bool:
    """Return whether all that belongs in the text fits, each line rounded up on its own."""
    text = compose("", required(carried), number=number, budget_tokens=None, counter=counter)
    return sum(counter.text(f"{line}\n") for line in text.splitlines()) <= budget_tokens


class _Room:
    """What is left of a budget; None is no bound."""

    def __init__(self, tokens: int | None, counter: Counter) -> None:
        self.tokens = tokens
        self.counter = counter

    def take(self, *lines: str) -> bool:
        """Take the room of lines where there is enough."""
        if self.tokens is None:
            return True
        cost = sum(self.counter.text(f"{line}\n") for line in lines)
        if cost > self.tokens:
            return False
        self.tokens -= cost
        return True


def _short_of(pins: Sequence[Pin], room: _Room) -> bool:
    """Return whether there is less room than the pins and a quarter for the task need."""
    if room.tokens is None:
        return False
    needed = sum(
        room.counter.text(f"99. {each.text}\n") for each in pins if each.kind != "statement"
    )
    return needed > room.tokens - room.tokens // TASK_SHARE


def _task(task: str, room: _Room, short: bool) -> str:  # noqa: FBT001 -- of a private function
    if not task:
        return ""
    share = (
        None if room.tokens is None else room.tokens // (_SHORT_TASK_SHARE if short else TASK_SHARE)
    )
    if share is None or room.counter.text(task) <= share:
        return task if room.take(TASK_HEADING, task) else ""
    shorter = cut_to(task, share, room.counter)
    return shorter if shorter and room.take(TASK_HEADING, shorter) else ""


def _pins(pins: Sequence[Pin], turns: Mapping[str, int], room: _Room) -> dict[PinKind, list[str]]:
    """Return the lines that there is room for: kinds in their order, the newest first."""
    taken: dict[PinKind, list[str]] = {}
    incidental = {f"{turns[each.message_id]}. {each.text}" for each in pins if _is_incidental(each)}
    for kind in KINDS:
        lines = _lines((each for each in pins if each.kind == kind), turns)
        order = sorted(range(len(lines)), key=lambda at: (lines[at] in incidental, -at))
        taken[kind] = _taken(lines, order, heading_of(kind), room)
    return taken


def _taken(lines: Sequence[str], order: Iterable[int], heading: str, room: _Room) -> list[str]:
    """Return the lines that there is room for, tried in an order, with their heading's room."""
    places: set[int] = set()
    for index in order:
        if room.take(*([] if places else [heading]), lines[index]):
            places.add(index)
    return [line for index, line in enumerate(lines) if index in places]


def _statements(
    pins: Sequence[Pin], turns: Mapping[str, int], task: str, prose: str, room: _Room
) -> list[str]:
    """Return plain statements, the newest first; a summary keeps half of the room if it needs it.

    What the task says already is left out.
    """
    plain = (each for each in pins if each.kind == "statement" and each.text not in task)
    lines = _lines(plain, turns)
    if not lines:
        return []
    summary_tokens = 0
    if prose and room.tokens is not None:
        summary_tokens = min(room.counter.text(f"{SUMMARY_HEADING}\n{prose}\n"), room.tokens // 2)
        room.tokens -= summary_tokens
    taken = _taken(lines, reversed(range(len(lines))), heading_of("statement"), room)
    if room.tokens is not None:
        room.tokens += summary_tokens
    return taken


def _is_incidental(pin: Pin) -> bool:
    """Return whether a fact has no name, value or date of the project's: it goes first."""
    return pin.kind == "fact" and pin.key.startswith(("limit of", "text"))


def _turns(carried: Carried) -> dict[str, int]:
    """Return the number of each turn that pins were taken from, in their order.

    The task's is the first: where nothing else of it is carried, the others begin with the second.
    """
    ids = dict.fromkeys(each.message_id for each in carried.pins)
    is_second = carried.task and not (carried.pins and _is_of(carried.pins[0], carried.task))
    return {message_id: number for number, message_id in enumerate(ids, 2 if is_second else 1)}


def _is_of(pin: Pin, task: str) -> bool:
    return bool(pin.text) and all(part in task for part in pin.text.split(ELIDED))


def _lines(pins: Iterable[Pin], turns: Mapping[str, int]) -> list[str]:
    """Return a line for each pin; what continues the one before it stands on its line."""
    lines: list[str] = []
    message_id = None
    for pin in pins:
        if lines and pin.key.startswith("+") and pin.message_id == message_id:
            lines[-1] += f" {pin.text}"
        else:
            lines.append(f"{turns[pin.message_id]}. {pin.text}")
        message_id = pin.message_id
    return lines


def _files(files: Sequence[FileUse], room: _Room) -> list[str]:
    """Return the ledger's lines: changed files before read ones where the room is short."""
    taken: dict[str, str] = {}
    heading = [FILES_HEADING]
    for changed in (True, False):
        for each in reversed(files):
            line = f"- {'changed' if each.changed else 'read'} {each.path}"
            if each.changed == changed and room.take(*heading, line):
                taken[each.path] = line
                heading = []
    return [taken[each.path] for each in files if each.path in taken]


def _summary(prose: str, room: _Room) -> str:
    prose = prose.strip()
    if not prose or room.tokens is None:
        return prose
    if room.take(SUMMARY_HEADING, prose):
        return prose
    left = room.tokens - room.counter.text(f"{SUMMARY_HEADING}\n")
    return cut_to(prose, left, room.counter)


_CUT: Final = "…"


def cut_to(text: str, tokens: int, counter: Counter) -> str:
    """Return the beginning of a text that has at most this many tokens, cut at a line or word."""
    if tokens <= 0:
        return ""
    length = len(text)
    while length:
        part = text[:length].rstrip()
        if length < len(text):
            part = _whole(part) + _CUT
        size = counter.text(part)
        if size <= tokens:
            return part if part != _CUT else ""
        length = min(length - 1, length * tokens // size)
    return ""


def _whole(text: str) -> str:
    """Return a text without a broken last line or word, where not too much is lost by it."""
    for mark in ("\n", " "):
        at = text.rfind(mark)
        if at > len(text) * 3 // 4:
            return text[:at].rstrip()
    return text


def _fitting(parts: Sequence[str], budget_tokens: int | None, counter: Counter) -> str:
    """Return the text; a counter that counts more for the whole than for its lines is obeyed."""
    text = "\n".join(parts)
    if budget_tokens is None or counter.text(text) <= budget_tokens:
        return text
    return cut_to(text, budget_tokens, counter)
