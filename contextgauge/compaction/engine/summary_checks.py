"""A summariser's prose as part of a compaction's text, where nothing in it may look like code's.

Whatever a summary says, it is not refused for its words: they may be those of the conversation, in
any language. Instead each of its lines is quoted, so none can be a heading, a numbered line or a
frame of the lines around it, in any notation.
"""

from collections.abc import Sequence
from typing import Final

_QUOTE: Final = ">"
"""Markdown's mark of a quotation: models read it as the words of another."""


def is_empty(text: str) -> bool:
    """Whether a text has no letter and no digit of any script: dots, dashes, what is invisible."""
    return not any(map(str.isalnum, text))


def demoted(prose: str) -> str:
    """Return a summary with every line quoted; whatever a reader may take for a line's end ends it.

    One that is quoted whole already stays as it is, and an empty one empty.
    """
    lines = prose.splitlines()
    if _are_quoted(lines):
        return "\n".join(lines)
    return "\n".join(f"{_QUOTE} {line}".rstrip() for line in lines)


def undemoted(text: str) -> str:
    """Return a summary as it was written; one that is not quoted whole is."""
    lines = text.splitlines()
    if not _are_quoted(lines):
        return text
    return "\n".join(line.removeprefix(_QUOTE).removeprefix(" ") for line in lines)


def _are_quoted(lines: Sequence[str]) -> bool:
    return all(line.startswith(_QUOTE) for line in lines)
