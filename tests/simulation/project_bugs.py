# ruff: noqa: SLF001 -- mistakes are planted inside
"""Mistakes of the projector, and of what all workers share, that the simulator must find.

Each is one that someone could make: a check left out, a step in the wrong order, something kept
that has to go. `make mutants` looks for the first seed that finds each.
"""

import asyncio
from typing import Any

import pytest

from contextgauge.errors import ReseekError
from streams.edge.memory.partition import MemoryTopicPartition
from streams.edge.memory.view_store import MemoryPartition, MemoryViews
from streams.flow.common import membership
from streams.flow.common.generations import GenerationTracker
from streams.flow.common.membership import Membership
from streams.flow.project.background import GenerationBuild
from streams.flow.project.fold import Fold
from streams.flow.project.live import LiveProjection
from streams.flow.project.partition import PartitionProjector
from streams.flow.project.polling import PartitionPoller
from streams.ports import Batch
from tests.simulation.broker_clients import GroupReader
from tests.simulation.derive_bugs import bugs_of


def _a_mismatch_is_overwritten(patch: pytest.MonkeyPatch) -> None:
    apply = MemoryViews.apply

    async def stubborn(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = await apply(self, *args, **kwargs)
        if result == "mismatch":
            stored = await self.position(*args)
            kwargs["expected"] = None if stored is None else stored.offset
            result = await apply(self, *args, **kwargs)
        return result

    patch.setattr(MemoryViews, "apply", stubborn)


def _the_store_does_not_compare_positions(patch: pytest.MonkeyPatch) -> None:
    apply = MemoryPartition.apply

    def blind(self: Any, _expected: Any, position: Any, changes: Any) -> Any:
        stored = None if self.position is None else self.position.offset
        return apply(self, stored, position, changes)

    patch.setattr(MemoryPartition, "apply", blind)


def _an_idle_partition_is_not_verified(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: Any) -> None:
        await asyncio.sleep(0)

    patch.setattr(PartitionProjector, "verify", nothing)


def _totals_are_not_loaded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fold, "load_stats", lambda _self, _stats: None)


def _documents_outlive_a_mismatch(patch: pytest.MonkeyPatch) -> None:
    opened = PartitionProjector.open
    views: dict[Any, Any] = {}

    async def stale(self: Any, build: str | None = None) -> bool:
        result = await opened(self, build)
        key = (id(self._retry), self._at)
        if key in views:
            self._fold._views = views[key]
        views[key] = self._fold._views
        return result

    patch.setattr(PartitionProjector, "open", stale)


def _the_position_is_written_apart(patch: pytest.MonkeyPatch) -> None:
    flush = PartitionProjector._flush

    async def two(self: Any, offset: int) -> None:
        store = self._store
        stored = await self._retry.run(store.position, *self._at)
        if self._call.live and stored is not None and stored.offset == self.position:
            changes = self._call.changes()._replace(live=[], entries=[])
            nothing = stored._replace(offset=stored.offset)
            await self._retry.run(
                store.apply, *self._at, expected=stored.offset, position=nothing, changes=changes
            )
        await flush(self, offset)

    patch.setattr(PartitionProjector, "_flush", two)


def _a_write_is_one_record_ahead(patch: pytest.MonkeyPatch) -> None:
    flush = PartitionProjector._flush
    patch.setattr(
        PartitionProjector,
        "_flush",
        lambda self, offset: flush(self, offset + 1 if self._call.live else offset),
    )


def _generations_are_activated_early(patch: pytest.MonkeyPatch) -> None:
    async def early(
        self: Any, generation: int, build: str, _partitions: int, **_others: Any
    ) -> None:
        await self._store.activate(generation, build)
        await self.refresh()

    patch.setattr(GenerationTracker, "activate", early)


def _a_build_begins_at_the_end(patch: pytest.MonkeyPatch) -> None:
    opened = GenerationBuild._open

    async def late(self: Any, generation: int, build: str, begin: int) -> Any:
        reader = self._ports.log.reader(self._ports.config.events_topic, [self._poller.partition])
        _, end = await reader.bounds(self._poller.partition)
        return await opened(self, generation, build, max(begin, end - 2))

    patch.setattr(GenerationBuild, "_open", late)


def _what_another_build_left_stays(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: Any, _generation: int, _build: str | None = None) -> bool:
        await asyncio.sleep(0)
        return True

    patch.setattr(PartitionPoller, "drop", nothing)


def _what_readers_use_can_be_dropped(patch: pytest.MonkeyPatch) -> None:
    drop = MemoryViews.drop

    async def whatever(
        self: Any, generation: int, partition: int, build: str | None = None
    ) -> bool:
        await drop(self, generation, partition, build)
        self.partitions.pop((generation, partition), None)
        return True

    patch.setattr(MemoryViews, "drop", whatever)


def _the_former_generation_is_followed_on(patch: pytest.MonkeyPatch) -> None:
    refresh = GenerationTracker.refresh

    async def first(self: Any) -> None:
        seen = self.current
        await refresh(self)
        if seen.active is not None:
            self.current = seen

    patch.setattr(GenerationTracker, "refresh", first)


def _a_reread_does_not_seek(patch: pytest.MonkeyPatch) -> None:
    follow = LiveProjection._follow
    seek = GroupReader.seek

    async def on(self: Any, generation: int) -> None:
        self._reader.again = self._poller.has_written
        await follow(self, generation)

    def unless(self: Any, partition: int, offset: int) -> None:
        if not getattr(self, "again", False):
            seek(self, partition, offset)

    patch.setattr(LiveProjection, "_follow", on)
    patch.setattr(GroupReader, "seek", unless)


def _a_revoked_projector_goes_on(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: Any) -> None:
        await asyncio.sleep(0)

    from streams.flow.project.worker import _ProjectMember  # noqa: PLC0415 -- one mistake's

    patch.setattr(_ProjectMember, "_release", nothing)


def _idle_sessions_stay(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: Any, _idle_since_ms: int) -> None:
        await asyncio.sleep(0)

    patch.setattr(PartitionProjector, "_remove_idle", nothing)


def _open_compactions_are_not_loaded(patch: pytest.MonkeyPatch) -> None:
    put_view = Fold.put_view

    def alone(self: Any, session: bytes, document: bytes | None) -> list[bytes]:
        put_view(self, session, document)
        return []

    patch.setattr(Fold, "put_view", alone)


def _a_reread_ends_the_projection(patch: pytest.MonkeyPatch) -> None:
    async def for_ever(_self: Any, _error: ReseekError) -> None:
        await asyncio.get_running_loop().create_future()

    patch.setattr(PartitionPoller, "pause_before_rereading", for_ever)


def _readers_see_open_transactions(patch: pytest.MonkeyPatch) -> None:
    def all_of_it(self: Any, offset: int, max_records: int) -> Batch:
        entries = self.entries[offset : offset + max_records]
        records = [entry.record for entry in entries if entry.record is not None]
        return Batch(records, offset + len(entries))

    patch.setattr(MemoryTopicPartition, "read", all_of_it)


def _aborted_records_are_read(patch: pytest.MonkeyPatch) -> None:
    def settled(self: Any, offset: int, max_records: int) -> Batch:
        entries = self.entries[offset : min(self.stable_end(), offset + max_records)]
        records = [entry.record for entry in entries if entry.record is not None]
        return Batch(records, offset + len(entries))

    patch.setattr(MemoryTopicPartition, "read", settled)


def _a_worker_gives_up_after_a_failure(patch: pytest.MonkeyPatch) -> None:
    async def for_ever(*_given: Any, **_context: Any) -> None:
        await asyncio.get_running_loop().create_future()

    patch.setattr(membership, "pause", for_ever)


def _a_second_assignment_is_ignored(patch: pytest.MonkeyPatch) -> None:
    assigned = Membership._on_assigned

    async def once(self: Any, partitions: frozenset[int]) -> None:
        if not getattr(self, "was_assigned", False):
            self.was_assigned = True
            await assigned(self, partitions)

    patch.setattr(Membership, "_on_assigned", once)


PROJECT_BUGS = bugs_of(globals())
