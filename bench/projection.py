"""What the projector alone carries: records into Redis, without a Kafka.

    python -m bench.projection [--messages 100000] [--batches 2000 200 20]

The records are those of the workload's messages, by partition as the deriver writes them. Batches
of each size are folded and written to a Redis of its own, all partitions in turn. Reported are CPU
microseconds per record, of the worker and of Redis, what Redis is asked per batch (each waits for
its reply), and records per second where both have a core of their own.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from bench import workload
from contextgauge.clock import SystemClock
from contextgauge.window_catalog import bundled
from schemas.views import SESSION_IDLE_MS
from streams.cli.machine import collect_young_garbage
from streams.core.derivation.rules_config import Rules
from streams.edge.local_stack.stack import LocalStack
from streams.edge.redis.view_store import RedisViews
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.retry import RetryLoop
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.partition_state import InputPartition, PartitionState
from streams.flow.project.partition import PartitionProjector, ViewPartition
from streams.ports import Batch, Health, LogRecord

_DERIVED = 2_000
_STUCK_S = 60.0
_TICKS = os.sysconf("SC_CLK_TCK")

Result = dict[str, Any]


def records(messages: int) -> list[list[LogRecord]]:
    """Return each partition's records of the workload's first messages."""
    sent: defaultdict[int, list[LogRecord]] = defaultdict(list)
    for message in islice(workload.read(workload.cached(messages)), messages):
        some = sent[message.partition]
        some.append(LogRecord(len(some), message.at_ms, message.key, message.value, ()))
    by_partition = []
    for partition in range(workload.PARTITIONS):
        place = InputPartition(partition, workload.PARTITIONS, workload.PARTITIONS)
        state = PartitionState(Rules(bundled()), DeriveConfig(), place)
        derived: list[LogRecord] = []
        for begin in range(0, len(sent[partition]), _DERIVED):
            batch = sent[partition][begin : begin + _DERIVED]
            state.apply(batch)
            for record in state.finish(batch[-1].offset + 1).records:
                at_ms = batch[-1].timestamp_ms
                derived.append(
                    LogRecord(len(derived), at_ms, record.key, record.value, record.headers)
                )
        by_partition.append(derived)
    return by_partition


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class _Counted(RedisViews):
    """Counts what is asked of Redis: each has to wait for its reply."""

    asked = 0

    async def _ask(self, doing: str, answer: Awaitable[Any]) -> Any:  # noqa: ANN401 -- of Redis
        self.asked += 1
        return await super()._ask(doing, answer)


async def measure(
    log: Sequence[Sequence[LogRecord]], size: int, url: str, redis_pid: int
) -> Result:
    """Fold all records in batches of a size into an empty Redis."""
    asking: Any = Redis.from_url(url)
    await asking.flushall()
    await asking.aclose()
    store, clock = _Counted(url), SystemClock()
    await store.start()
    health = Health("project", clock, _STUCK_S)
    ports = WorkerPorts(
        telemetry=PrometheusTelemetry(), health=health, clock=clock, stop=asyncio.Event()
    )
    retry = RetryLoop(ports, "redis")
    projectors = []
    for partition in range(len(log)):
        place = ViewPartition(1, partition, len(log))
        projector = PartitionProjector(
            store, retry, place, strict=True, idle_ms=SESSION_IDLE_MS, writer=str(partition)
        )
        await projector.begin(0)
        await projector.open()
        projectors.append(projector)
    batches, store.asked = 0, 0
    began, cpu, redis_cpu = time.perf_counter(), time.process_time(), _cpu_s(redis_pid)
    for begin in range(0, max(map(len, log)), size):
        for projector, logged in zip(projectors, log, strict=True):
            some = logged[begin : begin + size]
            if some:
                await projector.apply(Batch(some, some[-1].offset + 1))
                batches += 1
    wall = time.perf_counter() - began
    cpu, redis_cpu = time.process_time() - cpu, _cpu_s(redis_pid) - redis_cpu
    await store.stop()
    count = sum(map(len, log))
    return {
        "batch": size,
        "records": count,
        "worker_cpu_us": round(cpu / count * 1e6, 1),
        "redis_cpu_us": round(redis_cpu / count * 1e6, 1),
        "round_trips_per_batch": round(store.asked / batches, 2),
        "wall_us": round(wall / count * 1e6, 1),
        "records_per_s": round(count / max(cpu, redis_cpu)),
    }


def run(messages: int, sizes: Sequence[int]) -> list[Result]:
    """Start a Redis of its own, measure each size, and tell."""
    collect_young_garbage()  # as the workers do
    log = records(messages)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        stack = LocalStack(Path(name))
        try:
            redis = stack.start(["redis"])["redis"]
            measured = []
            for size in sizes:
                url, pid = redis.address, redis.process.pid
                measured.append(asyncio.run(measure(log, size, url, pid)))
                print(", ".join(f"{what} {figure}" for what, figure in measured[-1].items()))
        finally:
            stack.stop()
    return measured


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench.projection")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--batches", type=int, nargs="+", default=[2_000, 200, 20])
    given = parser.parse_args()
    print(json.dumps(run(given.messages, given.batches)))


if __name__ == "__main__":
    main()
