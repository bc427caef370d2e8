"""Widths on a terminal: columns of a text, and texts cut or padded to them."""

import unicodedata
from itertools import accumulate
from typing import Final

_JOINER: Final = "\u200d"
_EMOJI_STYLE: Final = "\ufe0f"
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS: Final = range(0x1F1E6, 0x1F200)
_JAMO_ENDINGS: Final = range(0x1160, 0x1200)
"""Vowels and final consonants: drawn into the syllable before them."""


def plain_line(text: str) -> str:
    """Return a text as one line without controls: what others wrote cannot move the cursor."""
    line = " ".join(text.split())
    return "".join(each for each in line if unicodedata.category(each) not in {"Cc", "Cs"})


def clusters(text: str) -> list[tuple[str, int]]:
    """Return what is drawn as one, with its columns: a letter and its accents, a joined emoji."""
    drawn: list[tuple[str, int]] = []
    joined = flag = False
    for each in text:
        code = ord(each)
        before, columns = drawn[-1] if drawn else ("", 0)
        if before and (joined or (code in _SKIN_TONES and columns == 2)):  # noqa: PLR2004 -- wide
            drawn[-1] = (before + each, max(columns, _columns(each)))
        elif before and each == _EMOJI_STYLE:
            drawn[-1] = (before + each, 2)
        elif before and _columns(each) == 0:
            drawn[-1] = (before + each, columns)
        elif before and flag and code in _FLAG_LETTERS:
            drawn[-1] = (before + each, 2)
            flag = False
            continue
        else:
            drawn.append((each, _columns(each)))
        joined = each == _JOINER
        flag = code in _FLAG_LETTERS
    return drawn


def width(text: str) -> int:
    """Return the columns that a line takes."""
    return sum(columns for _, columns in clusters(text))


def cut(text: str, limit: int) -> str:
    """Return a line of at most `limit` columns, with an ellipsis where something is left out."""
    if width(text) <= limit:
        return text
    drawn = clusters(text)
    ends = accumulate(columns for _, columns in drawn)
    taken = [each for (each, _), end in zip(drawn, ends, strict=True) if end < limit]
    return "".join((*taken, "\N{HORIZONTAL ELLIPSIS}"))


def padded(text: str, columns: int) -> str:
    """Return a line of exactly so many columns."""
    line = cut(text, columns)
    return line + " " * (columns - width(line))


def _columns(character: str) -> int:
    if ord(character) in _JAMO_ENDINGS or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    if ord(character) in _FLAG_LETTERS or unicodedata.east_asian_width(character) in {"W", "F"}:
        return 2
    return 1
