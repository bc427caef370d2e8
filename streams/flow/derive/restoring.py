"""Restoring a partition's state from its changelog, with progress.

It can be cancelled anywhere: nothing is written, and other tasks run after each chunk.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import structlog

from streams.flow.derive.partition_state import PartitionState
from streams.flow.derive.state_store import ChangelogChunk, StateStore
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
    """Read a partition's changelog into its empty state.

    `on_progress` is called after each chunk with the offsets done and in all.

    Raises VersionError or ConfigError for what cannot be taken over, RetryError if the log is away.
    """
    done = total = 0
    progress = _Progress(state, partition, telemetry, clock)
    try:
        async with aclosing(state_store.restore(partition)) as chunks:
            async for chunk in chunks:
                state.add(chunk.entries)
                progress.take(chunk)
                done, total = chunk.done, chunk.total
                on_progress(done, total)
                # A poll that finds something returns without waiting.
                await asyncio.sleep(0)
        for _ in state.load():
            on_progress(done, total)
            await asyncio.sleep(0)
    finally:
        progress.forget()
    progress.log_end()


class _Progress:
    """The progress of one restore."""

    def __init__(
        self, state: PartitionState, partition: int, telemetry: Telemetry, clock: Clock
    ) -> None:
        self._state, self._partition = state, partition
        self._telemetry, self._clock = telemetry, clock
        self._label = str(partition)
        self._began = self._logged = clock.monotonic_s()
        self._entries = 0

    def take(self, chunk: ChangelogChunk) -> None:
        """Count a chunk, and log the progress if that is due."""
        self._entries += len(chunk.entries)
        share = chunk.done / chunk.total
        self._telemetry.gauge("derive_restore_ratio", share, partition=self._label)
        self._telemetry.count("derive_restored_entries", len(chunk.entries), partition=self._label)
        now = self._clock.monotonic_s()
        if now - self._logged < LOG_EVERY_S:
            return
        self._logged = now
        seconds = now - self._began
        logger.info(
            "restoring",
            partition=self._partition,
            entries=self._entries,
            offsets=chunk.done,
            of_offsets=chunk.total,
            percent=round(100 * share, 1),
            entries_per_s=round(self._entries / seconds),
            sessions=self._state.stored_sessions,
            remaining_s=round(seconds * (1 / share - 1)),
        )

    def forget(self) -> None:
        """Stop reporting progress."""
        self._telemetry.forget("derive_restore_ratio", partition=self._label)

    def log_end(self) -> None:
        """Log what was restored and how fast; nothing for a new partition."""
        if not self._entries:
            return
        seconds = self._clock.monotonic_s() - self._began
        logger.info(
            "restored",
            partition=self._partition,
            entries=self._entries,
            sessions=self._state.sessions,
            seconds=round(seconds, 3),
            entries_per_s=round(self._entries / seconds) if seconds > 0 else None,
        )
