"""Replay of topics on the log in memory: what a worker wrote, again; ranges, sessions, gaps."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain

import pytest

from contextgauge.clock import SystemClock
from contextgauge.partitioner import partition_of
from schemas.messages import OBSERVED_HEADER, OBSERVED_LIVE
from schemas.records import Record
from schemas.topics import DAY_MS
from streams import codec
from streams.flow.dead_letters.letters import Letter
from streams.flow.replay.topic import Place, Replayed, TopicReplay
from streams.ports import NewRecord
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import RULES, DeriveKit, Sent, samples

NOW_MS = SystemClock().now_ms()
MESSAGES = samples(3)


def tick(session_id: str, number: int) -> Sent:
    """Return a small response, which gives a record."""
    usage = {"input_tokens": 1_000 + number, "output_tokens": 1}
    message = {"id": f"m{number}", "model": "claude-opus-4-1", "usage": usage}
    body = {"type": "assistant", "uuid": f"{session_id}-{number}", "message": message}
    return Sent(session_id, codec.dumps(body))


class Part:
    """What a replay gave."""

    def __init__(self, parts: Sequence[Replayed]) -> None:
        events = chain.from_iterable(part.records for part in parts)
        self.records: list[Record] = [codec.from_binary(*event) for event in events]
        self.dead: list[Letter] = [letter for part in parts for letter in part.dead]


@asynccontextmanager
async def replaying(
    kit: DeriveKit, topic: str, session_id: str | None = None, **between: Place
) -> AsyncIterator[TopicReplay]:
    """Give a replay that has begun."""
    partitions = range(kit.partitions)
    reader = kit.log.reader(topic, partitions)
    await reader.start()
    try:
        replay = TopicReplay(reader, SystemClock(), session_id)
        await replay.begin(partitions, **between)
        yield replay
    finally:
        await reader.stop()


async def of_messages(kit: DeriveKit, session_id: str | None = None, **between: Place) -> Part:
    async with replaying(kit, kit.config.messages_topic, session_id, **between) as replay:
        parts = replay.derived(RULES, kit.config, kit.partitions)
        return Part([part async for part in parts])


async def of_records(kit: DeriveKit, session_id: str | None = None, **between: Place) -> Part:
    async with replaying(kit, kit.config.events_topic, session_id, **between) as replay:
        return Part([part async for part in replay.records()])


async def live(kit: DeriveKit) -> list[Record]:
    return list(chain.from_iterable(await kit.events()))


def timed(kit: DeriveKit, messages: Sequence[Sent], times_ms: Sequence[int]) -> list[NewRecord]:
    """Return messages with Kafka timestamps, marked live."""
    return [
        NewRecord(
            kit.config.messages_topic,
            partition_of(session_id, kit.partitions),
            codec.key_bytes(session_id),
            value,
            ((OBSERVED_HEADER, OBSERVED_LIVE),),
            time_ms,
        )
        for (session_id, value), time_ms in zip(messages, times_ms, strict=True)
    ]


async def test_messages_and_records_give_what_the_worker_wrote(kit: DeriveKit) -> None:
    times = range(NOW_MS, NOW_MS + 10 * len(MESSAGES), 10)
    await kit.append(timed(kit, MESSAGES, times))
    await kit.append([NewRecord(kit.config.messages_topic, 1, b"s", b"{", ())])
    await kit.run_until_caught_up()
    written = await live(kit)
    assert len(written) > 500
    again = await of_messages(kit)
    assert again.records == (await of_records(kit)).records == written
    assert [(dead.reason, dead.origin and dead.origin.partition) for dead in again.dead] == [
        ("not_json", 1)
    ]


async def test_a_session_that_was_idle_for_too_long_begins_again_as_in_the_worker(
    kit: DeriveKit,
) -> None:
    one = [sent for sent in MESSAGES if sent.session_id == MESSAGES[0].session_id]
    later = NOW_MS + 200 * DAY_MS
    times = [NOW_MS] * (len(one) // 2) + [later] * (len(one) - len(one) // 2)
    # Enough others of the later day confirm it before the session goes on.
    other = next(
        f"other-{n}"
        for n in range(99)
        if partition_of(f"other-{n}", 4) == partition_of(one[0].session_id, 4)
    )
    ticks = [tick(other, n) for n in range(200)]
    messages = timed(kit, one, times)
    half = len(one) // 2
    await kit.append([*messages[:half], *timed(kit, ticks, [later] * 200), *messages[half:]])
    await kit.run_until_caught_up()
    written = await live(kit)
    firsts = [r for r in written if r.sequence == 1 and r.data.session_id == one[0].session_id]
    assert len(firsts) == 2
    assert (await of_messages(kit)).records == written


async def test_one_session_is_read_from_its_partition_alone(kit: DeriveKit) -> None:
    session_id = MESSAGES[0].session_id
    bad = [(session_id, b"{"), (MESSAGES[-1].session_id, b"{")]
    await kit.publish([*MESSAGES, *(Sent(*each) for each in bad)])
    await kit.run_until_caught_up()
    own = [record for record in await live(kit) if record.data.session_id == session_id]
    again = await of_messages(kit, session_id)
    assert again.records == own == (await of_records(kit, session_id)).records
    assert [dead.key for dead in again.dead] == [session_id.encode()]
    assert (await of_messages(kit, "another")).records == []


async def test_sessions_are_found_by_the_beginning_of_their_ids(kit: DeriveKit) -> None:
    await kit.publish([tick(name, 1) for name in ("ab1", "ab2", "ab", "b", "ab")])
    await kit.append([NewRecord(kit.config.messages_topic, 0, b"ab\xff", b"{}")])

    async def beginning(text: str) -> set[str]:
        async with replaying(kit, kit.config.messages_topic) as replay:
            return await replay.sessions_beginning(text)

    assert await beginning("a") == {"ab", "ab1", "ab2"}
    assert await beginning("ab") == {"ab"}  # a whole id, whatever else begins so
    assert await beginning("ab2") == {"ab2"}
    assert await beginning("c") == set()


async def test_a_range_begins_and_ends_at_times_or_offsets(kit: DeriveKit) -> None:
    ticks = [tick(f"s{n}", n) for n in range(40)]
    times = [NOW_MS + 1_000 * n for n in range(40)]
    await kit.append(timed(kit, ticks, times))

    async def sessions(**between: Place) -> set[str]:
        part = await of_messages(kit, None, **between)
        return {record.data.session_id for record in part.records}

    assert await sessions() == {f"s{n}" for n in range(40)}
    begin, end = Place(time_ms=times[10]), Place(time_ms=times[30])
    assert await sessions(begin=begin, end=end) == {f"s{n}" for n in range(10, 30)}
    by_partition = [
        [sent for sent in ticks if partition_of(sent.session_id, 4) == p] for p in range(4)
    ]
    middle = {sent.session_id for part in by_partition for sent in part[2:4]}
    assert await sessions(begin=Place(offset=2), end=Place(offset=4)) == middle
    assert await sessions(begin=Place(offset=99)) == set()
    assert await sessions(end=Place(time_ms=times[0])) == set()


async def test_what_arrives_later_is_not_read(kit: DeriveKit) -> None:
    await kit.publish(MESSAGES[:50])
    async with replaying(kit, kit.config.messages_topic) as replay:
        await kit.publish(MESSAGES[50:100])
        parts = replay.derived(RULES, kit.config, kit.partitions)
        again = Part([part async for part in parts])
    assert replay.offsets == 50
    await kit.run_until_caught_up()
    assert len(again.records) < len(await live(kit))


@pytest.mark.parametrize(
    ("begin", "is_whole"), [(None, True), (Place(offset=0), True), (Place(offset=1), False)]
)
async def test_whether_sessions_may_begin_in_the_middle_is_known(
    kit: DeriveKit, begin: Place | None, *, is_whole: bool
) -> None:
    await kit.publish(MESSAGES)
    partitions = range(kit.partitions)
    replay = TopicReplay(kit.log.reader(kit.config.messages_topic, partitions), SystemClock())
    await replay.begin(partitions, begin)
    assert replay.is_whole is is_whole


async def test_messages_that_retention_deletes_meanwhile_are_skipped(
    kit: DeriveKit, log: FaultyLog
) -> None:
    ticks = [tick("s", n) for n in range(5_000)]
    await kit.publish(ticks)
    read: list[tuple[int, int]] = []
    async with replaying(kit, kit.config.messages_topic) as replay:
        replay.progress = lambda *figures: read.append(figures)
        async for _ in replay.derived(RULES, kit.config, kit.partitions):
            log.delete_before(kit.config.messages_topic, partition_of("s", 4), 4_900)
    assert replay.is_whole is False
    assert read[-1] == (5_000, 5_000)
