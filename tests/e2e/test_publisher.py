"""`contextgauge.Publisher` against a real Kafka: order, flush, and a broker that comes and goes."""

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from contextgauge import (
    ClosedError,
    ConfigError,
    ContextgaugeError,
    Publisher,
    RetryError,
    UndeliveredError,
)
from contextgauge.containers import Line
from contextgauge.delivery.privacy import strip_text
from contextgauge.kafka.options import KafkaOptions
from contextgauge.partitioner import partition_of
from contextgauge.state_folder import text_key
from contextgauge.window_catalog import bundled
from schemas.topics import AGENT_MESSAGES
from streams.core.derivation.rules_config import Rules
from streams.edge.kafka.log import KafkaLog
from streams.edge.local_stack.stack import LocalStack
from streams.flow.derive.deriver import Deriver, input_message
from streams.ports import LogRecord
from tests.patience import PATIENCE_S

PARTITIONS = 4


async def create(kafka: str, prefix: str = "") -> None:
    log = KafkaLog(KafkaOptions(kafka, replicas=1))
    await log.start()
    name = prefix + AGENT_MESSAGES.name
    await log.create_topics([replace(AGENT_MESSAGES, name=name)], PARTITIONS)
    await log.stop()


async def written(kafka: str, prefix: str = "") -> list[tuple[int, LogRecord]]:
    """Return all messages with their partitions, in order within a partition."""
    log = KafkaLog(KafkaOptions(kafka))
    reader = log.reader(prefix + AGENT_MESSAGES.name, range(PARTITIONS))
    await reader.start()
    records: list[tuple[int, LogRecord]] = []
    for partition in range(PARTITIONS):
        position, end = await reader.bounds(partition)
        reader.seek(partition, position)
        while position < end:
            batch = await reader.poll(partition, 10_000, 1)
            records += [(partition, record) for record in batch.records]
            position = batch.position
    await reader.stop()
    return records


def message(number: int, session: str = "s") -> dict[str, object]:
    return {"type": "user", "session_id": session, "uuid": f"{session}-{number}", "message": "hi"}


def first_numbers(found: list[tuple[int, LogRecord]], session: str = "s") -> list[int]:
    """Return a session's messages in the order in which each was first there."""
    bodies = [json.loads(record.value or b"") for _, record in found]
    names = [body["uuid"] for body in bodies if body.get("session_id") == session]
    return [int(name.rpartition("-")[2]) for name in dict.fromkeys(names)]


async def test_messages_arrive_in_order_marked_and_named(kafka: str, topic_prefix: str) -> None:
    await create(kafka, topic_prefix)
    problems: list[str] = []
    async with Publisher(
        when_full="wait",
        agent_id="billing",
        bootstrap_servers=kafka,
        topic_prefix=topic_prefix,
        max_messages=500,
        on_problem=problems.append,
        strict=True,
    ) as publisher:
        for number in range(6_000):
            session = f"s{number % 5}"
            assert await publisher.publish(message(number, session)) == "queued"
        await publisher.publish(
            {"usage": {"prompt_tokens": 9}, "object": "chat.completion"},
            session_id="s0",
            task_id="t-1",
        )
        assert publisher.stats.connected
    stats = publisher.stats
    assert (stats.accepted, stats.sent, stats.dropped, problems) == (6_001, 6_001, 0, [])
    records = await written(kafka, topic_prefix)
    assert len(records) == 6_001
    for session in (f"s{which}" for which in range(1, 5)):
        numbers = [number for number in range(6_000) if f"s{number % 5}" == session]
        assert first_numbers(records, session) == numbers
    assert all(
        partition == partition_of((record.key or b"").decode(), PARTITIONS)
        for partition, record in records
    )
    headers = {record.headers for _, record in records}
    usual = (("observed", b"live"), ("agent_id", b"billing"))
    assert headers == {usual, (usual[0], ("task_id", b"t-1"), usual[1])}


async def test_published_messages_are_derived_with_the_agent(kafka: str, topic_prefix: str) -> None:
    await create(kafka, topic_prefix)
    usage = {"input_tokens": 5, "cache_read_input_tokens": 20_000}
    answer = {"type": "assistant", "message": {"id": "m", "model": "claude-x", "usage": usage}}
    async with Publisher(
        when_full="wait",
        session_id="mine",
        agent_id="a-1",
        bootstrap_servers=kafka,
        topic_prefix=topic_prefix,
    ) as publisher:
        await publisher.publish(answer)
    ((_, record),) = await written(kafka, topic_prefix)
    taken = Deriver(Rules(bundled())).derive(input_message(record))
    by_kind = {made.kind: made for made in taken.records}
    assert by_kind["session_info"].data.publisher_agent_id == "a-1"  # type: ignore[union-attr]
    assert by_kind["context_reading"].data.used_tokens == 20_005  # type: ignore[union-attr]
    assert by_kind["context_reading"].data.session_id == "mine"
    assert by_kind["context_reading"].time_ms == record.timestamp_ms


async def test_settings_come_from_the_environment(
    kafka: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(kafka, topic_prefix)
    monkeypatch.setenv("CONTEXTGAUGE_BOOTSTRAP_SERVERS", kafka)
    monkeypatch.setenv("CONTEXTGAUGE_TOPIC_PREFIX", topic_prefix)
    async with Publisher(when_full="drop_oldest") as publisher:
        await publisher.publish(message(1))
    assert publisher.stats.sent == 1


async def test_no_text_is_sent_without_text_and_the_secret_is_the_commands(
    kafka: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(kafka, topic_prefix)
    monkeypatch.setenv("CONTEXTGAUGE_STATE_FOLDER", str(tmp_path))
    async with Publisher(
        when_full="wait", bootstrap_servers=kafka, topic_prefix=topic_prefix, no_text=True
    ) as publisher:
        await publisher.publish({"type": "user", "session_id": "s", "message": "secret words"})
    ((_, record),) = await written(kafka, topic_prefix)
    line = Line("", 0, b'{"type":"user","session_id":"s","message":"secret words"}', 57, None)
    stripped = strip_text(line, text_key(tmp_path))
    assert isinstance(stripped, Line)
    assert record.value == stripped.value
    assert b"secret" not in record.value


async def test_an_unreachable_broker_does_not_block_the_agent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "contextgauge"):
        async with Publisher(
            when_full="drop_oldest",
            bootstrap_servers="127.0.0.1:1",
            max_messages=2,
            close_timeout_s=0.2,
        ) as publisher:
            for number in range(5):
                assert await publisher.publish(message(number)) == "queued"
            async with asyncio.timeout(PATIENCE_S):
                while "127.0.0.1:1" not in caplog.text:  # noqa: ASYNC110 -- a log
                    await asyncio.sleep(0.05)
    assert (publisher.stats.dropped, publisher.stats.sent, publisher.stats.waiting) == (3, 0, 2)
    messages = "\n".join(record.getMessage() for record in caplog.records)
    assert "127.0.0.1:1" in messages
    assert "the publisher closed with messages not acknowledged: 2 (" in messages
    with pytest.raises(ClosedError):
        await publisher.publish(message(9))


async def test_a_strict_publisher_raises_without_a_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("contextgauge.publisher._CONNECT_TIMEOUT_S", 0.5)
    with pytest.raises(RetryError, match=r"127\.0\.0\.1:1"):
        async with Publisher(when_full="wait", bootstrap_servers="127.0.0.1:1", strict=True):
            pytest.fail("entered")


@pytest.mark.extended
async def test_a_strict_publisher_raises_on_close_unless_the_agent_failed(
    killable_kafka: LocalStack,
    topic_prefix: str,
) -> None:
    stack = killable_kafka
    address = stack.services()["kafka"].address
    await create(address, topic_prefix)

    async def lose(error: Exception | None) -> None:
        async with Publisher(
            when_full="wait",
            bootstrap_servers=address,
            topic_prefix=topic_prefix,
            strict=True,
            close_timeout_s=0.5,
        ) as publisher:
            await asyncio.to_thread(stack.kill, "kafka")
            await publisher.publish(message(1))
            if error is not None:
                raise error

    with pytest.raises(UndeliveredError, match="messages not acknowledged: 1"):
        await lose(None)
    await asyncio.to_thread(stack.start, ["kafka"])
    with pytest.raises(ZeroDivisionError):
        await lose(ZeroDivisionError())


@pytest.mark.extended
async def test_a_publisher_survives_broker_outages_at_start_and_later(
    killable_kafka: LocalStack,
    topic_prefix: str,
) -> None:
    stack = killable_kafka
    address = stack.services()["kafka"].address
    await create(address, topic_prefix)
    await asyncio.to_thread(stack.kill, "kafka")
    problems: list[str] = []
    async with Publisher(
        when_full="wait",
        bootstrap_servers=address,
        topic_prefix=topic_prefix,
        close_timeout_s=60,
        on_problem=problems.append,
    ) as publisher:
        for number in range(200):
            await publisher.publish(message(number))
        assert publisher.stats.sent == 0
        await asyncio.to_thread(stack.start, ["kafka"])
        async with asyncio.timeout(PATIENCE_S):
            while publisher.stats.sent < 200:  # noqa: ASYNC110 -- no event tells of it
                await asyncio.sleep(0.05)
        for number in range(200, 2_000):
            await publisher.publish(message(number))
            if number == 1_000:
                await asyncio.to_thread(stack.kill, "kafka")
        await asyncio.to_thread(stack.start, ["kafka"])
    assert publisher.stats.waiting == publisher.stats.unacknowledged == 0
    assert publisher.stats.sent == 2_000
    assert any("trying" in line for line in problems)
    assert first_numbers(await written(address, topic_prefix)) == list(range(2_000))


async def test_a_cancelled_agent_leaves_nothing_running(kafka: str, topic_prefix: str) -> None:
    await create(kafka, topic_prefix)

    published = asyncio.Event()

    async def agent() -> None:
        async with Publisher(
            when_full="wait", bootstrap_servers=kafka, topic_prefix=topic_prefix
        ) as publisher:
            await publisher.publish(message(1))
            published.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(agent())
    await published.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [
        each.get_name() for each in asyncio.all_tasks() if "contextgauge" in each.get_name()
    ] == []
    assert first_numbers(await written(kafka, topic_prefix)) == [1]


async def test_a_missing_kafka_address_is_an_error_at_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LocalStack, "services", lambda _: {})
    with pytest.raises(ConfigError, match="CONTEXTGAUGE_BOOTSTRAP_SERVERS"):
        await Publisher(when_full="wait").__aenter__()
    with pytest.raises(ConfigError, match="bootstrap_servers='no address'"):
        await Publisher(when_full="wait", bootstrap_servers="no address").__aenter__()


async def test_a_publisher_is_opened_once(kafka: str, topic_prefix: str) -> None:
    await create(kafka, topic_prefix)
    publisher = Publisher(when_full="wait", bootstrap_servers=kafka, topic_prefix=topic_prefix)
    with pytest.raises(ClosedError, match="not open"):
        await publisher.publish(message(1))
    async with publisher:
        with pytest.raises(ContextgaugeError, match="opened once"):
            await publisher.__aenter__()


def test_a_program_without_an_event_loop_publishes_from_its_threads(
    kafka: str, topic_prefix: str
) -> None:
    asyncio.run(create(kafka, topic_prefix))
    made = Publisher(when_full="wait", bootstrap_servers=kafka, topic_prefix=topic_prefix)
    with made as publisher, ThreadPoolExecutor(4) as pool:
        fates = pool.map(lambda number: publisher.publish(message(number, f"s{number}")), range(40))
        assert set(fates) == {"queued"}
        for number in range(300):
            publisher.publish(message(number))
    assert publisher.stats.sent == 340
    assert not [each for each in threading.enumerate() if "contextgauge" in each.name]
    assert first_numbers(asyncio.run(written(kafka, topic_prefix))) == list(range(300))
    with pytest.raises(ClosedError, match="inside its `with`"):
        publisher.publish(message(1))
    with pytest.raises(ClosedError, match="opened once"), made:
        pytest.fail("opened")


def test_a_blocking_publisher_that_cannot_be_opened_leaves_no_thread() -> None:
    with (
        pytest.raises(ConfigError, match="bootstrap_servers='no address'"),
        Publisher(when_full="wait", bootstrap_servers="no address"),
    ):
        pytest.fail("opened")
    assert not [each for each in threading.enumerate() if "contextgauge" in each.name]


async def test_a_blocking_publisher_is_refused_in_an_event_loop() -> None:
    with (
        pytest.raises(ClosedError, match="async with"),
        Publisher(when_full="wait", bootstrap_servers="127.0.0.1:1"),
    ):
        pytest.fail("opened")


class Frames:
    """A transport of the Claude Agent SDK that reads a few frames."""

    async def read_messages(self) -> AsyncIterator[dict[str, object]]:
        for number in range(50):
            yield message(number)


async def test_a_tap_that_outlives_its_publisher_reports_it_once() -> None:
    problems: list[str] = []
    async with Publisher(
        when_full="drop_oldest",
        bootstrap_servers="127.0.0.1:1",
        close_timeout_s=0,
        on_problem=problems.append,
    ) as publisher:
        transport = publisher.tap(Frames())
    assert [frame async for frame in transport.read_messages()] == [message(n) for n in range(50)]
    lines = [line for line in problems if "a frame could not be published" in line]
    assert lines == ["a frame could not be published: ClosedError"]
