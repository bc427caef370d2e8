"""Runs one system over the backlog and measures it from outside, all in the same way.

What is committed is known from the offsets of the system's consumer group. The peers' become
visible with the records of the same transaction, ours up to 0.1 s later (ADR 0005). The first part
of the backlog warms the process up and is not counted; the rate is that of the rest, to its last
commit.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from bench import process
from bench.systems import OUR_NAME, PREFIX, SOURCE, Command, Job, System
from bench.workload import PARTITIONS
from streams.edge.local_stack.stack import LocalStack

_POLL_S = 0.1
"""Asking takes CPU time that the systems would have: at 0.03 it was a thirteenth of a core."""
_TIMEOUT_S = 300.0
_HEAP_MIB = 1_024
"""All of it from the start, as in Kafka's own start script: a heap that begins small is cleared
every second or two, which delays what is published then by 20 ms."""
_STOP_S = 20.0
_FOR_EVER = {"retention.ms": "-1", "max.message.bytes": str(10 << 20)}
_COMPACT = {"cleanup.policy": "compact", "max.message.bytes": str(10 << 20)}


def stack_in(folder: Path) -> LocalStack:
    """Return the services of a bench, not yet started."""
    return LocalStack(folder / "stack", heap_mib=_HEAP_MIB, is_heap_reserved=True)


class Sample(NamedTuple):
    """What was committed and spent by a moment."""

    at_s: float
    messages: int
    cpu_s: float
    broker_cpu_s: float


class Measured(NamedTuple):
    """One run. Rates are of the part that was counted; CPU is of the system alone."""

    system: str
    messages_per_s: float
    cpu_s_per_million: float
    broker_cpu_s_per_million: float
    peak_mib: float
    start_s: float
    """From the start of the process to the first commit."""
    load: float


class Broker:
    """The one broker: its topics, and what is committed on it."""

    def __init__(self, bootstrap: str, pid: int) -> None:
        self.bootstrap, self.pid = bootstrap, pid
        self._admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)

    async def start(self) -> None:
        """Connect."""
        await self._admin.start()

    async def stop(self) -> None:
        """Disconnect."""
        await self._admin.close()

    async def create(self, name: str, configs: Mapping[str, str]) -> None:
        """Create a topic of which nothing is left from before."""
        if name in await self._admin.list_topics():
            await self._admin.delete_topics([name])
        topic = NewTopic(name, PARTITIONS, 1, topic_configs=dict(configs))
        for _ in range(50):  # a deleted name is free again a moment later
            done = await self._admin.create_topics([topic])
            if not done.topic_errors[0][1]:
                return
            await asyncio.sleep(0.2)
        raise RuntimeError(f"could not create {name}: {done}")

    async def delete(self, names: Sequence[str]) -> None:
        """Delete topics, if they are there."""
        there = set(await self._admin.list_topics())
        if existing := [name for name in names if name in there]:
            await self._admin.delete_topics(existing)

    async def committed(self, group: str, topic: str = SOURCE) -> int:
        """Return how many messages of a topic a group has committed."""
        try:
            offsets = await self._admin.list_consumer_group_offsets(group)
        except KafkaError as error:
            if not error.retriable:
                raise
            return 0  # the broker is making its offsets topic: nothing is committed yet
        return sum(committed.offset for tp, committed in offsets.items() if tp.topic == topic)

    async def left_over(self, run: str) -> list[str]:
        """Return the topics that a run made for itself."""
        return [name for name in await self._admin.list_topics() if run in name]


async def prepare(broker: Broker, system: System, command: Command) -> None:
    """Make the topics that a run writes to, fresh."""
    await broker.create(command.target, _FOR_EVER)
    if system.name == OUR_NAME:
        await broker.create(f"{PREFIX}context.state", _COMPACT)
        await broker.create(f"{PREFIX}agent.messages.dead", _FOR_EVER)


class Ran(NamedTuple):
    """A run from its start to the commit of the last message."""

    began_s: float
    samples: Sequence[Sample]
    peak_mib: float
    load: float


async def measure(
    broker: Broker, system: System, job: Job, messages: int, warm_up: int
) -> Measured:
    """Run a system over the whole backlog of so many messages, and tell what it took.

    The first `warm_up` messages are for imports, caches and Java's compiler: not counted.
    """
    return figures(system.name, await run(broker, system, job, messages), warm_up)


async def run(broker: Broker, system: System, job: Job, messages: int) -> Ran:
    """Run a system until it has committed so many messages."""
    command = system.command(job)
    await prepare(broker, system, command)
    load = process.load()
    log = job.folder.parent / f"{job.run}.log"
    began = time.monotonic()
    with log.open("wb") as output:
        running = subprocess.Popen(  # noqa: ASYNC220 -- starting it takes a moment once a run
            command.arguments,
            env=dict(command.environment),
            cwd=job.folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        samples = await _watch(broker, command.group, running, messages, log)
        peak_mib = process.cost(running.pid).peak_mib
    finally:
        _stop(running)
    return Ran(began, samples, peak_mib, load)


async def _watch(
    broker: Broker, group: str, running: "subprocess.Popen[bytes]", messages: int, log: Path
) -> list[Sample]:
    samples: list[Sample] = []
    deadline = time.monotonic() + _TIMEOUT_S
    while not samples or samples[-1].messages < messages:
        if running.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"it ended, or took too long:\n{_tail(log)}")
        committed = await broker.committed(group)
        spent, broker_spent = process.cost(running.pid), process.cost(broker.pid)
        samples.append(Sample(time.monotonic(), committed, spent.cpu_s, broker_spent.cpu_s))
        await asyncio.sleep(_POLL_S)
    return samples


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2_000:]


def _stop(running: "subprocess.Popen[bytes]") -> None:
    running.terminate()
    try:
        running.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def figures(name: str, ran: Ran, warm_up: int) -> Measured:
    """Return the figures of a run, of the part after the warm-up.

    Raises RuntimeError where a system committed all of that in one go.
    """
    last = ran.samples[-1]
    first = next(each for each in ran.samples if each.messages)
    warm = next(each for each in ran.samples if each.messages >= warm_up)
    counted = last.messages - warm.messages
    if counted <= 0:
        raise RuntimeError(f"{name} committed the whole backlog at once: take more messages")
    return Measured(
        system=name,
        messages_per_s=counted / (last.at_s - warm.at_s),
        cpu_s_per_million=(last.cpu_s - warm.cpu_s) / counted * 1e6,
        broker_cpu_s_per_million=(last.broker_cpu_s - warm.broker_cpu_s) / counted * 1e6,
        peak_mib=ran.peak_mib,
        start_s=first.at_s - ran.began_s,
        load=ran.load,
    )


async def counted(bootstrap: str, topic: str) -> tuple[int, float]:
    """Return how many records a topic holds, and how long their values are on average."""
    consumer: Any = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    records = size = 0
    await consumer.start()
    try:
        parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        consumer.assign(parts)
        ends = await consumer.end_offsets(parts)
        while any([await consumer.position(tp) < ends[tp] for tp in parts]):
            for batch in (await consumer.getmany(timeout_ms=200)).values():
                records += len(batch)
                size += sum(len(record.value) for record in batch)
    finally:
        await consumer.stop()
    return records, size / max(records, 1)
