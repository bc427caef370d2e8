"""The view store in memory with faults: away, replies that are lost, writes that are lost."""

import copy

from contextgauge.errors import RetryError
from streams.edge.memory.view_store import MemoryPartition, MemoryViews
from streams.ports import ApplyResult, Generations, ViewChanges, ViewPosition


class FaultyViews(MemoryViews):
    """A view store whose faults a test switches on."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        """While true every call raises RetryError, and nothing happens."""
        self.lose_replies = 0
        """So many of the next batches are written, and then RetryError is raised."""

    def before_write(self, changes: ViewChanges) -> None:
        """Do what the test does where a batch is about to be written; this one does nothing."""

    def after_write(self) -> None:
        """Lose the reply, where it is to be lost."""
        if self.lose_replies:
            self.lose_replies -= 1
            raise RetryError("the view store in memory loses this reply")

    def snapshot(self) -> "FaultyViews":
        """Return a copy of all that is stored, to come back to with `restore`."""
        return copy.deepcopy(self)

    def restore(self, former: MemoryViews) -> None:
        """Go back in time, as a store does that lost its last writes."""
        self.partitions = copy.deepcopy(former.partitions)
        self.numbers = former.numbers

    def _check(self) -> None:
        if self.away:
            raise RetryError("the view store in memory is away")

    def _partition(self, generation: int, partition: int) -> MemoryPartition:
        self._check()
        return super()._partition(generation, partition)

    async def apply(
        self,
        generation: int,
        partition: int,
        *,
        expected: int | None,
        position: ViewPosition,
        changes: ViewChanges,
    ) -> ApplyResult:
        self.before_write(changes)
        result = await super().apply(
            generation, partition, expected=expected, position=position, changes=changes
        )
        self.after_write()
        return result

    async def start(self) -> None:
        self._check()

    async def generations(self) -> Generations:
        self._check()
        return await super().generations()

    async def begin_next(self, generation: int, build: str) -> None:
        self._check()
        await super().begin_next(generation, build)

    async def is_there(self, generation: int, partition: int) -> bool:
        self._check()
        return await super().is_there(generation, partition)

    async def activate(self, generation: int, build: str, partitions: int = 0) -> None:
        self._check()
        await super().activate(generation, build, partitions)

    async def drop(self, generation: int, partition: int, build: str | None = None) -> bool:
        self._check()
        return await super().drop(generation, partition, build)
