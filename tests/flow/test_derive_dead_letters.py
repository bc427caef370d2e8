"""Dead letters of the derive worker: kept whole, with the reason; a flood of them stops it."""

from dataclasses import replace

from contextgauge.errors import DeadLetterFlood
from contextgauge.partitioner import partition_of
from streams import codec
from streams.edge.memory.log import MemoryLog
from streams.ports import NewRecord
from tests.doubles.headers import by_name
from tests.flow.derive_kit import DeriveKit, expected, samples

MESSAGES = samples()


async def test_dead_letters_keep_the_message_and_the_reason(kit: DeriveKit) -> None:
    right = partition_of("s", 4)
    topic, wrong = kit.config.messages_topic, (right + 1) % 4
    line = codec.dumps({"type": "assistant", "message": {"id": "m"}, "session_id": "s"})
    headers = (("a", b"\x00"), ("a", b"2"))
    bad = [
        (NewRecord(topic, 0, b"s", b"\xff"), "not_utf8"),
        (NewRecord(topic, 0, b"\xff", b"{", headers), "not_json"),
        (NewRecord(topic, 1, None, b"[1]"), "not_object"),
        (NewRecord(topic, 2, None, b"\xef\xbb\xbf{}"), "byte_order_mark"),
        (NewRecord(topic, wrong, b"s", line), "misrouted"),
    ]
    ignored = [
        NewRecord(topic, 0, b"s", None),
        NewRecord(topic, 0, b"s", b" \n"),
        NewRecord(topic, wrong, b"s", b'{"type":"unknown"}'),
    ]
    await kit.append([*[record for record, _ in bad], *ignored])
    figures = await kit.run_until_caught_up()
    letters = await kit.dead_letters()
    by_reason = {by_name(each.headers)["dead_reason"].decode(): each for each in letters}
    assert set(by_reason) == {reason for _, reason in bad}
    for record, reason in bad:
        dead = by_reason[reason]
        assert (dead.key, dead.value) == (record.key, record.value)
        assert dead.headers[: len(record.headers)] == record.headers
        source_headers = by_name(dead.headers)
        assert source_headers["src_topic"] == topic.encode()
        assert int(source_headers["src_partition"]) == record.partition
        source = await kit.read(topic, record.partition)
        (origin,) = [r for r in source if r.offset == int(source_headers["src_offset"])]
        assert origin.value == record.value
        assert int(source_headers["src_timestamp"]) == origin.timestamp_ms
        assert figures.counts["derive_dead_letters", reason] == 1
    assert b"partitioner=murmur2_random" in by_name(by_reason["misrouted"].headers)["dead_detail"]


async def test_a_message_without_a_session_is_a_dead_letter(kit: DeriveKit) -> None:
    line = codec.dumps({"type": "assistant", "message": {"usage": {"input_tokens": 1}}})
    await kit.append([NewRecord(kit.config.messages_topic, 3, b"\xff", line)])
    await kit.run_until_caught_up()
    (dead,) = await kit.dead_letters()
    assert dict(dead.headers)["dead_reason"] == b"no_session"


async def test_dead_letters_of_more_partitions_than_their_topic_has(log: MemoryLog) -> None:
    kit = DeriveKit(log, "")
    dead = next(topic for topic in kit.topics if topic.name == kit.config.dead_topic)
    await log.create_topics([dead], 2)
    await kit.create_topics()
    await kit.append(NewRecord(kit.config.messages_topic, p, None, b"{") for p in range(4))
    await kit.run_until_caught_up()
    origins = [
        [dict(record.headers)["src_partition"] for record in await kit.read(dead.name, partition)]
        for partition in range(2)
    ]
    assert origins == [[b"0", b"2"], [b"1", b"3"]]


def garbage(kit: DeriveKit, count: int) -> list[NewRecord]:
    return [NewRecord(kit.config.messages_topic, n % 4, None, b"{%d" % n) for n in range(count)]


async def test_a_flood_of_dead_letters_stops_the_worker_after_they_are_kept(
    kit: DeriveKit,
) -> None:
    await kit.append(garbage(kit, 501))
    error = await kit.start_worker().failed()
    assert isinstance(error, DeadLetterFlood)
    assert "501 of the last 1000" in str(error)
    assert "`contextgauge dead list`" in str(error)
    assert len(await kit.dead_letters()) == 501
    committed = await kit.log.committed(kit.config.group, kit.config.messages_topic)
    assert sum(committed.values()) == 501


async def test_dead_letters_for_half_of_the_messages_are_not_a_flood(kit: DeriveKit) -> None:
    await kit.append(garbage(kit, 500))
    await kit.run_until_caught_up()
    assert len(await kit.dead_letters()) == 500


async def test_a_flood_can_be_allowed(kit: DeriveKit) -> None:
    await kit.append(garbage(kit, 1_500))
    await kit.publish(MESSAGES[:100])
    await kit.run_until_caught_up(replace(kit.config, allow_dead_letters=True))
    assert len(await kit.dead_letters()) == 1_500
    assert await kit.events() == expected(MESSAGES[:100])
