"""The document of one compaction, and its receipt: a part of the views (`views.py`)."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from contextgauge.record_words import DurationSource, TokenSource, Trigger
from contextgauge.records import Json

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from contextgauge.frozen import dataclass

VIEW_VERSION = 3
"""Version of every document of the views; a reader that meets another must not guess.

2 has `unknown_trigger` where 1 had another name. 3 has durations that are reported after their
boundary, where a compaction's duration is from, sizes by trigger, and finer buckets.
"""

TokensAfterSource: TypeAlias = Literal["next_reading"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionReceipt:
    """What a compaction was asked for, cost and did. `id` is that of the boundary's record.

    Each figure has the name of the record that reports it first: of `compact_boundary` and its
    `receipt`, `compaction_timing`, `compaction_complete` or `pins_checked`. Null is unknown, or
    not known yet. `tokens_after` is measured by the next response, as its source says;
    `cache_rewrite_tokens` is what this one wrote to the cache.
    """

    id: str
    trigger: Trigger | None
    reason: str | None
    command_id: str | None
    command_attempt: int | None
    cause_id: str | None
    tokens_before: int | None
    tokens_before_source: TokenSource | None
    tokens_after: int | None
    tokens_after_source: TokensAfterSource | None
    tokens_saved: int | None
    summary_input_tokens: int | None
    summary_cache_read_tokens: int | None
    summary_output_tokens: int | None
    cache_rewrite_tokens: int | None
    duration_ms: int | None
    duration_source: DurationSource | None
    messages_archived: int | None
    pins_carried: int | None
    pins_kept: int | None
    pins_lost: int | None
    lost_pins: tuple[str, ...] | None
    summary_cache_creation_tokens: int | None = None
    summary_cache_creation_1h_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """One compaction that succeeded, whole. `number` counts those of its chain, from 1.

    `tokens_after` and `tokens_saved` are measured by the chain's next reading; `complete` means
    that this has happened, or that it can no longer happen. `inherited`: it was another session's,
    with whose history this one began (R30).
    """

    version: int = VIEW_VERSION
    chain: str
    number: int
    boundary_id: str
    attempt_id: str | None
    trigger: Trigger | None
    time_ms: int | None
    tokens_before: int | None
    tokens_before_source: TokenSource | None
    post_tokens: int | None
    tokens_after: int | None
    tokens_saved: int | None
    duration_ms: int | None
    duration_source: DurationSource | None
    messages_since_last: int
    complete: bool
    metadata: dict[str, Json]
    summary: str | None
    receipt: CompactionReceipt
    inherited: bool = False
