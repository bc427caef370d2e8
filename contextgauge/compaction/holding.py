"""The pins that are held while turns are read: which replace others, and how many there may be.

Each pin has a place that never changes, so order is that of the conversation. What a pin repeats
or replaces is looked up, and only pins that give values are searched for one that is not current
any more: a long conversation costs the same for each turn.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from contextgauge.compaction.messages import Pin, PinKind
from contextgauge.compaction.subjects import Facet, facets, is_addition, is_update, same_scope

BOUNDS: Final[dict[PinKind, int]] = {
    "constraint": 96,
    "preference": 48,
    "goal": 32,
    "fact": 96,
    "request": 12,
}
"""Pins of each kind: some thousand tokens at most, more than a person lays down in a session."""

ROLLING: Final[frozenset[PinKind]] = frozenset({"goal", "request"})
"""Kinds of which only the latest count."""

STATEMENT_CHARACTERS: Final = 24_000
"""Of statements of no kind: some 6 000 tokens, what a user writes by hand in a long session."""

_SLACK: Final = 32
_SLACK_CHARACTERS: Final = 8_000
"""Rolling pins and statements are cut to their bounds once they are so far above, and at the end.

Cheaper than after each turn. Which statements of the middle go may depend on where a long
conversation was compacted.
"""

ELIDED: Final = "[replaced later]"

_About = tuple[tuple[str, frozenset[str]], ...]


class _HeldPin(NamedTuple):
    """A pin with its text for comparison and what it is about, as its key says.

    `head` is the place of the first pin of its line, its own where it is that one.
    """

    pin: Pin
    text: str
    about: _About
    head: int


class Pins:
    """Pins in the order of the conversation."""

    def __init__(self, pins: Iterable[Pin]) -> None:
        self._entries: dict[int, _HeldPin] = {}
        self._texts: dict[str, int] = {}
        self._keys: dict[str, int] = {}
        self._with_values: dict[int, None] = {}
        self._aspects: Counter[str] = Counter()
        self._kinds: dict[PinKind, dict[int, None]] = {kind: {} for kind in BOUNDS}
        self._statements: dict[int, int] = {}
        self._characters = 0
        self._next = 0
        self._head = (0, "")
        for pin in pins:
            self._append(pin, plain(pin.text), _about(pin.key))

    def add(self, pin: Pin, given: Sequence[Facet]) -> None:
        """Add a pin; what it replaces goes, or loses the value that is not current any more."""
        text, about = plain(pin.text), _about(pin.key)
        key = pin.key.removeprefix("+")
        if (place := self._texts.get(text)) is not None:
            self._remove(place)
        if not about and (place := self._keys.get(key)) is not None:
            self._remove(place)
        current = any(self._aspects[name] for name, _ in about)
        if current and not is_addition(pin.text):
            self._replace_values(pin, about, given)
        self._append(pin, text, about)

    def all(self) -> tuple[Pin, ...]:
        """Return the pins within all bounds."""
        for kind in ROLLING:
            self._bound(kind, BOUNDS[kind])
        if self._characters > STATEMENT_CHARACTERS:
            self._cut_statements()
        return tuple(self._entries[place].pin for place in sorted(self._entries))

    def bound(self) -> None:
        """Make statements of the pins that are too many of their kind.

        Of rolling kinds these are the oldest; of others the older half is never pushed out.
        """
        for kind, bound in BOUNDS.items():
            if len(self._kinds[kind]) > bound + (_SLACK if kind in ROLLING else 0):
                self._bound(kind, bound)
        if self._characters > STATEMENT_CHARACTERS + _SLACK_CHARACTERS:
            self._cut_statements()

    def _bound(self, kind: PinKind, bound: int) -> None:
        places = self._kinds[kind]
        excess = max(0, len(places) - bound)
        first = 0 if kind in ROLLING else bound // 2
        for place in sorted(places)[first : first + excess]:
            del places[place]
            entry = self._entries[place]
            pin = Pin("statement", entry.pin.text, entry.pin.key, entry.pin.message_id)
            self._entries[place] = entry._replace(pin=pin)
            self._count_statement(place, pin)

    def _append(self, pin: Pin, text: str, about: _About) -> None:
        place = self._next
        self._next += 1
        head, message_id = self._head
        if not (pin.key.startswith("+") and pin.message_id == message_id):
            head = place
            self._head = (place, pin.message_id)
        self._put(place, _HeldPin(pin, text, about, head))

    def _put(self, place: int, entry: _HeldPin) -> None:
        self._entries[place] = entry
        self._texts[entry.text] = place
        self._keys[entry.pin.key.removeprefix("+")] = place
        if entry.about:
            self._with_values[place] = None
            self._aspects.update(aspect for aspect, _ in entry.about)
        if entry.pin.kind == "statement":
            self._count_statement(place, entry.pin)
        else:
            self._kinds[entry.pin.kind][place] = None

    def _count_statement(self, place: int, pin: Pin) -> None:
        self._statements[place] = len(pin.text) + 3
        self._characters += len(pin.text) + 3

    def _remove(self, place: int) -> None:
        entry = self._entries.pop(place)
        for index, key in (
            (self._texts, entry.text),
            (self._keys, entry.pin.key.removeprefix("+")),
        ):
            if index.get(key) == place:
                del index[key]
        if entry.about:
            del self._with_values[place]
            self._aspects.subtract(aspect for aspect, _ in entry.about)
        if entry.pin.kind == "statement":
            self._characters -= self._statements.pop(place)
        else:
            del self._kinds[entry.pin.kind][place]

    def _cut_statements(self) -> None:
        """Drop statements from the middle: the older half of the bound stays, and the latest."""
        places = sorted(self._statements)
        half = STATEMENT_CHARACTERS // 2
        first, used = 0, 0
        while first < len(places) and used + self._statements[places[first]] <= half:
            used += self._statements[places[first]]
            first += 1
        last, left = len(places), STATEMENT_CHARACTERS - used
        while last > first and self._statements[places[last - 1]] <= left:
            last -= 1
            left -= self._statements[places[last]]
        for place in places[first:last]:
            self._remove(place)

    def _replace_values(self, pin: Pin, about: _About, given: Sequence[Facet]) -> None:
        gone: set[int] = set()
        update = is_update(pin.text)

        def same(aspect: str, newer: frozenset[str], older: frozenset[str]) -> bool:
            """Return whether both mean one thing; of plain amounts more is needed than likeness."""
            alike = update or not aspect.startswith("amount of")
            return same_scope(newer, older) if alike else newer == older

        only = self._only_scopes({aspect for aspect, scope in about if not scope}, pin)
        for place in sorted(self._with_values):
            entry = self._entries[place]
            if entry.head in gone and _depends(entry):
                self._remove(place)
                continue
            if entry.pin.message_id == pin.message_id:
                continue
            replaced = [
                index
                for index, (aspect, scope) in enumerate(entry.about)
                if aspect in only
                or any(aspect == name and same(aspect, newer, scope) for name, newer in about)
            ]
            if not replaced:
                continue
            self._remove(place)
            if rest := _without(entry, replaced, given):
                self._put(place, rest)
            else:
                gone.add(entry.head)

    def _only_scopes(self, aspects: set[str], pin: Pin) -> set[str]:
        """Return aspects of which a statement without a scope can mean only one that there is."""
        if not aspects:
            return aspects
        scopes: dict[str, set[frozenset[str]]] = {}
        for place in self._with_values:
            for aspect, scope in self._entries[place].about:
                scopes.setdefault(aspect, set()).add(scope)
        update = is_update(pin.text)
        return {
            each
            for each in aspects
            if each == "next step" or (update and len(scopes.get(each, ())) == 1)
        }


def _depends(entry: _HeldPin) -> bool:
    """Return whether a statement means nothing without the one before it: a next step of it."""
    return entry.pin.key.startswith("+") and any(aspect == "next step" for aspect, _ in entry.about)


_MORE: Final = re.compile(r"(?i)\b(?:with|and|but) (?:no|never|without)\b")
"""What a statement forbids on top of the value that it gives: this outlives the value."""


def _without(entry: _HeldPin, replaced: Sequence[int], given: Sequence[Facet]) -> _HeldPin | None:
    """Return a pin without values that were replaced, None where nothing of it is left."""
    names = {entry.about[index][0] for index in replaced}
    says_more = len(replaced) < len(entry.about) or _MORE.search(entry.pin.text)
    if not says_more or "branch" in names:
        return None
    text, about = entry.pin.text, list(entry.about)
    new_values = {facet.aspect: facet.value for facet in given}
    old = [facet for facet in facets(text) if facet.aspect in names]
    for facet in sorted(old, key=lambda facet: facet.start, reverse=True):
        if facet.value != new_values.get(facet.aspect):
            text = f"{text[: facet.start]}{ELIDED}{text[facet.end :]}"
            about = [pair for pair in about if pair[0] != facet.aspect]
    plus = "+" if entry.pin.key.startswith("+") else ""
    key = "; ".join(f"{aspect}:{' '.join(sorted(scope))}" for aspect, scope in about)
    key = key or f"text:{masked(text, entry.pin.kind)}"
    pin = replace(entry.pin, text=text, key=plus + key)
    return _HeldPin(pin, plain(text), _about(pin.key), entry.head)


def _about(key: str) -> _About:
    key = key.removeprefix("+")
    if key.startswith("text:"):
        return ()
    pairs = (each.split(":", 1) for each in key.split("; ") if ":" in each)
    return tuple((aspect, frozenset(scope.split())) for aspect, scope in pairs)


_GIVEN_NUMBER: Final = re.compile(r"\b(is|are|at|to|now|=) ([\w./-]*\d[\w./-]*)")


def masked(text: str, kind: PinKind) -> str:
    """Return a statement as its own key; a number that it gives is left out but of prohibitions."""
    words = plain(text)[:240]
    return words if kind in {"constraint", "request"} else _GIVEN_NUMBER.sub(r"\1 #", words)


@lru_cache(maxsize=64)
def plain(text: str) -> str:
    """Return a text for comparison: lower case, single blanks, no marks at its ends."""
    return " ".join(text.lower().split()).strip(" .!;:-")
