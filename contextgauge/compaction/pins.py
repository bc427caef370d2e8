"""Pins: what users asked for and laid down, verbatim, carried by code across compactions.

Only the text of users' turns is read, without what it quotes (`statements`). What a model, a tool
or an old summary says never becomes a pin. A newer statement replaces an older one where both give
a value to the same thing (`subjects`); otherwise both stay.

Each kind is bounded, and so is what one turn may add. Of constraints, preferences and facts the
older half is never pushed out by later ones, so a flood cannot displace what was laid down before.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.compaction.kinds import kind_of
from contextgauge.compaction.ledger import ledger
from contextgauge.compaction.messages import Carried, Message, Pin
from contextgauge.compaction.statements import statements
from contextgauge.compaction.subjects import Facet, facets, is_addition, is_update, same_scope

Kind: TypeAlias = Literal["constraint", "request", "preference", "fact", "goal"]

BOUNDS: Final[dict[Kind, int]] = {
    "constraint": 96,
    "preference": 48,
    "goal": 32,
    "fact": 96,
    "request": 12,
}
"""Pins of each kind: some thousand tokens at most, more than a person lays down in a session."""

TURN_BOUND: Final = 24
"""Pins of one kind from one turn: a quarter of what constraints may have."""

ROLLING: Final[frozenset[Kind]] = frozenset({"goal", "request"})
"""Kinds of which only the latest count."""

TASK_CHARACTERS: Final = 8_000
"""A longer first turn is cut in the middle: it contains pasted material."""

ELIDED: Final = "[replaced later]"


class _Held(NamedTuple):
    """A pin with its text for comparison and what it is about, as its key says."""

    pin: Pin
    text: str
    about: tuple[tuple[str, frozenset[str]], ...]


def carry(carried: Carried, messages: Sequence[Message]) -> Carried:
    """Return what is carried on with messages that are about to be archived."""
    task = carried.task
    held = [_held(pin) for pin in carried.pins]
    read: dict[str, list[tuple[Pin, list[Facet]]]] = {}
    for message in messages:
        if not message.is_user_turn:
            continue
        text = message.text
        task = task or _bounded_task(text)
        if text not in read:
            read[text] = pins_of(text, message.id)
        for pin, given in read[text]:
            held = _with(held, replace(pin, message_id=message.id), given)
        held = _bounded(held)
    return Carried(task, tuple(each.pin for each in held), ledger(carried.files, messages))


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
    counts: dict[str, int] = {}
    paragraph, head = -1, ""
    for each in statements(text):
        first = each.paragraph != paragraph
        if first:
            paragraph, head = each.paragraph, ""
        kind, given = kind_of(each)
        if kind is None:
            continue
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] > TURN_BOUND:
            continue
        if head:
            given = [
                facet._replace(scope=frozenset({head})) if facet.aspect == "next step" else facet
                for facet in given
            ]
        key = "; ".join(facet.key for facet in given) or f"text:{_masked(each.text, kind)}"
        result.append((Pin(kind, each.text, f"+{key}" if head else key, message_id), given))
        if not head:
            head = f"in/{key.replace(';', ',').replace(':', '/').replace(' ', '_')[:80]}"
    return result


_MORE: Final = re.compile(r"(?i)\b(?:with|and|but) (?:no|never|without)\b")
"""What a statement forbids on top of the value that it gives: this outlives the value."""

_GIVEN_NUMBER: Final = re.compile(r"\b(is|are|at|to|now|=) ([\w./-]*\d[\w./-]*)")


def _masked(text: str, kind: str) -> str:
    """Return a statement as its own key; a number that it gives is left out but of prohibitions."""
    plain = _plain(text)[:240]
    return plain if kind in {"constraint", "request"} else _GIVEN_NUMBER.sub(r"\1 #", plain)


def _about(key: str) -> tuple[tuple[str, frozenset[str]], ...]:
    key = key.removeprefix("+")
    if key.startswith("text:"):
        return ()
    pairs = (each.split(":", 1) for each in key.split("; ") if ":" in each)
    return tuple((aspect, frozenset(scope.split())) for aspect, scope in pairs)


def _held(pin: Pin) -> _Held:
    return _Held(pin, _plain(pin.text), _about(pin.key))


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).strip(" .!;:-")


def _with(held: list[_Held], pin: Pin, given: Sequence[Facet]) -> list[_Held]:
    """Add a pin; what it replaces goes, or loses the value that is not current any more."""
    added = _held(pin)
    names = {aspect for aspect, _ in added.about}
    replaces = bool(names) and not is_addition(pin.text)
    result: list[_Held] = []
    head_gone = ""
    for each in held:
        continues = each.pin.key.startswith("+")
        if not continues:
            head_gone = ""
        elif head_gone == each.pin.message_id and _depends(each):
            continue
        if each.text == added.text or (not names and each.pin.key == pin.key):
            continue
        rest: _Held | None = each
        if replaces and each.about and each.pin.message_id != pin.message_id:
            replaced = _replaced(each, added, held)
            rest = _without(each, replaced, given) if replaced else each
        if rest is None:
            head_gone = each.pin.message_id
        else:
            result.append(rest)
    return [*result, added]


def _replaced(each: _Held, added: _Held, held: Iterable[_Held]) -> list[int]:
    """Return which of the things that a pin gives a value to are given a newer one."""
    return [
        index
        for index, (aspect, scope) in enumerate(each.about)
        if any(
            aspect == name and (same_scope(newer, scope) or _refers(aspect, newer, held, added.pin))
            for name, newer in added.about
        )
    ]


def _depends(each: _Held) -> bool:
    """Return whether a statement means nothing without the one before it: a next step of it."""
    return any(aspect == "next step" for aspect, _ in each.about)


def _refers(aspect: str, newer: frozenset[str], held: Iterable[_Held], pin: Pin) -> bool:
    """Return whether a statement without a scope can mean only one that there is."""
    if newer:
        return False
    if aspect == "next step":
        return True
    scopes = {scope for each in held for name, scope in each.about if name == aspect}
    return len(scopes) == 1 and is_update(pin.text)


def _without(each: _Held, replaced: Sequence[int], given: Sequence[Facet]) -> _Held | None:
    """Return a pin without values that were replaced, None where nothing of it is left."""
    names = {each.about[index][0] for index in replaced}
    says_more = len(replaced) < len(each.about) or _MORE.search(each.pin.text)
    if not says_more or "branch" in names:
        return None
    text, about = each.pin.text, list(each.about)
    new_values = {facet.aspect: facet.value for facet in given}
    old = [facet for facet in facets(text) if facet.aspect in names]
    for facet in sorted(old, key=lambda facet: facet.start, reverse=True):
        if facet.value != new_values.get(facet.aspect):
            text = f"{text[: facet.start]}{ELIDED}{text[facet.end :]}"
            about = [pair for pair in about if pair[0] != facet.aspect]
    plus = "+" if each.pin.key.startswith("+") else ""
    key = "; ".join(f"{aspect}:{' '.join(sorted(scope))}" for aspect, scope in about)
    key = key or f"text:{_masked(text, each.pin.kind)}"
    return _held(replace(each.pin, text=text, key=plus + key))


def _bounded(held: list[_Held]) -> list[_Held]:
    drop: set[int] = set()
    for kind, bound in BOUNDS.items():
        places = [index for index, each in enumerate(held) if each.pin.kind == kind]
        excess = len(places) - bound
        if excess > 0:
            first = 0 if kind in ROLLING else bound // 2
            drop.update(places[first : first + excess])
    return [each for index, each in enumerate(held) if index not in drop] if drop else held
