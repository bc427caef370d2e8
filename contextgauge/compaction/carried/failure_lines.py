"""What a tool's result says of a failure: by its flag, or by how programs say that they failed."""

import re
from typing import Final

_SEARCHED_CHARACTERS: Final = 4_000
"""Of a result's beginning and end: one of them has the reason of a failure."""

_FAILURES: Final = (
    re.compile(r"(?m)^(?:[\w.]*(?:Error|Exception)|error(?:\[\w+\])?|fatal|panic|FAILED)[ :(]"),
    re.compile(r"(?i)\bexit(?:ed)?[ _]?(?:with )?(?:code|status)[\"']?[ :=]{1,3}[1-9]"),
)
"""How programs say that they failed, what says why first; formats without a flag for it have only
that."""


def failure_in(text: str, *, is_error: bool) -> str:
    """Return what a result says of a failure, from the line on that says it; else nothing."""
    whole = text
    if len(text) > 2 * _SEARCHED_CHARACTERS:
        text = f"{text[:_SEARCHED_CHARACTERS]}\n{text[-_SEARCHED_CHARACTERS:]}"
    match = next(filter(None, (each.search(text) for each in _FAILURES)), None)
    if match is not None:
        return text[text.rfind("\n", 0, match.start()) + 1 :].strip()
    return whole.strip() if is_error else ""
