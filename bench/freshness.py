"""From publishing a message to its effect being readable in Redis, at rates or shares of a load.

    python -m bench.freshness [--seconds 30] [--shares 0.1 0.5 0.9] [--rates 200 4000]

One derive and one project worker with default settings. Rates are messages per second, shares are
of the highest load, which is looked for only if there are some. It is what the whole chain carries
while messages are being published: publisher, broker, workers and Redis share the machine. It is
below what the workers carry from a backlog, without a publisher: a load is carried if after some
seconds of it all is readable within `_CARRIED_S`.

Messages go out steadily, come what may; each is timed from being handed to the producer until the
projector's position in Redis is past its records. Position and documents change in one step, so
past it they are readable. How late the publisher itself was is reported too.
"""

import argparse
import asyncio
import contextlib
import json
import math
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import hiredis
from aiokafka import AIOKafkaConsumer, TopicPartition
from redis.asyncio import Redis
from redis.connection import HiredisRespSerializer

from bench import steady, workload
from bench.measure import Broker, stack_in
from bench.systems import ROOT, our_environment
from streams.edge.local_stack.stack import LocalStack
from streams.edge.redis.keys import RedisKeys
from streams.flow.derive.config import GROUP

PREFIX = "fresh."
_SOURCE, _EVENTS = f"{PREFIX}agent.messages", f"{PREFIX}context.events"
_KEYS = "fresh"
_LOOK_S = 0.002
"""How often Redis is asked: a figure is too high by half of this on average."""
_PROBES = 4
"""Halvings of the range that the highest load lies in: it is found to a sixteenth."""
_PROBE_S = 5.0
_CARRIED_S = 0.5
"""A load that is a tenth too high is so far behind after a probe, and one that is carried a
third of it; asking whether all is readable takes part of it too."""
_PATIENCE_S = 120.0
_FIRST = 2_000
_WARM_UP = 0.2
"""Part of the backlog that is not counted."""
_ROUND = 200_000
_NEW_BROKER_S = 90.0
"""For so long Java's compiler takes a core of a broker that has just been started, under any load:
p99 at 4 000 messages/s was seen to fall from 92 to 38 ms."""
USED_BROKER_S = 15.0
"""What is enough for one that has been at work already."""
_WARM_RATE = 4_000.0


class Freshness(NamedTuple):
    """Milliseconds from publishing to readable, at a rate of messages per second."""

    share: float | None
    """Of the highest load; None for a rate that was asked for."""
    rate: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    counted: int
    publisher_late_p99_ms: float
    """How late messages were handed over, which is not in the other figures."""


class Loads(NamedTuple):
    """What is measured, each for so many seconds."""

    rates: Sequence[float]
    """Messages per second."""
    shares: Sequence[float]
    """Of the highest load."""
    seconds: float
    backlog: int
    """Messages that the highest load's bound is found with."""
    warm_s: float
    """Seconds of a load that does not count, first."""


class Pipeline:
    """A Kafka and a Redis with both workers, and how far each has come."""

    def __init__(self, bootstrap: str, redis_url: str, broker: Broker) -> None:
        self.bootstrap, self._broker = bootstrap, broker
        self._redis: Any = Redis.from_url(redis_url)
        self._redis_url = urlsplit(redis_url)
        generation = RedisKeys(_KEYS).of
        self._positions = [generation(1, number).position for number in range(workload.PARTITIONS)]
        pack: Any = HiredisRespSerializer().pack
        # One piece, packed once: what polls so often must not load what it measures.
        self._look = b"".join(pack("HGET", key, "offset")[0] for key in self._positions)
        self.seen: list[list[tuple[int, float]]] = [[] for _ in self._positions]
        """By partition: positions as they were seen to come, and when, seconds."""

    async def positions(self) -> list[int]:
        """Return the projector's position in each partition of the records."""
        async with self._redis.pipeline(transaction=False) as asking:
            for key in self._positions:
                asking.hget(key, "offset")
            return [int(position or 0) for position in await asking.execute()]

    async def watch(self) -> None:
        """Note positions as they come, until cancelled."""
        reader, writer = await asyncio.open_connection(
            self._redis_url.hostname, self._redis_url.port
        )
        try:
            replies = hiredis.Reader()
            while True:
                writer.write(self._look)
                for seen in self.seen:
                    while (reply := replies.gets()) is False:
                        replies.feed(await reader.read(4_096))
                    position = int(reply or 0)
                    if not seen or seen[-1][0] < position:
                        seen.append((position, time.perf_counter()))
                await asyncio.sleep(_LOOK_S)
        finally:
            writer.close()

    async def derived(self) -> int:
        """Return how many messages are derived and committed."""
        return await self._broker.committed(GROUP, _SOURCE)

    async def caught_up(self, messages: int) -> float:
        """Wait until all messages are derived and projected; return when that was seen."""
        async with asyncio.timeout(_PATIENCE_S):
            while await self.derived() < messages:  # noqa: ASYNC110 -- other processes do it
                await asyncio.sleep(0.01)
            ends = await self._ends()
            while any(  # noqa: ASYNC110 -- as above
                one < end for one, end in zip(await self.positions(), ends, strict=True)
            ):
                await asyncio.sleep(0.01)
        return time.perf_counter()

    async def _ends(self) -> list[int]:
        consumer = AIOKafkaConsumer(bootstrap_servers=self.bootstrap)
        await consumer.start()
        parts = [TopicPartition(_EVENTS, number) for number in range(workload.PARTITIONS)]
        ends = await consumer.end_offsets(parts)
        await consumer.stop()
        # The last offset of a partition may be a transaction's marker, which is no record.
        return [max(ends[tp] - 1, 0) for tp in parts]

    async def close(self) -> None:
        """Let go of Redis."""
        await self._redis.aclose()


def settings_of(bootstrap: str, redis_url: str) -> dict[str, str]:
    """Return the environment of the commands that are measured over these services."""
    return {
        **our_environment(),
        "CONTEXTGAUGE_BOOTSTRAP_SERVERS": bootstrap,
        "CONTEXTGAUGE_REDIS_URL": redis_url,
        "CONTEXTGAUGE_TOPIC_PREFIX": PREFIX,
        "CONTEXTGAUGE_KEY_PREFIX": _KEYS,
        "CONTEXTGAUGE_PARTITIONS": str(workload.PARTITIONS),
        "CONTEXTGAUGE_REPLICAS": "1",
        "CONTEXTGAUGE_LOG_LEVEL": "warning",
        # The workload's own times are long past.
        "CONTEXTGAUGE_MESSAGES_RETENTION_DAYS": "-1",
    }


@contextlib.asynccontextmanager
async def pipeline(stack: LocalStack, folder: Path) -> AsyncIterator[Pipeline]:
    """Run both workers with default settings on a stack that is up."""
    services = stack.services()
    bootstrap, redis_url = services["kafka"].address, services["redis"].address
    environment = settings_of(bootstrap, redis_url)
    streams = [sys.executable, "-m", "streams"]
    subprocess.run(  # noqa: ASYNC221 -- nothing else goes on yet
        [*streams, "topics", "create"], env=environment, cwd=ROOT, check=True, capture_output=True
    )
    broker = Broker(bootstrap, services["kafka"].process.pid)
    await broker.start()
    made = Pipeline(bootstrap, redis_url, broker)
    with contextlib.ExitStack() as workers:
        for name in ("derive", "project"):
            log = workers.enter_context((folder / f"{name}.log").open("wb"))
            worker = subprocess.Popen(  # noqa: ASYNC220 -- as above
                [*streams, name], env=environment, cwd=ROOT, stdout=log, stderr=log
            )
            workers.callback(worker.wait)
            workers.callback(worker.terminate)
        try:
            yield made
        finally:
            await made.close()
            await broker.stop()


async def drained(made: Pipeline, messages: Iterator[workload.Message], count: int) -> float:
    """Return how many messages per second the workers carry from a backlog into Redis."""
    before = await made.derived()
    await workload.publish(made.bootstrap, _SOURCE, islice(messages, count))
    warm = before + count * _WARM_UP
    while (derived := await made.derived()) < warm:  # noqa: ASYNC110 -- as above
        await asyncio.sleep(0.005)
    begin = time.perf_counter()
    end = await made.caught_up(before + count)
    return (before + count - derived) / (end - begin)


async def highest_load(made: Pipeline, messages: Iterator[workload.Message], bound: float) -> float:
    """Return how many messages per second the chain carries for good, at most the bound."""
    carried, too_high = 0.0, bound
    for _ in range(_PROBES):
        rate = (carried + too_high) / 2
        before = await made.derived()
        done = await steady.publish(made.bootstrap, _SOURCE, messages, rate, _PROBE_S)
        behind_s = await made.caught_up(before + done.messages) - done.end
        late_s = done.late_ms[-1] / 1_000
        is_carried = max(behind_s, late_s) <= _CARRIED_S
        print(
            f"  {rate:,.0f}/s: {behind_s:.2f} s behind after {_PROBE_S:.0f} s, "
            f"the publisher {late_s:.2f} s late at worst",
            flush=True,
        )
        carried, too_high = (rate, too_high) if is_carried else (carried, rate)
    return carried or too_high


async def _records(bootstrap: str) -> list[tuple[int, int, int]]:
    """Return each record's partition, offset, and the offset of the message that it is from."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    await consumer.start()
    parts = [TopicPartition(_EVENTS, number) for number in range(workload.PARTITIONS)]
    consumer.assign(parts)
    ends = await consumer.end_offsets(parts)
    places: list[tuple[int, int, int]] = []
    while any([await consumer.position(tp) < ends[tp] for tp in parts]):
        for tp, batch in (await consumer.getmany(timeout_ms=200)).items():
            for record in batch:
                source = int(dict(record.headers)["src_offset"])
                places.append((tp.partition, record.offset, source))
    await consumer.stop()
    return places


def delays(
    records: Iterable[tuple[int, int, int]],
    handed_over: Mapping[tuple[int, int], float],
    seen: Sequence[Sequence[tuple[int, float]]],
) -> list[float]:
    """Return the milliseconds from handing a message over to its records' being readable, sorted.

    `records` are as of `_records`; `seen` has, by partition, positions and when each was seen.
    A record is readable from the first position past its offset. Others' records do not count.
    """
    delays_ms: list[float] = []
    for partition, offset, source in records:
        handed = handed_over.get((partition, source))
        if handed is not None:
            place = bisect_right(seen[partition], offset, key=lambda one: one[0])
            delays_ms.append((seen[partition][place][1] - handed) * 1_000)
    return sorted(delays_ms)


async def at_rate(
    made: Pipeline,
    messages: Iterator[workload.Message],
    rate: float,
    seconds: float,
    share: float | None = None,
) -> Freshness:
    """Measure at a rate of messages per second, which may be a share of the highest load."""
    before = await made.derived()
    for seen in made.seen:
        seen.clear()
    watching = asyncio.create_task(made.watch())
    done = await steady.publish(made.bootstrap, _SOURCE, messages, rate, seconds + steady.SETTLE_S)
    await made.caught_up(before + done.messages)
    await asyncio.sleep(0.1)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    delays_ms = delays(await _records(made.bootstrap), done.handed_over, made.seen)
    p50, p95, p99 = (round(delays_ms[len(delays_ms) * part // 100], 1) for part in (50, 95, 99))
    late_ms = round(done.late_ms[len(done.late_ms) * 99 // 100], 1)
    return Freshness(share, round(rate), p50, p95, p99, len(delays_ms), late_ms)


async def measure(stack: LocalStack, folder: Path, loads: Loads) -> list[Freshness]:
    """Measure at all rates, then at all shares of the highest load; tell how high that is."""
    first = workload.read(workload.cached(_FIRST + (loads.backlog if loads.shares else 0)))
    async with pipeline(stack, folder) as made:
        await workload.publish(made.bootstrap, _SOURCE, islice(first, _FIRST))
        await made.caught_up(_FIRST)
        bound = await drained(made, first, loads.backlog) if loads.shares else 0.0
        # Other sessions: what is known already would give no records. A round number, to be cached.
        wanted = (
            _WARM_RATE * (loads.warm_s + steady.SPARE_S)
            + bound * _PROBES * (_PROBE_S + steady.SPARE_S)
            + (sum(loads.rates) + bound * sum(loads.shares))
            * (loads.seconds + steady.SETTLE_S + steady.SPARE_S)
        )
        wanted = max(math.ceil(wanted / _ROUND), 1) * _ROUND
        messages = workload.read(workload.cached(wanted, seed=workload.SEED + 1))
        before = await made.derived()
        done = await steady.publish(made.bootstrap, _SOURCE, messages, _WARM_RATE, loads.warm_s)
        await made.caught_up(before + done.messages)
        steps = [await at_rate(made, messages, rate, loads.seconds) for rate in loads.rates]
        if loads.shares:
            print(f"from a backlog: {bound:,.0f} messages/s", flush=True)
            highest = await highest_load(made, messages, bound)
            print(f"highest load into Redis: {highest:,.0f} messages/s")
            steps += [
                await at_rate(made, messages, share * highest, loads.seconds, share)
                for share in loads.shares
            ]
    return steps


async def run(loads: Loads) -> list[Freshness]:
    """Start services of its own, measure, tell, and return what was found."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        stack = stack_in(folder)
        try:
            return await on(stack, folder, loads)
        finally:
            stack.stop()


async def on(stack: LocalStack, folder: Path, loads: Loads) -> list[Freshness]:
    """Measure on a stack; tell, and return what was found."""
    stack.start(["kafka", "redis"])
    steps = await measure(stack, folder, loads)
    for each in steps:
        share = "" if each.share is None else f"{each.share:.0%} of it, "
        print(
            f"  at {share}{each.rate:,.0f}/s: p50 {each.p50_ms} ms, p95 {each.p95_ms} ms, "
            f"p99 {each.p99_ms} ms of {each.counted:,} records "
            f"(publisher late: p99 {each.publisher_late_p99_ms} ms)"
        )
    return steps


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench.freshness")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each load")
    parser.add_argument("--shares", type=float, nargs="*", help="of the highest load")
    parser.add_argument("--rates", type=float, nargs="*", default=[], help="messages per second")
    parser.add_argument("--backlog", type=int, default=100_000, help="for the highest load")
    given = parser.parse_args()
    shares = given.shares
    if shares is None:
        shares = [] if given.rates else [0.1, 0.5, 0.9]
    loads = Loads(given.rates, shares, given.seconds, given.backlog, _NEW_BROKER_S)
    steps = asyncio.run(run(loads))
    print(json.dumps([each._asdict() for each in steps]))


if __name__ == "__main__":
    main()
