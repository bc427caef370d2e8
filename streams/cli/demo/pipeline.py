"""What `contextgauge demo` runs: services and workers, and watching until all is in the views.

The real thing is a Kafka and a Redis of its own and three worker processes; where the machine
lacks a part of it, the same flows run as tasks of one process, over the log and the view store in
memory. Nothing of either is left behind.
"""

import asyncio
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError, StopError
from contextgauge.kafka.connection import bootstrap_servers
from contextgauge.settings.forms import PREFIX
from schemas.topics import AGENT_MESSAGES, CONTEXT_EVENTS, DEAD_LETTERS, TOPICS
from schemas.views import PARTITION_FIELD, PartitionView
from streams import codec, wiring
from streams.codec import views as view_codec
from streams.edge.local_stack import processes
from streams.edge.local_stack.processes import Running
from streams.edge.local_stack.stack import LocalStack, Name, Service
from streams.edge.memory.log import MemoryLog
from streams.edge.memory.views import MemoryViews
from streams.edge.telemetry.health import HealthBoard
from streams.edge.telemetry.metrics import NoTelemetry
from streams.edge.telemetry.server import listening
from streams.ports import Log, PartitionReader, ViewStore
from streams.settings import CONNECTION_FIELDS, Settings
from streams.settings.serving import ServingSettings
from streams.wiring import workers

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a polite kill, and a terminal that was closed."""

WORKERS = ("derive", "derive", "project")

_STOP_TIMEOUT_S = 10.0
"""A worker ends within the second; one that hangs is killed."""

_STALL_S = 90.0
"""Nothing moved for so long: something is wrong. Longer than any time-out of a worker."""

_LOOK_S = 0.1
"""Pause between looks at how far the workers are."""

_OF_SERVING = frozenset(ServingSettings.model_fields)
"""Settings of a server for others: the demo's page is for who runs it."""

_DEAD_REASON = "dead_reason"
"""Header of a dead letter."""

_DONE_LOOKS = 3
"""So many looks in a row must find all done."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A log and a view store with workers between them. `check` raises if a worker ended."""

    settings: Settings
    log: Log
    store: ViewStore
    check: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Passed:
    """How far the workers are.

    `messages` are published and `derived` of them derived. `end` and `position` are offsets of
    context.events, its end and what the views have come to: markers of transactions take offsets
    too. `records` are those in the views.
    """

    messages: int
    derived: int
    end: int
    position: int
    records: int

    @property
    def is_done(self) -> bool:
        """Tell whether everything that was published is in the views."""
        return self.derived == self.messages and self.position == self.end


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let no signal cut this short: an impatient Ctrl-C would leave processes behind."""
    former = [signal.signal(each, signal.SIG_IGN) for each in ENDING_SIGNALS]
    try:
        yield
    finally:
        for each, handler in zip(ENDING_SIGNALS, former, strict=True):
            signal.signal(each, handler)


@contextmanager
def real_services(progress: Callable[[str], None]) -> Iterator[tuple[Path, dict[Name, Service]]]:
    """Start a Kafka and a Redis under a folder of their own; stop and delete both at the end.

    Raises MissingPartError where this machine lacks a part.
    """
    folder = Path(tempfile.mkdtemp(prefix="contextgauge-demo-"))
    stack = LocalStack(folder)
    try:
        yield folder, stack.start(progress=progress)
    finally:
        with uninterrupted():
            stack.stop()
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def worker_processes(folder: Path, chosen: Settings) -> Iterator[list[Running]]:
    """Run the workers as processes of their own; end them at the end."""
    environment = _environment(chosen)
    running: list[Running] = []
    try:
        for number, name in enumerate(WORKERS, start=1):
            running.append(_start(name, folder / f"{name}-{number}.log", environment))
        yield running
    finally:
        with uninterrupted():
            for process in running:
                processes.stop(process, _STOP_TIMEOUT_S)


def _environment(chosen: Settings) -> dict[str, str]:
    """Return what the processes are told: where Kafka and Redis are, and all else as it is."""
    others = {PREFIX + name.upper() for name in CONNECTION_FIELDS}
    environment = {name: value for name, value in os.environ.items() if name not in others}
    environment[PREFIX + "BOOTSTRAP_SERVERS"] = bootstrap_servers(chosen)
    environment[PREFIX + "REDIS_URL"] = wiring.redis_url(chosen)
    environment[PREFIX + "LOG_FORMAT"] = "json"
    environment[PREFIX + "METRICS_PORT"] = "0"
    environment.pop(PREFIX + "INSTANCE_ID", None)
    return environment


def exports(chosen: Settings) -> list[str]:
    """Return the lines for a shell with which all other commands see the pipeline."""
    told = {
        "BOOTSTRAP_SERVERS": bootstrap_servers(chosen),
        "REDIS_URL": wiring.redis_url(chosen),
    }
    return [f"export {PREFIX}{name}={shlex.quote(value)}" for name, value in told.items()]


def _start(name: str, log_file: Path, environment: dict[str, str]) -> Running:
    command = [sys.executable, "-m", "streams", name]
    return processes.start(
        command, log_file, folder=Path(__file__).parents[3], environment=environment
    )


@dataclass(frozen=True, slots=True)
class PageProcess:
    """A running `contextgauge serve`. `taken_port` is the settings', where another has it."""

    process: Running
    log_file: Path
    taken_port: int | None = None

    def check(self) -> None:
        """Raise StopError if it has ended."""
        if not self.process.alive():
            lines = self.log_file.read_text(errors="replace").strip().splitlines()
            raise StopError(f"the page's server ended: {(lines or ['no word'])[-1]}")

    async def address(self) -> str:
        """Return where it answers, once it does. Raises StopError."""
        clock = SystemClock()
        until_s = clock.monotonic_s() + _STALL_S
        while clock.monotonic_s() < until_s:
            self.check()
            for line in self.log_file.read_text(errors="replace").splitlines():
                with suppress(ValueError):  # half a line, or none of ours
                    told = codec.loads(line)
                    if isinstance(told, dict) and told.get("event") == "serving":
                        return str(told["address"]) + "/"
            await asyncio.sleep(_LOOK_S)
        raise StopError("the page's server does not answer")


@contextmanager
def page_process(folder: Path, chosen: Settings) -> Iterator[PageProcess]:
    """Serve the page to this machine: on the port of the settings, or any where that is taken."""
    environment = _environment(chosen)
    for name in _OF_SERVING:
        environment.pop(PREFIX + name.upper(), None)
    port, taken_port = chosen.serve_port, None
    try:
        listening("127.0.0.1", port).close()
    except OSError:
        port, taken_port = 0, port
    environment |= {PREFIX + "SERVE_PORT": str(port), PREFIX + "LOG_LEVEL": "info"}
    log_file = folder / "serve.log"
    process = _start("serve", log_file, environment)
    try:
        yield PageProcess(process, log_file, taken_port)
    finally:
        with uninterrupted():
            processes.stop(process, _STOP_TIMEOUT_S)


@asynccontextmanager
async def real_pipeline(folder: Path, chosen: Settings) -> AsyncIterator[Pipeline]:
    """Run the workers as processes over a real Kafka and a real Redis."""
    async with AsyncExitStack() as closing:
        log = wiring.kafka_log(chosen, "contextgauge-demo")
        await log.start()
        closing.push_async_callback(log.stop)
        store = wiring.redis_views(chosen)
        await store.start()
        closing.push_async_callback(store.stop)
        await _create_topics(chosen, log)
        running = closing.enter_context(worker_processes(folder, chosen))

        def check() -> None:
            for number, (name, process) in enumerate(zip(WORKERS, running, strict=True), start=1):
                if not process.alive():
                    log_text = (folder / f"{name}-{number}.log").read_text(errors="replace")
                    last = (log_text.strip().splitlines() or ["no word"])[-1]
                    raise StopError(f"a {name} worker ended: {last}")

        yield Pipeline(chosen, log, store, check)


@asynccontextmanager
async def embedded_pipeline(chosen: Settings) -> AsyncIterator[Pipeline]:
    """Run the same workers as tasks of this process, over memory."""
    clock, telemetry, stop = SystemClock(), NoTelemetry(), asyncio.Event()
    log, store = MemoryLog(clock), MemoryViews()

    def health(name: str) -> HealthBoard:
        return HealthBoard(name, clock, chosen.stuck_after_s)

    await _create_topics(chosen, log)
    tasks = [
        asyncio.create_task(
            workers.derive(
                chosen, log, telemetry=telemetry, health=health(name), clock=clock, stop=stop
            )
            if name == "derive"
            else workers.project(
                chosen, log, store, telemetry=telemetry, health=health(name), clock=clock, stop=stop
            )
        )
        for name in WORKERS
    ]

    def check() -> None:
        for task in tasks:
            if task.done():
                task.result()
                raise StopError("a worker ended before its time")

    try:
        yield Pipeline(chosen, log, store, check)
    finally:
        stop.set()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _create_topics(chosen: Settings, log: Log) -> None:
    await log.create_topics([chosen.topic(topic) for topic in TOPICS], chosen.partitions)


async def watch(
    pipeline: Pipeline, published: asyncio.Event, show: Callable[[Passed], None]
) -> Passed:
    """Show how far the workers are until all that was published is in the views.

    Raises StopError if a worker ends, or if nothing moves for long.
    """
    clock = SystemClock()
    async with AsyncExitStack() as closing:
        readers = [
            await closing.enter_async_context(_reader(pipeline, name))
            for name in (AGENT_MESSAGES.name, CONTEXT_EVENTS.name)
        ]
        before, moved_s, done_looks = None, clock.monotonic_s(), 0
        while True:
            all_published = published.is_set()
            pipeline.check()
            now = await _look(pipeline, readers)
            show(now)
            # A transaction's offsets may be seen a moment before its records are.
            done_looks = done_looks + 1 if all_published and now.is_done else 0
            if done_looks == _DONE_LOOKS:
                return now
            if now != before:
                before, moved_s = now, clock.monotonic_s()
            elif clock.monotonic_s() - moved_s > _STALL_S:
                raise StopError(f"nothing has moved for {_STALL_S:.0f} s: {now}")
            await asyncio.sleep(_LOOK_S)


@asynccontextmanager
async def _reader(pipeline: Pipeline, topic: str) -> AsyncIterator[PartitionReader]:
    name = pipeline.settings.topic_prefix + topic
    reader = pipeline.log.reader(name, range(pipeline.settings.partitions))
    await reader.start()
    try:
        yield reader
    finally:
        await reader.stop()


async def _look(pipeline: Pipeline, readers: Sequence[PartitionReader]) -> Passed:
    """Look at positions and ends: the deriver's first, so that nothing seems done too early."""
    messages, events = readers
    chosen = pipeline.settings
    config = workers.derive_config(chosen)
    partitions = range(chosen.partitions)
    try:
        committed = await pipeline.log.committed(config.group, config.messages_topic)
    except RetryError:
        # A new broker does not know the group yet.
        committed = {}
    generations = await pipeline.store.generations()
    generation = generations.active or generations.next
    position = records = 0
    for partition in partitions:
        stored = generation and await pipeline.store.position(generation, partition)
        if not generation or not stored:
            continue
        stats = await pipeline.store.stats(generation, partition)
        counted = stats.get(PARTITION_FIELD.encode())
        if counted is not None:  # else it was dropped between the two reads
            position += stored.offset
            records += view_codec.decode(PartitionView, counted).records
    return Passed(
        messages=sum([(await messages.bounds(partition))[1] for partition in partitions]),
        derived=sum(committed.values()),
        end=sum([(await events.bounds(partition))[1] for partition in partitions]),
        position=position,
        records=records,
    )


async def dead_letters(pipeline: Pipeline) -> Counter[str]:
    """Return how many messages could not be read, by the reason."""
    reasons: Counter[str] = Counter()
    async with _reader(pipeline, DEAD_LETTERS.name) as reader:
        for partition in range(pipeline.settings.partitions):
            position, end = await reader.bounds(partition)
            reader.seek(partition, position)
            while position < end:
                batch = await reader.poll(partition, 1_000, _LOOK_S)
                position = batch.position
                reasons.update(
                    content.decode()
                    for record in batch.records
                    for name, content in record.headers
                    if name == _DEAD_REASON
                )
    return reasons
