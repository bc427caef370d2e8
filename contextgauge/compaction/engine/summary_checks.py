"""Whether a summariser's words can be used: pure, and without one of them in its errors."""

import re
from typing import Final

from contextgauge.compaction.ports import SummaryError, SummaryRequest

_REFUSAL: Final = re.compile(
    r"(?i)\A\W*(?:i.?m (?:really |very )?sorry|(?:i )?apologi[sz]e|as an ai|sorry"
    r"|i (?:can.?t|cannot|won.?t|am (?:unable|not able)))\b"
)
_REFUSAL_CHARACTERS: Final = 600
"""Refusals are short; a summary may begin with such a sentence too."""

_CONTROL: Final = re.compile(
    r"(?i)<\|[a-z_]{2,30}\|>"
    r"|</?(?:system(?:[-_](?:reminder|prompt|context-management))?|context-management"
    r"|function_calls|function_results)\b[^>\n]{0,80}>"
    r"|</?data-[0-9a-f]{12}\b"
    r"|\[/?INST\]|<</?SYS>>"
    r"|(?m:^[ \t]*Human:)"
)
"""What separates turns or names an authority, in prompts of ours and of others."""

_OVERRIDE: Final = re.compile(
    r"(?i)\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}"
    r"\b(?:all|any|previous|prior|earlier|above|preceding)\b[^.\n]{0,40}"
    r"\b(?:instructions?|prompts?|rules|constraints|directions)\b"
)

_HEADING: Final = re.compile(r"(?m)^[ \t]{0,3}#{1,2}(?=[ \t])")


def user_words(request: SummaryRequest) -> str:
    """Return the user's own turns: what stands there is no injection."""
    return "\n".join((request.task, *(m.text for m in request.messages if m.is_user_turn)))


def check_words(text: str, words_of_user: str) -> None:
    """Refuse a refusal, markers of turns and orders. Raises SummaryError."""
    if len(text) < _REFUSAL_CHARACTERS and _REFUSAL.match(text):
        raise SummaryError("the model refused", final=True)
    known = words_of_user.casefold()
    for pattern, what in ((_CONTROL, "markers of turns"), (_OVERRIDE, "an order to the agent")):
        for match in pattern.finditer(text):
            if match[0].casefold() not in known:
                raise SummaryError(f"the summary contains {what}, which the user did not write")


def below_own_headings(prose: str) -> str:
    """Return a summary without headings of the first two levels."""
    return _HEADING.sub("###", prose)
