"""Seeded chance: ids, sizes and filler text. The same seed draws the same on every machine."""

import random
from functools import cache

_SYLLABLES = ("ba", "den", "fi", "gor", "hal", "ke", "lum", "mi", "nor", "pas", "qui", "ro", "sten")
_ENDINGS = ("a", "el", "ing", "is", "or", "um")
_WORDS = 4_000
_PAGE_CHARACTERS = 1 << 18
"""Filler is cut from one page of so many characters: drawing word by word would be slow."""


@cache
def _page() -> str:
    """Return a page of made-up prose, with the quotes, line ends and accents that JSON escapes."""
    chance = random.Random("page")  # noqa: S311 -- filler, not a secret
    words = [
        "".join(chance.choices(_SYLLABLES, k=chance.randint(1, 3))) + chance.choice(_ENDINGS)
        for _ in range(_WORDS)
    ]
    parts: list[str] = []
    length = 0
    while length < _PAGE_CHARACTERS:
        sentence = " ".join(chance.choices(words, k=chance.randint(4, 18))).capitalize()
        if chance.random() < 0.05:  # noqa: PLR2004 -- one sentence in twenty
            sentence = f'"{sentence}" — né à {sentence[:3]}'
        parts.append(sentence + chance.choice((". ", ".\n", ": ", ", ")))
        length += len(parts[-1])
    return "".join(parts)


class Draw:
    """A stream of chance for one session."""

    def __init__(self, seed: str) -> None:
        self._chance = random.Random(seed)  # noqa: S311 -- a simulation, not a secret
        self._page = _page()
        self.tag = f"{self._chance.getrandbits(32):08x}"
        """Eight digits that begin all of the session's uuids."""
        self._count = 0

    def uuid(self) -> str:
        """Return a new uuid of the session."""
        self._count += 1
        drawn = f"{self._chance.getrandbits(56):014x}"
        count = f"{self._count:08x}"
        return f"{self.tag}-{count[:4]}-4{drawn[:3]}-8{drawn[3:6]}-{count[4:]}{drawn[6:]}"

    def key(self, prefix: str) -> str:
        """Return a new id such as `msg_0123…`."""
        return f"{prefix}{self._chance.getrandbits(96):024x}"

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._chance.random() < probability

    def whole(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return low + int(self._chance.random() * (high - low + 1))

    def size(self, median: int, spread: float, top: int) -> int:
        """Return a size of the long-tailed kind that transcripts have, 1 to `top`."""
        return max(1, min(top, int(median * self._chance.lognormvariate(0.0, spread))))

    def pick(self, choices: tuple[str, ...]) -> str:
        """Return one of the choices."""
        return choices[int(self._chance.random() * len(choices))]

    def text(self, characters: int) -> str:
        """Return so many characters of filler."""
        page = self._page
        begin = int(self._chance.random() * len(page))
        cut = page[begin : begin + characters]
        while len(cut) < characters:
            cut += page[: characters - len(cut)]
        return cut
