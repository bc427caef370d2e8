"""Restoring a partition's state from its changelog, told as it goes.

It can be cancelled anywhere: nothing is written, and after each stretch others have their turn.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import structlog

from streams.flow.derive.partition_state import PartitionState
from streams.ports import Clock, Restored, StateStore, Telemetry

TELL_EVERY_S = 5.0
"""How often a restore says how far it is: often enough to see that it lives, and no flood."""

logger = structlog.get_logger()


async def restore(
    state: PartitionState,
    partition: int,
    *,
    state_store: StateStore,
    telemetry: Telemetry,
    clock: Clock,
    got_on: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Read a partition's changelog into its empty state.

    `got_on` hears after each stretch how many of how many offsets are done.

    Raises VersionError or ConfigError for what cannot be taken over, RetryError if the log is away.
    """
    done = total = 0
    progress = _Progress(state, partition, telemetry, clock)
    try:
        async with aclosing(state_store.restore(partition)) as stretches:
            async for stretch in stretches:
                state.add(stretch.entries)
                progress.take(stretch)
                done, total = stretch.done, stretch.total
                got_on(done, total)
                # A poll that finds something returns without waiting.
                await asyncio.sleep(0)
        for _ in state.load():
            got_on(done, total)
            await asyncio.sleep(0)
    finally:
        progress.forget()
    progress.tell_end()


class _Progress:
    """How far one restore is."""

    def __init__(
        self, state: PartitionState, partition: int, telemetry: Telemetry, clock: Clock
    ) -> None:
        self._state, self._partition = state, partition
        self._telemetry, self._clock = telemetry, clock
        self._label = str(partition)
        self._began = self._told = clock.monotonic_s()
        self._entries = 0

    def take(self, stretch: Restored) -> None:
        """Take a stretch into account, and say how far it is if that is due."""
        self._entries += len(stretch.entries)
        share = stretch.done / stretch.total
        self._telemetry.gauge("derive_restore_ratio", share, partition=self._label)
        self._telemetry.count(
            "derive_restored_entries", len(stretch.entries), partition=self._label
        )
        now = self._clock.monotonic_s()
        if now - self._told < TELL_EVERY_S:
            return
        self._told = now
        seconds = now - self._began
        logger.info(
            "restoring",
            partition=self._partition,
            entries=self._entries,
            offsets=stretch.done,
            of_offsets=stretch.total,
            percent=round(100 * share, 1),
            entries_per_s=round(self._entries / seconds),
            sessions=self._state.stored_sessions,
            remaining_s=round(seconds * (1 / share - 1)),
        )

    def forget(self) -> None:
        """Stop telling how far it is."""
        self._telemetry.forget("derive_restore_ratio", partition=self._label)

    def tell_end(self) -> None:
        """Say what was restored, and at which rate; of a new partition there is nothing to say."""
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
