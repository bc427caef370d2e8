"""Publishing goes on after its producer failed: with another one, at what was acknowledged."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from schemas.topics import AGENT_MESSAGES
from streams.cli.following import Outcome, Request, _Publishing
from streams.cli.publishing import Connection
from streams.cli.refusals import Refusals
from streams.cli.status import Status
from streams.core.errors import RetryError
from streams.edge.checkpoint import Checkpoint, Target
from streams.edge.clock import SystemClock
from streams.edge.memory_log import MemoryLog, MemoryProducer
from streams.edge.partitioner import partition_of
from streams.edge.watch import Found
from streams.flow.publish import PublishConfig
from streams.ports import NewRecord
from tests.edge.follower_kit import add, told

CONFIG = PublishConfig(topic="t", partitions=1, partition_of=partition_of)


class Failing(MemoryProducer):
    """A producer whose broker takes nothing the first time."""

    acknowledged: dict[tuple[str, int], int] = {}  # noqa: RUF012 -- never written to

    def __init__(self, log: MemoryLog, failures: list[str]) -> None:
        super().__init__(log)
        self._failures = failures
        self._held: list[NewRecord] = []

    async def send(self, record: NewRecord) -> None:
        self._held.append(record)

    async def flush(self) -> None:
        if self._failures:
            raise RetryError(self._failures.pop())
        for record in self._held:
            await super().send(record)
        self._held.clear()
        await super().flush()


class Renewable(Connection):
    """A connection that has another producer at once."""

    async def open(self, stop: asyncio.Event) -> None:  # noqa: ARG002 -- as it is there
        await self.producer.start()


async def publish(path: Path, folder: Path, *, follow: bool) -> tuple[list[bytes], list[str]]:
    log, failures = MemoryLog(SystemClock()), ["the broker went away"]
    said: list[str] = []
    topic = replace(AGENT_MESSAGES, name="t")
    await log.create_topics([topic], 1)
    log.producer = lambda: Failing(log, failures)  # type: ignore[method-assign]
    connection = Renewable(log, "t", said.append, log.producer(), 1)  # type: ignore[arg-type]
    await connection.producer.start()
    stop = asyncio.Event()
    request = Request(
        files=[str(path)],
        pipes=[],
        follow=follow,
        session=None,
        live=None,
        no_text=False,
        again=False,
        checkpoint=None,
        task_id=None,
        agent_id=None,
    )
    publishing = _Publishing(
        request, connection, CONFIG, Refusals(), Status(follow=follow), stop, Outcome()
    )
    look: Callable[[float], Sequence[Found]] = lambda _: [Found(str(path), os.stat(path))]  # noqa: E731, PTH116
    checkpoint = Checkpoint(folder / "c.json", Target("", "t"))
    running = asyncio.create_task(publishing.files(checkpoint, look))
    partition = log.partition("t", 0)
    async with asyncio.timeout(30):
        while partition.next_offset < 2 and not running.done():
            await partition.wait(0.05)
        if follow:
            add(path, told(3))
            while partition.next_offset < 3 and not running.done():
                await partition.wait(0.05)
            assert not running.done()
            stop.set()
        await running
    with checkpoint:
        assert [at.number for at in checkpoint.load(0).positions] == [partition.next_offset]
    return [record.value or b"" for record in partition.read(0, 10).records], said


async def test_a_run_sends_all_though_its_producer_failed(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    add(path, told(1), told(2))
    values, said = await publish(path, tmp_path, follow=False)
    assert [value.decode() for value in values] == [told(1), told(2)]
    assert said == ["the broker went away: beginning again at what the broker acknowledged"]


async def test_following_goes_on_though_its_producer_failed(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    add(path, told(1), told(2))
    values, _ = await publish(path, tmp_path, follow=True)
    assert [value.decode() for value in values] == [told(1), told(2), told(3)]
