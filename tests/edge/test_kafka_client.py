"""What the Kafka client leaves behind when a producer is closed: nothing that asyncio reports."""

import asyncio
import gc
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import ProducerFenced
from aiokafka.structs import RecordMetadata

from contextgauge.kafka.client import append, close_producer
from contextgauge.kafka.options import KafkaOptions
from contextgauge.kafka.producer import KafkaProducer
from streams.edge.kafka import transactions
from streams.ports import SCATTERED, NewRecord
from streams.settings import Settings
from streams.wiring.compaction import service_options

OPTIONS = KafkaOptions("localhost:1")
ONE_EACH = KafkaOptions("localhost:1", batch_bytes=1)
"""Each record in a batch of its own."""


class _Batches:
    """A producer whose second batch cannot be sent, and whose first one fails later."""

    def __init__(self) -> None:
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.sent = 0

    def create_batch(self) -> "_Batches":
        self.records = 0
        return self

    def record_count(self) -> int:
        return 1

    def append(self, **_: object) -> SimpleNamespace | None:
        self.records += 1
        return SimpleNamespace(size=9) if self.records == 1 else None

    async def send_batch(self, *_: object, **__: object) -> asyncio.Future[None]:
        self.sent += 1
        if self.sent > 1:
            raise ProducerFenced
        return self.first


@pytest.mark.parametrize(("second", "first"), [(1, 0), (2, SCATTERED)])
async def test_offsets_count_only_where_no_other_wrote_between_the_batches(
    second: int, first: int
) -> None:
    producer, target = _Batches(), ("topic", 0)
    offsets = iter((0, second))

    async def send_batch(*_: object, **__: object) -> asyncio.Future[RecordMetadata]:
        sent: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        sent.set_result(RecordMetadata("topic", 0, TopicPartition(*target), next(offsets), 0, 0, 0))
        return sent

    producer.send_batch = send_batch  # type: ignore[method-assign]
    records = [NewRecord("topic", 0, None, b"value")] * 2
    written = await transactions._send_all(producer, ONE_EACH, target, records)  # noqa: SLF001 -- only a broker that is slow does so
    assert written == (first, second + 2)


async def test_a_boundary_of_any_size_is_in_one_batch_with_the_result_before_it() -> None:
    settings = Settings(bootstrap_servers="localhost:1")
    options = service_options(settings)
    producer = AIOKafkaProducer(bootstrap_servers="localhost:1", max_batch_size=options.batch_bytes)
    result = NewRecord("topic", 0, b"session", b"{}")
    batch = producer.create_batch()
    largest = result._replace(value=b"a" * settings.message_limit_bytes)
    assert all(append(batch, each) for each in (result, largest))
    await producer.stop()


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


@pytest.mark.parametrize("is_drained", [False, True])
@pytest.mark.parametrize("is_transactional", [False, True])
async def test_batches_that_are_cancelled_leave_nothing_behind(
    *, is_transactional: bool, is_drained: bool
) -> None:
    left, record = _left_behind(), NewRecord("topic", 0, None, b"value")
    producer = AIOKafkaProducer(bootstrap_servers="localhost:1", enable_idempotence=True)
    producer._txn_manager.set_pid_and_epoch(1, 1)  # noqa: SLF001 -- only a broker takes batches
    accumulator = producer._message_accumulator  # noqa: SLF001 -- as above
    target = TopicPartition("topic", 0)
    producer.send_batch = lambda batch, *_, add=accumulator.add_batch, **__: add(batch, target, 1.0)
    publisher = KafkaProducer(OPTIONS)
    publisher._producer = producer  # noqa: SLF001 -- as above
    sending: asyncio.Future[object]
    if is_transactional:
        sending = asyncio.ensure_future(
            transactions._send_all(producer, OPTIONS, ("topic", 0), [record])  # noqa: SLF001 -- as above
        )
    else:
        await publisher.send(record)
        sending = asyncio.ensure_future(publisher.flush())
    for _ in range(5):
        await asyncio.sleep(0)
    if is_drained:
        accumulator._pop_batch(target)  # noqa: SLF001 -- as above
    sending.cancel()
    await asyncio.wait([sending])
    if is_transactional:
        accumulator.fail_all(ProducerFenced())
        await asyncio.sleep(0)
        await close_producer(producer, abandon=True)
    else:
        await publisher.stop()
    accumulator.fail_all(ProducerFenced())
    del producer, publisher, accumulator, sending
    assert await left() == []


async def test_batches_that_are_given_up_leave_nothing_behind() -> None:
    left, producer = _left_behind(), _Batches()
    records = [NewRecord("topic", 0, None, b"value")] * 2
    task = asyncio.ensure_future(transactions._send_all(producer, ONE_EACH, ("topic", 0), records))  # noqa: SLF001 -- only a broker that is slow does so
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
