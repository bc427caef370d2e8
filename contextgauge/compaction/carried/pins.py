"""Pins: what users asked for and laid down, verbatim, carried by code across compactions.

Only the text of users' turns is read, without what it quotes (`statements`). What a model, a tool
or an old summary says never becomes a pin. A newer statement replaces an older one where both give
a value to the same thing (`subjects`); otherwise both stay.

All of the user's own words are carried: what is of no kind, or too much of its kind, is a plain
statement. Each kind is bounded, and so is what one turn may add. Except of goals and requests, the
older half is never pushed out by later ones, so a flood cannot displace what was laid down before.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from contextgauge.compaction.carried.file_ledger import ledger
from contextgauge.compaction.carried.statements.held_pins import LINE, Pins, key_of, plain
from contextgauge.compaction.carried.statements.passages import statements
from contextgauge.compaction.carried.statements.pin_kinds import kind_of
from contextgauge.compaction.carried.statements.subjects import Facet
from contextgauge.compaction.messages import Carried, Message, Pin, PinKind

TURN_BOUND: Final = 24
"""Pins of one kind from one turn: a quarter of what constraints may have."""

TURN_CHARACTERS: Final = 6_000
"""Of plain statements from one turn: a quarter of what they may have. Pasted prose is longer."""

TASK_CHARACTERS: Final = 8_000
"""A longer first turn is cut in the middle: it contains pasted material."""

_REMEMBERED_TURNS: Final = 256
"""Turns whose pins are known while reading: a repeated one, such as a pasted text, is read once."""

_POINT_CHARACTERS: Final = 16
"""A shorter statement of no kind, without a digit, says nothing: an acknowledgement."""


_NEEDS_SUBJECT: Final = re.compile("limit of|amount of|next step")
"""Aspects that every thing has: a sentence that goes on about one need not name it again."""

_HEAD_CHARACTERS: Final = 80
"""Of the beginning of a line: enough to tell it from another one."""


def carry(carried: Carried, messages: Sequence[Message]) -> Carried:
    """Return what is carried on with messages that are about to be archived."""
    task = carried.task
    pins = Pins(carried.pins)
    read: dict[str, list[tuple[Pin, list[Facet]]]] = {}
    for message in messages:
        if not message.is_user_turn:
            continue
        text = message.text
        task = task or _bounded_task(text)
        if text not in read:
            if len(read) == _REMEMBERED_TURNS:
                read.clear()
            read[text] = pins_of(text, message.id)
        for pin, given in read[text]:
            if pin.message_id != message.id:
                pin = replace(pin, message_id=message.id)  # noqa: PLW2901 -- of a repeated text
            pins.add(pin, given)
        pins.bound()
    return Carried(task, pins.all(), ledger(carried.files, messages))


def _bounded_task(text: str) -> str:
    text = text.strip()
    if len(text) <= TASK_CHARACTERS:
        return text
    half = TASK_CHARACTERS // 2
    cut = len(text) - 2 * half
    return f"{text[:half]}\n[{cut:,} characters cut]\n{text[-half:]}"


def pins_of(text: str, message_id: str) -> list[tuple[Pin, list[Facet]]]:
    """Return the pins of one turn with what each gives a value to, in order."""
    result: list[tuple[Pin, list[Facet]]] = []
    counts: dict[PinKind, int] = {}
    characters = 0
    paragraph, head, first = -1, "", ""
    for each in statements(text):
        if each.paragraph != paragraph:
            paragraph, head, first = each.paragraph, "", ""
        elif first:
            head, first = plain(first)[:_HEAD_CHARACTERS], ""
        kind, given = kind_of(each)
        if kind == "statement" and _says_nothing(each.text):
            continue
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] > TURN_BOUND:
            kind = "statement"
        if kind == "statement":
            characters += len(each.text)
            if characters > TURN_CHARACTERS:
                continue
        if head:
            given = [each for each in given if each.scope or not _NEEDS_SUBJECT.match(each.aspect)]
        about = key_of([(facet.aspect, facet.scope) for facet in given])
        key = _continued(about, kind, head) if head else about
        head = head or (about if given else "")
        first = "" if head else each.text
        result.append((Pin(kind, each.text, key, message_id), given))
    return result


def _continued(about: str, kind: PinKind, head: str) -> str:
    """Return the key of a statement that is not the first of its line."""
    return f"+{about}" if kind == "statement" else f"+{about}{LINE}{head}"


def _says_nothing(text: str) -> bool:
    return len(text) < _POINT_CHARACTERS and not any(map(str.isdigit, text))
