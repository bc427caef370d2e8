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
from collections.abc import Iterable, Iterator
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
"""N-grams of a turn that are compared: its beginning says which one it is, and bounds the work."""

_BETWEEN_TEXTS: Final = [""] * 2 * _LONGEST_TURN
"""A passage is of one text."""

_MOST_HITS: Final = (2_000, 8_000)
"""Places of a turn's rarest n-grams by which passages are found: the more where the fewer say
nothing. They bound the work for a turn."""

MOST_WORK: Final = 10_000_000
"""N-grams that are looked at for all turns together: some 15 seconds of CPU time."""

_MOST_PASSAGES: Final = 6
"""Those with most of the rarest n-grams, which are compared by all of them."""

_SENTENCE: Final = 32
"""N-grams of a sentence: a weight counts in how many of them an n-gram is."""


def plain(text: str) -> str:
    """Return a text without what rendering changes: case, and the length of white space."""
    return " ".join(_folded(text).split())


def can_be_judged(text: str) -> bool:
    """Return whether a turn is long enough; an ideograph says as much as two letters."""
    pieces = _PIECE.finditer(text)
    return sum(len(piece["word"] or (piece["unspaced"] or "") * 2) for piece in pieces) >= SHORTEST


class Passage(NamedTuple):
    """The passage that has most of a turn: its share of it, 0 to 1, and the place of its text."""

    share: float
    text: int


class SeenText:
    """Texts that a model sees."""

    def __init__(
        self, texts: Iterable[str], quoted: Iterable[str] = (), turns: Iterable[str] = ()
    ) -> None:
        """Take texts, what tools returned, in which only a whole turn counts, and the user's turns.

        What is frequent in the turns, as polite endings are, weighs little too.
        """
        own = list(texts)
        self._whole = "\n".join(map(plain, [*own, *quoted]))
        self._grams: list[str] = []
        self._ends: list[int] = []
        for text in own:
            self._grams += [*_grams(text), *_BETWEEN_TEXTS]
            self._ends.append(len(self._grams))
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, gram in enumerate(self._grams):
            if gram:
                self._places[gram].append(place)
        self._frequency = Counter({gram: len(places) for gram, places in self._places.items()})
        for turn in turns:
            self._frequency.update(filter(None, _grams(turn)))
        self._sentences = 1 + self._frequency.total() / _SENTENCE
        self._left = MOST_WORK

    def has(self, turn: str) -> bool:
        """Return whether the turn is there, word for word."""
        return plain(turn) in self._whole

    def overlap(self, turn: str) -> float | None:
        """Return the share of a turn that the passage has which has most of it; see `passage`."""
        passage = self.passage(turn)
        return None if passage is None else passage.share

    def passage(self, turn: str) -> Passage | None:
        """Return the passage that has most of a turn.

        None where no passage was found to have enough of it, and most of its n-grams are too
        frequent for all passages to be compared, or the turns asked for before took all the work.
        """
        for most_hits in _MOST_HITS:
            if self._left <= 0:
                return None
            if (passage := self._passage(turn, most_hits)) is not None:
                return passage
        return None

    def _passage(self, turn: str, most_hits: int) -> Passage | None:
        grams = _grams(turn)[:_LONGEST_TURN]
        length = math.ceil(max(_PASSAGE * len(grams), _SHORTEST_PASSAGE))
        weights = {gram: self._weight(gram) for gram in grams if gram}
        rare = self._rare(weights, most_hits)
        places = sorted((place, gram) for gram in rare for place in self._places.get(gram, ()))
        self._left -= len(places)
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
            self._left -= 3 * length
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


def _grams(text: str) -> list[str]:
    """Return the n-grams of a text in order, empty ones where a sentence ends."""
    grams: list[str] = []
    for piece in _PIECE.finditer(_folded(text)):
        if run := piece["unspaced"]:
            grams += [run[at : at + size] for at in range(len(run)) for size in (1, 2)]
        elif not (word := piece["word"]):
            grams += _PAUSE
        elif _is_number(word):
            grams.append(word)
        else:
            padded = f" {word} "
            grams += [padded[at : at + _SIZE] for at in range(len(padded) - _SIZE + 1)]
    return grams


def _is_number(gram: str) -> bool:
    return any(map(str.isdigit, gram))
