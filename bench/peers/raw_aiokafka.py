"""A limit, not a peer: consume, decode, produce on aiokafka, without any guarantee.

No rules, no state, no transaction: every so many messages one record of the usual size goes out.
Nothing in Python on aiokafka that looks at each message can be faster.

    python -m bench.peers.raw_aiokafka BOOTSTRAP IN OUT GROUP RECORDS_PER_MESSAGE RECORD_BYTES
"""

import asyncio
import sys
import time
from collections import deque

import orjson
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from bench.peers.filler import HEADERS, filler

_IN_FLIGHT = 16
_COMMIT_S = 0.2
"""How often the position is committed: the harness measures by it."""


async def run(
    bootstrap: str, source: str, target: str, group: str, ratio: float, size: int
) -> None:
    """Run until stopped."""
    consumer = AIOKafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_bytes=64 << 20,
        max_partition_fetch_bytes=8 << 20,
    )
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, max_batch_size=1 << 20, linger_ms=0)
    await consumer.start()
    await producer.start()
    value, due = filler(size), 0.0
    flying: deque[asyncio.Future[object]] = deque()
    committed = time.monotonic()
    while True:
        fetched = await consumer.getmany(timeout_ms=250, max_records=2_000)
        for tp, messages in fetched.items():
            batch = producer.create_batch()
            for message in messages:
                orjson.loads(message.value)
                due += ratio
                while due >= 1.0:
                    due -= 1.0
                    record = {"timestamp": None, "key": message.key, "value": value}
                    if batch.append(**record, headers=HEADERS) is None:
                        flying.append(await send(producer, batch, target, tp))
                        batch = producer.create_batch()
                        batch.append(**record, headers=HEADERS)
            if batch.record_count():
                flying.append(await send(producer, batch, target, tp))
        while len(flying) > _IN_FLIGHT or (flying and not fetched):
            await flying.popleft()
        if time.monotonic() - committed > _COMMIT_S:
            await consumer.commit()
            committed = time.monotonic()


async def send(
    producer: AIOKafkaProducer, batch: object, target: str, tp: TopicPartition
) -> asyncio.Future[object]:
    """Send a batch to the partition that its messages came from."""
    sent: asyncio.Future[object] = await producer.send_batch(batch, target, partition=tp.partition)
    return sent


def main() -> None:
    """Run until stopped."""
    bootstrap, source, target, group, ratio, size = sys.argv[1:]
    uvloop.run(run(bootstrap, source, target, group, float(ratio), int(size)))


if __name__ == "__main__":
    main()
