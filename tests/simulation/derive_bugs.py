# ruff: noqa: SLF001 -- mistakes are planted inside
"""Mistakes of the deriver that the simulator must find, each planted for some runs.

Each is one that someone could make: a check left out, a step in the wrong order, something kept
that has to go. `make mutants` looks for the first seed that finds each.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from contextgauge.errors import FencedError, RetryError
from schemas.topics import CONTEXT_STATE
from streams.core.derivation.state import Session
from streams.flow.common.membership import Membership
from streams.flow.derive import partition_state, stored_sessions
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.partition_state import PartitionState
from streams.flow.derive.partition_task import PartitionTask, ReleasedState
from streams.flow.derive.state_store import ChangelogChunk, StateStore
from streams.flow.derive.stored_sessions import POSITION_KEY, StoredSessions
from streams.ports import Approval, Batch, NewRecord
from tests.simulation.broker_clients import GroupReader, TransactionalProducer

Plant = Callable[[pytest.MonkeyPatch], None]


def bugs_of(module: Mapping[str, Any]) -> dict[str, Plant]:
    """Return a module's mistakes by their names in words."""
    return {
        name.strip("_").replace("_", " "): plant
        for name, plant in list(module.items())
        if name.startswith("_") and getattr(plant, "__module__", "") == module["__name__"]
    }


_numbers = count()


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

    async def twice(self: Any, records: Sequence[NewRecord], approve: Approval) -> Any:
        state = [each for each in records if each.topic == CONTEXT_STATE.name]
        others = [each for each in records if each.topic != CONTEXT_STATE.name]
        if others:
            await commit(self, others, approve)
        return await commit(self, state, approve)

    patch.setattr(TransactionalProducer, "commit", twice)


def _a_released_state_is_always_kept(patch: pytest.MonkeyPatch) -> None:
    take_over = PartitionTask._take_over

    async def kept(self: Any, released: ReleasedState | None, step: Any) -> PartitionState:
        former = None if released is None else released.state
        state = await take_over(self, released, step)
        if former is None:
            return state
        # The ends as they are now: with those of then the first commit shows the other writer.
        former.proof = state.proof
        return former

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

    async def surely(self: Any, records: Any, approve: Approval) -> Any:
        try:
            return await commit(self, records, approve)
        except FencedError:
            raise
        except RetryError:
            await self.start()
            return None

    patch.setattr(TransactionalProducer, "commit", surely)


def _a_commit_is_repeated_after_a_lost_reply(patch: pytest.MonkeyPatch) -> None:
    commit = TransactionalProducer.commit

    async def again(self: Any, records: Any, approve: Approval) -> Any:
        try:
            return await commit(self, records, approve)
        except FencedError:
            raise
        except RetryError:
            await self.start()
            return await commit(self, records)

    patch.setattr(TransactionalProducer, "commit", again)


def _who_is_fenced_goes_on_with_a_new_producer(patch: pytest.MonkeyPatch) -> None:
    commit = TransactionalProducer.commit

    async def stubborn(self: Any, records: Any, approve: Approval) -> Any:
        try:
            return await commit(self, records, approve)
        except FencedError:
            await self.start()
            return await commit(self, records)

    patch.setattr(TransactionalProducer, "commit", stubborn)


def _the_state_is_read_before_the_producer_starts(patch: pytest.MonkeyPatch) -> None:
    start, commit = TransactionalProducer.start, TransactionalProducer.commit

    async def later(_self: Any) -> None:
        await asyncio.sleep(0)

    async def first(self: Any, records: Any, _approve: Approval) -> Any:
        if not self._epoch:
            await start(self)
        return await commit(self, records)  # what would show it is not asked

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


def _sessions_rest_as_they_were_at_first(patch: pytest.MonkeyPatch) -> None:
    keep, firsts = StoredSessions.keep, WeakKeyDictionary[StoredSessions, dict[str, Session]]()

    def former(self: Any, session_id: str, session: Session, activity: Any) -> None:
        first = firsts.setdefault(self, {}).setdefault(session_id, session)
        keep(self, session_id, first, activity)

    patch.setattr(StoredSessions, "keep", former)


def _a_session_that_rests_is_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoredSessions, "keep", lambda *_: None)


def _only_new_sessions_are_stored(patch: pytest.MonkeyPatch) -> None:
    changes_of = stored_sessions.changes_of

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


def _a_stop_within_a_rebalance_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    async def at_once(self: Any) -> None:
        await self._release()

    patch.setattr(Membership, "_end_work", at_once)


DERIVE_BUGS = bugs_of(globals())
