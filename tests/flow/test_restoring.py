"""Restoring a partition: reported as it goes, interruptible, and bounded whatever was sent."""

import asyncio
from collections.abc import AsyncGenerator, Iterator

import pytest
import structlog

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from schemas.topics import MIB, Topic
from streams import codec
from streams.edge.memory.log import MemoryLog
from streams.flow.derive.restoring import LOG_EVERY_S, restore
from streams.flow.derive.state_store import ChangelogChunk, StateStore
from streams.ports import LogRecord
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import DeriveKit, Figures, samples, until
from tests.flow.test_partition_state import START_MS, at, new_state, restored

STATE_BOUND_BYTES = 6 * MIB
"""What docs/PERFORMANCE.md promises for one session, without its keys."""


class SteppingClock(SystemClock):
    """A clock on which every look is two seconds later."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic_s(self) -> float:
        self.now += 2
        return self.now


class SlowStore(StateStore):
    """Yields the changelog entry by entry, and then never ends."""

    async def restore(self, partition: int) -> AsyncGenerator[ChangelogChunk, None]:
        async for stretch in super().restore(partition):
            for number, entry in enumerate(stretch.entries, 1):
                yield ChangelogChunk([entry], number, len(stretch.entries) + 1)
        await asyncio.Event().wait()


async def filled_kit() -> tuple[DeriveKit, MemoryLog]:
    log = MemoryLog(SystemClock())
    kit = DeriveKit(log, "restoring-", SystemClock())
    await kit.create_topics()
    await kit.publish(samples())
    await kit.run_until_caught_up()
    return kit, log


async def test_a_changelog_that_loses_its_end_while_it_is_read_is_read_again() -> None:
    """By a broker: else the reader would wait for ever for what is gone."""
    log = FaultyLog(SystemClock())
    topic = Topic("state", "any", "compact", -1, MIB)
    await log.create_topics([topic], 1)
    store = StateStore(log, topic.name)
    producer = log.transactional_producer("a")
    await producer.start()
    await producer.commit(store.to_records(0, {b"%d" % number: b"x" for number in range(6_000)}))
    await producer.stop()
    chunks = store.restore(0)
    assert len((await anext(chunks)).entries) == 5_000
    log.truncate(topic.name, 0, 5_500)
    with pytest.raises(RetryError, match="state-0 lost its end"):
        async for _ in chunks:
            pass


async def test_a_restore_reports_progress_and_can_be_cancelled_at_any_point() -> None:
    kit, log = await filled_kit()
    state, figures = new_state(), Figures()
    store = SlowStore(log, kit.config.state_topic)
    heard: list[tuple[int, int]] = []
    read_all = asyncio.Event()

    def on_progress(done: int, total: int) -> None:
        heard.append((done, total))
        if done == total - 1:
            read_all.set()

    with structlog.testing.capture_logs() as logs:
        task = asyncio.create_task(
            restore(
                state,
                0,
                state_store=store,
                telemetry=figures,
                clock=SteppingClock(),
                on_progress=on_progress,
            )
        )
        await read_all.wait()
        share = figures.gauges["derive_restore_ratio", "0"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert 0 < share < 1
    assert figures.total("derive_restored_entries") == len(heard)
    assert ("derive_restore_ratio", "0") not in figures.gauges
    entries = [entry for entry in logs if entry["event"] == "restoring"]
    assert len(entries) == len(heard) * 2 // (LOG_EVERY_S + 1)
    assert entries[0].keys() >= {"partition", "percent", "sessions", "remaining_s", "entries_per_s"}
    assert [entry["entries"] for entry in entries] == sorted(entry["entries"] for entry in entries)
    assert entries[0]["offsets"] <= entries[0]["of_offsets"]
    assert not [entry for entry in logs if entry["event"] == "restored"]


async def test_a_worker_logs_what_it_restored_and_the_rate() -> None:
    kit, _ = await filled_kit()
    with structlog.testing.capture_logs() as logs:
        async with kit.running() as worker:
            await until(lambda: worker.figures.total("derive_restores") == kit.partitions)
    restored = [entry for entry in logs if entry["event"] == "restored"]
    running = {e["partition"]: e["sessions"] for e in logs if e["event"] == "partition is running"}
    assert restored
    assert all(entry["sessions"] == running[entry["partition"]] for entry in restored)
    assert all(entry["entries"] > entry["sessions"] > 0 for entry in restored)
    assert all(entry["entries_per_s"] > 0 for entry in restored)
    entries = sum(entry["entries"] for entry in restored)
    assert worker.figures.total("derive_restored_entries") == entries
    assert not [key for key in worker.figures.gauges if key[0] == "derive_restore_ratio"]


def adversary() -> Iterator[bytes]:
    """Messages of one session that make it as large as messages can."""

    def name(kind: str, number: int) -> str:
        # A control character takes the most room in JSON.
        return f"{kind}{number}".ljust(1_024, "\x01")

    def own(number: int) -> dict[str, object]:
        return {"session_id": "s", "uuid": f"uuid-{number}"}

    yield codec.dumps({**own(-1), "type": "user", "cwd": "\x01" * 16_384})
    for number in range(100):
        entry = {"contextWindow": 10 + number, "canonicalModel": name("canonical", number)}
        yield codec.dumps(
            {**own(number), "type": "result", "modelUsage": {name("model", number): entry}}
        )
        init = {"type": "system", "subtype": "init", "model": name("init", number)[:-4] + "[1m]"}
        yield codec.dumps(own(1_000 + number) | init)
        side = {
            "parent_tool_use_id": name("tool", number),
            "agent_id": name("agent", number),
            "isSidechain": True,
            "subagent_type": name("kind", number),
        }
        for answer in range(40):
            usage = {"input_tokens": 2**50 + answer, "output_tokens": 2**50}
            message = {"id": f"m{answer}", "model": name("big", number), "usage": usage}
            body = {"type": "assistant", "message": message, "uuid": f"{number}-{answer}"}
            yield codec.dumps(own(0) | side | body)
        boundary = {
            "type": "system",
            "subtype": "compact_boundary",
            "compact_metadata": {
                "trigger": "auto",
                "pre_tokens": 2**50,
                "preserved_messages": {"anchor_uuid": name("anchor", number)},
            },
        }
        yield codec.dumps(own(5_000 + number) | side | boundary)
    for number in range(4_500):
        yield codec.dumps(own(10_000 + number) | boundary)


@pytest.mark.extended
def test_the_state_of_one_session_is_bounded_whatever_is_sent() -> None:
    state, stored = new_state(), dict[bytes, bytes]()
    largest = 0
    messages = [
        LogRecord(number, START_MS, b"s", value, ()) for number, value in enumerate(adversary())
    ]
    for begin in range(0, len(messages), 500):
        part = messages[begin : begin + 500]
        state.apply(part)
        for key, value in state.finish(part[-1].offset + 1).changes.items():
            if value is None:
                stored.pop(key, None)
            else:
                stored[key] = value
        largest = max(largest, sum(map(len, stored.values())))
    parts = [codec.loads(key) for key in stored]
    chains = [part for part in parts if part[-1].startswith("chain:")]
    assert len(chains) == 64
    known = [part for part in parts if part[-1].startswith("known:")]
    assert len(known) == len(messages) // 64 + 1
    assert MIB < largest <= STATE_BOUND_BYTES
    assert max(map(len, stored.values())) < 4 * MIB
    again = restored(list(stored.items()))
    again.apply(at([("s", 0)]))
    assert again.finish(len(messages) + 1).kinds["context_reading"] == 1
