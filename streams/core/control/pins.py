"""The rule guard: which of the user's standing rules the model still sees after a boundary.

A rule is a constraint that the engine pins: laid down by the user, never taken from what a model, a
tool or a summary says. One that a later statement of the user replaced is no rule any more.

A rule counts as kept if the text that the model sees has it word for word, or has a passage with
all of its values (numbers, names in code, paths, identifiers), most of its other words, and, if it
forbids something, a word that forbids. Inflections count as the same word. Only what has no such
passage is lost: it is better to miss a loss than to report one that is none.
"""

import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from contextgauge.compaction.carried.digest import carry
from contextgauge.compaction.history import Edit, History
from contextgauge.compaction.messages import (
    Carried,
    ContextCompaction,
    Message,
    Opaque,
    Text,
    ToolResult,
)
from contextgauge.normalise.claude_code.messages import MAX_PIN, MAX_PINS
from contextgauge.records import Json

NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:contextgauge:pins-checked")

_WORD: Final = re.compile(r"[^\W_](?:[\w.@:/\\$%-]*[\w%])?|[$€£]\d[\d.,]*")
_VALUE: Final = re.compile(r"\d|[./\\@_:](?=\w)|[a-z][A-Z]|^[A-Z]{2,}$")
"""A word that stands for itself: a number, a path, an address, a name in code, an acronym."""

_FORBIDS: Final = re.compile(
    r"(?i)\b(?:never|not|no(?:ne|thing|[-]?body)?|cannot|avoid(?:s|ed|ing)?|without|unless|only|"
    r"forbid(?:s|den)?|prohibit(?:s|ed)?|disallow(?:s|ed)?|refrain(?:s|ed|ing)?|off[- ]limits|"
    r"untouched|unchanged|leave|stop|ban(?:s|ned)?|exclud(?:e|es|ed|ing)|rule out)\b|n['\u2019]t\b"
)
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+")
_SUFFIXES: Final = ("ings", "ing", "edly", "ied", "ies", "ed", "es", "s", "e", "y")
_SHORTEST_STEM: Final = 3
_MOST_WORDS: Final = 0.6
"""Share of a rule's words that a paraphrase has: summaries drop adjectives, and change verbs."""


class PinsCheck(NamedTuple):
    """The texts of the rules that are still there, and of those that are not."""

    kept: tuple[str, ...]
    lost: tuple[str, ...]


class AroundBoundary(NamedTuple):
    """What the model saw just before the latest boundary, and what it sees now."""

    before: tuple[Message, ...]
    after: tuple[Message, ...]


class _Passage(NamedTuple):
    """A line or two sentences of what the model sees. `words` are stems, `values` as they are."""

    words: frozenset[str]
    values: frozenset[str]
    forbids: bool


def check_pins(before: Sequence[Message], after: Sequence[Message]) -> PinsCheck:
    """Return which rules of the conversation before a boundary are in that after it."""
    former = next((each.compaction for each in before if each.compaction is not None), None)
    carried = carry(Carried() if former is None else former.carried, before)
    rules = [each for each in carried.entries if each.speaker == "user" and _plain(each.text)]
    if not rules:
        return PinsCheck((), ())
    texts = list(_texts(after))
    seen = "\n".join(map(_plain, texts))
    passages = _Passages(texts)
    present: list[str] = []
    lost: list[str] = []
    for pin in rules:
        is_there = _plain(pin.text) in seen or passages.have(pin.text)
        (present if is_there else lost).append(pin.text)
    return PinsCheck(tuple(present), tuple(lost))


def around_boundary(history: History) -> AroundBoundary | None:
    """Return the conversation before and after its latest compaction.

    None where there was none that is known with what was before it, or where what the model sees
    cannot be read: an encrypted summary.
    """
    active: list[Message] = []
    before_removal: tuple[Message, ...] = ()
    before: tuple[Message, ...] | None = None
    for entry in history.entries:
        former = active
        if isinstance(entry, Edit):
            active = entry.on(active)
            remaining = {each.id for each in active}
            if any(each.is_user_turn and each.id not in remaining for each in former):
                before_removal = tuple(former)
        elif entry.compaction is not None:
            active = [*(each for each in active if each.role == "system"), entry]
            before_removal = tuple(former)
        else:
            active.append(entry)
            continue
        known = {each.id for each in former}
        if any(each.compaction is not None and each.id not in known for each in active):
            before, before_removal = before_removal or tuple(former), ()
        elif not any(each.compaction is not None for each in active):
            before = None  # a reset: there is nothing that would have to be kept
    if not before or any(_is_unreadable(each) for each in history.active):
        return None
    return AroundBoundary(before, tuple(history.active))


def message_of(
    check: PinsCheck, session_id: str, boundary_id: str, at: str, *, has_texts: bool
) -> dict[str, Json]:
    """Return the message that tells what was found; `at` is its time, as RFC 3339.

    Its id follows from the boundary's, so what is published twice is known. Without `has_texts`
    the lost rules are only counted.
    """
    lost: list[Json] = [each[:MAX_PIN] for each in check.lost[:MAX_PINS]]
    return {
        "type": "system",
        "subtype": "pins_checked",
        "session_id": session_id,
        "uuid": str(uuid.uuid5(NAMESPACE, boundary_id)),
        "timestamp": at,
        "boundary_id": boundary_id,
        "kept": len(check.kept),
        "lost": lost if has_texts else [],
        "lost_count": len(check.lost),
    }


def _is_unreadable(message: Message) -> bool:
    return any(isinstance(block, Opaque) and "compaction" in block.kind for block in message.blocks)


def _plain(text: str) -> str:
    """Return a text for comparison: lower case, single blanks, no marks at its ends."""
    return " ".join(text.lower().split()).strip(" .!;:-")


def _texts(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ContextCompaction):
                yield block.summary
            elif isinstance(block, Text | ToolResult):
                yield block.text


class _Passages:
    """The passages of what the model sees, found by their words."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._passages = [_passage(text) for text in _pieces(texts)]
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for number, passage in enumerate(self._passages):
            for word in passage.words | passage.values:
                self._by_word[word].append(number)

    def have(self, rule: str) -> bool:
        """Return whether a passage says what a rule says."""
        sought = _passage(rule)
        needed = sought.values or sought.words
        if not needed:
            return False
        least = -(-len(sought.words) * _MOST_WORDS // 1)
        rare = [self._by_word.get(word, []) for word in needed]
        numbers = (
            min(rare, key=len) if sought.values else {number for some in rare for number in some}
        )
        for number in numbers:
            passage = self._passages[number]
            if (
                sought.values <= passage.values
                and len(sought.words & passage.words) >= least
                and (passage.forbids or not sought.forbids)
            ):
                return True
        return False


def _pieces(texts: Iterable[str]) -> Iterator[str]:
    """Yield lines, and of a line of several sentences each two that follow one another."""
    for text in texts:
        for line in text.splitlines():
            if not line.strip():
                continue
            sentences = _SENTENCE.split(line)
            if len(sentences) <= 2:  # noqa: PLR2004 -- two, as below
                yield line
                continue
            for first, second in pairwise(sentences):
                yield f"{first} {second}"


def _passage(text: str) -> _Passage:
    words, values = set(), set()
    for word in _WORD.findall(text):
        if _VALUE.search(word):
            values.add(word.lower())
        for part in re.split(r"[-/]", word.lower()):
            if part and not _VALUE.search(part):
                words.add(_stem(part))
    return _Passage(frozenset(words), frozenset(values), _FORBIDS.search(text) is not None)


def _stem(word: str) -> str:
    """Return a word without its inflection: `pushing`, `pushed` and `pushes` are `push`."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            word = word.removesuffix(suffix)
            break
    return word[:-1] if len(word) > _SHORTEST_STEM and word[-1] == word[-2] else word
