"""A stand-in for the model that writes summaries, and the rule of forty lines. No package needed.

`diligent` misses nothing that it is shown: it repeats the former summary, each turn of the user
and the first 200 characters of each text of the agent. A model keeps less.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

Speaker: TypeAlias = Literal["User", "Agent", "Error", "Summary"]

SPEAKERS: Final[tuple[Speaker, ...]] = ("User", "Agent", "Error")


class Line(NamedTuple):
    """What one message says."""

    speaker: Speaker
    text: str


def diligent(lines: Sequence[Line], limit_characters: int | None = None) -> str:
    """Return a summary; under a limit, the oldest of what the agent said goes first."""
    texts = [
        each.text
        if each.speaker == "Summary"
        else written(each, None if each.speaker == "User" else 200)
        for each in lines
        if each.speaker != "Error" and each.text.strip()
    ]
    agent = [index for index, text in enumerate(texts) if text.startswith("Agent: ")]
    while limit_characters is not None and sum(map(len, texts)) + len(texts) > limit_characters:
        if not agent:
            return "\n".join(texts)[-limit_characters:]
        texts[agent.pop(0)] = ""
    return "\n".join(each for each in texts if each)


def written(line: Line, characters: int | None) -> str:
    """Return a line of a summary: who said what."""
    return f"{line.speaker}: {line.text.strip()[:characters]}"


def of_user(summary: str) -> str:
    """Return what a summary says that the user said."""
    parts: list[str] = []
    user = False
    for line in summary.splitlines():
        speaker = line.partition(": ")[0]
        user = speaker == "User" or (user and speaker not in SPEAKERS)
        parts += [line] * user
    return "\n".join(parts)
