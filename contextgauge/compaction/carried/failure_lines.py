"""What a tool's result says of a failure: by its flag, or by how programs say that they failed."""

import re
from typing import Final

_SEARCHED_CHARACTERS: Final = 4_000
"""Of a result's beginning and end: one of them has the reason of a failure."""

_STATUS: Final = re.compile(r"(?i)\bexit(?:ed)?[ _]?(?:with )?(?:code|status)[\"']?[ :=]{1,3}[1-9]")
_FAILURES: Final = (
    re.compile(r"(?m)^(?:[\w.]*(?:Error|Exception)|error(?:\[\w+\])?|fatal|panic|FAILED)[ :(]"),
    _STATUS,
)
"""How programs say that they failed, what says why first; formats without a flag for it have only
that."""

_REST: Final = "0123456789 ,;.()"


def failure_in(text: str, *, is_error: bool) -> str:
    """Return what a result says of a failure, from the line on that says it; else nothing."""
    whole = text
    if len(text) > 2 * _SEARCHED_CHARACTERS:
        text = f"{text[:_SEARCHED_CHARACTERS]}\n{text[-_SEARCHED_CHARACTERS:]}"
    match = next(filter(None, (each.search(text) for each in _FAILURES)), None)
    if match is not None:
        return text[text.rfind("\n", 0, match.start()) + 1 :].strip()
    return whole.strip() if is_error else ""


def reasons_in(failure: str) -> list[str]:
    """Return the lines of a failure that say more than that a program failed."""
    return [line.strip() for line in failure.splitlines() if _STATUS.sub("", line).strip(_REST)]
