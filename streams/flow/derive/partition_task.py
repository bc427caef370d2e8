"""One assignment of one input partition, from taking it over to releasing it.

    start the producer (an older one is fenced, its transaction settled)
      → restore the state from the changelog, or keep it if no one else has written since
      → seek to the stored position, resume
      → poll, derive, commit; the next batch is derived while one commits

At most one commit is under way. After any failure the state in memory is dropped: only the
changelog that a new producer reads is authoritative.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from contextgauge.errors import PositionError, RetryError
from streams import compiled
from streams.core.derivation.rules_config import Rules
from streams.flow.common.lag import Lag
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.topic_watch import TopicLooks
from streams.flow.dead_letters.cutting import fitting, letter_bytes
from streams.flow.dead_letters.letters import FloodWatch
from streams.flow.derive.batch_sizes import BatchSizes
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.group_offsets import GroupOffsets
from streams.flow.derive.log_proof import LogCheck, LogProof, TopicIds, alone, read_ids
from streams.flow.derive.memory_values import MemoryValues
from streams.flow.derive.partition_state import InputPartition, PartitionState, Work
from streams.flow.derive.restoring import restore
from streams.flow.derive.state_store import StateStore
from streams.ports import (
    Batch,
    GroupReader,
    Log,
    LogPlace,
    NewRecord,
    StepTimer,
    TransactionalProducer,
    UnreadableBatch,
    UnreadableBatchError,
    ValueStore,
)

_SLICE_MESSAGES = 250
"""Messages derived in a row before other partitions' commits get a turn: some 3 ms."""


BEHIND_S = 60.0
"""The metadata of the broker that is asked may be so old: it has the former id of a topic that was
recreated since."""

_value_bytes = compiled.batches().value_bytes

logger = structlog.get_logger()


class ReaderLostError(RetryError):
    """The group's reader failed, and with it all partitions: rejoin the group."""


@dataclass(frozen=True, kw_only=True)
class DerivePorts(WorkerPorts):
    """What every partition's task uses."""

    log: Log
    state_store: StateStore
    rules: Rules
    config: DeriveConfig
    flood: FloodWatch = field(default_factory=FloodWatch)
    values: Callable[[], ValueStore] = MemoryValues
    """Makes what holds the sessions of a partition that rest."""
    written_bytes: Callable[[NewRecord], int] = letter_bytes
    """Returns how many bytes a dead letter takes as it is written; asked for a large one."""


@dataclass(slots=True)
class ReleasedState:
    """A state (None once outdated), the changelog's end after its commit, and the topics' ids."""

    state: PartitionState | None
    end: int
    ids: TopicIds


async def _ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended, in whatever way."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class PartitionTask:
    """Runs one partition until `stop` is called or something fails."""

    def __init__(
        self,
        ports: DerivePorts,
        place: InputPartition,
        reader: GroupReader,
        offsets: GroupOffsets,
        looks: TopicLooks,
        sizes: BatchSizes,
    ) -> None:
        self._ports = ports
        self._place = place
        self._reader = reader
        self._offsets = offsets
        self._looks = looks
        self._sizes = sizes
        self._label = str(place.partition)
        self._stop = asyncio.Event()
        self._end = 0
        self._ids = TopicIds()
        self._anchor: LogPlace | None = None
        self._anchor_s = ports.clock.monotonic_s()
        self._lag = Lag(ports, place.partition, "derive_lag_messages", "derive_lag_seconds")
        self.running = False
        """Whether it has been restored. Until then it can be cancelled without loss."""
        self.committed = False
        """Whether it has committed a batch."""

    def stop(self) -> None:
        """Let it finish its running batch and end."""
        self._stop.set()

    async def run(self, released: ReleasedState | None) -> ReleasedState:
        """Take the partition over and run it; return the state when stopped.

        Raises FencedError, RetryError or StopError; then the state is lost.
        """
        ports, partition = self._ports, self._place.partition
        began = ports.clock.monotonic_s()
        ports.health.partition(partition, "restoring")
        producer = ports.log.transactional_producer(ports.config.transactional_id(partition))
        try:
            with ports.health.step("restore", partition, ports.config.restore_silence_s) as step:
                await producer.start()
                state = await self._take_over(released, step)
                await self._begin(state)
            ports.telemetry.observe("derive_restore_seconds", ports.clock.monotonic_s() - began)
            logger.info(
                "partition is running",
                partition=partition,
                position=state.position,
                sessions=state.sessions,
            )
            self.running = True
            ports.health.partition(partition, "running")
            ports.telemetry.gauge("derive_sessions", state.sessions, partition=self._label)
            if state.position is not None:
                ports.telemetry.gauge("derive_position", state.position, partition=self._label)
            await self._loop(producer, state)
            return ReleasedState(state, self._end, self._ids)
        finally:
            await producer.stop()
            for gauge in ("derive_sessions", "derive_position"):
                ports.telemetry.forget(gauge, partition=self._label)
            self._lag.forget()

    async def _take_over(self, released: ReleasedState | None, step: StepTimer) -> PartitionState:
        """Return the state: the released one if the changelog ends where this worker left it."""
        ports, partition = self._ports, self._place.partition
        # No one else can write from here on: any other producer of this id is fenced.
        self._end = await ports.state_store.end(partition)
        self._ids = await read_ids(ports.log, ports.config)
        check = LogCheck(ports.log, ports.clock, ports.config, partition, self._ids)
        if released is not None and released.state is not None:
            if (released.end, released.ids) == (self._end, self._ids):
                await check.check_messages(released.state.proof)
                ports.telemetry.count("derive_restores", outcome="kept")
                return released.state
            released.state = None
        state = PartitionState(ports.rules, ports.config, self._place, ports.values())

        def on_progress(done: int, total: int) -> None:
            step.restart()
            ports.health.partition(partition, "restoring", done=done, total=total)

        await restore(
            state,
            partition,
            state_store=ports.state_store,
            telemetry=ports.telemetry,
            clock=ports.clock,
            on_progress=on_progress,
        )
        await check.bind(None if state.position is None else state.proof, self._end)
        state.proof = check.proof
        ports.telemetry.count("derive_restores", outcome="restored")
        return state

    async def _begin(self, state: PartitionState) -> None:
        """Seek to the stored position, or to the first message kept where none is stored."""
        partition, topic = self._place.partition, self._ports.config.messages_topic
        first, end = await self._reader.bounds(partition)
        if state.position is None:
            state.position = first
        if not first <= state.position <= end:
            raise PositionError(
                f"the position {state.position} of {topic}-{partition} is not among its messages, "
                f"{first} to {end}: "
                + (
                    "they were deleted before they were derived. What they held is lost; "
                    if state.position < first
                    else "the topic was recreated, or the broker lost its last messages. "
                )
                + "new topics under another CONTEXTGAUGE_TOPIC_PREFIX, and publishing again, "
                "give complete records"
            )
        self._offsets.note(partition, state.position)
        self._reader.seek(partition, state.position)
        # Fetching was paused since the assignment.
        self._reader.resume(partition)

    async def _loop(self, producer: TransactionalProducer, state: PartitionState) -> None:
        """Derive what comes, and commit it as soon as the commit before has ended.

        What comes while one commits joins the next batch, up to its limits: else it would wait
        for two commits.
        """
        poll: asyncio.Task[Batch | UnreadableBatch] | None = None
        commit: asyncio.Task[None] | None = None
        under_way: set[asyncio.Task[Any]] = set()
        position, partition = state.position, self._place.partition
        # How many messages and bytes may still join the next batch.
        messages, size = self._sizes.next(partition)
        try:
            while not self._stop.is_set():
                if poll is None and messages > 0 and size > 0:
                    poll = asyncio.create_task(self._poll(messages))
                under_way = {task for task in (poll, commit) if task is not None}
                await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                if poll is not None and poll.done():
                    batch, poll = poll.result(), None
                    taken = await self._derive(state, batch)
                    messages, size, position = messages - taken[0], size - taken[1], taken[2]
                if commit is not None and commit.done():
                    await commit
                    commit = None
                if commit is None:
                    commit = self._begin_commit(producer, state, position)
                    messages, size = self._sizes.next(partition)
            if commit is not None:
                await commit
            commit = self._begin_commit(producer, state, position)
            if commit is not None:
                await commit
        finally:
            under_way = {task for task in (poll, commit) if task is not None}
            await _ended(under_way)
            # A commit that failed holds its error, which holds this frame, which holds the state:
            # without this they would stay until the garbage collector came for them.
            poll = commit = None
            under_way.clear()

    def _begin_commit(
        self, producer: TransactionalProducer, state: PartitionState, position: int | None
    ) -> asyncio.Task[None] | None:
        """Begin to commit what was derived since the last commit began, if anything was read."""
        if position is None or position == state.position:
            if state.position is not None:
                self._report_lag(state.position)
            return None
        self.move_anchor(state.proof)
        work = state.finish(position)
        self._ports.telemetry.gauge("derive_sessions", state.sessions, partition=self._label)
        return asyncio.create_task(self._commit(producer, work))

    def move_anchor(self, proof: LogProof) -> None:
        """Take the last message that was derived long before a look that found the known ids."""
        if self._looks.confirmed_s < self._anchor_s + BEHIND_S:
            return
        if self._anchor is not None:
            proof.anchor = self._anchor
        if proof.messages.offset is not None:
            self._anchor = proof.messages._replace(topic_id="")
        self._anchor_s = self._ports.clock.monotonic_s()

    async def _poll(self, messages: int) -> Batch | UnreadableBatch:
        """Return what is there; a batch that cannot be read is passed.

        Raises UnreadableBatchError where its end is not known.
        """
        ports, config, partition = self._ports, self._ports.config, self._place.partition
        try:
            with ports.health.step("poll", partition, config.poll_timeout_s):
                return await self._reader.poll(partition, messages, config.poll_timeout_s)
        except UnreadableBatchError as error:
            if error.batch.next_offset is None:
                raise
            # It becomes a dead letter in the transaction that moves the position past it.
            self._reader.seek(partition, error.batch.next_offset)
            return error.batch
        except RetryError as error:
            raise ReaderLostError(str(error)) from error

    async def _derive(
        self, state: PartitionState, batch: Batch | UnreadableBatch
    ) -> tuple[int, int, int | None]:
        """Derive what was read; return its messages and bytes, and the position after it."""
        if isinstance(batch, UnreadableBatch):
            state.bury_batch(batch)
            return 1, len(batch.content), batch.next_offset
        for start in range(0, len(batch.records), _SLICE_MESSAGES):
            state.apply(batch.records[start : start + _SLICE_MESSAGES])
            await asyncio.sleep(0)
        return len(batch.records), _value_bytes(batch.records), batch.position

    async def _commit(self, producer: TransactionalProducer, work: Work) -> None:
        """Commit a batch: records, dead letters, state and position, or nothing of it."""
        ports, config, partition = self._ports, self._ports.config, self._place.partition
        began = ports.clock.monotonic_s()
        changes = ports.state_store.to_records(partition, work.changes)
        # Both topics must still end where the last transaction ended: no one else wrote there.
        approve = alone(
            {
                (config.state_topic, partition): self._end,
                (config.events_topic, partition): work.events_begin,
            }
        )
        records: Sequence[NewRecord] = work.records
        if work.reasons:
            most = config.letter_bytes
            records = await fitting(records, config.dead_topic, most, ports.written_bytes)
        with ports.health.step("commit", partition, config.commit_timeout_s):
            ends = await producer.commit([*records, *changes], approve)
        self._offsets.note(partition, work.position)
        self.committed = True
        if ends is not None:  # always: `approve` raises
            self._end = ends[config.state_topic, partition]
        seconds = ports.clock.monotonic_s() - began
        self._sizes.committed(partition, seconds)
        self._report(work, seconds)
        ports.flood.add(work.dead)
        if work.reasons:
            logger.warning("dead letters", partition=partition, reasons=dict(work.reasons))
            if not config.allow_dead_letters:
                ports.flood.check()
        # The broker settles a transaction after it has answered, and delays one that begins before.
        await asyncio.sleep(config.commit_pause_s)

    def _report_lag(self, position: int, last_ms: int | None = None) -> None:
        self._lag.report(position, self._reader.ends(self._place.partition), last_ms)

    def _report(self, work: Work, seconds: float) -> None:
        telemetry, label = self._ports.telemetry, self._label
        telemetry.count("worker_transactions", outcome="committed")
        telemetry.observe("derive_commit_seconds", seconds)
        telemetry.gauge("derive_position", work.position, partition=label)
        self._report_lag(work.position, work.last_ms)
        if work.dead:
            telemetry.observe("derive_batch_messages", len(work.dead))
            telemetry.count("derive_messages", len(work.dead), partition=label)
        for kind, count in work.kinds.items():
            telemetry.count("derive_records", count, kind=kind)
        for reason, count in work.reasons.items():
            telemetry.count("derive_dead_letters", count, reason=reason)
        if work.evicted:
            telemetry.count("derive_evictions", work.evicted, partition=label)
        if work.last_ms is not None:
            age_ms = self._ports.clock.now_ms() - work.last_ms
            telemetry.observe("derive_delay_seconds", max(age_ms, 0) / 1000)
