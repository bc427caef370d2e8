"""How many dead letters the topic holds: transaction markers, which take offsets too, are none."""

import pytest

from contextgauge.clock import SystemClock
from schemas.topics import DEAD_LETTERS
from streams.flow.doctor import log_facts as module
from streams.flow.doctor.facts import DeadLetters, Services
from streams.flow.doctor.log_facts import LogFacts
from streams.ports import NewRecord
from streams.ports.inspection import ClusterFacts, Failure, TopicFacts, TopicPartition
from tests.doctor.cases import EXPECTED
from tests.doubles.log import FaultyLog


async def dead_letters(transactions: int, letters_each: int) -> DeadLetters:
    log = FaultyLog(SystemClock())
    await log.create_topics([DEAD_LETTERS], 1)
    producer = log.transactional_producer("t")
    await producer.start()
    letter = NewRecord(DEAD_LETTERS.name, 0, b"s", b"{}", (("dead_reason", b"not_json"),))
    for _ in range(transactions):
        await producer.commit([letter] * letters_each)
    there = TopicFacts([TopicPartition(partition=0, leader=1, replicas=1, in_sync=1)], {})
    none = Failure("away", "not asked")
    services = Services(
        brokers=none, log=log, store=none, views=none, conversations=none, clock=SystemClock()
    )
    cluster = ClusterFacts("c", [], {DEAD_LETTERS.name: there})
    return await LogFacts(services, EXPECTED, cluster).dead()


async def test_the_only_dead_letter_is_not_one_of_more() -> None:
    dead = await dead_letters(1, 1)
    assert (dead.looked, dead.total, dead.reasons) == (1, 1, {"not_json": 1})


async def test_those_that_are_not_examined_are_about_as_many_as_their_offsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_SAMPLED_OF_PARTITION", 4)
    dead = await dead_letters(2, 9)
    assert (dead.looked, dead.total) == (3, 3 + 16)
