"""Which generation of the views is active, and which one is being built."""

import asyncio

import structlog

from streams.ports import Clock, Generations, ViewStore

logger = structlog.get_logger()


class Watch:
    """What was last seen of the generations, and a way to wait for a change."""

    def __init__(self, store: ViewStore, clock: Clock, worker: str | None = None) -> None:
        self._store, self._clock = store, clock
        self._worker = worker or "worker"
        self._changed = asyncio.Event()
        self._newest = 0
        self.seen = Generations(None, None)

    async def look(self) -> None:
        """Look at the store, and wake who waits for a change."""
        found = await self._store.generations()
        if found.next is not None and found.active is not None and found.next <= found.active:
            # Left behind by a worker that ended between activating it and saying so.
            await self._store.activate(found.next, found.build)
            found = await self._store.generations()
        if found == self.seen:
            return
        logger.info("generations", active=found.active, next=found.next)
        self.seen = found
        self._newest = max(self._newest, found.active or 0, found.next or 0)
        self._changed.set()
        self._changed = asyncio.Event()

    async def change(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()

    async def begin(self) -> None:
        """Begin the next generation, unless there is one: with a number never seen here.

        Another worker may have seen it, before the store was emptied, so the build has a name too.
        """
        build = f"{self._clock.now_ms()}-{self._worker}"
        await self._store.begin_next(self._newest + 1, build)
        await self.look()

    async def activate(self, generation: int, build: str, partitions: int) -> None:
        """Make a generation active if all its partitions have caught up, in this build."""
        found = await self._store.generations()
        if (found.next, found.build) != (generation, build):
            return
        for partition in range(partitions):
            position = await self._store.position(generation, partition)
            if position is None or not position.caught_up or position.build != build:
                return
        await self._store.activate(generation, build)
        await self.look()
