"""The pins that are held while turns are read: which replace others, and how many there may be.

Each pin has a place that never changes, so order is that of the conversation. What a pin repeats
or replaces is looked up: a long conversation costs the same for each turn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from contextgauge.compaction.carried.statements.subjects import MORE, Facet, facets, is_addition
from contextgauge.compaction.messages import Pin, PinKind

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

_BOUNDS_WITH_SLACK: Final = {
    kind: bound + (_SLACK if kind in ROLLING else 0) for kind, bound in BOUNDS.items()
}

ELIDED: Final = "[replaced later]"

_Pair = tuple[str, frozenset[str]]
"""An aspect and its scope."""


class _HeldPin(NamedTuple):
    """A pin with its text for comparison and what it is about, as its key says."""

    pin: Pin
    text: str
    about: tuple[_Pair, ...]


class Pins:
    """Pins in the order of the conversation."""

    def __init__(self, pins: Iterable[Pin]) -> None:
        self._entries: dict[int, _HeldPin] = {}
        self._texts: dict[str, int] = {}
        self._about: dict[_Pair, dict[int, None]] = {}
        self._kinds: dict[PinKind, dict[int, None]] = {kind: {} for kind in BOUNDS}
        self._statements: dict[int, int] = {}
        self._characters = 0
        self._next = 0
        self._crowded = False
        for pin in pins:
            self._append(_held(pin))

    def add(self, pin: Pin, given: Sequence[Facet]) -> None:
        """Add a pin; what it replaces goes, or loses the value that is not current any more."""
        entry = _held(pin)
        if (place := self._texts.get(entry.text)) is not None:
            self._remove(place)
        if given and not is_addition(pin.text):
            self._replace_values(pin, given)
        self._append(entry)

    def all(self) -> tuple[Pin, ...]:
        """Return the pins within all bounds."""
        for kind in ROLLING:
            self._bound(kind, BOUNDS[kind])
        if self._characters > STATEMENT_CHARACTERS:
            self._cut_statements()
        return tuple(self._pin(place) for place in sorted(self._entries))

    def _pin(self, place: int) -> Pin:
        pin = self._entries[place].pin
        demoted = pin.kind != "statement" and place in self._statements
        return replace(pin, kind="statement") if demoted else pin

    def bound(self) -> None:
        """Make statements of the pins that are too many of their kind.

        Of rolling kinds these are the oldest; of others the older half is never pushed out.
        """
        if not self._crowded:
            return
        self._crowded = False
        for kind, most in _BOUNDS_WITH_SLACK.items():
            if len(self._kinds[kind]) > most:
                self._bound(kind, BOUNDS[kind])
        if self._characters > STATEMENT_CHARACTERS + _SLACK_CHARACTERS:
            self._cut_statements()

    def _bound(self, kind: PinKind, bound: int) -> None:
        places = self._kinds[kind]
        excess = max(0, len(places) - bound)
        first = 0 if kind in ROLLING else bound // 2
        for place in sorted(places)[first : first + excess]:
            del places[place]
            self._count_statement(place, self._entries[place].pin)

    def _append(self, entry: _HeldPin) -> None:
        self._put(self._next, entry)
        self._next += 1

    def _put(self, place: int, entry: _HeldPin) -> None:
        self._entries[place] = entry
        self._texts[entry.text] = place
        for pair in entry.about:
            self._about.setdefault(pair, {})[place] = None
        if entry.pin.kind == "statement":
            self._count_statement(place, entry.pin)
        else:
            places = self._kinds[entry.pin.kind]
            places[place] = None
            if len(places) > _BOUNDS_WITH_SLACK[entry.pin.kind]:
                self._crowded = True

    def _count_statement(self, place: int, pin: Pin) -> None:
        self._statements[place] = len(pin.text) + 3
        self._characters += len(pin.text) + 3
        if self._characters > STATEMENT_CHARACTERS + _SLACK_CHARACTERS:
            self._crowded = True

    def _remove(self, place: int) -> None:
        entry = self._entries.pop(place)
        if self._texts.get(entry.text) == place:
            del self._texts[entry.text]
        for pair in entry.about:
            places = self._about[pair]
            places.pop(place, None)
            if not places:
                del self._about[pair]
        if place in self._statements:
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

    def _replace_values(self, pin: Pin, given: Sequence[Facet]) -> None:
        new = {(each.aspect, each.scope): each for each in given if each.gives}
        places = {place for pair in new for place in self._about.get(pair, ())}
        for place in sorted(places):
            entry = self._entries[place]._replace(pin=self._pin(place))
            if entry.pin.message_id == pin.message_id:
                continue
            self._remove(place)
            if rest := _without(entry, pin, new):
                self._put(place, rest)


def _without(entry: _HeldPin, pin: Pin, new: Mapping[_Pair, Facet]) -> _HeldPin | None:
    """Return a pin without values that were replaced, None where nothing of it is left."""
    text = entry.pin.text
    if all(pair in new for pair in entry.about) and not MORE.search(text):
        return None
    old = {(each.aspect, each.scope): each for each in facets(text)}
    changed = [pair for pair in old if pair in new and new[pair].value != old[pair].value]
    text = _elided(text, [old[pair] for pair in changed])
    if plain(text) == plain(_elided(pin.text, [new[pair] for pair in changed])):
        return None
    about = [pair for pair in entry.about if pair not in new]
    return _held(replace(entry.pin, text=text, key=key_of(about, entry.pin.key)))


def _elided(text: str, values: Iterable[Facet]) -> str:
    for each in sorted(values, key=lambda each: each.start, reverse=True):
        text = f"{text[: each.start]}{ELIDED}{text[each.end :]}"
    return text


def key_of(about: Sequence[_Pair], former: str = "") -> str:
    """Return a pin's key: what it is about, after the marks of a key that it had."""
    if not about and not former:
        return "text"
    pairs = "; ".join(f"{aspect}:{' '.join(sorted(scope))}" for aspect, scope in about)
    plus = "+" if former.startswith("+") else ""
    _, mark, line = former.partition(LINE)
    return f"{plus}{pairs or 'text'}{mark}{line}"


LINE: Final = "; in/"
"""Before the beginning of the line that a pin continues: the same words go on another line too."""


def _held(pin: Pin) -> _HeldPin:
    if pin.key == "text":
        return _HeldPin(pin, plain(pin.text), ())
    key, _, line = pin.key.removeprefix("+").partition(LINE)
    pairs = (each.split(":", 1) for each in key.split("; ") if ":" in each)
    about = tuple((aspect, frozenset(scope.split())) for aspect, scope in pairs if aspect != "text")
    return _HeldPin(pin, f"{plain(pin.text)}\n{line}" if line else plain(pin.text), about)


def plain(text: str) -> str:
    """Return a text for comparison: lower case, single blanks, no marks at its ends."""
    return " ".join(text.lower().split()).strip(" .!;:-")
