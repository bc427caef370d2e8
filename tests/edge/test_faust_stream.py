"""What Faust and the group may do to a stream that the contract's tests cannot have them do."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import cast

import pytest
from aiokafka import AIOKafkaConsumer
from mode.threads import WorkerThread

from contextgauge.kafka.options import KafkaOptions
from streams.edge.faust.app import ConsumerThread, GroupConsumer
from streams.edge.faust.stream import FaustStream
from streams.edge.kafka import readers
from streams.edge.kafka.readers import Consumer, consumer_arguments
from streams.ports import ReceivedRecord
from tests.patience import PATIENCE_S


class _Told:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def assigned(self, positions: Mapping[int, int]) -> None:
        self.calls.append(f"assigned {sorted(positions)}")

    def revoked(self) -> None:
        self.calls.append("revoked")

    async def handle(self, arrivals: Sequence[ReceivedRecord]) -> None:
        """Nothing comes."""


async def test_a_member_that_rejoins_in_the_same_generation_is_assigned_its_partitions() -> None:
    stream = FaustStream(KafkaOptions("nowhere:1"), "topic", "group", None, lambda: 0, lambda: 0)
    stream._handler = result = _Told()  # noqa: SLF001 -- it runs without a broker
    app = stream._create_app()  # noqa: SLF001 -- as above
    app.consumer_generation_id = 7
    first = app.consumer_generation_id
    stream.assign(first, {0: 3})
    stream.assign(first, {0: 3})  # seeking again is no new assignment
    assert stream.is_current(first)
    await app.on_partitions_revoked.send(set())
    assert not stream.is_current(first)
    app.consumer_generation_id = 7  # the group's, as a follower that changed nothing finds it
    stream.assign(app.consumer_generation_id, {0: 3})
    assert result.calls == ["assigned [0]", "revoked", "assigned [0]"]
    assert not stream.is_current(first)
    assert stream.is_current(app.consumer_generation_id)


async def test_a_consumer_that_is_connecting_has_no_error_yet() -> None:
    consumer = AIOKafkaConsumer(bootstrap_servers="nowhere:1", group_id="group")
    thread = SimpleNamespace(_ensure_consumer=lambda: consumer)
    await ConsumerThread.check(cast("ConsumerThread", thread))
    assert consumer._coordinator is None  # noqa: SLF001 -- as Faust's thread has it then
    await consumer.stop()


class _LateThread(WorkerThread):
    """A thread that the system lets begin late."""

    def run(self) -> None:
        time.sleep(0.2)
        super().run()


async def _heedless() -> None:
    """Take no notice of a first cancellation, as aiokafka's fetcher at times."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await asyncio.Event().wait()


class _Idle:
    """A consumer of aiokafka whose broker is away, and which leaves a task behind."""

    def __init__(self) -> None:
        self._client = SimpleNamespace(close=self.close)
        self.is_closed = False

    async def start(self) -> None:
        """Begin the task."""
        self.task = asyncio.create_task(_heedless())
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Wait for the broker."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Close the connections."""
        self.is_closed = True


async def test_a_stop_before_the_consumers_thread_has_begun_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = FaustStream(KafkaOptions("nowhere:1"), "topic", "group", None, lambda: 0, lambda: 0)
    monkeypatch.setattr(ConsumerThread, "Worker", _LateThread)
    monkeypatch.setattr(readers, "_STOP_TIMEOUT_S", 0.1)
    consumer = _Idle()
    monkeypatch.setattr(ConsumerThread, "_create_worker_consumer", lambda *_: consumer)
    app = stream._create_app()  # noqa: SLF001 -- it runs without a broker
    thread = cast("GroupConsumer", app.consumer)._thread  # noqa: SLF001 -- as Faust starts it
    starting = asyncio.create_task(thread.start())
    await asyncio.sleep(0.05)
    starting.cancel()
    await asyncio.wait_for(thread.stop(), PATIENCE_S)
    assert thread._thread is not None  # noqa: SLF001 -- as above
    assert not thread._thread.is_alive()  # noqa: SLF001 -- as above
    assert consumer.is_closed


async def test_a_consumer_stops_whose_fetcher_takes_no_notice_of_a_cancellation() -> None:
    options = KafkaOptions("nowhere:1")
    consumer = Consumer(options, **consumer_arguments(options, None, None))
    task = asyncio.create_task(_heedless())
    await asyncio.sleep(0)

    async def close() -> None:
        task.cancel()
        await asyncio.wait([task])

    consumer._fetcher = SimpleNamespace(_fetch_task=task, close=close)  # noqa: SLF001 -- aiokafka's
    await asyncio.wait_for(consumer.stop(), PATIENCE_S)
    assert task.cancelled()
