"""A project worker under test: records on a log, and the documents that must come of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import replace
from functools import cache, lru_cache
from itertools import chain, count, pairwise, zip_longest
from typing import NamedTuple

from hypothesis import strategies as st

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from contextgauge.normalise.signals import InputMessage
from contextgauge.partitioner import partition_of
from contextgauge.window_catalog import bundled
from schemas.records import Record
from schemas.topics import CONTEXT_EVENTS, DAY_MS
from schemas.views import SESSION_IDLE_MS
from streams import codec
from streams.core.derivation.rules_config import Rules
from streams.edge.memory.view_store import MemoryViews
from streams.flow.common.retry import RetryLoop
from streams.flow.common.unreadable import poll_past
from streams.flow.derive.deriver import Deriver
from streams.flow.project.config import ProjectConfig
from streams.flow.project.fold import LoggedRecord
from streams.flow.project.partition import PartitionProjector, ViewPartition
from streams.flow.project.polling import ProjectPorts
from streams.flow.project.worker import run_project
from streams.ports import (
    Batch,
    Clock,
    Log,
    LogRecord,
    NewRecord,
    PartitionDump,
    ViewStore,
)
from tests.core.history import START_MS
from tests.core.strategies import SESSIONS, write
from tests.doubles.dump import dump, fold_views
from tests.flow.derive_kit import Figures, board, expected, samples, until, worker_ports
from tests.patience import PATIENCE_S

PARTITIONS = 4
_DROP_AFTER_S = 60.0
_WRITERS = count(1)
RULES = Rules(bundled())


class HastyClock(SystemClock):
    """A clock whose pauses are over at once."""

    async def sleep(self, seconds: float) -> None:  # noqa: ARG002 -- whatever it is
        await asyncio.sleep(0.001)


class GatedClock(HastyClock):
    """A clock whose pauses before deleting a generation last while the gate is closed."""

    def __init__(self) -> None:
        self.waiting = 0
        """So many pauses before deleting have begun."""
        self.gate = asyncio.Event()
        self.gate.set()

    async def sleep(self, seconds: float) -> None:
        """Pause, until the gate opens if it is the pause before deleting."""
        if seconds == _DROP_AFTER_S:
            self.waiting += 1
            await self.gate.wait()
        await super().sleep(seconds)


class Logged(NamedTuple):
    """A record and its Kafka timestamp."""

    record: Record
    logged_ms: int = 0


@cache
def sample_records(seed: int = 1) -> tuple[tuple[Record, ...], ...]:
    """Return what is derived from sessions of every kind, by partition."""
    return tuple(map(tuple, expected(samples(seed), PARTITIONS)))


def on_log(logged: Iterable[Logged], step: int = 2) -> list[LogRecord]:
    """Return the records as they are on a log whose offsets have gaps."""
    found = []
    for number, (record, logged_ms) in enumerate(logged):
        headers, value = codec.to_binary(record)
        key = codec.key_bytes(record.data.session_id)
        found.append(LogRecord(number * step, logged_ms, key, value, headers))
    return found


@st.composite
def logs(draw: st.DrawFn) -> list[LogRecord]:
    """Logs of some sessions, interleaved, over days and sometimes months."""
    sessions = []
    for number in range(draw(st.integers(1, 4))):
        actions, transcript = draw(SESSIONS)
        name = f"s-{number}"
        deriver = Deriver(RULES)
        lines = write(name, actions, transcript=transcript)
        # An agent's name may be known late, and another one later.
        agents = draw(st.lists(st.sampled_from([None, "ann", "bob"]), min_size=1, max_size=3))
        messages = [
            InputMessage(line, name, publisher_agent_id=agents[n * len(agents) // len(lines)])
            for n, line in enumerate(lines)
        ]
        sessions.append([r for intake in messages for r in deriver.derive(intake).records])
    mixed = [record for turn in zip_longest(*sessions) for record in turn if record is not None]
    steps = st.sampled_from([0, 1, 3_600_000, DAY_MS, 40 * DAY_MS, 100 * DAY_MS])
    logged_ms, dated = START_MS, []
    for record in mixed:
        logged_ms += draw(steps)
        dated.append(Logged(record, logged_ms))
    return on_log(dated)


def batches(records: Sequence[LogRecord], cuts: Iterable[int]) -> list[Batch]:
    """Cut a log into batches at these places; some of them may be empty."""
    places = [0, *sorted(min(cut, len(records)) for cut in cuts), len(records)]
    found = []
    for start, stop in pairwise(places):
        end = records[stop].offset if stop < len(records) else records[-1].offset + 2
        found.append(Batch(records[start:stop], end))
    return found


def placed(records: Iterable[LogRecord]) -> list[LoggedRecord]:
    """Return the records as the fold takes them."""
    return [
        LoggedRecord(
            item.offset, item.timestamp_ms, codec.from_binary(item.headers, item.value or b"")
        )
        for item in records
    ]


def wanted(log: Sequence[LogRecord]) -> PartitionDump:
    """Return the documents that a partition's log comes to, to spoil as one likes."""
    return deepcopy(_wanted(tuple(log)))


@lru_cache(maxsize=16)
def _wanted(log: tuple[LogRecord, ...]) -> PartitionDump:
    return fold_views(placed(log))


def stored(store: MemoryViews) -> PartitionDump:
    """Return the documents of partition 0 of generation 1, to look at or to spoil."""
    return store.partitions[1, 0].held


SAMPLE = on_log([Logged(record, START_MS) for record in chain(*sample_records())])
"""Sessions of every kind, on one partition."""


async def project_all(
    store: ViewStore, todo: Iterable[Batch], *, strict: bool = True, partitions: int = 1
) -> PartitionProjector:
    """Fold batches into partition 0 of generation 1, which is begun if need be."""
    projector = projector_of(store, strict=strict, partitions=partitions)
    if not await projector.open():
        await projector.begin(0)
        assert await projector.open()
    for batch in todo:
        await projector.apply(batch)
    return projector


def projector_of(
    store: ViewStore, *, strict: bool = True, partitions: int = 1, stop: bool = False
) -> PartitionProjector:
    """Return a projector that tries again at once; with `stop` it does not try again."""
    stopped = asyncio.Event()
    if stop:
        stopped.set()
    return PartitionProjector(
        store,
        RetryLoop(worker_ports(HastyClock(), stop=stopped), "redis"),
        ViewPartition(1, 0, partitions),
        strict=strict,
        idle_ms=SESSION_IDLE_MS,
        writer=f"writer-{next(_WRITERS)}",
    )


def patient(done: Callable[[], Awaitable[bool]]) -> Callable[[], Awaitable[bool]]:
    """Return the same question, answered no while the store is away."""

    async def ask() -> bool:
        try:
            return await done()
        except RetryError:
            return False

    return ask


class Worker:
    """A running project worker."""

    def __init__(self, task: asyncio.Task[None], stop: asyncio.Event, figures: Figures) -> None:
        self.task, self.figures, self._stop = task, figures, stop

    async def stop(self) -> None:
        """End it in good order; raises what it ended with."""
        self._stop.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.task

    async def kill(self) -> None:
        """End it at once."""
        self.task.cancel()
        await asyncio.wait([self.task])

    async def failed(self) -> BaseException | None:
        """Wait until it has ended by itself; return what it raised."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait([self.task])
        return self.task.exception()


class ProjectKit:
    """A topic of records, a view store, and workers between them."""

    def __init__(
        self, log: Log, store: ViewStore, prefix: str = "", clock: Clock | None = None
    ) -> None:
        self.log, self.store = log, store
        self.clock = clock or HastyClock()
        self.health = board()
        self.topic = replace(CONTEXT_EVENTS, name=prefix + CONTEXT_EVENTS.name)
        self.config = ProjectConfig(
            events_topic=self.topic.name,
            group=prefix + "project",
            poll_timeout_s=0.02,
            watch_s=0.02,
            drop_after_s=_DROP_AFTER_S,
        )

    async def create_topic(self) -> None:
        """Create the topic."""
        await self.log.start()
        await self.log.create_topics([self.topic], PARTITIONS)

    async def append(self, records: Iterable[Record]) -> None:
        """Write records in transactions of some, so that markers lie between."""
        todo = list(records)
        producer = self.log.transactional_producer(self.config.group + "-test")
        await producer.start()
        for start in range(0, len(todo), 40):
            new = []
            for record in todo[start : start + 40]:
                headers, value = codec.to_binary(record)
                session_id = record.data.session_id
                partition = partition_of(session_id, PARTITIONS)
                key = codec.key_bytes(session_id)
                new.append(NewRecord(self.topic.name, partition, key, value, headers))
            await producer.commit(new)
        await producer.stop()

    def ports(self, figures: Figures, config: ProjectConfig | None = None) -> ProjectPorts:
        """Return the ports of a worker."""
        return ProjectPorts(
            log=self.log,
            store=self.store,
            config=config or self.config,
            telemetry=figures,
            health=self.health,
            clock=self.clock,
            stop=asyncio.Event(),
        )

    def start_worker(self, config: ProjectConfig | None = None) -> Worker:
        """Start a worker; whoever does ends it."""
        ports = self.ports(figures := Figures(), config)
        return Worker(asyncio.create_task(run_project(ports)), ports.stop, figures)

    @asynccontextmanager
    async def running(self, config: ProjectConfig | None = None) -> AsyncIterator[Worker]:
        """Run a worker, and end it in good order."""
        worker = self.start_worker(config)
        try:
            yield worker
        except BaseException:
            await worker.kill()
            raise
        await worker.stop()

    async def project(self, records: Sequence[Record] = (), *, at_least: int = 1) -> Worker:
        """Append records, run a worker until it has projected all, and end it."""
        await self.append(records)
        async with self.running() as worker:
            assert await self.caught_up(worker, at_least=at_least) == at_least
        return worker

    async def read(self, partition: int) -> tuple[list[LogRecord], int]:
        """Return a partition's records and its end."""
        reader = self.log.reader(self.topic.name, [partition])
        await reader.start()
        position, end = await reader.bounds(partition)
        reader.seek(partition, position)
        records: list[LogRecord] = []
        async with asyncio.timeout(PATIENCE_S):
            while position < end:
                batch = await poll_past(reader, partition, 5_000, 0.1)
                records += batch.records
                position = batch.position
        await reader.stop()
        return records, end

    async def active(self, *, at_least: int = 1) -> int:
        """Wait for an active generation."""
        generations: list[int] = []

        async def done() -> bool:
            active = (await self.store.generations()).active
            if active is not None and active >= at_least:
                generations.append(active)
            return bool(generations)

        await until(patient(done))
        return generations[0]

    async def caught_up(self, *workers: Worker, at_least: int = 1) -> int:
        """Wait until the active generation has all that is on the log; return it."""
        generation = await self.active(at_least=at_least)
        ends = [(await self.read(partition))[1] for partition in range(PARTITIONS)]

        async def done() -> bool:
            for worker in workers:
                if worker.task.done():
                    worker.task.result()
            places = [await self.store.position(generation, p) for p in range(PARTITIONS)]
            return all(
                place is not None and place.offset >= end
                for place, end in zip(places, ends, strict=True)
            )

        await until(patient(done))
        return generation

    async def expected(self) -> list[PartitionDump]:
        """Return the documents that the log's records come to."""
        return [
            fold_views(placed((await self.read(partition))[0])) for partition in range(PARTITIONS)
        ]

    async def documents(self, generation: int) -> list[PartitionDump]:
        """Return the documents that are stored."""
        return [await dump(self.store, generation, partition) for partition in range(PARTITIONS)]
