"""The doctor behind a transaction that another application has left open, on a real Kafka."""

import time
from collections.abc import AsyncIterator

import pytest
from aiokafka import AIOKafkaProducer

from streams.edge.kafka.inspector import KafkaInspector
from streams.ports.inspection import Failure, OpenTransaction
from streams.settings import Settings
from streams.wiring import kafka_options
from tests.commands import Command
from tests.doctor.test_services import eventually, publish, worst
from tests.flow.derive_kit import until

pytestmark = pytest.mark.service

_TIMEOUT_MS = 240_000


@pytest.fixture
async def foreign(settings: dict[str, str], command: Command) -> AsyncIterator[AIOKafkaProducer]:
    """A producer whose transaction is open on both partitions of `agent.messages`."""
    settings["TRANSACTION_TIMEOUT_MS"] = "1000"
    assert command("topics", "create", **settings).returncode == 0
    producer = AIOKafkaProducer(
        bootstrap_servers=settings["BOOTSTRAP_SERVERS"],
        transactional_id=settings["TOPIC_PREFIX"] + "another-app",
        transaction_timeout_ms=_TIMEOUT_MS,
    )
    await producer.start()
    await producer.begin_transaction()
    for partition in range(2):
        topic = settings["TOPIC_PREFIX"] + "agent.messages"
        await producer.send_and_wait(topic, b"{}", key=b"foreign", partition=partition)
    yield producer
    await producer.stop()


@pytest.mark.extended
async def test_who_holds_the_messages_is_named(
    foreign: AIOKafkaProducer, settings: dict[str, str]
) -> None:
    await publish(settings, [f"s-{number}" for number in range(20)], keyed=True)
    messages = settings["TOPIC_PREFIX"] + "agent.messages"

    findings = await eventually(
        settings, lambda seen: worst(seen, "topics.transactions") == "warning"
    )
    (finding,) = findings["topics.transactions"]
    assert finding.subject == messages
    assert "on partition 0, 1 and holds back 22 offsets: that of producer" in finding.message
    assert f"with the transactional id {settings['TOPIC_PREFIX']}another-app" in finding.message
    assert "Kafka aborts its transaction in 3 min (its timeout is 4 min)" in finding.remedy
    assert f"--topic {messages} --partition 0 --start-offset 0`" in finding.remedy
    # No committed message is there, and yet these wait.
    assert findings["derive.lag"][0].figures["waiting"] == 22
    assert findings["derive.workers"][0].severity == "error"

    await foreign.abort_transaction()
    findings = await eventually(settings, lambda seen: worst(seen, "topics.transactions") == "ok")
    assert findings["publishers.keys"][0].figures["looked"] == 20


async def test_the_inspector_finds_open_transactions_with_their_beginnings(
    foreign: AIOKafkaProducer, settings: dict[str, str]
) -> None:
    topic = settings["TOPIC_PREFIX"] + "agent.messages"
    chosen = Settings(bootstrap_servers=settings["BOOTSTRAP_SERVERS"])
    inspector = KafkaInspector(kafka_options(chosen))
    await inspector.bootstrap()
    await inspector.cluster([topic])
    transactions = await inspector.transactions({topic: [0, 1]})
    assert not isinstance(transactions, Failure)
    for partition in range(2):
        (held,) = transactions[topic, partition]
        assert isinstance(held, OpenTransaction)
        assert held.start == 0
        assert held.transactional_id == settings["TOPIC_PREFIX"] + "another-app"
        assert held.timeout_ms == _TIMEOUT_MS
        assert abs(held.since_ms - time.time() * 1_000) < 60_000
    assert len({held.producer_id for (held,) in transactions.values()}) == 1
    await foreign.commit_transaction()

    async def is_settled() -> bool:  # a broker answers before it writes the markers
        return await inspector.transactions({topic: [0]}) == {(topic, 0): []}

    await until(is_settled)
    missing = await inspector.transactions({topic: [7]})
    assert isinstance(missing, Failure)
    assert missing.kind == "away"
    await inspector.stop()
