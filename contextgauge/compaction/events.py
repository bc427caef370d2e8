"""What a caller is called back with (seed 004's events, and the ones that they leave out)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, TypeVar

from contextgauge.compaction.engine.compaction_receipt import Receipt, Strategy
from contextgauge.compaction.profiles import Window
from contextgauge.errors import ConfigError
from contextgauge.records import Json

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ContextWarned:
    """The warning threshold was reached: once until the next compaction."""

    name: ClassVar[str] = "context-warning"
    tokens: int
    window: Window


@dataclass(frozen=True, slots=True)
class CompactionStarting:
    """An automatic compaction begins. `overflow`: the next request would not fit the window."""

    name: ClassVar[str] = "auto-compacting"
    tokens: int
    window: Window
    overflow: bool
    strategy: Strategy = "compact"


@dataclass(frozen=True, slots=True)
class CompactionDone:
    """A compaction took effect. `summary` is empty where no message was archived."""

    name: ClassVar[str] = "compaction-complete"
    receipt: Receipt
    summary: str = ""

    def seed_002(self) -> dict[str, Json]:
        """Return the fields of seed 002's `compactionEvent`; round 0 where nothing was archived."""
        return {
            "round": self.receipt.number or 0,
            "tokensBefore": self.receipt.tokens_before,
            "tokensAfter": self.receipt.tokens_after,
            "summaryContent": self.summary,
            "compactedMessageIds": list(self.receipt.archived_ids),
        }


@dataclass(frozen=True, slots=True)
class CompactionNotDone:
    """A compaction changed nothing; `reason` says why, in no word of the conversation.

    `retry_at_ms` is when its pause is over, in milliseconds since 1970.
    """

    name: ClassVar[str] = "compaction-failed"
    reason: str
    retry_at_ms: int | None


@dataclass(frozen=True, slots=True)
class ThresholdUnreachable:
    """The smallest possible request does not fit the window: no compaction can help.

    `fixed_tokens` is its size, `threshold_tokens` the usable window.
    """

    name: ClassVar[str] = "threshold-unreachable"
    fixed_tokens: int
    threshold_tokens: int


EngineEvent: TypeAlias = (
    ContextWarned | CompactionStarting | CompactionDone | CompactionNotDone | ThresholdUnreachable
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What an agent loop may have the engine call back.

    `on_event` is called with each event, in the agent's loop. `confirm` is asked before an
    automatic compaction: False leaves the conversation as it is until the user's next turn, or
    until a pause is over, or the request does not fit: then it is compacted without a summariser.
    `review` is shown a summary before it is used and returns it, changed
    or not, or None to refuse it (001); what is neither refuses too.
    `restore` gives texts that follow the summary, such as `restore_texts` makes, the most important
    first; what the profile's `restore_share` has no room for is left out. What a hook raises is
    logged: `confirm` then declines, `review` refuses, the others change nothing.
    """

    on_event: Callable[[EngineEvent], None] | None = None
    confirm: Callable[[CompactionStarting], Awaitable[bool]] | None = None
    review: Callable[[str], Awaitable[str | None]] | None = None
    restore: Callable[[], Sequence[str]] | None = None


async def answer_of(name: str, answer: Awaitable[_T]) -> _T:
    """Wait for a hook's answer. Raises ConfigError where the hook is no async function."""
    if not isinstance(answer, Awaitable):
        raise ConfigError(f"the hook {name!r} must be an async function: write `async def`")
    return await answer
