"""How much of a turn stands in a text, in any script: the overlap of their character n-grams.

A word's n-grams are its trigrams with the spaces around it, so that inflected words share most of
theirs; where a script writes no spaces, each character and each pair of neighbours; a word with a
digit is one, since another number says something else. Those that are frequent in the conversation
weigh little. A turn is in a text if one passage of it, half as long again as the turn, has
`THRESHOLD` of the turn's weight and half of its numbers.

The measure knows no meaning. It takes «the fix was pushed to main» for a paraphrase of «never push
to main»; it misses synonyms, a translation, and a long turn that became one sentence.
"""

import bisect
import heapq
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

THRESHOLD: Final = 0.4
"""What says the same shares 0.44 and more, in ten languages, and free rewording from 0.33 on; what
says something else at most 0.35, but up to 0.45 of a turn of three words."""

SHORTEST: Final = 8
"""Letters of a turn that can be judged: fewer, such as «go on», are in any text or in none."""

_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Thai to Khmer, kana, ideographs."""

_PIECE: Final = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<word>[^\W_{_UNSPACED}]+)"
    rf"|[.!?;](?=[\s{_UNSPACED}])|[。\n]"
)
_SIZE: Final = 3
_PAUSE: Final = [""] * 16
"""Between sentences: a passage seldom takes words of two that say different things."""

_PASSAGE: Final = 1.5
_SHORTEST_PASSAGE: Final = 24
_LONGEST_TURN: Final = 300
_TURN_CHARACTERS: Final = 4_000
"""N-grams of a turn that are compared, and where they are looked for: its beginning says which one
it is, and bounds the work."""

_BETWEEN_TEXTS: Final = [""] * 2 * _LONGEST_TURN
"""A passage is of one text."""

_MOST_HITS: Final = (2_000, 8_000)
"""Places of a turn's rarest n-grams by which passages are found: the more where the fewer say
nothing. They bound the work for a turn."""

MOST_WORK: Final = 5_000_000
"""Of one check: some 7 seconds of CPU time. The unit is an n-gram that is looked at."""

_WORK_PER_MS: Final = 150
"""Of all checks of a worker: some fifth of a core."""

_FOLDED: Final = 64
_SEARCHED: Final = 2_000
_INDEXED: Final = 3
"""Characters that take as long as one n-gram: to be folded, to be searched for a text, and to have
their n-grams remembered."""

_MOST_PASSAGES: Final = 6
"""Those with most of the rarest n-grams, which are compared by all of them."""

_SENTENCE: Final = 32
"""N-grams of a sentence: a weight counts in how many of them an n-gram is."""


class GuardWork:
    """How much may still be done; `done` is what was, both in n-grams that are looked at."""

    def __init__(self, left: int = MOST_WORK) -> None:
        self.left, self.done = left, 0

    def spend(self, amount: int) -> bool:
        """Return whether so much may be done, which is then spent; a smaller part still may."""
        if amount >= self.left:
            return False
        self.add(amount)
        return True

    def add(self, amount: int) -> None:
        """Note what was done, which showed only then."""
        self.left -= amount
        self.done += amount

    def folds(self, texts: Iterable[str]) -> bool:
        """Return whether texts may be made `plain`."""
        return self.spend(sum(map(len, texts)) // _FOLDED)


class GuardAllowance:
    """What the checks of a worker may do together, one after the other, however many there are."""

    def __init__(self, most: int = MOST_WORK) -> None:
        self._most = self._left = most
        self._at_ms = 0

    def work(self, now_ms: int) -> GuardWork:
        """Return what the next check may do; `used` takes it back."""
        passed_ms = max(0, now_ms - self._at_ms)
        self._left = min(self._most, self._left + passed_ms * _WORK_PER_MS)
        self._at_ms = now_ms
        return GuardWork(max(0, self._left))

    def used(self, work: GuardWork) -> None:
        """Note what a check did."""
        self._left -= work.done


def plain(text: str) -> str:
    """Return a text without what rendering changes: case, and the length of white space."""
    return " ".join(_folded(text).split())


def can_be_judged(text: str) -> bool:
    """Return whether a turn is long enough; an ideograph says as much as two letters."""
    letters = 0
    for piece in _PIECE.finditer(text):
        letters += len(piece["word"] or (piece["unspaced"] or "") * 2)
        if letters >= SHORTEST:
            return True
    return False


class Turn:
    """A turn of the user's, or what else is looked for: its text, and how it is compared.

    That is `plain`, and by the n-grams of its beginning.
    """

    def __init__(self, text: str) -> None:
        self.text, self.plain = text, plain(text)
        self.grams = list(islice(grams_of(text[:_TURN_CHARACTERS]), _LONGEST_TURN))


class Passage(NamedTuple):
    """The passage that has most of a turn: its share of it, 0 to 1, and the place of its text."""

    share: float
    text: int


class SeenText:
    """Texts that a model sees."""

    def __init__(
        self,
        texts: Sequence[str],
        quoted: Sequence[str] = (),
        turns: Sequence[Turn] = (),
        work: GuardWork | None = None,
    ) -> None:
        """Take texts, what tools returned, in which only a whole turn counts, and the user's turns.

        What is frequent in the turns, as polite endings are, weighs little too. What `work` has no
        room for is not done, and unknown.
        """
        self._work = GuardWork() if work is None else work
        is_read = self._work.folds([*texts, *quoted])
        self._whole = "\n".join(map(plain, [*texts, *quoted])) if is_read else None
        self._grams: list[str] = []
        self._ends: list[int] = []
        self._places: dict[str, list[int]] = defaultdict(list)
        self._frequency: Counter[str] = Counter()
        size = sum(map(len, texts)) // _INDEXED + sum(len(turn.grams) for turn in turns)
        self._has_places = self._work.spend(size)
        if self._has_places:
            self._index(texts, turns)
        self._sentences = 1 + self._frequency.total() / _SENTENCE

    def _index(self, texts: Sequence[str], turns: Iterable[Turn]) -> None:
        for text in texts:
            self._grams += [*grams_of(text), *_BETWEEN_TEXTS]
            self._ends.append(len(self._grams))
        for place, gram in enumerate(self._grams):
            if gram:
                self._places[gram].append(place)
        self._frequency.update({gram: len(places) for gram, places in self._places.items()})
        for turn in turns:
            self._frequency.update(filter(None, turn.grams))

    def has(self, turn: Turn) -> bool | None:
        """Return whether the turn is there, word for word; None where there was no work left."""
        if self._whole is None or not self._work.spend(len(self._whole) // _SEARCHED + 1):
            return None
        return turn.plain in self._whole

    def overlap(self, turn: Turn) -> float | None:
        """Return the share of a turn that the passage has which has most of it; see `passage`."""
        passage = self.passage(turn)
        return None if passage is None else passage.share

    def passage(self, turn: Turn) -> Passage | None:
        """Return the passage that has most of a turn.

        None where no passage was found to have enough of it, and most of its n-grams are too
        frequent for all passages to be compared, or the turns asked for before took all the work.
        """
        for most_hits in _MOST_HITS:
            if not self._has_places or self._work.left <= 0:
                return None
            if (passage := self._passage(turn, most_hits)) is not None:
                return passage
        return None

    def _passage(self, turn: Turn, most_hits: int) -> Passage | None:
        grams = turn.grams
        self._work.add(len(grams))
        length = math.ceil(max(_PASSAGE * len(grams), _SHORTEST_PASSAGE))
        weights = {gram: self._weight(gram) for gram in grams if gram}
        rare = self._rare(weights, most_hits)
        places = sorted((place, gram) for gram in rare for place in self._places.get(gram, ()))
        self._work.add(len(places))
        best: dict[int, float] = {}
        for place, weight in _passages(places, rare, length):
            best[place // length] = max(weight, best.get(place // length, 0))
        whole = sum(weights.values()) or 1
        numbers = {gram: 1.0 for gram in weights if _is_number(gram)}
        most, most_at = 0.0, 0
        for part in heapq.nlargest(_MOST_PASSAGES, best, key=best.__getitem__):
            start = max(0, (part - 1) * length)
            around = enumerate(self._grams[start : (part + 2) * length], start)
            hits = [(place, gram) for place, gram in around if gram in weights]
            self._work.add(3 * length)
            present = dict(_passages(hits, numbers, length))
            for place, weight in _passages(hits, weights, length):
                if weight > most and 2 * present[place] >= len(numbers):
                    most, most_at = weight, place
        is_known = most >= THRESHOLD * whole or len(rare) == len(weights)
        if not is_known and 2 * sum(rare.values()) < whole:
            return None
        return Passage(most / whole, bisect.bisect_right(self._ends, most_at))

    def _rare(self, weights: dict[str, float], most_hits: int) -> dict[str, float]:
        """Return the rarest of some n-grams, which have few enough places together."""
        left = most_hits
        rare: dict[str, float] = {}
        for count, gram in sorted((len(self._places.get(gram, ())), gram) for gram in weights):
            left -= count
            if left < 0:
                break
            rare[gram] = weights[gram]
        return rare

    def _weight(self, gram: str) -> float:
        return math.log(1 + self._sentences / (1 + self._frequency[gram]))


def _passages(
    hits: list[tuple[int, str]], weights: dict[str, float], length: int
) -> Iterator[tuple[int, float]]:
    """Return for each hit what the passage weighs that ends there: each n-gram counts once."""
    passage: Counter[str] = Counter()
    weight = 0.0
    first = 0
    for place, gram in hits:
        passage[gram] += 1
        if passage[gram] == 1:
            weight += weights.get(gram, 0)
        while place - hits[first][0] >= length:
            former = hits[first][1]
            passage[former] -= 1
            if not passage[former]:
                weight -= weights.get(former, 0)
            first += 1
        yield place, weight


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def grams_of(text: str) -> Iterator[str]:
    """Yield the n-grams of a text in order, empty ones where a sentence ends."""
    for piece in _PIECE.finditer(_folded(text)):
        if run := piece["unspaced"]:
            for start in range(len(run)):
                yield run[start]
                yield run[start : start + 2]
        elif not (word := piece["word"]):
            yield from _PAUSE
        elif _is_number(word):
            yield word
        else:
            padded = f" {word} "
            for start in range(len(padded) - _SIZE + 1):
                yield padded[start : start + _SIZE]


def _is_number(gram: str) -> bool:
    return any(map(str.isdigit, gram))
