# ruff: noqa: SLF001 -- mistakes are planted inside
"""Mistakes that the simulator must find, each planted into the product for some runs.

Each is one that someone could make: a check left out, a step in the wrong order, something kept
that has to go. `make mutants` looks for the first seed that finds each.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import pytest

from contextgauge.errors import FencedError, ReseekError, RetryError
from schemas.topics import CONTEXT_STATE
from streams.edge.memory.partition import MemoryTopicPartition
from streams.edge.memory.views import MemoryPartition, MemoryViews
from streams.flow.common import membership
from streams.flow.common.generations import GenerationTracker
from streams.flow.common.membership import Membership
from streams.flow.derive import partition_state
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.partition_state import PartitionState
from streams.flow.derive.partition_task import PartitionTask, ReleasedState
from streams.flow.derive.state_store import ChangelogChunk, StateStore
from streams.flow.derive.stored_sessions import POSITION_KEY, StoredSessions
from streams.flow.project import background
from streams.flow.project.background import GenerationBuild
from streams.flow.project.fold import Fold
from streams.flow.project.live import LiveProjection
from streams.flow.project.partition import PartitionProjector
from streams.flow.project.polling import PartitionPoller
from streams.ports import Batch, Generations, NewRecord
from tests.simulation.broker_clients import GroupReader, TransactionalProducer

Plant = Callable[[pytest.MonkeyPatch], None]
_numbers = count()

# Deriving


def _each_worker_has_its_own_transactional_id(patch: pytest.MonkeyPatch) -> None:
    names: dict[int, int] = {}

    def own(self: DeriveConfig, partition: int) -> str:
        return f"{names.setdefault(id(self), next(_numbers))}-{partition}"

    patch.setattr(DeriveConfig, "transactional_id", own)


def _the_position_is_one_ahead(patch: pytest.MonkeyPatch) -> None:
    document = PartitionState._position_document
    patch.setattr(
        PartitionState, "_position_document", lambda self, position: document(self, position + 1)
    )


def _the_position_is_that_of_the_batch_before(patch: pytest.MonkeyPatch) -> None:
    document = PartitionState._position_document

    def late(self: Any, position: int) -> bytes:
        former, self.former = getattr(self, "former", 0), position
        return document(self, former)

    patch.setattr(PartitionState, "_position_document", late)


def _a_position_only_where_there_are_records(patch: pytest.MonkeyPatch) -> None:
    finish = PartitionState.finish

    def rarely(self: Any, position: int) -> Any:
        work = finish(self, position)
        if not work.records:
            work.changes.pop(POSITION_KEY)
        return work

    patch.setattr(PartitionState, "finish", rarely)


def _records_and_state_are_two_transactions(patch: pytest.MonkeyPatch) -> None:
    commit = TransactionalProducer.commit

    async def twice(self: Any, records: Sequence[NewRecord]) -> Mapping[tuple[str, int], int]:
        state = [each for each in records if each.topic == CONTEXT_STATE.name]
        others = [each for each in records if each.topic != CONTEXT_STATE.name]
        if others:
            await commit(self, others)
        return await commit(self, state)

    patch.setattr(TransactionalProducer, "commit", twice)


def _a_released_state_is_always_kept(patch: pytest.MonkeyPatch) -> None:
    take_over = PartitionTask._take_over

    async def kept(self: Any, released: ReleasedState | None, step: Any) -> PartitionState:
        state = await take_over(self, released, step)
        return state if released is None else released.state

    patch.setattr(PartitionTask, "_take_over", kept)


def _a_state_outlives_a_failed_commit(patch: pytest.MonkeyPatch) -> None:
    run = PartitionTask.run
    states: dict[Any, Any] = {}

    async def keep(self: Any, released: ReleasedState | None) -> ReleasedState:
        key = (id(self._reader), self._place.partition)
        failed = states.pop(key, None)
        take_over = self._take_over

        async def take(_released: Any, step: Any) -> PartitionState:
            state = await take_over(_released, step) if failed is None else failed
            self.state = state
            return state  # type: ignore[no-any-return]

        self._take_over = take
        try:
            return await run(self, released)
        except RetryError:
            states[key] = self.state if hasattr(self, "state") else None
            raise

    patch.setattr(PartitionTask, "run", keep)


def _a_lost_reply_counts_as_committed(patch: pytest.MonkeyPatch) -> None:
    commit = TransactionalProducer.commit

    async def surely(self: Any, records: Any) -> Any:
        try:
            return await commit(self, records)
        except FencedError:
            raise
        except RetryError:
            await self.start()
            return {}

    patch.setattr(TransactionalProducer, "commit", surely)


def _a_commit_is_repeated_after_a_lost_reply(patch: pytest.MonkeyPatch) -> None:
    commit = TransactionalProducer.commit

    async def again(self: Any, records: Any) -> Any:
        try:
            return await commit(self, records)
        except FencedError:
            raise
        except RetryError:
            await self.start()
            return await commit(self, records)

    patch.setattr(TransactionalProducer, "commit", again)


def _who_is_fenced_goes_on_with_a_new_producer(patch: pytest.MonkeyPatch) -> None:
    commit = TransactionalProducer.commit

    async def stubborn(self: Any, records: Any) -> Any:
        try:
            return await commit(self, records)
        except FencedError:
            await self.start()
            return await commit(self, records)

    patch.setattr(TransactionalProducer, "commit", stubborn)


def _the_state_is_read_before_the_producer_starts(patch: pytest.MonkeyPatch) -> None:
    start, commit = TransactionalProducer.start, TransactionalProducer.commit

    async def later(_self: Any) -> None:
        await asyncio.sleep(0)

    async def first(self: Any, records: Any) -> Any:
        if not self._epoch:
            await start(self)
        return await commit(self, records)

    patch.setattr(TransactionalProducer, "start", later)
    patch.setattr(TransactionalProducer, "commit", first)


def _the_restore_stops_before_the_end(patch: pytest.MonkeyPatch) -> None:
    restore = StateStore.restore

    async def shorter(self: Any, partition: int) -> Any:
        async for chunk in restore(self, partition):
            yield ChangelogChunk(chunk.entries[:-1], chunk.done, chunk.total)

    patch.setattr(StateStore, "restore", shorter)


def _the_restore_keeps_the_first_value_of_a_key(patch: pytest.MonkeyPatch) -> None:
    add = StoredSessions.add

    def first(self: Any, entries: Any) -> None:
        seen: set[bytes] = set()
        for key, value in entries:
            if key == POSITION_KEY or key not in seen:
                add(self, [(key, value)])
            seen.add(key)

    patch.setattr(StoredSessions, "add", first)


def _only_new_sessions_are_stored(patch: pytest.MonkeyPatch) -> None:
    changes_of = partition_state.changes_of

    def new(session_id: str, before: Any, after: Any, activity: Any) -> Any:
        return changes_of(session_id, before, after, activity) if before is None else {}

    patch.setattr(partition_state, "changes_of", new)


def _a_takeover_begins_at_the_first_message(patch: pytest.MonkeyPatch) -> None:
    begin = PartitionTask._begin

    async def anew(self: Any, state: PartitionState) -> None:
        state.position = None
        await begin(self, state)

    patch.setattr(PartitionTask, "_begin", anew)


def _a_takeover_begins_at_the_end(patch: pytest.MonkeyPatch) -> None:
    begin = PartitionTask._begin

    async def behind(self: Any, state: PartitionState) -> None:
        if state.position is None:
            _, state.position = await self._reader.bounds(self._place.partition)
        await begin(self, state)

    patch.setattr(PartitionTask, "_begin", behind)


def _a_takeover_does_not_seek(patch: pytest.MonkeyPatch) -> None:
    seek = GroupReader.seek

    def once(self: Any, partition: int, offset: int) -> None:
        if partition not in self._positions:
            seek(self, partition, offset)

    patch.setattr(GroupReader, "seek", once)


def _what_retention_deleted_is_skipped(patch: pytest.MonkeyPatch) -> None:
    begin = PartitionTask._begin

    async def lenient(self: Any, state: PartitionState) -> None:
        first, _ = await self._reader.bounds(self._place.partition)
        state.position = None if state.position is None else max(first, state.position)
        await begin(self, state)

    patch.setattr(PartitionTask, "_begin", lenient)


def _a_full_batch_loses_its_last_message(patch: pytest.MonkeyPatch) -> None:
    derive = PartitionTask._derive

    async def careless(self: Any, state: Any, batch: Batch) -> None:
        if len(batch.records) == self._ports.config.batch_messages:
            batch = Batch(batch.records[:-1], batch.position)
        await derive(self, state, batch)

    patch.setattr(PartitionTask, "_derive", careless)


def _a_batch_is_dropped_when_the_task_stops(patch: pytest.MonkeyPatch) -> None:
    begin_commit = PartitionTask._begin_commit

    def unless_stopped(self: Any, producer: Any, state: Any, position: Any) -> Any:
        return None if self._stop.is_set() else begin_commit(self, producer, state, position)

    patch.setattr(PartitionTask, "_begin_commit", unless_stopped)


# Projecting


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
        self: Any, generation: int, build: str, _partitions: int, *, compared: bool = False
    ) -> None:
        del compared
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
    async def nothing(_self: Any, _generation: int) -> None:
        await asyncio.sleep(0)

    patch.setattr(PartitionPoller, "drop", nothing)


def _cleaning_drops_the_active_generation(patch: pytest.MonkeyPatch) -> None:
    async def active(_ports: Any, seen: Generations, _partition: int) -> list[int]:
        return [] if seen.active is None else [seen.active]

    patch.setattr(background, "_unused", active)


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


def _who_left_for_idleness_counts_as_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fold, "excuse", lambda _self, _sessions: None)


def _a_reread_ends_the_projection(patch: pytest.MonkeyPatch) -> None:
    async def for_ever(_self: Any, _error: ReseekError) -> None:
        await asyncio.get_running_loop().create_future()

    patch.setattr(PartitionPoller, "pause_before_rereading", for_ever)


# Both


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


def _a_revocation_is_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    async def at_once(self: Any, _partitions: frozenset[int]) -> None:
        asyncio.get_running_loop().create_task(self._release())

    patch.setattr(Membership, "_on_revoked", at_once)


PIPELINE_BUGS: dict[str, Plant] = {
    name.strip("_").replace("_", " "): plant
    for name, plant in list(globals().items())
    if name.startswith("_") and callable(plant) and getattr(plant, "__module__", "") == __name__
}
