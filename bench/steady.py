"""Publishes at a steady rate, come what may, and notes when each message was handed over.

Batches are as large and compressed as those of the product's own publishers.
"""

import asyncio
import gc
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.producer.message_accumulator import BatchBuilder

from bench import workload
from contextgauge.kafka.options import KafkaOptions
from schemas.messages import OBSERVED_HEADER, OBSERVED_LIVE

SETTLE_S = 2.0
"""The beginning of each load is not counted."""

SPARE_S = 1.0
"""A publisher that ends late hands over more than its share: so much is at hand for it."""

_HEADERS = [(OBSERVED_HEADER, OBSERVED_LIVE)]
_TICK_S = 0.01
"""What is due is handed over so often; a message is timed from its own hand-over."""


class Published(NamedTuple):
    """How many messages were published, until when, how late, and when those that count.

    These are named by partition and offset.
    """

    messages: int
    end: float
    late_ms: list[float]
    handed_over: dict[tuple[int, int], float]


async def publish(
    bootstrap: str,
    topic: str,
    messages: Iterator[workload.Message],
    rate: float,
    seconds: float,
) -> Published:
    """Publish messages at a rate per second.

    What was handed over in the first `SETTLE_S` does not count.
    """
    # At hand, and left alone by the garbage collector: else the publisher would stand still.
    ready = iter(list(islice(messages, math.ceil(rate * (seconds + SPARE_S)))))
    gc.collect()
    gc.freeze()
    options = KafkaOptions(bootstrap)
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        linger_ms=0,
        compression_type=options.compression,
        max_batch_size=options.batch_bytes,
    )
    await producer.start()
    sent: list[tuple[int, int, float, asyncio.Future[Any]]] = []
    late_ms: list[float] = []
    begin, done = time.perf_counter(), 0
    while (now := time.perf_counter()) < begin + seconds:
        due = int((now - begin) * rate) - done
        # The first of them was due when the last of those before was handed over, or later.
        late_ms.append((now - begin - done / rate) * 1_000)
        done += due
        by_partition: defaultdict[int, list[workload.Message]] = defaultdict(list)
        for message in islice(ready, due):
            by_partition[message.partition].append(message)
        for partition, some in by_partition.items():
            handed = time.perf_counter()
            for batch, count in _batches(producer, some):
                flight = await producer.send_batch(batch, topic, partition=partition)
                sent.append((partition, count, handed, flight))
        await asyncio.sleep(_TICK_S)
    end = time.perf_counter()
    handed_over: dict[tuple[int, int], float] = {}
    for partition, count, handed, flight in sent:
        base = (await flight).offset
        if handed - begin >= SETTLE_S:
            handed_over |= {(partition, base + place): handed for place in range(count)}
    await producer.stop()
    gc.unfreeze()
    return Published(sum(count for _, count, _, _ in sent), end, sorted(late_ms), handed_over)


def _batches(
    producer: AIOKafkaProducer, messages: Sequence[workload.Message]
) -> Iterator[tuple[BatchBuilder, int]]:
    """Yield batches of one partition's messages, with how many each has."""
    now_ms, batch, count = time.time_ns() // 1_000_000, producer.create_batch(), 0
    for message in messages:
        record = {"timestamp": now_ms, "key": message.key, "value": message.value}
        if batch.append(**record, headers=_HEADERS) is None:
            yield batch, count
            batch, count = producer.create_batch(), 0
            batch.append(**record, headers=_HEADERS)
        count += 1
    yield batch, count
