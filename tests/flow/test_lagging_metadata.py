"""What a worker knows of its topics where the metadata of the broker that it asks lags behind."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from contextgauge import json_codec
from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from streams.flow.common.topic_watch import TopicLooks, known_topics
from streams.flow.derive.batch_sizes import BatchSizes
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.group_offsets import GroupOffsets
from streams.flow.derive.log_proof import LogProof, read_ids, read_proof
from streams.flow.derive.partition_state import InputPartition
from streams.flow.derive.partition_task import DerivePorts, PartitionTask
from streams.flow.derive.state_store import StateStore
from streams.flow.derive.stored_sessions import POSITION_KEY
from streams.ports import NO_ID, Health, LogPlace
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import RULES, DeriveKit, Figures, HastyClock, samples


@pytest.fixture
async def derived(kit: DeriveKit) -> DeriveKit:
    """Topics of which all messages are derived."""
    await kit.publish(samples())
    await kit.run_until_caught_up()
    return kit


async def test_no_partition_is_taken_over_while_a_broker_does_not_know_a_topic(
    derived: DeriveKit, log: FaultyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker whose metadata is old; without an id the state would be bound to any topic."""
    know, config = log.topic_ids, derived.config

    async def unknown(names: Sequence[str]) -> dict[str, UUID | None]:
        return {**await know(names), config.messages_topic: None}

    monkeypatch.setattr(log, "topic_ids", unknown)
    with pytest.raises(RetryError, match=r"does not know the topic .*agent\.messages"):
        await read_ids(log, config)
    with pytest.raises(RetryError, match=r"does not know .*agent\.messages yet"):
        await known_topics(log, HastyClock(), [config.events_topic, config.messages_topic])


async def test_a_broker_without_ids_forgets_none(
    derived: DeriveKit, log: FaultyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = await _stored_ids(derived)

    async def no_ids(names: Sequence[str]) -> dict[str, UUID | None]:
        return dict.fromkeys(names, NO_ID)

    with monkeypatch.context() as patch:
        patch.setattr(log, "topic_ids", no_ids)
        await derived.publish(samples(2))
        await derived.run_until_caught_up()
    assert await _stored_ids(derived) == former
    assert "" not in former


async def _stored_ids(kit: DeriveKit) -> set[str]:
    """Return the topics' ids in the last positions of all partitions."""
    topic_ids = set[str]()
    for partition in range(4):
        records = await kit.read(kit.config.state_topic, partition)
        values = [record.value or b"" for record in records if record.key == POSITION_KEY]
        proof = read_proof(json_codec.loads(values[-1])["log"])
        topic_ids |= {proof.messages.topic_id, proof.events.topic_id}
    return topic_ids


def test_a_message_is_an_anchor_once_metadata_that_lags_behind_would_show_another_topic() -> None:
    clock, looks, proof = SetClock(), TopicLooks(), LogProof()
    task = PartitionTask(
        DerivePorts(
            telemetry=Figures(),
            health=Health("derive", clock, 1),
            clock=clock,
            stop=asyncio.Event(),
            log=(log := FaultyLog(clock)),
            state_store=StateStore(log, "state"),
            rules=RULES,
            config=DeriveConfig(),
        ),
        InputPartition(0, 1, 1),
        log.group_reader("messages", "group", None),
        GroupOffsets(log.group_reader("messages", "group", None)),
        looks,
        BatchSizes(5_000, 20.0),
    )
    anchors = []
    for clock.now_s, looks.confirmed_s, offset in [
        (10.0, 9.0, 1),
        (61.0, 59.0, 2),
        (70.0, 60.0, 3),  # looked at when what it had at 0 s was known for long: takes message 3
        (125.0, 120.0, 4),
        (131.0, 130.0, 5),  # and this one counts
        (140.0, 139.0, 6),
    ]:
        proof.messages = LogPlace("id", offset, f"of {offset}")
        task.move_anchor(proof)
        anchors.append(proof.anchor)
    assert anchors == [*[LogPlace("", -1)] * 4, *[LogPlace("", 3, "of 3")] * 2]


class SetClock(SystemClock):
    """A clock that is set by hand."""

    now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s
