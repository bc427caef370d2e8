"""How far messages are derived, read from the end of a state topic of any size."""

import pytest

from contextgauge.clock import SystemClock
from schemas.topics import AGENT_MESSAGES, CONTEXT_EVENTS, CONTEXT_STATE
from streams import codec
from streams.edge.memory.readers import MemoryPartitionReader
from streams.flow.derive.stored_sessions import POSITION_KEY
from streams.flow.doctor import log_facts as module
from streams.flow.doctor.facts import Services, WorkerProgress
from streams.flow.doctor.log_facts import LogFacts
from streams.ports import Batch, Clock, NewRecord
from streams.ports.inspection import ClusterFacts, Failure, Group, TopicFacts, TopicPartition
from tests.doctor.cases import EXPECTED
from tests.doubles.log import FaultyLog

GROUP = Group("Stable", (), {(AGENT_MESSAGES.name, 0): 77})
"""What is committed with the position: reported where the state does not have it."""


def state(key: bytes, value: bytes = b"{}") -> NewRecord:
    return NewRecord(CONTEXT_STATE.name, 0, key, value)


def positioned(position: int) -> NewRecord:
    return state(POSITION_KEY, codec.dumps({"position": position}))


async def test_the_groups_that_stored_the_newest_positions_are_known() -> None:
    documents = [{"position": 1, "log": log} for log in ({"group": "a"}, {"group": "b"}, 7, {})]
    stored = [state(POSITION_KEY, codec.dumps(document)) for document in documents]
    progress = await progress_in(await log_of(stored))
    assert progress.groups == {"a", "b"}
    assert progress.position == 1
    assert (await progress_in(await log_of([positioned(7)]))).groups == frozenset()


async def log_of(*transactions: list[NewRecord]) -> FaultyLog:
    log = FaultyLog(SystemClock())
    await log.create_topics([AGENT_MESSAGES, CONTEXT_EVENTS, CONTEXT_STATE], 1)
    for _ in range(100):
        log.write(NewRecord(AGENT_MESSAGES.name, 0, b"s", b"{}"), None)
    producer = log.transactional_producer("t")
    await producer.start()
    for records in transactions:
        await producer.commit(records)
    return log


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_S", 0.01)


async def position_in(log: FaultyLog, clock: Clock | None = None) -> int | None:
    return (await progress_in(log, clock)).position


async def progress_in(log: FaultyLog, clock: Clock | None = None) -> WorkerProgress:
    there = TopicFacts([TopicPartition(partition=0, leader=1, replicas=1, in_sync=1)], {})
    cluster = ClusterFacts("c", [], {AGENT_MESSAGES.name: there, CONTEXT_STATE.name: there})
    none = Failure("away", "not asked")
    services = Services(
        brokers=none,
        log=log,
        store=none,
        views=none,
        conversations=none,
        clock=clock or SystemClock(),
    )
    by_partition = await LogFacts(services, EXPECTED, cluster).derive(GROUP)
    assert isinstance(by_partition, dict)
    progress: WorkerProgress = by_partition[0]
    return progress


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tell how many records each poll gave."""
    counts: list[int] = []
    usual = MemoryPartitionReader.poll

    async def poll(self: MemoryPartitionReader, *arguments: int) -> Batch:
        batch = await usual(self, *arguments)
        counts.append(len(batch.records))
        return batch

    monkeypatch.setattr(MemoryPartitionReader, "poll", poll)
    return counts


async def test_of_many_sessions_only_the_end_is_read(read: list[int]) -> None:
    many = [state(b"%d" % number) for number in range(20_000)]
    log = await log_of([positioned(10)], [*many, positioned(50)])
    assert await position_in(log) == 50
    assert sum(read) < 100


async def test_a_position_behind_an_aborted_transaction_is_found() -> None:
    log = await log_of([positioned(40)])
    log.cut_commits = 1
    dying = log.transactional_producer("u")
    await dying.start()
    with pytest.raises(Exception, match="cuts this commit"):
        await dying.commit([state(b"%d" % number) for number in range(2_000)])
    await log.transactional_producer("u").start()
    assert await position_in(log) == 40


class ShortClock(SystemClock):
    """Time is over after a few looks at it."""

    def __init__(self, looks: int) -> None:
        self._left = looks

    def monotonic_s(self) -> float:
        self._left -= 1
        return 0.0 if self._left > 0 else 1e9


@pytest.mark.parametrize("looks", range(1, 8))
async def test_an_old_position_is_not_taken_for_the_newest_after_a_timeout(looks: int) -> None:
    """Rather none of the state: what is committed next to it, or the newest after all."""
    log = await log_of(*[[positioned(number)] for number in range(60)])
    log.cut_commits = 1
    dying = log.transactional_producer("u")
    await dying.start()
    with pytest.raises(Exception, match="cuts this commit"):
        await dying.commit([state(b"%d" % number) for number in range(40)])
    await log.transactional_producer("u").start()
    assert await position_in(log, ShortClock(looks)) in {59, 77}
