r"""Paths of the memory tool: what a model wrote to the names of folders and a file, or a refusal.

The model's `/memories` is a name, not a place: the rest of a path is split into names, and each is
opened in its own folder (`files`). What could mean another place on some system is refused before:

| written | refused because |
|---|---|
| `/memories/../x`, `/memories/./x` | relative steps |
| `/etc/passwd`, `notes.md`, `/memoriesx` | does not begin with `/memories` |
| `%2e%2e`, `%252e` | percent-encoded: someone may decode it once more |
| `..\x`, `C:\x` | a backslash separates folders on Windows |
| U+FF0E, U+2024, U+FF0F | forms of dots and slashes that some file systems fold |
| NUL, line ends, bidirectional marks | controls: they cut or disguise a name |
"""

import re
import unicodedata
from typing import Final

ROOT: Final = "/memories"

MAX_NAME_BYTES: Final = 255
"""The longest name that common file systems take."""
MAX_DEPTH: Final = 16
"""Folders below the root: more than an order needs, few enough to have all open at once."""

_PERCENT_ENCODED: Final = re.compile(r"%[0-9A-Fa-f]{2}")

_CONTROLS: Final = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})
"""Unicode's controls, invisible marks, half surrogates and unassigned: none is part of a name."""


class MemoryToolError(Exception):
    """The command was refused: the message is what the model is answered."""


def names_of(path: str) -> tuple[str, ...]:
    """Return the names below the root, none for the root itself. Raises MemoryToolError.

    Names are in the composed form (NFC), so that both spellings of an accent are one file.
    """
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise MemoryToolError(f"Error: Invalid path {shown(path)}: it must start with {ROOT}")
    names = tuple(
        unicodedata.normalize("NFC", name) for name in path[len(ROOT) :].split("/") if name
    )
    if len(names) > MAX_DEPTH:
        raise MemoryToolError(f"Error: Invalid path: at most {MAX_DEPTH} names below {ROOT}")
    for name in names:
        if reason := _refusal(name):
            raise MemoryToolError(f"Error: Invalid path {shown(path)}: {reason}")
    return names


def _refusal(name: str) -> str | None:
    folded = unicodedata.normalize("NFKC", name)
    if {name, folded} & {".", ".."}:
        return "`.` and `..` are not allowed"
    if any(mark in text for text in (name, folded) for mark in ("/", "\\")):
        return "names are separated by / only"
    if _PERCENT_ENCODED.search(folded):
        return "percent-encoded characters are not allowed"
    if any(unicodedata.category(character) in _CONTROLS for character in name):
        return "control characters are not allowed"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"a name has at most {MAX_NAME_BYTES} bytes"
    return None


def shown(text: str, limit: int = 200) -> str:
    """Return a model's own words for an answer: without controls, and not too long."""
    clean = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(each) in _CONTROLS else each
        for each in text[:limit]
    )
    return clean if len(text) <= limit else f"{clean}..."
