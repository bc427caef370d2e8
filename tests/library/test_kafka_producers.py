"""The publisher to Kafka: what it holds back, and what it waits for."""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaTimeoutError

from contextgauge.kafka.options import KafkaOptions
from contextgauge.kafka.producer import KafkaProducer
from schemas.topics import MIB, Topic
from streams.edge.kafka.log import KafkaLog
from streams.ports import NewRecord
from tests.flow.derive_kit import until
from tests.patience import PATIENCE_S

BOUND_BYTES = 256 * 1024


class Broker:
    """Stands in for the sending of batches: nothing is acknowledged until it is asked to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches: list[asyncio.Future[None]] = []
        self.timeouts = 0
        """So many of the next batches find no place within aiokafka's patience."""
        monkeypatch.setattr(AIOKafkaProducer, "send_batch", self.send_batch)

    async def send_batch(
        self, _batch: object, _topic: str, *, partition: int
    ) -> asyncio.Future[None]:
        assert partition in {0, 1}
        if self.timeouts:
            self.timeouts -= 1
            raise KafkaTimeoutError
        self.batches.append(asyncio.get_running_loop().create_future())
        return self.batches[-1]

    def acknowledge(self) -> None:
        """Acknowledge all that came so far."""
        for batch in self.batches:
            if not batch.done():
                batch.set_result(None)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    return Broker(monkeypatch)


async def topic_on(kafka: str, prefix: str) -> str:
    log = KafkaLog(KafkaOptions(kafka))
    await log.start()
    topic = Topic(prefix + "records", "any", "delete", -1, MIB)
    await log.create_topics([topic], 2)
    await log.stop()
    return topic.name


async def publisher(kafka: str, **options: int) -> KafkaProducer:
    producer = KafkaProducer(
        KafkaOptions(kafka, publish_buffer_bytes=BOUND_BYTES, **options)  # type: ignore[arg-type]
    )
    await producer.start()
    return producer


@pytest.mark.extended
@pytest.mark.parametrize(("size", "linger_ms"), [(10_000, 0), (10_000, 3_600_000), (10, 0)])
async def test_send_waits_at_the_bound_for_a_broker_that_does_not_answer(
    kafka: str, prefix: str, broker: Broker, size: int, linger_ms: int
) -> None:
    """Also of batches that are far from full, whether time or the bound dispatches them."""
    topic = await topic_on(kafka, prefix)
    producer = await publisher(kafka, publish_linger_ms=linger_ms)
    sent = 0

    async def publish() -> None:
        nonlocal sent
        for number in range(300):
            await producer.send(NewRecord(topic, number % 2, b"", b"x" * size))
            sent += 1
            await asyncio.sleep(0.001)  # time for the linger to dispatch

    publishing = asyncio.create_task(publish())
    async with asyncio.timeout(PATIENCE_S):
        while size > 100 and sent * size <= BOUND_BYTES // 2:  # noqa: ASYNC110 -- a count
            await asyncio.sleep(0.01)
    await asyncio.wait([publishing], timeout=1)
    assert not publishing.done()
    assert sent * size <= BOUND_BYTES
    assert sent < 100
    async with asyncio.timeout(PATIENCE_S):
        while not publishing.done():
            broker.acknowledge()
            await asyncio.sleep(0.01)
    assert sent == 300
    flushing = asyncio.create_task(producer.flush())
    async with asyncio.timeout(PATIENCE_S):
        while not flushing.done():
            broker.acknowledge()
            await asyncio.sleep(0.01)
    await producer.stop()


async def test_a_batch_waits_for_the_broker_without_a_time_limit(
    kafka: str, prefix: str, broker: Broker
) -> None:
    """After 30 s aiokafka gives up, as long as a broker may well be away."""
    topic = await topic_on(kafka, prefix)
    producer = await publisher(kafka)
    broker.timeouts = 3
    await producer.send(NewRecord(topic, 0, b"", b"x"))
    flushing = asyncio.create_task(producer.flush())
    await until(lambda: broker.batches or flushing.done())
    assert producer.waiting_s > 0
    broker.acknowledge()
    async with asyncio.timeout(PATIENCE_S):
        await flushing
    assert producer.waiting_s == 0
    await producer.stop()
