"""The entries that a decision writes, and their ids: functions of what caused them."""

from collections.abc import Iterator
from typing import Final

from contextgauge.frozen import copied
from schemas.commands import CommandEntry, CommandTrigger, CompactionDecided, CompactRequested
from streams.core.control.ids import id_of
from streams.core.control.reasons import DecisionReason, FiredReason, IdleReason
from streams.core.control.sessions import ContextSize, SizeReading
from streams.core.control.thresholds import Sizes

REQUESTED_BY: Final = "control"
"""Who requests what is decided here."""


def is_hard(size: ContextSize, sizes: Sizes) -> bool:
    """Return whether a size is so large that no model is waited for."""
    return sizes.hard_at is not None and size.used_tokens >= sizes.hard_at


def idle_id(reading: SizeReading, reason: IdleReason) -> str:
    """Return the id of a decision that did not fire: one for its reason, window and epoch."""
    return id_of("idle", reading.session_id, reading.size.epoch, reading.size.window, reason)


def is_of_consequence(entry: CommandEntry) -> bool:
    """Return whether a former worker that had evaluated the reading would have written this."""
    data = entry.data
    return isinstance(data, CompactRequested) or (
        isinstance(data, CompactionDecided) and data.reason == "no_progress"
    )


def urgent_id(command_id: str) -> str:
    """Return the id of the entry that makes a command urgent."""
    return id_of("urgent", command_id)


def fired_entries(
    reading: SizeReading, sizes: Sizes, trigger: CommandTrigger, command_id: str, now_ms: int
) -> Iterator[CommandEntry]:
    """Give a decision that fired, and its request."""
    is_urgent = is_hard(reading.size, sizes)
    reason: FiredReason = "above_threshold"
    if is_urgent:
        reason = "hard_limit"
    elif trigger == "model_change":
        reason = "model_change"
    data = decided(reading, sizes, reason, command_id)
    yield CommandEntry(id_of("decided", command_id), now_ms, data)
    request = _request(reading, command_id, trigger, is_urgent=is_urgent)
    yield CommandEntry(id_of("requested", command_id), now_ms, request)


def urgent_entries(
    reading: SizeReading, sizes: Sizes, command_id: str, now_ms: int
) -> Iterator[CommandEntry]:
    """Give the decision and the request that make an open command urgent."""
    data = decided(reading, sizes, "hard_limit", command_id)
    yield CommandEntry(id_of("decided urgent", command_id), now_ms, data)
    request = _request(reading, command_id, "auto", is_urgent=True)
    yield CommandEntry(urgent_id(command_id), now_ms, request)


def decided(
    reading: SizeReading, sizes: Sizes | None, reason: DecisionReason, command_id: str | None
) -> CompactionDecided:
    """Return a decision with its figures; without a command, it did not fire."""
    return copied(
        CompactionDecided,
        reading.size,
        session_id=reading.session_id,
        fired=command_id is not None,
        reason=reason,
        command_id=command_id,
        cause_id=reading.record.id,
        threshold_tokens=None if sizes is None else sizes.compact_at,
    )


def _request(
    reading: SizeReading, command_id: str, trigger: CommandTrigger, *, is_urgent: bool
) -> CompactRequested:
    return CompactRequested(
        session_id=reading.session_id,
        command_id=command_id,
        trigger=trigger,
        requested_by=REQUESTED_BY,
        cause_id=reading.record.id,
        urgent=is_urgent,
    )
