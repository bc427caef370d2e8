"""Receipts: what a compaction did, step by step, in figures that can be added up."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from contextgauge.compaction.profiles import RungName, Window

Trigger: TypeAlias = Literal["auto", "manual"]

Strategy: TypeAlias = Literal["prune", "compact"]
"""Seed 004's two layers: what is shortened in place, and older messages that a summary replaces."""

StepName: TypeAlias = RungName | Literal["shorten-message", "floor"]


@dataclass(frozen=True, slots=True)
class LadderStep:
    """What one rung did. `tokens_*` are estimates of the active messages before and after it.

    `message_ids` are the messages that it changed or archived; `reason` says why it ran.
    """

    rung: StepName
    tokens_before: int
    tokens_after: int
    message_ids: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a compaction did.

    `tokens_before` is the size of the whole request that it began with, and `basis` says where
    that figure comes from; `tokens_after` is that size less the estimate of what was saved, until
    the next answer reports one. The figures of `steps` are of the messages alone.
    `number` counts the conversation's summaries, None where no message was archived.
    `pins` counts the numbered lines of the user's words in the compaction's text.
    `restored` texts follow the summary, `restore_omitted` names those without room.
    `summariser` wrote the summary (`floor`: deterministic), `failures` are those that did not.
    """

    trigger: Trigger
    tokens_before: int
    tokens_after: int
    basis: Literal["reported", "estimated"]
    window: Window
    target_tokens: int
    steps: tuple[LadderStep, ...]
    number: int | None = None
    messages_archived: int = 0
    archived_ids: tuple[str, ...] = ()
    summariser: str | None = None
    summary_input_tokens: int | None = None
    summary_cache_read_tokens: int | None = None
    summary_output_tokens: int | None = None
    pins: int = 0
    files: int = 0
    restored: int = 0
    restore_omitted: tuple[str, ...] = ()
    redacted_secrets: int = 0
    failures: tuple[str, ...] = ()
    duration_ms: int | None = None

    @property
    def strategy(self) -> Strategy:
        """How far the compaction went."""
        return "prune" if self.number is None else "compact"

    @property
    def tokens_saved(self) -> int:
        """Tokens by which the next request is smaller: an estimate."""
        return max(0, self.tokens_before - self.tokens_after)
