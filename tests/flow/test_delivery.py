"""A publisher's messages on their way: taken at once, sent in order, dropped only as chosen."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from schemas.topics import AGENT_MESSAGES, Topic
from streams.core.errors import ClosedError, ConfigError, RetryError
from streams.edge.clock import SystemClock
from streams.edge.memory_log import MemoryLog, MemoryProducer
from streams.edge.partitioner import partition_of
from streams.flow.delivery import Delivery, DeliveryConfig
from streams.flow.outbox import Outbox, WhenFull
from streams.flow.outgoing import Form, Outgoing, Talk, is_talk
from streams.flow.sender import SenderConfig
from streams.ports import LogRecord, NewRecord

PARTITIONS = 3
LIMIT = 2_000


async def memory(*topics: Topic) -> MemoryLog:
    log = MemoryLog(SystemClock())
    await log.create_topics(topics or (AGENT_MESSAGES,), PARTITIONS)
    return log


def delivery_over(
    log: MemoryLog,
    when_full: WhenFull = "wait",
    max_messages: int = 100,
    max_bytes: int = 1_000_000,
    text_key: bytes | None = None,
) -> tuple[Delivery, list[str]]:
    """Return a delivery, and what it tells."""
    told: list[str] = []
    sender = SenderConfig(
        topic=AGENT_MESSAGES.name, partition_of=partition_of, form=Form(LIMIT, text_key)
    )
    config = DeliveryConfig(
        sender=sender, when_full=when_full, max_messages=max_messages, max_bytes=max_bytes
    )
    return Delivery(log, SystemClock(), config, told.append), told


@asynccontextmanager
async def opened(log: MemoryLog, **options: Any) -> AsyncIterator[tuple[Delivery, list[str]]]:
    """Open a delivery, and close it with all that waits sent."""
    delivery, told = delivery_over(log, **options)
    delivery.start()
    try:
        yield delivery, told
    finally:
        await delivery.close(5)


def message(number: int, session: str = "s") -> dict[str, object]:
    return {"type": "user", "session_id": session, "uuid": f"{session}-{number}", "message": "hi"}


def written(log: MemoryLog) -> list[LogRecord]:
    partitions = (log.partition(AGENT_MESSAGES.name, number) for number in range(PARTITIONS))
    return [record for each in partitions for record in each.read(0, 10**6).records]


def numbers(log: MemoryLog, session: str = "s") -> list[int]:
    """Return what arrived of a session, in order."""
    bodies = [json.loads(record.value or b"") for record in written(log)]
    return [int(b["uuid"].rpartition("-")[2]) for b in bodies if b["session_id"] == session]


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds that tells of no event."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 -- as above
            await asyncio.sleep(0.01)


def talk(session_id: str | None = None) -> Talk:
    return Talk(session_id, (("observed", b"live"),))


class Model:
    """An answer of a model SDK."""

    def model_dump(self, *, mode: str, exclude_unset: bool) -> dict[str, object]:
        assert (mode, exclude_unset) == ("json", True)
        return {"object": "chat.completion", "usage": {"prompt_tokens": 3}}


async def test_every_form_of_a_message_arrives_under_its_session() -> None:
    log = await memory()
    line = b'{"type": "user",  "session_id": "s"}'
    async with opened(log) as (delivery, told):
        for given in (line + b"\r\n", bytearray(line), line.decode(), MappingProxyType(message(1))):
            assert await delivery.submit(given, talk()) == "queued"
        assert await delivery.submit(Model(), talk("of-the-key")) == "queued"
    values = {record.value: record.key for record in written(log)}
    assert values == {
        line: b"s",
        json.dumps(message(1), separators=(",", ":")).encode(): b"s",
        b'{"object":"chat.completion","usage":{"prompt_tokens":3}}': b"of-the-key",
    }
    assert len(written(log)) == 5
    assert {record.headers for record in written(log)} == {(("observed", b"live"),)}
    assert told == []


async def test_a_session_keeps_its_order_and_all_is_sent_at_the_end() -> None:
    log = await memory()
    async with opened(log) as (delivery, _):
        for number in range(2_500):
            await delivery.submit(message(number, f"s{number % 7}"), talk())
    for name in (f"s{which}" for which in range(7)):
        assert numbers(log, name) == [n for n in range(2_500) if f"s{n % 7}" == name]
    stats = delivery.stats
    assert (stats.accepted, stats.sent, stats.waiting, stats.unacknowledged) == (2_500, 2_500, 0, 0)
    assert stats.sent_bytes == sum(len(record.value or b"") for record in written(log))


async def test_a_conversation_lends_its_last_session() -> None:
    log = await memory()
    async with opened(log) as (delivery, _):
        one = talk()
        assert await delivery.submit({"type": "user", "message": "early"}, one) == "refused"
        await delivery.submit(b'{"type":"user","session_id":"a"}', one)
        await delivery.submit({"type": "user", "message": "x"}, one)
        await delivery.submit({"type": "user", "session_id": "b"}, one)
        await delivery.submit(b'{"type":"user","message":"y"}', one)
    found = {record.value: record.key for record in written(log)}
    assert found[b'{"type":"user","message":"x"}'] == b"a"
    assert found[b'{"type":"user","message":"y"}'] == b"b"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"type": "user", "message": "secret"}, "give a session_id"),
        ({"type": "user", "session_id": "s", "message": object()}, "JSON has no form for"),
        (b"secret no json", "unexpected|Expecting"),
        (b"\xff", "UTF-8"),
    ],
)
async def test_what_cannot_be_sent_is_counted_and_told_without_its_words(
    given: object, said: str
) -> None:
    log = await memory()
    async with opened(log) as (delivery, told):
        assert await delivery.submit(given, talk()) == "refused"
    assert delivery.stats.refused == 1
    assert written(log) == []
    (line,) = told
    assert "secret" not in line
    assert any(part in line for part in said.split("|"))


async def test_a_circle_and_a_class_of_the_sdk_that_is_no_message_are_refused() -> None:
    circle: dict[str, object] = {"session_id": "s"}
    circle["self"] = circle
    options = type("ClaudeAgentOptions", (), {"__module__": "claude_agent_sdk.types"})()
    async with opened(await memory()) as (delivery, _):
        assert await delivery.submit(circle, talk()) == "refused"
        assert await delivery.submit(options, talk()) == "refused"


async def test_what_means_nothing_is_ignored() -> None:
    async with opened(await memory()) as (delivery, told):
        assert await delivery.submit({"type": "progress"}, talk()) == "ignored"
        assert await delivery.submit(b" \n", talk()) == "ignored"
    assert delivery.stats.ignored == 2
    assert told == []


@pytest.mark.parametrize("given", [5, None, ["a"], object()])
async def test_what_is_no_message_is_the_callers_error(given: object) -> None:
    async with opened(await memory()) as (delivery, _):
        with pytest.raises(TypeError, match="a message is a mapping"):
            await delivery.submit(given, talk())


async def test_a_message_before_and_after_is_an_error() -> None:
    delivery, _ = delivery_over(await memory())
    with pytest.raises(ClosedError, match="not open"):
        await delivery.submit(message(1), talk())
    assert await delivery.close(1) == 0
    delivery.start()
    await delivery.close(1)
    with pytest.raises(ClosedError, match="not open"):
        await delivery.submit(message(1), talk())


async def test_another_event_loop_is_an_error() -> None:
    async with opened(await memory()) as (delivery, _):

        def elsewhere() -> None:
            with pytest.raises(ClosedError, match="another event loop"):
                asyncio.run(delivery.submit(message(1), talk()))

        await asyncio.to_thread(elsewhere)


async def test_an_over_long_message_is_shortened_in_its_place() -> None:
    log = await memory()
    long = {"type": "user", "session_id": "s", "uuid": "s-1", "message": "x" * 3 * LIMIT}
    async with opened(log) as (delivery, _):
        for given in (message(0), long, json.dumps(long).encode(), message(2)):
            assert await delivery.submit(given, talk()) == "queued"
    assert numbers(log) == [0, 1, 1, 2]
    assert max(len(record.value or b"") for record in written(log)) <= LIMIT
    assert delivery.stats.shortened == 2


async def test_an_over_long_line_that_cannot_be_shortened_is_refused_later() -> None:
    log = await memory()
    async with opened(log) as (delivery, told):
        assert await delivery.submit(b"x" * (LIMIT + 1), talk("s")) == "queued"
        assert await delivery.submit({"type": "user", "m": "x" * LIMIT}, talk()) == "queued"
        await delivery.submit(message(1), talk())
    assert numbers(log) == [1]
    assert delivery.stats.refused == 2
    assert "too_large" in told[0]


async def test_without_texts_no_text_leaves() -> None:
    log = await memory()
    async with opened(log, text_key=b"key") as (delivery, _):
        await delivery.submit({**message(1), "message": {"content": "secret"}}, talk())
        await delivery.submit(b'{"session_id":"s","uuid":"s-2","message":"secret"}', talk())
        await delivery.submit({**message(3), "message": "secret" * 200_000}, talk())
        assert await delivery.submit(b"secret", talk("s")) == "refused"
    assert numbers(log) == [1, 2, 3]
    assert not [record for record in written(log) if b"secret" in (record.value or b"")]


async def test_a_broker_that_is_away_at_the_start_is_waited_for() -> None:
    log = await memory()
    log.away = True
    async with opened(log) as (delivery, told):
        assert await delivery.submit(message(1), talk()) == "queued"
        await until(lambda: bool(told))
        assert "away" in (delivery.stats.problem or "")
        assert not delivery.stats.connected
        log.away = False
        await delivery.connected(5)
        assert delivery.stats.problem is None
    assert numbers(log) == [1]


async def test_a_broker_that_never_comes_is_given_up_at_the_end() -> None:
    log = await memory()
    log.away = True
    delivery, _ = delivery_over(log)
    delivery.start()
    await delivery.submit(message(1), talk())
    await delivery.submit(message(2), talk())
    with pytest.raises(RetryError, match="away"):
        await delivery.connected(0.05)
    assert await delivery.close(0.05) == 2
    assert delivery.stats.waiting == 2


async def test_a_missing_topic_is_told_and_found_when_it_is_there() -> None:
    log = MemoryLog(SystemClock())
    async with opened(log) as (delivery, told):
        await delivery.submit(message(1), talk())
        await until(lambda: bool(told))
        assert "contextgauge topics create" in told[0]
        await log.create_topics([AGENT_MESSAGES], PARTITIONS)
    assert numbers(log) == [1]


async def test_one_record_that_the_broker_refuses_does_not_hold_the_others() -> None:
    log = await memory(replace(AGENT_MESSAGES, max_message_bytes=300))
    async with opened(log) as (delivery, told):
        for number in range(6):
            padding = {"padding": "x" * 400} if number == 3 else {}
            await delivery.submit(message(number) | padding, talk())
    assert sorted(set(numbers(log))) == [0, 1, 2, 4, 5]
    assert (delivery.stats.sent, delivery.stats.refused) == (5, 1)
    assert "max.message.bytes" in told[-1]


async def test_what_fails_in_the_sender_is_told_by_its_type_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = await memory()
    usual = MemoryProducer.send
    failures = [ValueError("secret words")]

    async def send(self: MemoryProducer, record: NewRecord) -> None:
        if failures:
            raise failures.pop()
        await usual(self, record)

    monkeypatch.setattr(MemoryProducer, "send", send)
    async with opened(log) as (delivery, told):
        await delivery.submit(message(1), talk())
    assert numbers(log) == [1]
    assert told == ["sending failed (ValueError): trying again"]


@pytest.mark.parametrize("wrong", [{"when_full": "never"}, {"max_messages": 0}, {"max_bytes": 0}])
async def test_options_that_cannot_be_meant_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"when_full is|at least 1"):
        delivery_over(await memory(), **wrong)


async def full(when_full: WhenFull, count: int = 6) -> tuple[Delivery, MemoryLog, list[str]]:
    """Return a delivery with room for three, given `count` messages while the broker is away."""
    log = await memory()
    log.away = True
    delivery, told = delivery_over(log, when_full, max_messages=3)
    delivery.start()
    for number in range(count):
        await delivery.submit(message(number), talk())
    return delivery, log, told


@pytest.mark.parametrize(
    ("when_full", "left"), [("drop_new", [0, 1, 2]), ("drop_oldest", [3, 4, 5])]
)
async def test_a_full_queue_drops_what_was_chosen(when_full: WhenFull, left: list[int]) -> None:
    delivery, log, told = await full(when_full)
    stats = delivery.stats
    assert (stats.dropped, stats.waiting) == (3, 3)
    assert [line for line in told if "queue is full" in line] == [
        "the queue is full: 1 messages dropped"
    ]
    log.away = False
    assert await delivery.close(5) == 0
    assert numbers(log) == left


async def test_a_full_queue_holds_the_caller_up_where_that_was_chosen() -> None:
    delivery, log, _ = await full("wait", 3)
    waiting = [
        asyncio.create_task(delivery.submit(message(number), talk())) for number in range(3, 9)
    ]
    cancelled = asyncio.create_task(delivery.submit(message(99), talk()))
    await asyncio.sleep(0.02)
    assert not any(task.done() for task in waiting)
    cancelled.cancel()
    log.away = False
    assert set(await asyncio.gather(*waiting)) == {"queued"}
    assert await delivery.close(5) == 0
    assert numbers(log) == list(range(9))


async def test_who_waits_for_room_hears_of_the_end() -> None:
    delivery, _, _ = await full("wait", 3)
    waiting = asyncio.create_task(delivery.submit(message(9), talk()))
    await asyncio.sleep(0.01)
    assert await delivery.close(0.01) == 3
    with pytest.raises(ClosedError, match="waited for room"):
        await waiting


async def test_bytes_are_bounded_and_a_single_larger_message_fits() -> None:
    outbox = Outbox("drop_new", 10, 100)
    items = [Outgoing("s", bytes(size), None, ()) for size in (150, 1, 60, 40, 1)]
    assert [await outbox.put(item) for item in items[:2]] == [True, False]
    assert list(await outbox.take()) == items[:1]
    assert [await outbox.put(item) for item in items[2:]] == [True, True, False]
    assert (outbox.bytes, len(outbox), outbox.dropped) == (100, 2, 2)


async def test_a_caller_that_never_waits_leaves_the_sender_its_turn() -> None:
    log = await memory()
    async with opened(log, when_full="drop_new", max_messages=200) as (delivery, _):
        for number in range(5_000):
            await delivery.submit(message(number), talk())
    assert delivery.stats.dropped == 0
    assert numbers(log) == list(range(5_000))


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        ({"type": "assistant"}, True),
        ({"no": "type"}, True),
        ({"type": "control_response", "response": {"response": {"account": "x"}}}, False),
        ({"type": "control_response", "response": {"response": {"totalTokens": 5}}}, True),
        ({"type": "control_request", "request": {"subtype": "can_use_tool"}}, False),
        (
            {
                "type": "control_request",
                "request": {
                    "subtype": "hook_callback",
                    "input": {"hook_event_name": "PreCompact", "trigger": "auto"},
                },
            },
            True,
        ),
        ({"type": "transcript_mirror", "entries": []}, False),
    ],
)
def test_of_the_control_frames_only_those_of_the_context_are_published(
    frame: Mapping[str, object], told: object
) -> None:
    assert is_talk(frame) is told
