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
            # Begun by a worker that had not seen yet that this number is active.
            await self._store.activate(found.next, found.build)
            found = await self._store.generations()
        if found == self.seen:
            return
        logger.info("generations", active=found.active, next=found.next, held=found.held)
        self.seen = found
        self._newest = max(self._newest, found.active or 0)
        self._changed.set()
        self._changed = asyncio.Event()

    async def change(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()

    async def begin(self) -> None:
        """Begin the next generation, unless there is one: with a number that was never active here.

        Another worker may have seen it, before the store was emptied, so the build has a name too.
        One that is held for a comparison is no longer: there is nothing whole to compare it with.
        """
        await self._store.begin_next(self._newest + 1, self.named())
        await self.look()
        if self.seen.held and self.seen.next is not None:
            logger.warning(
                "the generation that is being built becomes active without a comparison",
                generation=self.seen.next,
            )
            await self._store.release(self.seen.next, self.seen.build)
            await self.look()

    def named(self) -> str:
        """Return a name for a build that begins now."""
        return f"{self._clock.now_ms()}-{self._worker}"

    async def activate(
        self, generation: int, build: str, partitions: int, *, compared: bool = False
    ) -> None:
        """Make a generation active if all its partitions have caught up, in this build.

        One that is held must be `compared`, unless there is none that it could be compared with.
        """
        found = await self._store.generations()
        if (found.next, found.build) != (generation, build):
            return
        if found.held and found.active is not None and not compared:
            return
        for partition in range(partitions):
            position = await self._store.position(generation, partition)
            if position is None or not position.caught_up or position.build != build:
                return
        await self._store.activate(generation, build)
        await self.look()
