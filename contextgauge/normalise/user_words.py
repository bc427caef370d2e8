"""Whose words a text in the user's role is: by its whole shape, from the marks of all runtimes.

Never by words within a person's prose: what no mark describes from end to end is the person's.
Content of a tool or file cannot end the text that it stands in, so it cannot become a person's.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from contextgauge.normalise.adapter import ANY_TEXT
from contextgauge.normalise.runtimes import MARKS


class SplitText(NamedTuple):
    """A text, taken apart: what a person wrote in it, byte for byte, and what a harness did."""

    of_user: str
    of_harness: str


def words_of(texts: Sequence[str]) -> list[SplitText]:
    """Return whose words each text of one message is."""
    shapes, headings = _shapes(), _headings()
    words: list[SplitText] = []
    rest: re.Pattern[str] | None = None
    for text in texts:
        for heading, what_follows in headings:
            if (match := heading.match(text, _begin(text))) is not None:
                rest = what_follows
                answer = rest.fullmatch(text, match.end())
                words.append(_taken_apart(text, answer))
                break
        else:
            if rest is not None:
                words.append(_taken_apart(text, rest.fullmatch(text)))
            elif (match := _whole(shapes, text)) is not None:
                words.append(_taken_apart(text, match))
            else:
                words.append(SplitText(text, ""))
    return words


def is_observation(text: str, answer: str, *, has_calls: bool) -> bool:
    """Whether a text in the user's role is what an action gave, by the answer right before it.

    A model that `has_calls` of tools does not act in its text: an answer that ends as an action of
    a protocol does explains it.
    """
    answer_end = len(answer.rstrip())
    return any(
        not (has_calls and shape.pattern == ANY_TEXT)
        and _whole(shape, text) is not None
        and after.search(answer, 0, answer_end) is not None
        for shape, after in _observations()
    )


def _begin(text: str) -> int:
    return len(text) - len(text.lstrip())


def _whole(shape: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the match of a text but for white space around it, which a shape may end with.

    In a pattern, white space around it would be tried at each of its characters.
    """
    begin = _begin(text)
    return shape.fullmatch(text, begin) or shape.fullmatch(text, begin, len(text.rstrip()))


def _taken_apart(text: str, match: re.Match[str] | None) -> SplitText:
    spans = [] if match is None else [match.span(each + 1) for each in range(match.re.groups)]
    spans = [(start, end) for start, end in spans if start < end]
    of_harness = "".join(
        text[start:end]
        for start, end in zip(
            (0, *(end for _, end in spans)),
            (*(start for start, _ in spans), len(text)),
            strict=True,
        )
    )
    return SplitText(" ".join(text[start:end] for start, end in spans), of_harness)


def _compiled(shape: str) -> re.Pattern[str]:
    return re.compile(shape, re.DOTALL)


@cache
def _shapes() -> re.Pattern[str]:
    shapes = (each.shape for each in MARKS if each.after is None and each.rest is None)
    return _compiled("|".join(shapes))


@cache
def _headings() -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    return [
        (_compiled(each.shape), _compiled(each.rest)) for each in MARKS if each.rest is not None
    ]


@cache
def _observations() -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    return [
        (_compiled(each.shape), _compiled(each.after)) for each in MARKS if each.after is not None
    ]
