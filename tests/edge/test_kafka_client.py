"""What the Kafka client leaves behind when a producer is closed: nothing that asyncio reports."""

import asyncio
import gc
from typing import Any

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import ProducerFenced

from contextgauge.kafka.client import close_producer
from streams.edge.kafka import transactions
from streams.ports import NewRecord


class _Batches:
    """A producer whose second batch cannot be sent, and whose first one fails later."""

    def __init__(self) -> None:
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.batches = 0

    def create_batch(self) -> "_Batches":
        self.batches += 1
        self.records = 0
        return self

    def append(self, **_: object) -> bool | None:
        self.records += 1
        return True if self.records == 1 else None

    async def send_batch(self, *_: object, **__: object) -> asyncio.Future[None]:
        if self.batches > 1:
            raise ProducerFenced
        return self.first


async def test_a_transaction_that_was_cut_off_by_a_fence_leaves_nothing_behind() -> None:
    left = _left_behind()
    producer = AIOKafkaProducer(bootstrap_servers="localhost:1", transactional_id="id")
    manager = producer._txn_manager  # noqa: SLF001 -- only a broker fences
    manager.set_pid_and_epoch(1, 1)
    manager.begin_transaction()
    target = TopicPartition("topic", 0)
    accumulator = producer._message_accumulator  # noqa: SLF001 -- as above
    sent = await accumulator.add_batch(producer.create_batch(), target, 1.0)
    manager.fatal_error(ProducerFenced())
    accumulator.fail_all(ProducerFenced())
    assert isinstance((await asyncio.gather(sent, return_exceptions=True))[0], ProducerFenced)
    await close_producer(producer, abandon=True)
    del producer, manager, accumulator, sent
    assert await left() == []


async def test_batches_that_are_given_up_leave_nothing_behind() -> None:
    left, producer = _left_behind(), _Batches()
    records = [NewRecord("topic", 0, None, b"value")] * 2
    task = asyncio.ensure_future(transactions._send_all(producer, ("topic", 0), records))  # type: ignore[arg-type]  # noqa: SLF001 -- only a broker that is slow does so
    await asyncio.wait([task])
    assert isinstance(task.exception(), ProducerFenced)
    producer.first.set_exception(ProducerFenced())
    del producer, task
    assert await left() == []


def _left_behind() -> Any:
    loop, messages = asyncio.get_running_loop(), list[str]()
    loop.set_exception_handler(lambda _, context: messages.append(context["message"]))

    async def left() -> list[str]:
        await asyncio.sleep(0)
        gc.collect()
        return messages

    return left
