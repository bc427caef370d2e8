"""What a statement is about, so that a newer one can replace an older one in other words.

A facet is one thing that can have one value at a time: an aspect (spending limit, date, owner on
call …), a scope, and a value, normalised: numbers in words, money, dates, hashes, versions. The
scope is all else that the statement names: words, files, ids, numbers, people. Two statements
conflict where aspect and scope are the same. One word more or less is another matter, and both
stay: a constraint that is lost is worse than an old value with its newer one after it.
Prohibitions without such a value never conflict: a second one is one more.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Final, NamedTuple

from contextgauge.compaction.carried.statements.english_values import VALUES, normalised
from contextgauge.compaction.carried.statements.single_valued import (
    ALIASES,
    AMOUNT,
    ASPECTS,
    STOP,
    Aspect,
    words_of,
)


class Facet(NamedTuple):
    """One thing that a statement has a value of; `start` and `end` are the value's place.

    `gives`: the statement lays the value down. Otherwise it may only be about it, as «tests for
    Python 3.9 stay»: such a statement replaces nothing.
    """

    aspect: str
    scope: frozenset[str]
    value: str
    start: int = 0
    end: int = 0
    gives: bool = True


_FORMER: Final = re.compile(
    r"(?i)\b(old|previous|former|earlier|no longer|retired|was|were|from|not|instead of|"
    r"rather than)\b(?: \w+){0,2} ?$"
)
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'\u2019-]{0,40}")
_ADDITION: Final = re.compile(
    r"(?i)\b(?:also|too|as well|additionally|in addition|another|furthermore|besides)\b"
)


def is_addition(text: str) -> bool:
    """Return whether a statement says that it comes on top of others, and changes nothing."""
    return _ADDITION.search(text) is not None


_PHRASES: Final = {
    "name": words_of("code refer call"),
    "on-call": words_of("call duty"),
    "approval": words_of("sign signs signed"),
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


def possible_aspects(words: Iterable[str]) -> int:
    """Return a bit for each aspect that words in lower case may belong to."""
    return reduce(or_, map(_possible, words), 0)


def facets(text: str, possible: int | None = None) -> list[Facet]:
    """Return what a statement gives a value to, in order of the table of aspects.

    `possible` are the `possible_aspects` of its words, where they are known already.
    """
    result: list[Facet] = []
    if possible is None:
        possible = possible_aspects(_WORD.findall(text.lower()))
    while possible:
        aspect = ASPECTS[(possible & -possible).bit_length() - 1]
        possible &= possible - 1
        if not aspect.terms.search(text):
            continue
        if (match := _value(text, aspect.values, result)) is None:
            continue
        if _prohibited(text, aspect.name, match[0]):
            continue
        name = _limit_name(text, match[2]) if aspect.name == "limit" else aspect.name
        gives = _gives(text, aspect.name, *match[:2])
        result.append(Facet(name, frozenset(), match[2], *match[:2], gives))
    if not result and (amount := _amount(text)):
        result.append(amount)
    if not result:
        return []
    plain = STOP.union(*(_aspect_of(each).plain for each in result))
    return [each._replace(scope=_scope(_rest(text, each, result), plain)) for each in result]


MORE: Final = re.compile(
    r"(?i)\b(?:and|but) (?:never \w+ (?:it|them)|must (?:stay|be|never be|not be) \w+)\b"
    r"|\b(?:answers?|replies|responses?|prose|style|tone) with no\b"
)
"""What a statement forbids on top of the value that it gives: this outlives the value."""

_GIVES_AMOUNT: Final = re.compile(
    r"(?:\b(?:is|are|be|to|at|for|size|length|width|height)(?: now)?|[:=]) ?$"
)
_ENDS_BEFORE_AMOUNT: Final = (
    "is", "are", "be", "to", "at", "for", "size", "length", "width", "height", "now", ":", "=",
)  # fmt: skip
"""Cheaper than the pattern."""


def _amount(text: str) -> Facet | None:
    """Return the only number with a unit that a statement gives to something, whatever it is."""
    matches = [
        match
        for match in VALUES["count"].finditer(text)
        if (before := text[max(0, match.start() - 16) : match.start()].lower())
        and before.removesuffix(" ").endswith(_ENDS_BEFORE_AMOUNT)
        and _GIVES_AMOUNT.search(before)
        and match[0].lstrip("0123456789.,_ ").lower() not in STOP
    ]
    if len(matches) != 1 or _PROHIBITION.search(text, 0, matches[0].start()):
        return None
    start, end = matches[0].span()
    value = normalised(matches[0][0])
    unit = _limit_name(text, value).removeprefix("limit of ")
    return Facet(f"amount of {unit}", frozenset(), value, start, end, not _is_subject(text, end))


_VERB_AFTER: Final = re.compile(
    r"(?i)[^.;:]{0,200}?\b(?:is|are|must|shall|should|may|needs?|has|have|can|cannot|can't|will|"
    r"stays?|takes?|gets?|goes|(?:runs?|uses?)(?=\W+\w))\b"
)
"""Without a word after them, runs and uses are things: «$900 on test runs»."""

_GIVES_NAME: Final = {
    name: re.compile(rf"(?i)(?:(?:^|(?<=\W))(?:{before})|[:=] ?)[\"'`\u2018\u201c]?$")
    for name, before in {
        "name": r"(?:is|are|be|to|designated|called|named|codenamed|codename|label|as) "
        r"|call(?:ing)? (?:\w+ ){1,2}",
        "branch": r"(?:is|are|be|on|to|onto|use|out)(?: now)?(?: the)?(?: branch)? ",
        "commit": r"(?:is|are|be|on|from|onto)(?: now)?(?: commit)? ",
        "region": r"(?:is|are|be|runs?|running|hosted|located|lives?|moved?|migrated|region)"
        r"(?: now)?(?: in| to)?(?: the)?(?: region)? ",
        "address": r"(?:is|are|be|use|lives?|moved)(?: now)?(?: at| to)? ",
        "version": r"(?:is|are|be|to|on|use|uses|target|pin)(?: now)? (?:[\w.]+ )?",
        "example language": r"(?:in|is|are|be|to) ",
        "code": r"(?:is|are|be|to)(?: now)? |use (?:\w+ )?code ",
    }.items()
}
"""What stands before a value of a kind that can also be the name of something."""

_GIVES_PERSON: Final = re.compile(r"(?i)(?:\b(?:by|is|to|from|only|without|now) |[,:=] ?)@?$")
_PERSON_DOES: Final = re.compile(r"(?: now| currently)? (?:\w{2,}s|is|may|must|will|should|can)\b")
_SECRET_CODE: Final = re.compile(r"(?i)\b(?:code|password|passphrase|passcode|pin|reveal) $")
_OF_PERSONS: Final = {"on-call", "approval"}


def _gives(text: str, aspect: str, start: int, end: int) -> bool:
    """Return whether a statement lays a value down, and does not only name something with it."""
    if aspect == "code" and _PROHIBITION.search(text):
        if _SECRET_CODE.search(text, 0, start):
            return True
    elif aspect not in _OF_PERSONS and _is_subject(text, end):
        return False
    if aspect in _OF_PERSONS:
        does = start == 0 and _PERSON_DOES.match(text, end)
        return bool(does or _GIVES_PERSON.search(text, 0, start))
    before = _GIVES_NAME.get(aspect)
    return before is None or before.search(text, 0, start) is not None


def _is_subject(text: str, end: int) -> bool:
    """Return whether a verb follows a value: the value is part of what the verb speaks of."""
    more = MORE.search(text, end)
    return _VERB_AFTER.match(text[end : more.start() if more else len(text)]) is not None


_PROHIBITION: Final = re.compile(
    r"(?i)\b(?:never|do not|don't|must(?: not|n't)|may not|cannot|can't|should(?: not|n't)|avoid|"
    r"not|under no circumstances|forbidden|prohibited)\b|^(?:\W{0,3})no\b"
)
_EXCEED: Final = re.compile(
    r"(?i)\b(?:exceed|more|less|fewer|over|under|above|below|beyond|past|pass|longer|later)\b"
)
_STILL_GIVEN: Final = {
    "spending": _EXCEED,
    "limit": _EXCEED,
    "approval": re.compile(""),
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


def _value(text: str, kinds: Iterable[str], taken: Sequence[Facet]) -> tuple[int, int, str] | None:
    """Return the place and the normalised form of the only current value of these kinds."""
    for kind in kinds:
        matches = [
            match
            for match in VALUES[kind].finditer(text)
            if not any(match.start() < each.end and each.start < match.end() for each in taken)
        ]
        current = [match for match in matches if not _is_former(text, match)]
        if len(current) > 1:
            return None
        if chosen := current or matches[-1:]:
            match = chosen[0]
            group = 1 if match.re.groups and match[1] else 0
            return *match.span(group), normalised(match[group])
    return None


def _is_former(text: str, value: re.Match[str]) -> bool:
    former = _FORMER.search(text[max(0, value.start() - 24) : value.start()])
    if former is None:
        return False
    return former[1].lower() != "from" or text.startswith(" to ", value.end())


_BY_NAME: Final = {each.name: each for each in (*ASPECTS, AMOUNT)}


def _aspect_of(facet: Facet) -> Aspect:
    return _BY_NAME[facet.aspect.split(" of ", maxsplit=1)[0]]


_NO_NAMES: Final = {"next step", "style", "units", "indentation"}
"""Aspects whose values name nothing."""


def _rest(text: str, facet: Facet, given: Sequence[Facet]) -> str:
    """Return a statement without a facet's value, former ones, and what is forbidden on top.

    The value of another facet stays where it can be a name.
    """
    gone = [(facet.start - len("without ") * text[: facet.start].endswith("without "), facet.end)]
    gone += [(each.start, each.end) for each in given if each.aspect in _NO_NAMES]
    for kind in _aspect_of(facet).values:
        gone += [match.span() for match in VALUES[kind].finditer(text) if _is_former(text, match)]
    more = MORE.search(text, facet.end)
    rest = text[: more.start()] if more else text
    for start, end in gone:
        rest = f"{rest[:start]}{' ' * (min(end, len(rest)) - start)}{rest[end:]}"
    return rest


_NAMES: Final = words_of("go will may")
"""Words of grammar that are names where they have a capital."""

_TOKEN: Final = re.compile(r"[^\s,;()\[\]{}<>\"\u201c\u201d\u2018`!?=\u2013\u2014]+")
_SAYS_NO_MORE: Final = re.compile(
    r"(?i)\b(?:as of this morning|from today|from here on|after all|"
    r"without (?:explicit )?approval|in confirmations)\b"
)
_TIME_OUT: Final = re.compile(r"(?i)\btime[sd]? out\b")
_BASE_BRANCH: Final = re.compile(r"(?i)\b(base|development) branch\b")
_WAY: Final = re.compile(r"(?i)\bfrom (?!now |here |today )((?:[\w.'-]+ ){1,3})to (?=\w)")
"""A way between two named things, which is another one than the way back."""


def _scope(text: str, plain: frozenset[str]) -> frozenset[str]:
    """Return all names and words of a text but the plain ones, each in one form."""
    words: set[str] = set()
    text = _BASE_BRANCH.sub(r"\1branch", _TIME_OUT.sub("timeout", _SAYS_NO_MORE.sub("", text)))
    words.update(f"from {each.strip().lower()}" for each in _WAY.findall(text))
    for match in _TOKEN.finditer(text):
        word = match[0].replace("\u2019", "'").strip("'*").rstrip(".:-").removesuffix("'s")
        if len(word) == 1 and word.isupper() and word != "I":
            words.add(word)
            continue
        is_name = word[:1].isupper() and match.start() > 0
        for part in _parts(word.lower()):
            base = _singular(part)
            if (is_name and part in _NAMES) or plain.isdisjoint((part, base)):
                words.add(ALIASES.get(part, ALIASES.get(base, part)))
    return frozenset(words)


def _parts(word: str) -> list[str]:
    """Return a word's parts at hyphens; a name with a digit or a mark is one."""
    if word in ALIASES or not word.replace("-", "").replace("'", "").isalpha():
        return [word.replace(":", ".")] if word else []
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
