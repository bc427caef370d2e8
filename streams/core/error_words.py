"""Runtimes' error codes in plain words, for screens and alerts; records keep them as reported."""

import re
from typing import Final

_WORDS: Final = {
    "too_few_groups": "too few messages to compact",
    "prompt_too_long": "the prompt is too long",
}

_CODE: Final = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+\Z")


def error_words(error: str) -> str:
    """Return an error for people: a code in words, any other text as it is."""
    if error in _WORDS:
        return _WORDS[error]
    return error.replace("_", " ") if _CODE.match(error) else error
