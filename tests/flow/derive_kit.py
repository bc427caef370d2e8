"""A derive worker under test: messages in, and what must come out, on any log."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache, lru_cache
from typing import NamedTuple

from contextgauge.clock import SystemClock
from contextgauge.normalise.signals import InputMessage
from contextgauge.partitioner import partition_of
from contextgauge.window_catalog import bundled
from schemas.records import Record
from schemas.topics import TOPICS
from streams import codec
from streams.core.derivation.rules_config import Rules
from streams.flow.common.ports import WorkerPorts
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.deriver import Deriver
from streams.flow.derive.partition_task import DerivePorts
from streams.flow.derive.state_store import StateStore
from streams.flow.derive.worker import run_derive
from streams.flow.simulator import SimulationOptions, sample_sessions
from streams.ports import (
    Clock,
    Health,
    Log,
    LogRecord,
    NewRecord,
)
from tests.patience import PATIENCE_S, pause_s

RULES = Rules(bundled())


class Sent(NamedTuple):
    """A message as a publisher sends it."""

    session_id: str
    value: bytes


@cache
def _samples(seed: int) -> tuple[Sent, ...]:
    return tuple(
        Sent(message.session_id, message.value)
        for message in sample_sessions(SimulationOptions(seed=seed))
    )


def samples(seed: int = 1) -> list[Sent]:
    """Return the messages of a dozen short sessions of every kind."""
    return list(_samples(seed))


def expected(messages: Iterable[Sent], partitions: int = 4) -> list[list[Record]]:
    """Return what one deriver makes of them, by partition, in order."""
    return [list(records) for records in _expected(tuple(messages), partitions)]


@lru_cache(maxsize=32)
def _expected(messages: tuple[Sent, ...], partitions: int) -> list[list[Record]]:
    deriver = Deriver(RULES)
    records: list[list[Record]] = [[] for _ in range(partitions)]
    for session_id, value in messages:
        records[partition_of(session_id, partitions)] += deriver.derive(
            InputMessage(value, session_id)
        ).records
    return records


class Figures:
    """Telemetry that a test can read."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.gauges: dict[tuple[str, ...], float] = {}
        self.observed: defaultdict[str, list[float]] = defaultdict(list)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        self.counts[name, *labels.values()] += int(amount)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.gauges[name, *labels.values()] = value

    def forget(self, name: str, **labels: str) -> None:
        self.gauges.pop((name, *labels.values()), None)

    def observe(self, name: str, value: float, **labels: str) -> None:  # noqa: ARG002 -- none is looked at
        self.observed[name].append(value)

    def total(self, name: str) -> int:
        """Return a counter's sum over its labels."""
        return sum(amount for key, amount in self.counts.items() if key[0] == name)


def worker_ports(
    clock: Clock | None = None, figures: Figures | None = None, stop: asyncio.Event | None = None
) -> WorkerPorts:
    """Return what the parts of a worker are given."""
    return WorkerPorts(
        telemetry=figures or Figures(),
        health=board(),
        clock=clock or SystemClock(),
        stop=stop or asyncio.Event(),
    )


def board() -> Health:
    """Return a board for the notes of workers, whose steps have a minute."""
    return Health("test", SystemClock(), 60.0)


class HastyClock(SystemClock):
    """A clock whose pauses are over at once, and are noted."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0.001)


class Worker:
    """A running derive worker."""

    def __init__(self, task: asyncio.Task[None], stop: asyncio.Event, figures: Figures) -> None:
        self.task, self.figures = task, figures
        self._stop = stop

    def has_partitions(self) -> bool:
        """Tell whether it took any partition over."""
        return self.figures.total("derive_restores") > 0

    def has_derived(self, messages: int) -> bool:
        """Tell whether it derived more messages than so many."""
        return self.figures.total("derive_messages") > messages

    async def stop(self) -> None:
        """End it in good order; raises what it ended with."""
        self._stop.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.task

    async def failed(self) -> BaseException | None:
        """Wait until it has ended by itself; return what it raised."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait([self.task])
        return self.task.exception()


class DeriveKit:
    """Topics of a test's own on a log, and workers on them."""

    def __init__(self, log: Log, prefix: str, clock: Clock | None = None) -> None:
        self.log = log
        self.clock: Clock = clock or SystemClock()
        self.health = board()
        self.rules = RULES
        self.topics = [replace(topic, name=prefix + topic.name) for topic in TOPICS]
        self.config = DeriveConfig(
            messages_topic=prefix + "agent.messages",
            events_topic=prefix + "context.events",
            state_topic=prefix + "context.state",
            dead_topic=prefix + "agent.messages.dead",
            group=prefix + "derive",
            fenced_pause_s=0.1,
            poll_timeout_s=0.02,
        )
        self.partitions = 4

    def renamed(self, group: str) -> DeriveConfig:
        """Return the configuration with the group that the product's own command takes."""
        return replace(self.config, group=group)

    async def create_topics(self) -> None:
        """Create all topics."""
        await self.log.start()
        await self.log.create_topics(self.topics, self.partitions)

    async def publish(self, messages: Sequence[Sent]) -> None:
        """Publish as the product does: keyed, and partitioned by murmur2."""
        await self.append(
            NewRecord(
                self.config.messages_topic,
                partition_of(session_id, self.partitions),
                codec.key_bytes(session_id),
                value,
            )
            for session_id, value in messages
        )

    async def append(self, records: Iterable[NewRecord]) -> None:
        """Publish records as they are."""
        producer = self.log.producer()
        await producer.start()
        for record in records:
            await producer.send(record)
        await producer.flush()
        await producer.stop()

    def start_worker(self, config: DeriveConfig | None = None) -> Worker:
        """Start a worker; `running` also ends it."""
        stop, figures = asyncio.Event(), Figures()
        config = config or self.config
        work = run_derive(self.ports(config, figures, stop))
        return Worker(asyncio.create_task(work), stop, figures)

    def ports(self, config: DeriveConfig, figures: Figures, stop: asyncio.Event) -> DerivePorts:
        """Return what a worker is given."""
        return DerivePorts(
            log=self.log,
            state_store=StateStore(self.log, config.state_topic),
            rules=self.rules,
            config=config,
            telemetry=figures,
            health=self.health,
            clock=self.clock,
            stop=stop,
        )

    @asynccontextmanager
    async def running(self, config: DeriveConfig | None = None) -> AsyncIterator[Worker]:
        """Run a worker, and end it in good order."""
        worker = self.start_worker(config)
        try:
            yield worker
        except BaseException:
            worker.task.cancel()
            await asyncio.wait([worker.task])
            raise
        await worker.stop()

    async def run_until_caught_up(self, config: DeriveConfig | None = None) -> Figures:
        """Run a worker over all that is there."""
        async with self.running(config) as worker:
            await self.caught_up(worker)
        return worker.figures

    async def caught_up(self, *workers: Worker) -> None:
        """Wait until all messages are derived; raise what a worker ended with."""
        topic = self.config.messages_topic
        reader = self.log.reader(topic, range(self.partitions))
        await reader.start()
        ends = {p: (await reader.bounds(p))[1] for p in range(self.partitions)}
        await reader.stop()

        async def done() -> bool:
            for worker in workers:
                if worker.task.done():
                    worker.task.result()
            committed = await self.log.committed(self.config.group, topic)
            return all(committed.get(p, 0) >= end for p, end in ends.items())

        await until(done)

    async def read(self, topic: str, partition: int) -> list[LogRecord]:
        """Read a partition to its committed end."""
        reader = self.log.reader(topic, [partition])
        await reader.start()
        position, end = await reader.bounds(partition)
        reader.seek(partition, position)
        records: list[LogRecord] = []
        async with asyncio.timeout(PATIENCE_S):
            while position < end:
                batch = await reader.poll(partition, 5_000, 0.1)
                records += batch.records
                position = batch.position
        await reader.stop()
        return records

    async def settle(self) -> None:
        """See to it that every transaction has ended; workers that still run are fenced.

        A broker answers a commit, and writes the markers that make it seen a moment later.
        """
        for partition in range(self.partitions):
            producer = self.log.transactional_producer(self.config.transactional_id(partition))
            await producer.start()
            await producer.stop()

    async def events(self) -> list[list[Record]]:
        """Return the derived records, by partition, once all workers have ended."""
        await self.settle()
        return [
            [
                codec.from_binary(record.headers, record.value or b"")
                for record in await self.read(self.config.events_topic, partition)
            ]
            for partition in range(self.partitions)
        ]

    async def dead_letters(self) -> list[LogRecord]:
        """Return the dead letters of all partitions, once all workers have ended."""
        await self.settle()
        return [
            record
            for partition in range(self.partitions)
            for record in await self.read(self.config.dead_topic, partition)
        ]


async def until(done: Callable[[], object]) -> None:
    """Wait until a condition holds; it may be a function or a coroutine function."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            began_s = time.monotonic()
            answer = done()
            if asyncio.iscoroutine(answer):
                answer = await answer
            if answer:
                return
            await asyncio.sleep(pause_s(time.monotonic() - began_s))
