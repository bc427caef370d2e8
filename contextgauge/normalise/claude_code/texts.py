"""Texts of Claude Code by whose beginnings something is known: commands, their output, an error."""

import re
from typing import Final

UNCOUNTED: Final = ("<local-command-", "<command-")
"""Beginnings of user lines that are no messages (R23)."""

COMMAND: Final = re.compile(r"(?:<command-name>)?/(clear|compact)(?![\w:-])")
"""The two commands that matter; `/clear` only in its tag (R27), `/compact` also as typed (R24)."""

NOT_TYPED: Final = ("<", "Caveat:", "[Request interrupted")
"""Beginnings of what is written in the user's name: commands, their output, notices."""


def first_text(content: object) -> str:
    """Return the text with which a message begins."""
    if isinstance(content, list):
        content = content[0] if content else None
        content = content.get("text") if isinstance(content, dict) else None
    return content if isinstance(content, str) else ""


def beginning_of(text: str) -> str:
    """Return the beginning by which a command or its output is known; it may be empty."""
    command = COMMAND.match(text)
    if command is not None:
        return command[0]
    return next((each for each in UNCOUNTED if text.startswith(each)), "")


def names_hook_block(error: str) -> bool:
    """Return whether an error says that a hook blocked the compaction: nothing else does (R17)."""
    words = error.lower()
    return "hook" in words and "block" in words


def error_without_words(error: str) -> str:
    """Return what is read of an error."""
    return "blocked by a hook " if names_hook_block(error) else ""
