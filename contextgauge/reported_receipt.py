"""What a boundary's message reports of its compaction, next to sizes and duration."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from contextgauge.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedReceipt:
    """The part of a compaction's receipt that its boundary reports; null: it does not.

    `command_id`, `command_attempt`, `reason` and `cause_id` are those of the control plane: the
    command that asked for it, why, and the id of the record that it was asked for because of.
    `summary_*_tokens` are of the calls that wrote the summary; input includes what was read from
    the cache, and written to it. `pins_carried` counts the user's turns that were carried over.
    """

    command_id: str | None = None
    command_attempt: int | None = None
    reason: str | None = None
    cause_id: str | None = None
    summary_input_tokens: int | None = None
    summary_cache_read_tokens: int | None = None
    summary_output_tokens: int | None = None
    messages_archived: int | None = None
    pins_carried: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReceipt(ReportedReceipt):
    """A receipt with what the summary's calls wrote to the cache, of it for an hour.

    In records these are fields of the boundary, left out where they are null.
    """

    summary_cache_creation_tokens: int
    summary_cache_creation_1h_tokens: int | None = None
