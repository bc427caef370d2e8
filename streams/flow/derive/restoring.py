"""Reads a partition's changelog into its state, and shows the progress."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import structlog

from streams.flow.derive.partition_state import PartitionState
from streams.flow.derive.state_store import StateStore
from streams.ports import Clock, Telemetry

LOG_EVERY_S = 5.0
"""How often progress is logged: often enough to see that it advances, without flooding the log."""

logger = structlog.get_logger()


async def restore(
    state: PartitionState,
    partition: int,
    *,
    state_store: StateStore,
    telemetry: Telemetry,
    clock: Clock,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Read a partition's changelog into its empty state, chunk by chunk; it may be cancelled.

    `on_progress` is called after each chunk with the offsets done and in all.

    Raises VersionError or ConfigError for what cannot be taken over, RetryError if the log is away,
    StopError without room.
    """
    label, began = str(partition), clock.monotonic_s()
    logged, entries, done, total = began, 0, 0, 0
    try:
        async with aclosing(state_store.restore(partition)) as chunks:
            async for chunk in chunks:
                state.add(chunk.entries)
                done, total = chunk.done, chunk.total
                entries += len(chunk.entries)
                telemetry.gauge("derive_restore_ratio", done / total, partition=label)
                telemetry.count("derive_restored_entries", len(chunk.entries), partition=label)
                now = clock.monotonic_s()
                if now - logged >= LOG_EVERY_S:
                    logged = now
                    logger.info(
                        "restoring",
                        partition=partition,
                        entries=entries,
                        offsets=done,
                        of_offsets=total,
                        percent=round(100 * done / total, 1),
                        entries_per_s=round(entries / (now - began)),
                        sessions=state.stored_sessions,
                        remaining_s=round((now - began) * (total / done - 1)),
                    )
                on_progress(done, total)
                # A poll that finds something returns without waiting.
                await asyncio.sleep(0)
        for _ in state.load():
            on_progress(done, total)
            await asyncio.sleep(0)
    finally:
        telemetry.forget("derive_restore_ratio", partition=label)
    if entries:
        seconds = clock.monotonic_s() - began
        logger.info(
            "restored",
            partition=partition,
            entries=entries,
            sessions=state.sessions,
            seconds=round(seconds, 3),
            entries_per_s=round(entries / seconds) if seconds > 0 else None,
        )
