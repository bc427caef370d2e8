"""Readers of the log in memory; in groups with eager rebalances and sticky assignment."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from contextgauge.errors import RetryError
from streams.edge.memory.partition import MemoryTopicPartition
from streams.ports import AssignmentCallback, Batch, Ends


class MemoryPartitionReader:
    """Reads the given partitions of the topic in which `find` finds them, without a group."""

    def __init__(
        self, find: Callable[[int], MemoryTopicPartition], partitions: Sequence[int]
    ) -> None:
        self._find = find
        self._partitions = partitions
        self._positions: dict[int, int] = {}

    async def start(self) -> None:
        for partition in self._partitions:
            self._find(partition)

    async def bounds(self, partition: int) -> tuple[int, int]:
        log = self._find(partition)
        return log.first, log.stable_end()

    async def offset_at(self, partition: int, timestamp_ms: int) -> int:
        return self._find(partition).offset_at(timestamp_ms)

    def seek(self, partition: int, offset: int) -> None:
        self._positions[partition] = offset

    def position(self, partition: int) -> int:
        return self._positions.get(partition, 0)

    async def poll(self, partition: int, max_records: int, timeout_s: float) -> Batch:
        # A reader that always finds something must still let the others run.
        await asyncio.sleep(0)
        log = self._find(partition)
        batch = log.read(self._positions[partition], max_records)
        if not batch.records and timeout_s > 0:
            await log.wait(timeout_s)
            batch = log.read(self._positions[partition], max_records)
        self._positions[partition] = batch.position
        return batch

    def ends(self, partition: int) -> Ends | None:
        if partition not in self._positions:
            return None
        log = self._find(partition)
        return Ends(log.stable_end(), log.next_offset)

    async def stop(self) -> None:
        """Do nothing: there is no connection to close."""


class MemoryGroup:
    """One group on one topic. A rebalance runs whenever a member came or went."""

    def __init__(self, partitions: Callable[[], int]) -> None:
        self._partitions = partitions
        self.offsets: dict[int, int] = {}
        """What its members committed."""
        self._members: list[MemoryGroupReader] = []
        self._rebalance: asyncio.Task[None] | None = None
        self._changed = False

    def add(self, member: "MemoryGroupReader") -> None:
        """Take a member in; a static one replaces the former of its instance id."""
        if member.instance_id is not None:
            for former in self._members:
                if former.instance_id == member.instance_id:
                    former.expel()
            self._members = [m for m in self._members if m.instance_id != member.instance_id]
        self._members.append(member)
        self._start_rebalance()

    def remove(self, member: "MemoryGroupReader") -> None:
        """Let a member go."""
        if member in self._members:
            self._members.remove(member)
            self._start_rebalance()

    def _start_rebalance(self) -> None:
        self._changed = True
        if self._rebalance is None or self._rebalance.done():
            self._rebalance = asyncio.create_task(self._balance())

    async def _balance(self) -> None:
        while self._changed:
            self._changed = False
            members = list(self._members)
            former = {member: member.assigned for member in members}
            await asyncio.gather(*[member.revoke() for member in members])
            if self._changed:
                continue
            shares = _sticky(former, self._partitions())
            await asyncio.gather(*[member.assign(frozenset(shares[member])) for member in members])


def _sticky(
    former: dict["MemoryGroupReader", frozenset[int]], partitions: int
) -> dict["MemoryGroupReader", set[int]]:
    """Share the partitions out evenly, moving as few as can be."""
    shares = {member: set(had) for member, had in former.items()}
    if not shares:
        return {}
    assigned = {partition for share in shares.values() for partition in share}
    free = [partition for partition in range(partitions) if partition not in assigned]
    while free:
        min(shares.values(), key=len).add(free.pop())
    while True:
        most, least = max(shares.values(), key=len), min(shares.values(), key=len)
        if len(most) - len(least) <= 1:
            return shares
        least.add(most.pop())


class MemoryGroupReader(MemoryPartitionReader):
    """Reads as a member of a group."""

    def __init__(
        self,
        group: MemoryGroup,
        find: Callable[[int], MemoryTopicPartition],
        instance_id: str | None,
    ) -> None:
        super().__init__(find, ())
        self.instance_id = instance_id
        self.assigned: frozenset[int] = frozenset()
        self._revoking: frozenset[int] = frozenset()
        self._group = group
        self._stopped = False
        self._paused: set[int] = set()
        self._polls: set[asyncio.Task[Batch]] = set()
        self._on_revoked: AssignmentCallback | None = None
        self._on_assigned: AssignmentCallback | None = None

    async def join(self, on_revoked: AssignmentCallback, on_assigned: AssignmentCallback) -> None:
        self._on_revoked, self._on_assigned = on_revoked, on_assigned
        self._group.add(self)

    def seek(self, partition: int, offset: int) -> None:
        self._check_running()
        super().seek(partition, offset)

    def resume(self, partition: int) -> None:
        self._check_running()
        self._paused.discard(partition)

    async def commit_offsets(self, positions: Mapping[int, int]) -> None:
        """Keep the group's offsets. Raises RetryError where a partition is not this member's."""
        await asyncio.sleep(0)
        if not positions.keys() <= self.assigned | self._revoking:
            raise RetryError("the partitions are another member's now")
        self._group.offsets |= positions

    async def watch(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def poll(self, partition: int, max_records: int, timeout_s: float) -> Batch:
        self._check_running()
        if partition not in self.assigned:
            await asyncio.sleep(0)
            return Batch((), self.position(partition))
        if partition in self._paused:
            await asyncio.sleep(timeout_s)
            return Batch((), self.position(partition))
        task = asyncio.create_task(super().poll(partition, max_records, timeout_s))
        self._polls.add(task)
        try:
            await asyncio.wait([task])
        finally:
            self._polls.discard(task)
            task.cancel()
        if task.cancelled():
            return Batch((), self.position(partition))
        return task.result()

    def ends(self, partition: int) -> Ends | None:
        self._check_running()
        return super().ends(partition) if partition in self.assigned else None

    async def stop(self) -> None:
        self._stopped = True
        self.assigned = frozenset()
        self._group.remove(self)
        await super().stop()

    def _check_running(self) -> None:
        # As a Kafka client: nothing may still use the reader of a membership that has ended.
        if self._stopped:
            raise RuntimeError("the reader was stopped")

    def expel(self) -> None:
        """Take everything away: another member has this one's instance id now."""
        self.assigned = frozenset()

    async def revoke(self) -> None:
        """Take the assignment away (for the group)."""
        revoked, self.assigned = self.assigned, frozenset()
        for poll in self._polls:
            poll.cancel()
        if self._on_revoked is not None:
            self._revoking = revoked
            await self._on_revoked(revoked)
            self._revoking = frozenset()

    async def assign(self, partitions: frozenset[int]) -> None:
        """Give a new assignment, paused (for the group); one that just left takes none."""
        if self._stopped:
            return
        self.assigned = partitions
        self._paused = set(partitions)
        if self._on_assigned is not None:
            await self._on_assigned(partitions)
