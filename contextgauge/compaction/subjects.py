"""What a statement is about, so that a newer one can replace an older one in other words.

A facet is one thing that can have one value at a time: an aspect (spending limit, date, owner on
call …), a scope (`trip`, `staging database`: the words that say whose), and a value, normalised:
numbers in words, money, dates, hashes, versions. Two statements conflict where aspect and scope
agree and the aspect has one value at a time. Prohibitions without such a value never conflict:
a second one is one more.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from contextgauge.compaction.aspects import ALIASES, AMOUNT, ASPECTS, QUALIFIERS, STOP, words_of
from contextgauge.compaction.values import VALUES, normalised


class Facet(NamedTuple):
    """One thing that a statement gives a value to; `start` and `end` are the value's place."""

    aspect: str
    scope: frozenset[str]
    value: str
    start: int = 0
    end: int = 0

    @property
    def key(self) -> str:
        """The facet without its value, as it is stored with a pin."""
        return f"{self.aspect}:{' '.join(sorted(self.scope))}"


_FORMER: Final = re.compile(
    r"(?i)\b(?:old|previous|former|earlier|no longer|retired|was|were|from)\b"
)
_UPDATE: Final = re.compile(
    r"(?i)\b(?:now|update[ds]?|moved|changed?|changes|instead|no longer|anymore|from now on|new|"
    r"going forward|switch(?:ed)?|rotated|raised|lowered|increased?|reduced?|extended|"
    r"postponed|correction|actually|revised|rebased|replaces?|renamed|bumped|upgraded?)\b"
)
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'\u2019-]{0,40}")


_ADDITION: Final = re.compile(
    r"(?i)\b(?:also|too|as well|additionally|in addition|another|furthermore|besides)\b"
)


def is_addition(text: str) -> bool:
    """Return whether a statement says that it comes on top of others, and changes nothing."""
    return _ADDITION.search(text) is not None and not is_update(text)


def is_update(text: str) -> bool:
    """Return whether a statement says itself that something changed."""
    return _UPDATE.search(text) is not None


_PHRASES: Final = {
    "name": words_of("code refer call"),
    "on-call": words_of("call duty"),
    "approval": words_of("sign signs signed"),
    "assignee": words_of("charge"),
    "branch": words_of("check checked"),
    "commit": words_of("based"),
    "next step": words_of("next"),
    "example language": words_of("answer reply respond write"),
    "code": words_of("safe"),
    "limit": words_of("most least than up time timed times"),
    "units": words_of("customary"),
}
"""A word of each of the terms that are phrases, the rarer one."""


@lru_cache(maxsize=8_192)
def _possible(word: str) -> int:
    """Return a bit for each aspect that a word may belong to: cheaper than all patterns."""
    bits = 0
    for index, aspect in enumerate(ASPECTS):
        parts = (word, *word.split("-"))
        phrases = _PHRASES.get(aspect.name, frozenset())
        if word in phrases or any(aspect.terms.match(part) for part in parts):
            bits |= 1 << index
    return bits


def facets(text: str, words: Iterable[str] | None = None) -> list[Facet]:
    """Return what a statement gives a value to, in order of the table of aspects.

    `words` are those of the text in lower case, where they are known already.
    """
    result: list[Facet] = []
    spans: list[tuple[int, int]] = []
    possible = 0
    for word in _WORD.findall(text.lower()) if words is None else words:
        possible |= _possible(word)
    while possible:
        aspect = ASPECTS[(possible & -possible).bit_length() - 1]
        possible &= possible - 1
        if not aspect.terms.search(text):
            continue
        if (match := _value(text, aspect.values, spans)) is None:
            continue
        start, end, value = match
        if _prohibited(text, aspect.name, start):
            continue
        spans.append((start, end))
        name = _limit_name(text, value) if aspect.name == "limit" else aspect.name
        result.append(Facet(name, frozenset(), value, start, end))
    if not result:
        amount = _amount(text)
        if amount is None:
            return result
        result.append(amount)
    spans = [(each.start, each.end) for each in result]
    around = _scope_words(_clause(text, result), spans)
    return [each._replace(scope=_scope(around, each.aspect)) for each in result]


_GIVES: Final = re.compile(r"(?i)(?:\b(?:is|are|be|to|at|for)(?: now)?|[:=]) ?$")
_SETS: Final = re.compile(r"(?i)\W*(?:please )?(?:make|set|let|put)\b")


def _amount(text: str) -> Facet | None:
    """Return the number with a unit that a statement gives to something, whatever it is."""
    for match in VALUES["count"].finditer(text):
        start, end = match.span()
        gives = _GIVES.search(text[max(0, start - 16) : start]) or _SETS.match(text)
        if gives and not _PROHIBITION.search(text, 0, start):
            value = normalised(match[0])
            unit = _limit_name(text, value).removeprefix("limit of ")
            return Facet(f"amount of {unit}", frozenset(), value, start, end)
    return None


_PROHIBITION: Final = re.compile(
    r"(?i)\b(?:never|do not|don't|must(?: not|n't)|may not|cannot|can't|should(?: not|n't)|avoid|"
    r"not|under no circumstances|forbidden|prohibited)\b|^(?:\W{0,3})no\b"
)
_STILL_GIVEN: Final = {
    "spending": re.compile(""),
    "limit": re.compile(""),
    "approval": re.compile(""),
    "reviewer": re.compile(""),
    "date": re.compile(r"(?i)\b(?:past|after|before|beyond|later|until|deadline)\b"),
    "code": re.compile(r"(?i)\b(?:disclos|reveal|shar|leak|print|expos|publish|tell|show|give)"),
}
"""Aspects of which a prohibition names the value that holds: «never exceed $500»."""


def _prohibited(text: str, aspect: str, start: int) -> bool:
    """Return whether a value is one that is forbidden: a second one would be one more."""
    if not _PROHIBITION.search(text, 0, start):
        return False
    given = _STILL_GIVEN.get(aspect)
    return given is None or not given.search(text)


_LEAST: Final = re.compile(r"(?i)\b(?:at least|min(?:imum)?|no (?:fewer|less) than)\b")
_TIME: Final = re.compile(r"second|minute|hour|day|week|m?s$")


def _limit_name(text: str, value: str) -> str:
    """Return the aspect of a limit: limits of different units or directions are different ones."""
    unit = value.rsplit(" ", 1)[-1].strip("0123456789.")
    unit = "time" if _TIME.match(unit) else _singular(unit) or "number"
    return f"limit of {'least ' if _LEAST.search(text) else ''}{unit}"


def _value(
    text: str, kinds: Iterable[str], taken: list[tuple[int, int]]
) -> tuple[int, int, str] | None:
    """Return the place and the normalised form of the first current value of these kinds."""
    for kind in kinds:
        matches = [
            match
            for match in VALUES[kind].finditer(text)
            if not any(match.start() < end and start < match.end() for start, end in taken)
        ]
        current = [
            match
            for match in matches
            if not _FORMER.search(text[max(0, match.start() - 24) : match.start()])
        ]
        if chosen := current[:1] or matches[-1:]:
            match = chosen[0]
            group = 1 if match.re.groups and match[1] else 0
            return *match.span(group), normalised(match[group])
    return None


def _clause(text: str, given: Sequence[Facet]) -> str:
    """Return the part of a text that says what a plain amount belongs to: up to the next comma."""
    if not given[0].aspect.startswith("amount of"):
        return text
    end = given[0].end
    return text[:end] + text[end:].partition(",")[0]


def _scope_words(text: str, spans: Iterable[tuple[int, int]]) -> list[str]:
    spans = list(spans)
    return [
        match[0]
        for match in _WORD.finditer(text)
        if not any(match.start() < end and start < match.end() for start, end in spans)
    ]


_BY_NAME: Final = {each.name: each for each in (*ASPECTS, AMOUNT)}


def _scope(words: Iterable[str], aspect: str) -> frozenset[str]:
    _, _, _, plain, narrowing = _BY_NAME[aspect.split(" of ", maxsplit=1)[0]]
    scope = set()
    for word in words:
        for part in _parts(word.lower().replace("\u2019", "'")):
            base = _singular(part)
            if not STOP.isdisjoint((part, base)) or not plain.isdisjoint((part, base)):
                continue
            scope.add(ALIASES.get(base, base))
    return frozenset(scope) if narrowing is None else narrowing & scope


def _parts(word: str) -> list[str]:
    word = word.removesuffix("'s").removesuffix("s'").strip("'-")
    if word in ALIASES or "-" not in word:
        return [word]
    return [each for each in word.split("-") if each]


_SHORTEST_PLURAL: Final = 4


def _singular(word: str) -> str:
    if (
        len(word) >= _SHORTEST_PLURAL
        and word.endswith("s")
        and not word.endswith(("ss", "us", "is"))
    ):
        if word.endswith("ies"):
            return word[:-3] + "y"
        return word[:-2] if word.endswith(("shes", "ches", "xes", "sses")) else word[:-1]
    return word


def same_scope(newer: frozenset[str], older: frozenset[str]) -> bool:
    """Return whether two scopes mean one thing: equal, or one says it in fewer words."""
    if newer == older:
        return True
    if not newer or not older:
        return False
    if not (newer <= older or older <= newer):
        return False
    return QUALIFIERS.isdisjoint(newer ^ older)
