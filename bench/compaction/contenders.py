"""What is compared: something that a session's messages are given to, and that compacts them."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from bench.compaction.summaries import STAND_INS, StandIn, Style
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.messages import (
    Carried,
    ContextCompaction,
    FileUse,
    Message,
    Role,
    Text,
)


class Budget(NamedTuple):
    """What a compaction may leave, tokens: the same for all contenders.

    `tokens` is the target for all messages, a share of `window_tokens`. `summary_tokens` of them
    are for a summary, at most.
    """

    window_tokens: int
    tokens: int
    summary_tokens: int

    @property
    def recent_tokens(self) -> int:
        """What is left for messages that stay as they are."""
        return self.tokens - self.summary_tokens


class Session(Protocol):
    """One conversation in the hands of one contender."""

    @property
    def active(self) -> Sequence[Message]:
        """What the model would see."""
        ...

    def extend(self, messages: Sequence[Message]) -> None:
        """Add messages of the conversation."""
        ...

    def compact(self) -> None:
        """Compact now."""
        ...


Kind: TypeAlias = Literal["ours", "rung", "seed", "other", "control"]


class Contender(NamedTuple):
    """A way to compact. `begin` starts a session; `source` says what it is or whose rule."""

    name: str
    kind: Kind
    source: str
    begin: Callable[[Budget, Style], Session]


class Rule(Protocol):
    """A selection rule: what becomes of the messages, the system's left out."""

    def __call__(
        self, messages: Sequence[Message], budget: Budget, write: StandIn
    ) -> Sequence[Message]:
        """Return the messages after a compaction; the same ones where nothing can be done."""
        ...


class RuleSession:
    """A session that a rule compacts. The system's messages always stay."""

    def __init__(self, rule: Rule, budget: Budget, style: Style) -> None:
        self._rule = rule
        self._budget = budget
        self._write = STAND_INS[style]
        self._active: list[Message] = []

    @property
    def active(self) -> Sequence[Message]:
        """What the model would see."""
        return self._active

    def extend(self, messages: Sequence[Message]) -> None:
        """Add messages of the conversation."""
        self._active += messages

    def compact(self) -> None:
        """Apply the rule."""
        system = [each for each in self._active if each.role == "system"]
        others = [each for each in self._active if each.role != "system"]
        self._active = [*system, *self._rule(others, self._budget, self._write)]


def tokens_of(messages: Sequence[Message]) -> int:
    """Return the estimate of messages, tokens."""
    return sum(map(ESTIMATE.message, messages))


def summary_message(
    prose: str,
    *,
    before: str = "",
    after: str = "",
    role: Role = "user",
    files: tuple[FileUse, ...] = (),
) -> Message:
    """Return a message with a summary and the text that a rule puts around it.

    `files` are remembered for the rule's next round.
    """
    summary = before + prose + after
    carried = Carried(files=files)
    marker = ContextCompaction(1, 0, summary, 0, 0, prose=prose, carried=carried)
    return Message(role, (marker,))


def former_summary(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """Return the prose of former summaries among messages, and the other messages."""
    prose = [each.compaction.prose for each in messages if each.compaction is not None]
    return "\n".join(prose), [each for each in messages if each.compaction is None]


def write_summary(messages: Sequence[Message], write: StandIn, limit_tokens: int) -> str:
    """Return a new summary of messages, former summaries among them included."""
    former, others = former_summary(messages)
    return write(others, former, limit_tokens)


def text_message(role: Role, text: str) -> Message:
    """Return a message with a text."""
    return Message(role, (Text(text),))
