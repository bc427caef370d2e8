"""The workload: Claude's stream from the simulator, made once, cached, and published fast.

The same figures give the same bytes on every machine. Messages come in the order of simulated
time, so that sessions are interleaved as they are in life: `SESSIONS` are open at any moment, and
one that ends is followed by another.

    python -m bench.workload --messages 100000       # makes it, and tells what is in it
"""

import argparse
import asyncio
import heapq
import statistics
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.producer.message_accumulator import BatchBuilder

from contextgauge.partitioner import partition_of
from schemas.messages import OBSERVED_HEADER, OBSERVED_LIVE
from streams import codec
from streams.flow.simulator import SessionPlan, SimulatedMessage, SimulationOptions, plans
from streams.flow.simulator.claude_stream import ClaudeStream

CACHE = Path(__file__).parent / ".cache"
"""Ignored by git; what is in it can be made again."""

PARTITIONS = 4
SESSIONS = 1_000
"""Sessions open at any moment. With 1 M messages 1 441 come and go."""

SEED = 20_260_101
VERSION = 2
"""Raised when the same figures would give other bytes: an older cache is then not used."""

_RAMP_MS = 600_000
"""The first sessions begin within so long of each other, so that all are open from early on."""

_RECORD = struct.Struct("<BqHI")
_HEADERS = [(OBSERVED_HEADER, OBSERVED_LIVE)]
_BATCH_BYTES = 64 * 1024
"""A publisher's batch; the fetch of a backlog brings many."""
_IN_FLIGHT = 64


class Message(NamedTuple):
    """One message of the workload: where it goes, when it was seen, its key and value."""

    partition: int
    at_ms: int
    key: bytes
    value: bytes


def generate(messages: int, sessions: int = SESSIONS, seed: int = SEED) -> Iterator[Message]:
    """Yield the workload's first messages, in the order of simulated time."""
    options = SimulationOptions(seed=seed, sessions=sessions, providers=("claude",))
    streams = (plan for plan in plans(options) if plan.dialect == "claude-stream")
    yield from islice(_merge(streams, sessions, options.start_ms), messages)


def _merge(streams: Iterator[SessionPlan], sessions: int, start_ms: int) -> Iterator[Message]:
    running: list[tuple[int, int, SessionPlan, SimulatedMessage, Iterator[SimulatedMessage]]] = []

    def run(number: int, begin_ms: int) -> None:
        plan = replace(next(streams), start_ms=begin_ms)
        upcoming = ClaudeStream(plan).run()
        first = next(upcoming)
        heapq.heappush(running, (first.at_ms, number, plan, first, upcoming))

    for number in range(sessions):
        run(number, start_ms + number * _RAMP_MS // sessions)
    number = sessions
    while True:
        at_ms, order, plan, message, upcoming = running[0]
        key = codec.key_bytes(plan.session_id)
        partition = partition_of(plan.session_id, PARTITIONS)
        yield Message(partition, at_ms, key, message.value)
        following = next(upcoming, None)
        if following is not None:
            heapq.heapreplace(running, (following.at_ms, order, plan, following, upcoming))
            continue
        heapq.heappop(running)
        run(number, at_ms)
        number += 1


def cached(messages: int, sessions: int = SESSIONS, seed: int = SEED) -> Path:
    """Return the file that holds the workload, made now if it is not there."""
    path = CACHE / f"workload-{VERSION}-{seed}-{sessions}-{messages}.bin"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        partial = path.with_suffix(".part")
        with partial.open("wb") as target:
            for partition, at_ms, key, value in generate(messages, sessions, seed):
                target.write(_RECORD.pack(partition, at_ms, len(key), len(value)))
                target.write(key)
                target.write(value)
        partial.replace(path)
    return path


def read(path: Path) -> Iterator[Message]:
    """Yield the messages of a cached workload."""
    with path.open("rb") as source:
        while head := source.read(_RECORD.size):
            partition, at_ms, key_length, value_length = _RECORD.unpack(head)
            yield Message(partition, at_ms, source.read(key_length), source.read(value_length))


async def publish(bootstrap: str, topic: str, messages: Iterator[Message]) -> list[int]:
    """Append the messages to the topic, as a live publisher does; return how many per partition.

    The Kafka time of each is its simulated one, marked as seen live: the same in every run.
    """
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, max_batch_size=_BATCH_BYTES, acks=-1, compression_type="zstd"
    )
    await producer.start()
    counts = [0] * PARTITIONS
    batches: list[BatchBuilder] = [producer.create_batch() for _ in range(PARTITIONS)]
    sent: list[asyncio.Future[object]] = []

    async def send(partition: int) -> None:
        batch, batches[partition] = batches[partition], producer.create_batch()
        sent.append(await producer.send_batch(batch, topic, partition=partition))
        if len(sent) >= _IN_FLIGHT:
            await asyncio.gather(*sent)
            sent.clear()

    try:
        for partition, at_ms, key, value in messages:
            counts[partition] += 1
            record = {"timestamp": at_ms, "key": key, "value": value, "headers": _HEADERS}
            if batches[partition].append(**record) is None:
                await send(partition)
                batches[partition].append(**record)
        for partition in range(PARTITIONS):
            if batches[partition].record_count():
                await send(partition)
        await asyncio.gather(*sent)
    finally:
        await producer.stop()
    return counts


def describe(messages: Iterator[Message]) -> dict[str, object]:
    """Return what the workload is made of: sizes in bytes, sessions, kinds of messages."""
    sizes: list[int] = []
    kinds: Counter[str] = Counter()
    span: dict[bytes, list[int]] = {}
    for index, message in enumerate(messages):
        sizes.append(len(message.value))
        span.setdefault(message.key, [index, index])[1] = index
        body = codec.loads(message.value)
        kinds["/".join(body[name] for name in ("type", "subtype") if name in body)] += 1
    sizes.sort()
    count = len(sizes)
    events = [0] * (count + 1)
    for first, last in span.values():
        events[first] += 1
        events[last + 1] -= 1
    open_now, total = [], 0
    for change in events[:-1]:
        total += change
        open_now.append(total)
    return {
        "messages": count,
        "sessions": len(span),
        "open_median": statistics.median(open_now),
        "bytes_mean": round(sum(sizes) / count),
        **{f"bytes_p{part}": sizes[count * part // 100] for part in (50, 95, 99)},
        "bytes_largest": sizes[-1],
        "kinds": dict(kinds.most_common()),
    }


def main() -> None:
    """Make the workload and tell what is in it."""
    parser = argparse.ArgumentParser(prog="python -m bench.workload")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    given = parser.parse_args()
    path = cached(given.messages, given.sessions)
    for name, figure in describe(read(path)).items():
        print(f"{name}: {figure}")


if __name__ == "__main__":
    main()
