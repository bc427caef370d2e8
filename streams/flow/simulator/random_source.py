"""Seeded random ids, sizes and filler text: the same seed gives the same on every machine."""

import random
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

_Option = TypeVar("_Option")

_SYLLABLES = ("ba", "den", "fi", "gor", "hal", "ke", "lum", "mi", "nor", "pas", "qui", "ro", "sten")
_ENDINGS = ("a", "el", "ing", "is", "or", "um")
_WORDS = 4_000
_PAGE_CHARACTERS = 1 << 18
"""Filler is cut from one page of this length: generating it word by word would be slow."""


@cache
def _page() -> tuple[str, tuple[int, ...]]:
    """Return a page of made-up prose, and where its sentences begin.

    It has the quotes, line ends and accents that JSON escapes.
    """
    source = random.Random("page")  # noqa: S311 -- filler, not a secret
    words = [
        "".join(source.choices(_SYLLABLES, k=source.randint(1, 3))) + source.choice(_ENDINGS)
        for _ in range(_WORDS)
    ]
    parts: list[str] = []
    starts: list[int] = []
    length = 0
    while length < _PAGE_CHARACTERS:
        sentence = " ".join(source.choices(words, k=source.randint(4, 18))).capitalize()
        if source.random() < 0.05:  # noqa: PLR2004 -- one sentence in twenty
            sentence = f'"{sentence}" — né à {sentence[:3]}'
        parts.append(sentence + source.choice((". ", ".\n", ": ", ", ")))
        starts.append(length)
        length += len(parts[-1])
    return "".join(parts), tuple(starts)


class RandomSource:
    """The random values of one session."""

    def __init__(self, seed: str) -> None:
        self._source = random.Random(seed)  # noqa: S311 -- a simulation, not a secret
        self._page, self._starts = _page()
        self.tag = f"{self._source.getrandbits(32):08x}"
        """The first eight digits of all uuids of the session."""
        self._uuids = 0

    def uuid(self) -> str:
        """Return a new uuid of the session."""
        self._uuids += 1
        digits = f"{self._source.getrandbits(56):014x}"
        number = f"{self._uuids:08x}"
        return f"{self.tag}-{number[:4]}-4{digits[:3]}-8{digits[3:6]}-{number[4:]}{digits[6:]}"

    def key(self, prefix: str) -> str:
        """Return a new id such as `msg_0123…`."""
        return f"{prefix}{self._source.getrandbits(96):024x}"

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._source.random() < probability

    def integer(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included."""
        return low + int(self._source.random() * (high - low + 1))

    def size(self, median: int, spread: float, top: int) -> int:
        """Return a size from 1 to `top`, log-normally distributed as in real transcripts."""
        return max(1, min(top, int(median * self._source.lognormvariate(0.0, spread))))

    def choice(self, options: Sequence[_Option]) -> _Option:
        """Return one of the options."""
        return options[int(self._source.random() * len(options))]

    def text(self, characters: int) -> str:
        """Return filler text of this length, from the begin of a sentence."""
        page = self._page
        start = self.choice(self._starts)
        text = page[start : start + characters]
        while len(text) < characters:
            text += page[: characters - len(text)]
        return text
