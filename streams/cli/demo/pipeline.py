"""What `contextgauge demo` runs: services and workers, and the watch until all is in the views.

The real pipeline is a Kafka and a Redis of its own and three worker processes. Where the machine
lacks a part, the same flows run as tasks of one process, over the log and the view store in memory.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError, StopError
from contextgauge.kafka.connection import bootstrap_servers
from contextgauge.settings.forms import PREFIX
from contextgauge.settings.local_stack import Service
from schemas.topics import AGENT_MESSAGES, CONTEXT_EVENTS, DEAD_LETTERS, TOPICS, Topic
from schemas.views import PARTITION_FIELD, PartitionView
from streams import wiring
from streams.codec import view_codec
from streams.edge.local_stack import processes
from streams.edge.local_stack.stack import LocalStack, Name
from streams.edge.memory.log import MemoryLog
from streams.edge.memory.view_store import MemoryViews
from streams.edge.signals import on_ending_signals
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.flow.dead_letters.reading import DeadReading, Selection
from streams.ports import Health, Log, PartitionReader, ViewStore
from streams.settings import CONNECTION_FIELDS, Settings
from streams.wiring import workers
from streams.wiring.context import WorkerContext

WORKERS = ("derive", "derive", "project")

_STOP_TIMEOUT_S = 10.0
"""A worker stops within a second; one that hangs is killed."""

STALL_S = 90.0
"""Without progress for so long, something is wrong. Longer than any timeout of a worker."""

LOOK_S = 0.1
"""Pause between looks at the progress."""

_DONE_LOOKS = 3
"""So many looks in a row must find everything done."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A log and a view store with workers between them. `check` raises if a worker ended."""

    settings: Settings
    log: Log
    store: ViewStore
    check: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Progressed:
    """How far the workers are.

    `derived` of the published `messages` are derived. `position` and `end` are offsets of
    context.events, how far the views are and the end of the topic; transaction markers take offsets
    too. `records` are those in the views.
    """

    messages: int
    derived: int
    end: int
    position: int
    records: int

    @property
    def is_done(self) -> bool:
        """Whether everything that was published is in the views."""
        return self.derived == self.messages and self.position == self.end


@contextmanager
def real_services(progress: Callable[[str], None]) -> Iterator[tuple[Path, dict[Name, Service]]]:
    """Start Kafka and Redis in a temporary folder; stop and delete both at the end.

    Raises MissingPartError where this machine lacks a part.
    """
    folder = Path(tempfile.mkdtemp(prefix="contextgauge-demo-"))
    stack = LocalStack(folder, is_brief=True)
    try:
        yield folder, stack.start(progress=progress)
    finally:
        # A second Ctrl-C would leave processes behind.
        with on_ending_signals(signal.SIG_IGN):
            stack.stop()
            shutil.rmtree(folder, ignore_errors=True)


class Worker:
    """A long-running command as a process, while the context lasts."""

    def __init__(self, name: str, log_file: Path, environment: dict[str, str]) -> None:
        self.name, self.log_file = name, log_file
        folder = Path(__file__).parents[3]
        command = [sys.executable, "-m", "streams", name]
        self._process = processes.start(command, log_file, folder=folder, environment=environment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with on_ending_signals(signal.SIG_IGN):
            processes.stop(self._process, _STOP_TIMEOUT_S)

    def check(self) -> None:
        """Raise StopError if it has ended."""
        if not self._process.alive():
            lines = self.log_file.read_text(errors="replace").strip().splitlines()
            raise StopError(f"`{self.name}` ended: {(lines or ['its log is empty'])[-1]}")


def environment_of(settings: Settings) -> dict[str, str]:
    """Return the environment of a process: this one's, but for the connections."""
    connections = {PREFIX + name.upper() for name in CONNECTION_FIELDS}
    environment = {name: value for name, value in os.environ.items() if name not in connections}
    environment |= connection_variables(settings)
    environment |= {PREFIX + "LOG_FORMAT": "json", PREFIX + "METRICS_PORT": "0"}
    environment.pop(PREFIX + "INSTANCE_ID", None)
    return environment


def connection_variables(settings: Settings) -> dict[str, str]:
    """Return the variables that connect other commands to the pipeline."""
    return {
        PREFIX + "BOOTSTRAP_SERVERS": bootstrap_servers(settings),
        PREFIX + "REDIS_URL": wiring.redis_url(settings),
    }


@asynccontextmanager
async def real_pipeline(
    folder: Path, settings: Settings, commands: Sequence[str] = WORKERS
) -> AsyncIterator[Pipeline]:
    """Run the commands of workers as processes over a real Kafka and a real Redis."""
    async with AsyncExitStack() as closing:
        log = await closing.enter_async_context(
            wiring.started(wiring.kafka_log(settings, "contextgauge-demo"))
        )
        store = await closing.enter_async_context(wiring.started(wiring.redis_views(settings)))
        await _create_topics(settings, log)
        environment = environment_of(settings)
        running = [
            closing.enter_context(Worker(name, folder / f"{name}-{number}.log", environment))
            for number, name in enumerate(commands, start=1)
        ]

        def check() -> None:
            for worker in running:
                worker.check()

        yield Pipeline(settings, log, store, check)


@asynccontextmanager
async def embedded_pipeline(settings: Settings) -> AsyncIterator[Pipeline]:
    """Run the same workers as tasks of this process, in memory."""
    clock, stop = SystemClock(), asyncio.Event()
    log, store = MemoryLog(clock), MemoryViews()

    def work(name: str) -> Coroutine[None, None, None]:
        worker = WorkerContext(
            settings=settings,
            telemetry=PrometheusTelemetry(),
            health=Health(name, clock, settings.stuck_after_s),
            clock=clock,
            stop=stop,
        )
        is_derive = name == "derive"
        return workers.derive(worker, log) if is_derive else workers.project(worker, log, store)

    await _create_topics(settings, log)
    tasks = [asyncio.create_task(work(name)) for name in WORKERS]

    def check() -> None:
        for task in tasks:
            if task.done():
                task.result()
                raise StopError("a worker ended early")

    try:
        yield Pipeline(settings, log, store, check)
    finally:
        stop.set()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _create_topics(settings: Settings, log: Log) -> None:
    await log.create_topics([settings.topic(topic) for topic in TOPICS], settings.partitions)


async def watch(
    pipeline: Pipeline, published: asyncio.Event, show: Callable[[Progressed], None]
) -> Progressed:
    """Show the progress until everything that was published is in the views.

    Raises StopError if a worker ends, or without progress for long.
    """
    clock = SystemClock()
    async with AsyncExitStack() as closing:
        readers = [
            await closing.enter_async_context(_reader(pipeline, topic))
            for topic in (AGENT_MESSAGES, CONTEXT_EVENTS)
        ]
        before, moved_s, done_looks = None, clock.monotonic_s(), 0
        while True:
            all_published = published.is_set()
            pipeline.check()
            now = await _look(pipeline, readers)
            show(now)
            # A transaction's offsets may be visible a moment before its records are.
            done_looks = done_looks + 1 if all_published and now.is_done else 0
            if done_looks == _DONE_LOOKS:
                return now
            if now != before:
                before, moved_s = now, clock.monotonic_s()
            elif clock.monotonic_s() - moved_s > STALL_S:
                raise StopError(f"no progress for {STALL_S:.0f} s: {now}")
            await asyncio.sleep(LOOK_S)


def _reader(pipeline: Pipeline, topic: Topic) -> AbstractAsyncContextManager[PartitionReader]:
    name = pipeline.settings.topic(topic).name
    return wiring.started(pipeline.log.reader(name, range(pipeline.settings.partitions)))


async def _look(pipeline: Pipeline, readers: Sequence[PartitionReader]) -> Progressed:
    """Read positions, then ends: in this order nothing seems done too early."""
    messages, events = readers
    settings = pipeline.settings
    config = workers.derive_config(settings)
    partitions = range(settings.partitions)
    try:
        committed = await pipeline.log.committed(config.group, config.messages_topic)
    except RetryError:
        committed = {}  # a new broker does not know the group yet
    generations = await pipeline.store.generations()
    generation = generations.active or generations.next
    position = records = 0
    for partition in partitions:
        stored = generation and await pipeline.store.position(generation, partition)
        if not generation or not stored:
            continue
        stats = await pipeline.store.stats(generation, partition)
        view = stats.get(PARTITION_FIELD.encode())
        if view is not None:  # otherwise it was dropped between the two reads
            position += stored.offset
            records += view_codec.decode(PartitionView, view).records
    return Progressed(
        messages=sum([(await messages.bounds(partition))[1] for partition in partitions]),
        derived=sum(committed.values()),
        end=sum([(await events.bounds(partition))[1] for partition in partitions]),
        position=position,
        records=records,
    )


async def dead_letters(pipeline: Pipeline) -> Counter[str]:
    """Return the number of dead letters by reason."""
    async with _reader(pipeline, DEAD_LETTERS) as reader:
        reading = DeadReading(reader, SystemClock(), Selection(), lambda letter: letter.reason)
        await reading.begin(range(pipeline.settings.partitions))
        return Counter([reason async for reason in reading.as_sent()])
