"""Lines over the limit: quickly shortened, the same way through `publish` and `replay`."""

import asyncio
import gc
import json
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from contextgauge.clock import SystemClock
from contextgauge.containers import Line
from contextgauge.delivery.shorten import MARK, fit
from contextgauge.normalise.signals import InputMessage
from contextgauge.window_catalog import bundled
from schemas.messages import DeadLetter
from schemas.topics import AGENT_MESSAGES, MESSAGE_LIMIT_BYTES
from streams import codec
from streams.core.derivation.rules_config import Rules
from streams.edge.memory.log import MemoryLog
from streams.flow.derive.deriver import Deriver
from streams.flow.publish.publish import PublishConfig, PublishCounts, publish
from streams.flow.replay.replay import replay
from tests.patience import PATIENCE_S


def response(content: object) -> dict[str, Any]:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 9}
    message = {"id": "m", "model": "claude-3", "content": content, "usage": usage}
    return {"type": "assistant", "uuid": "u", "session_id": "s", "message": message}


def many(value: bytes, size: int) -> bytes:
    """Return a JSON list of so many times the value as make about `size` bytes."""
    return b"[" + (value + b",") * (size // (len(value) + 1)) + value + b"]"


def line_of(value: bytes) -> Line:
    return Line("f", 1, value, len(value), None)


def refuse(line: Line, letter: DeadLetter) -> None:
    raise AssertionError((line.number, letter))


async def published(line: Line, limit: int = MESSAGE_LIMIT_BYTES) -> tuple[PublishCounts, bytes]:
    """Publish a line; return the value that came to stand in the log."""
    log = MemoryLog(SystemClock())
    await log.create_topics([AGENT_MESSAGES], 1)
    producer = log.producer()
    await producer.start()

    async def blocks() -> AsyncIterator[Sequence[Line]]:
        yield [line]

    config = PublishConfig(topic=AGENT_MESSAGES.name, partitions=1, limit_bytes=limit)
    done = await publish(producer, config, blocks(), refuse, lambda _: None)
    reader = log.reader(AGENT_MESSAGES.name, [0])
    await reader.start()
    reader.seek(0, 0)
    (record,) = (await reader.poll(0, 10, 5.0)).records
    assert record.value is not None
    return done, record.value


async def test_shortening_leaves_the_event_loop_free(monkeypatch: pytest.MonkeyPatch) -> None:
    loops_turn = threading.Event()
    seen = []

    def slow(line: Line, limit: int) -> bytes | DeadLetter:
        # On the loop, it would wait in vain for what the loop has yet to do.
        seen.append(loops_turn.wait(PATIENCE_S))
        return fit(line, limit)

    monkeypatch.setattr("contextgauge.delivery.outgoing.fit", slow)
    publishing = asyncio.create_task(published(line_of(codec.dumps(response("x" * 9_000))), 4_096))
    turning = asyncio.create_task(asyncio.sleep(0.01))
    turning.add_done_callback(lambda _: loops_turn.set())
    done, _ = await publishing
    await turning
    assert done.shortened == 1
    assert seen == [True]


LONG = 50_000_000
TOO_LONG = 10_000_000
"""A little more than a message may have."""
LONG_INPUTS = {
    "numbers": lambda: many(b"1", TOO_LONG),
    "short strings": lambda: many(b'"abc"', TOO_LONG),
    "small lists": lambda: many(b"[1]", TOO_LONG),
    "one string": lambda: b'"' + b"x" * LONG + b'"',
    "medium strings": lambda: many(b'"' + b"m" * 2_000 + b'"', LONG),
}


def long_line(shape: str) -> Line:
    begin = codec.dumps(response([{"type": "tool_use", "id": "t", "name": "n", "input": 0}]))
    assert begin.count(b'"input":0') == 1
    value = begin.replace(b'"input":0', b'"input":{"v":' + LONG_INPUTS[shape]() + b"}")
    return line_of(value)


@pytest.mark.extended
@pytest.mark.parametrize("shape", LONG_INPUTS)
async def test_a_line_of_10_or_50_mb_gives_the_same_through_publish_and_replay(shape: str) -> None:
    line = long_line(shape)
    done, value = await published(line)
    assert (done.messages, done.shortened, done.sessions) == (1, 1, {"s"})
    assert len(value) <= MESSAGE_LIMIT_BYTES
    document = json.loads(value)
    original = response([])
    assert {name: document[name] for name in ("type", "uuid", "session_id")} == {
        name: original[name] for name in ("type", "uuid", "session_id")
    }
    assert document["message"]["usage"] == original["message"]["usage"]
    assert document["message"]["model"] == original["message"]["model"]
    assert document[MARK]["bytes"] == line.size
    (derived,) = replay(Deriver(Rules(bundled())), [[line]])
    assert derived.records
    taken = Deriver(Rules(bundled())).derive(InputMessage(value, None))
    assert derived.records == list(taken.records)


def test_50_mb_of_garbage_are_a_dead_letter() -> None:
    value = b"no json " * (LONG // 8)
    letter = fit(line_of(value))
    assert isinstance(letter, DeadLetter)
    assert letter.reason == "too_large"
    assert "cannot be shortened" in letter.detail


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_state_of_the_garbage_collector_is_unchanged(*, is_enabled: bool) -> None:
    value = codec.dumps(response("x" * 9_000))
    try:
        if not is_enabled:
            gc.disable()
        fit(line_of(value), 6_000)
        assert gc.isenabled() == is_enabled
    finally:
        gc.enable()
