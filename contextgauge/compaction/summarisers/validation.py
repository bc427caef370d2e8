"""Whether an answer is a usable summary: pure, and without a word of the answer in its errors."""

import re
from typing import Final

from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.summary_checks import check_words
from contextgauge.compaction.ports import SummaryError
from contextgauge.compaction.summarisers.failures import OutOfTokens
from contextgauge.compaction.summarisers.model import Answer
from contextgauge.compaction.summarisers.prompts import Prompt

_LONGEST: Final = 2
"""An answer of more than so many times its limit, by estimate, ignored it."""

_REASONING: Final = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
"""Local models write it into their text."""


def usable_text(answer: Answer, prompt: Prompt, limit_tokens: int, user_words: str) -> str:
    """Return the summary. Raises SummaryError where the answer is none.

    `user_words` are the user's own turns: what stands there is no injection.
    """
    if answer.stop == "refusal":
        raise SummaryError("the model refused", final=True)
    if answer.stop == "cut":
        raise SummaryError("the answer broke off")
    texts = (_REASONING.sub("", each).strip() for each in answer.texts)
    text = "\n\n".join(each for each in texts if each)
    if answer.calls and (prompt.headings or not text):
        raise SummaryError("the model called tools instead of summarising")
    if not text:
        _raise_empty(answer)
    if answer.stop == "length" and prompt.headings:
        raise OutOfTokens(f"the summary was not complete after {prompt.max_tokens} tokens")
    if ESTIMATE.text(text) > _LONGEST * limit_tokens:
        raise SummaryError(f"the summary is longer than its limit of {limit_tokens} tokens")
    check_words(text, user_words)
    missing = [each for each in prompt.headings if not has_heading(text, each)]
    if missing:
        raise SummaryError(
            f"the answer is no summary: {len(missing)} of {len(prompt.headings)} sections missing"
        )
    return text


def has_heading(text: str, heading: str) -> bool:
    """Whether a text has a heading, of any level and case."""
    name = re.escape(heading.lstrip("# "))
    return re.search(rf"(?im)^[ \t]{{0,3}}#{{1,6}}[ \t]*\**{name}\b", text) is not None


def _raise_empty(answer: Answer) -> None:
    if answer.stop == "length":
        raise OutOfTokens("the model reached its limit before it wrote any text")
    if answer.reasoned or answer.texts:
        raise OutOfTokens("the model reasoned and wrote no text")
    raise SummaryError("the answer is empty")
