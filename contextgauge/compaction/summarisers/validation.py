"""Whether an answer is a summary: pure, by its form, and without a word of it in the errors.

A word is no reason to refuse a summary: it may be the conversation's, and `summary_checks` sees to
it that no line of a summary can pass for more than that.
"""

import re
from typing import Final

from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.summary_checks import is_empty
from contextgauge.compaction.ports import SummaryError
from contextgauge.compaction.summarisers.failures import OutOfTokens
from contextgauge.compaction.summarisers.model import Answer
from contextgauge.compaction.summarisers.prompts import Prompt

_LONGEST: Final = 2
"""An answer of more than so many times its limit, by estimate, ignored it."""

_REASONING: Final = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
"""Local models write it into their text."""


def usable_text(answer: Answer, prompt: Prompt, limit_tokens: int) -> str:
    """Return the summary of an answer that arrived whole. Raises SummaryError where it has none."""
    if answer.stop == "refusal":
        raise SummaryError("the model refused", final=True)
    texts = (_REASONING.sub("", each).strip() for each in answer.texts)
    text = "\n\n".join(each for each in texts if not is_empty(each))
    if answer.calls and (prompt.headings or not text):
        raise SummaryError("the model called tools instead of summarising")
    if not text:
        _raise_empty(answer)
    if answer.stop == "length" and prompt.headings:
        raise OutOfTokens(f"the summary was not complete after {prompt.max_tokens} tokens")
    if ESTIMATE.text(text) > _LONGEST * limit_tokens:
        raise SummaryError(f"the summary is longer than its limit of {limit_tokens} tokens")
    missing = [each for each in prompt.headings if not has_heading(text, each)]
    if 2 * len(missing) > len(prompt.headings):  # a section without content may be left out
        raise SummaryError(
            f"the answer is no summary: {len(missing)} of {len(prompt.headings)} sections missing"
        )
    return text


def has_heading(text: str, heading: str) -> bool:
    """Whether a line of a text begins with a heading's words, in whatever markup and case."""
    words = re.escape(heading.lstrip("# "))
    return re.search(rf"(?im)^(?:[^\w\n]|[\d_])*{words}\b", text) is not None


def _raise_empty(answer: Answer) -> None:
    if answer.stop == "length":
        raise OutOfTokens("the model reached its limit before it wrote any text")
    if answer.reasoned or answer.texts:
        raise OutOfTokens("the model reasoned and wrote no text")
    raise SummaryError("the answer is empty")
