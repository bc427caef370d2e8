"""Facts that a conversation holds, and how is told whether a context holds them too."""

from dataclasses import dataclass
from typing import Final

from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.messages import FormatName, Message

KINDS: Final = (
    "terse", "implicit", "correction", "newest", "path",
    "decision", "answer", "todo", "fix", "spec",
)  # fmt: skip

NEAR: Final = 700
"""Characters within which an answer has to follow its question."""


@dataclass(frozen=True)
class Fact:
    """What has to be kept: `needles` in order; `ordered` ones near each other.

    `old` are values that a later one replaced. `question` asks for the fact without quoting it.
    `place` says where it was planted.
    """

    kind: str
    needles: tuple[str, ...]
    question: str
    place: str
    old: tuple[str, ...] = ()
    ordered: bool = False

    def is_in(self, text: str) -> bool:
        """Whether a context holds the fact."""
        if not self.ordered:
            return all(each in text for each in self.needles)
        first, second = self.needles
        index = text.find(first)
        while index >= 0:
            if second in text[(end := index + len(first)) : end + NEAR]:
                return True
            index = text.find(first, index + 1)
        return False

    def is_answered_by(self, text: str) -> bool:
        """Whether a text answers the question: how an error was fixed, without the error."""
        needles = self.needles[-1:] if self.kind == "fix" else self.needles
        return all(each in text for each in needles)

    def stale(self, text: str) -> bool:
        """Whether an old value stands in a context with no newer one after it."""
        newest = text.rfind(self.needles[-1])
        return any(text.rfind(each) > newest for each in self.old)


@dataclass(frozen=True)
class Conversation:
    """Messages, what is to be known of them, and orders in data that pose as the user's."""

    name: str
    format: FormatName
    messages: tuple[Message, ...]
    facts: tuple[Fact, ...]
    orders: tuple[str, ...]

    @property
    def tokens(self) -> int:
        """The estimate of all messages."""
        return sum(map(ESTIMATE.message, self.messages))
