"""Which generation of the views is active, and which one is being built."""

import asyncio

import structlog

from contextgauge.errors import FormerViewsError
from streams.ports import Clock, Generations, ViewStore

logger = structlog.get_logger()


class GenerationTracker:
    """The store's generations as of the last `refresh`, and a way to wait for a change."""

    def __init__(self, store: ViewStore, clock: Clock, worker: str | None = None) -> None:
        self._store, self._clock = store, clock
        self._worker = worker or "worker"
        self._changed = asyncio.Event()
        self._newest = 0
        self.current = Generations(None, None)

    async def refresh(self) -> None:
        """Read the store's generations, and wake who waits for a change."""
        stored = await self._store.generations()
        if stored.next is not None and stored.active is not None and stored.next <= stored.active:
            # Begun by a worker that had not seen yet that this number is active.
            await self._store.activate(stored.next, stored.build)
            stored = await self._store.generations()
        if stored == self.current:
            return
        logger.info("generations", active=stored.active, next=stored.next)
        self.current = stored
        self._newest = max(self._newest, stored.active or 0)
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_change(self) -> None:
        """Wait for the next change that `refresh` finds."""
        await self._changed.wait()

    async def begin_next(self) -> None:
        """Begin the next generation, unless there is one, with a number that was never active here.

        Another worker may have seen the same number before the store was emptied, so a build has
        a name too.
        """
        build = f"{self._clock.now_ms()}-{self._worker}"
        await self._store.begin_next(self._newest + 1, build)
        await self.refresh()

    async def activate(
        self,
        generation: int,
        build: str,
        partitions: int,
        *,
        topic_id: str = "",
    ) -> None:
        """Make a generation active if all its partitions have caught up, in this build.

        One that caught up with another topic than that of the id, where both are known, has not.
        """
        stored = await self._store.generations()
        if (stored.next, stored.build) != (generation, build):
            return
        for partition in range(partitions):
            try:
                position = await self._store.position(generation, partition)
            except FormerViewsError:
                return
            if position and not position.log.is_of(topic_id):
                return
        await self._store.activate(generation, build, partitions)
        await self.refresh()
