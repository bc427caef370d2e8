"""Texts compared by short runs of characters: in any script, without a dictionary.

A word that is inflected, part of a compound, or not set off by spaces still shares most of its
n-grams with the same word elsewhere. n depends on how much one character says: four in alphabets,
three in scripts that write few vowels or stack them (Hebrew, Arabic, those of India, Thai), two of
syllables and ideographs (Han, kana, Hangul). Pure, and linear in the length of a text.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

_LETTERS: Final = frozenset("LMN")
"""Categories of characters that are part of words: letters, their marks, and numbers."""

_POINTS: Final = range(10, 36)
"""Combining classes of the points of Hebrew and Arabic, which most texts leave out."""

_MOST_FOLDINGS: Final = 40_000
"""Characters whose folding is remembered: more than texts have that are no attack."""

_TATWEEL: Final = 0x640
_FIRST_OF_THREE: Final = "\u0590"
_FIRST_OF_TWO: Final = "\u2e80"

_RUN: Final = re.compile(r"[^\s\u2e80-\U0010ffff]+|[\u2e80-\U0010ffff]+")
"""A word, or a part of one in scripts of the same kind: `APIを` are two."""


class _Folding(dict[int, int | None]):
    """What becomes of each character that was met: it stays, goes, or is a space."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        folded: int | None = ord(" ")
        if unicodedata.combining(character) in _POINTS or code == _TATWEEL:
            folded = None
        elif code == ord("_") or unicodedata.category(character)[0] in _LETTERS:
            folded = code
        if len(self) < _MOST_FOLDINGS:
            self[code] = folded
        return folded


_FOLDING: Final = _Folding()


def folded(text: str) -> str:
    """Return the words of a text in one spelling, each between spaces, for grams to be found in."""
    if text.isascii():
        return f" {text.lower().translate(_FOLDING)} "
    spelled = unicodedata.normalize("NFKC", text).casefold().translate(_FOLDING)
    return f" {' '.join(_RUN.findall(spelled))} "


def grams(text: str) -> list[str]:
    """Return the different n-grams of a text, in order; each is a part of `folded(text)`.

    Words of alphabets count with the spaces around them, so a short one is found whole only.
    """
    parts: dict[str, None] = {}
    for word in folded(text).split():
        size, run = 2, word
        if word < _FIRST_OF_TWO:
            size, run = (4 if word < _FIRST_OF_THREE else 3), f" {word} "
        parts.update(
            dict.fromkeys(run[at : at + size] for at in range(max(1, len(run) - size + 1)))
        )
    return list(parts)


def share_of_grams(parts: Sequence[str], whole: str) -> float:
    """Return how many of some n-grams a folded text has, 0 to 1; 1 where there are none."""
    return sum(each in whole for each in parts) / len(parts) if parts else 1.0
