"""What the producers share: batches, bounded waiting, and a close that never hangs.

Producers build record batches themselves: one future for a batch rather than for a record is what
makes them fast. aiokafka gives no way to let go of a producer whose broker is away; where that
takes one of its private names, the line says so.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.structs import RecordMetadata

from contextgauge.errors import RetryError
from contextgauge.kafka.options import translated
from contextgauge.ports import NewRecord

_STOP_TIMEOUT_S = 5.0
"""An orderly stop has nothing to wait for but the closing of connections."""

UNKNOWN_OFFSET: Final = -1
"""The broker's answer for a batch that it had already appended."""


def append(builder: BatchBuilder, record: NewRecord) -> int:
    """Add a record; return its bytes in the batch, 0 where that is full. The first always fits."""
    done = builder.append(
        timestamp=record.timestamp_ms,
        key=record.key,
        value=record.value,
        headers=list(record.headers),
    )
    return 0 if done is None else done.size


@asynccontextmanager
async def bounded(seconds: float, action: str) -> AsyncIterator[None]:
    """Bound an action in time, and raise Kafka's errors as this project's."""
    try:
        async with asyncio.timeout(seconds):
            with translated(action):
                yield
    except TimeoutError as error:
        raise RetryError(f"{action}: no answer in {seconds:.0f} s") from error


async def close_producer(producer: AIOKafkaProducer, *, abandon: bool) -> None:
    """Close a producer; `abandon` gives up what it has in work instead of waiting for it.

    aiokafka's `stop` waits for every batch to be delivered, and so for ever while the broker is
    away. Its sender finishes open requests when cancelled, and is cancelled until it lets go.
    """
    sender = producer._sender  # noqa: SLF001 -- no public way to stop without flushing
    task: asyncio.Task[None] | None = sender.sender_task
    if abandon and task is not None:
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=0.1)
        producer._message_accumulator.fail_all(  # noqa: SLF001 -- as above
            KafkaError("the producer was closed with work left")
        )
    elif abandon:
        await producer.client.close()
    for future in _waited_for(producer):
        _retrieve(future)
    try:
        async with asyncio.timeout(_STOP_TIMEOUT_S):
            await producer.stop()
    except TimeoutError:
        await producer.client.close()


def _waited_for(producer: AIOKafkaProducer) -> Iterator[asyncio.Future[Any]]:
    """Yield what the client itself waits for, and does not any more."""
    transactions = producer._txn_manager  # noqa: SLF001 -- no public way
    if transactions is not None and transactions.wait_for_transaction_end() is not None:
        yield transactions.wait_for_transaction_end()
    for batches in producer._message_accumulator._batches.values():  # noqa: SLF001 -- as above
        yield from (batch._drain_waiter for batch in batches)  # noqa: SLF001 -- as above


async def hand_over(
    producer: AIOKafkaProducer, builder: BatchBuilder, target: tuple[str, int]
) -> asyncio.Future[RecordMetadata]:
    """Hand a batch over; return what tells where it was written, which is not to be cancelled.

    What cancels it would have asyncio log the error that the batch ends with.
    """
    topic, partition = target
    acknowledged: asyncio.Future[RecordMetadata] = await producer.send_batch(
        builder, topic, partition=partition
    )
    _retrieve(acknowledged)
    return acknowledged


def _retrieve(future: asyncio.Future[Any]) -> None:
    """Take what a future of the client ends with: where no one does, asyncio logs a traceback."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
