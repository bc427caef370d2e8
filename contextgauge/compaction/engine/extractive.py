"""Summaries without a model: the conversation itself, newest first.

Code carries that across a compaction already (`carried`), so the extract adds nothing to it: it is
for the profiles that carry nothing.
"""

from collections.abc import Sequence
from typing import Final

from contextgauge.compaction.carried.digest import entries_of
from contextgauge.compaction.counting import CHARACTERS_PER_TOKEN
from contextgauge.compaction.messages import Message, Speaker
from contextgauge.compaction.ports import SummaryAnswer, SummaryRequest

_LINE_CHARACTERS: Final = 240
"""Of one message: its point, not its text."""

_LABELS: Final[dict[Speaker, str]] = {
    "user": "User",
    "agent": "Assistant",
    "tool": "Error",
    "data": "Data",
    "todos": "To do",
}


def extract(messages: Sequence[Message], limit_characters: int) -> str:
    """Return a line for each passage of the latest messages, oldest first."""
    lines: dict[str, None] = {}
    left = limit_characters
    for _, entry in reversed(entries_of(messages)):
        text = " ".join(entry.text[:_LINE_CHARACTERS].split())
        line = f"- {_LABELS[entry.speaker]}: {text}"
        if len(entry.text) > _LINE_CHARACTERS:
            line += "…"
        if line in lines:
            continue
        left -= len(line) + 1
        if left < 0:
            break
        lines[line] = None
    return "\n".join(reversed(lines))


class ExtractiveSummariser:
    """Needs no key and no network: the default where no other summariser is given."""

    @property
    def name(self) -> str:
        """What a receipt calls it."""
        return "extractive"

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        """Return the former summary, and an extract of the messages where code carries nothing."""
        limit = (request.target_tokens or request.max_tokens) * CHARACTERS_PER_TOKEN
        former = (request.previous or "").strip()
        if request.carried:  # the text that it becomes a part of has its own measure
            return SummaryAnswer(former, is_extract=True)
        new = extract(request.messages, limit) or "Nothing new."
        left = limit - len(new) - 1
        if len(former) > left:
            former = former[-left:].split("\n", 1)[-1] if left > 0 else ""
        return SummaryAnswer("\n".join(part for part in (former, new) if part), is_extract=True)
