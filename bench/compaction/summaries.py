"""Stand-ins for the model that writes summaries: the same for every contender, with one limit.

No key is needed, and nothing is measured of a model. What a real one keeps lies between the two:

- `even` prefers nothing: an even sample of the lines of all that it is given, the former summary
  included. So what is old is thinned once a round.
- `careful` does what the prompts of all contenders ask for: sentences of the user with words of a
  rule or a change first, then the user's other sentences, then the rest, the newest first.

Both keep the order of the conversation, and never write more than the limit.
"""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

from bench.compaction.calls import argument
from contextgauge.compaction.counting import CHARACTERS_PER_TOKEN
from contextgauge.compaction.messages import Message
from contextgauge.compaction.ports import SummaryAnswer, SummaryRequest

Style: TypeAlias = Literal["even", "careful"]

STYLES: Final[tuple[Style, ...]] = ("even", "careful")

StandIn: TypeAlias = Callable[[Sequence[Message], str, int], str]
"""Writes a summary of messages and a former summary, of at most so many tokens."""

_LINE_CHARACTERS: Final = 240
_FENCED: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_RULE: Final = re.compile(
    r"(?i)\b(?:must|never|always|only|don't|do not|has to|have to|hands off|without|keep|stay\w*|"
    r"limit|above|below|within|longer|at most|rather|approv\w+|use|instead|after all|from now|"
    r"now|new|from today|changed|moved|raise|switch|correction|rename)\b|\d{3}"
)


def even(messages: Sequence[Message], former: str, limit_tokens: int) -> str:
    """Return an even sample of the input."""
    lines = _lines(messages, former)
    salt = str(len(lines))

    def chance(at: int) -> int:
        return zlib.crc32(f"{salt}|{at}|{lines[at]}".encode())

    return _within(lines, sorted(range(len(lines)), key=chance), limit_tokens)


def careful(messages: Sequence[Message], former: str, limit_tokens: int) -> str:
    """Return rules and changes of the user, then what there is room for."""
    lines = _lines(messages, former)

    def rank(at: int) -> tuple[int, int]:
        user = lines[at].startswith("- User: ")
        return (0 if user and _RULE.search(lines[at]) else 1 if user else 2, -at)

    return _within(lines, sorted(range(len(lines)), key=rank), limit_tokens)


STAND_INS: Final[dict[Style, StandIn]] = {"even": even, "careful": careful}


class StandInSummariser:
    """A stand-in as a summariser of the engine's strategies."""

    def __init__(self, style: Style) -> None:
        self._write = STAND_INS[style]

    @property
    def name(self) -> str:
        """What a receipt calls it."""
        return "stand-in"

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        """Return what the stand-in writes."""
        text = self._write(request.messages, request.previous or "", request.max_tokens)
        return SummaryAnswer(text)


def _within(lines: Sequence[str], order: Sequence[int], limit_tokens: int) -> str:
    left = limit_tokens * CHARACTERS_PER_TOKEN
    taken: list[int] = []
    for at in order:
        if len(lines[at]) < left:
            taken.append(at)
            left -= len(lines[at]) + 1
    return "\n".join(lines[at] for at in sorted(taken))


def _lines(messages: Sequence[Message], former: str) -> list[str]:
    """Return a line for each sentence and call; of equal ones the last."""
    lines = [line for line in former.splitlines() if line.startswith("- ")]
    for message in messages:
        lines += [line[:_LINE_CHARACTERS] for line in _lines_of(message)]
    return list(reversed(dict.fromkeys(reversed(lines))))


def _lines_of(message: Message) -> Iterator[str]:
    if message.role == "user":
        for sentence in _SENTENCE_END.split(_FENCED.sub("", message.text)):
            if sentence.strip():
                yield f"- User: {sentence.strip()}"
    elif message.role == "assistant":
        if text := message.text.strip():
            yield f"- Agent: {_SENTENCE_END.split(text)[0]}"
        for call in message.calls:
            about = argument(call, "path") or argument(call, "command")
            yield f"- Agent: {call.name} {about}"
    for result in message.results:
        if result.is_error:
            yield f"- Error: {' '.join(result.text[:120].split())}"
