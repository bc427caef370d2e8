"""Dead letters sent again: their records, which are skipped, and no duplicates."""

import zlib
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from contextgauge.clock import SystemClock
from contextgauge.delivery.shorten import MARK
from contextgauge.errors import ConfigError, RetryError
from contextgauge.kafka.options import KafkaOptions
from contextgauge.normalise.signals import InputMessage
from contextgauge.partitioner import partition_of
from schemas.messages import OBSERVED_HEADER, OBSERVED_LIVE, REDRIVEN_HEADER, TASK_ID_HEADER
from schemas.records import Record
from schemas.topics import DAY_MS, HOUR_MS
from streams import codec
from streams.edge.kafka.log import KafkaLog
from streams.edge.memory.log import MemoryLog
from streams.flow.dead_letters.letters import letter_of
from streams.flow.dead_letters.reading import Selection, Span
from streams.flow.dead_letters.redrive import Ready, RedriveResult, Skipped, prepare, redrive
from streams.flow.derive.deriver import Deriver
from streams.ports import Headers, LogRecord, NewRecord, Producer
from tests.flow.dead_kit import NOW_MS, config_of, died, reading, redriven
from tests.flow.derive_kit import RULES, DeriveKit, Sent, samples

LIVE: Headers = ((OBSERVED_HEADER, OBSERVED_LIVE),)
MESSAGES = samples(5)
SEEN_MS = NOW_MS - DAY_MS
"""When the first of the messages was seen; each later one a second after the one before."""

BySession = dict[str, list[Record]]


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.service)])
async def any_kit(request: pytest.FixtureRequest, prefix: str) -> AsyncIterator[DeriveKit]:
    """Give topics of the test's own, in memory and on a real Kafka."""
    if request.param == "memory":
        kit = DeriveKit(MemoryLog(SystemClock()), prefix)
    else:
        address: str = request.getfixturevalue("kafka")
        kit = DeriveKit(KafkaLog(KafkaOptions(address, session_timeout_ms=6_000)), prefix)
    # Most of what is published here dies: that is the point, and no flood.
    kit.config = replace(kit.config, allow_dead_letters=True)
    await kit.create_topics()
    yield kit
    await kit.log.stop()


def published(kit: DeriveKit, messages: list[Sent]) -> list[NewRecord]:
    """Return messages as a live publisher sends them that partitions by another hash.

    librdkafka's default is the CRC-32 of the key: all of a session goes to one wrong partition.
    """
    return [
        NewRecord(
            kit.config.messages_topic,
            zlib.crc32(codec.key_bytes(session_id)) % kit.partitions,
            codec.key_bytes(session_id),
            value,
            LIVE,
            SEEN_MS + 1_000 * number,
        )
        for number, (session_id, value) in enumerate(messages)
    ]


def of_right_publishing(messages: list[Sent]) -> BySession:
    """Return what comes of the messages, seen at the same times, on the right partitions."""
    deriver = Deriver(RULES)
    records: BySession = defaultdict(list)
    for number, (session_id, value) in enumerate(messages):
        derived = deriver.derive(InputMessage(value, session_id, SEEN_MS + 1_000 * number)).records
        records[session_id] += derived
    return {session_id: derived for session_id, derived in records.items() if derived}


async def by_session(kit: DeriveKit) -> BySession:
    records: BySession = defaultdict(list)
    for partition, found in enumerate(await kit.events()):
        for record in found:
            assert partition_of(record.data.session_id, kit.partitions) == partition
            records[record.data.session_id].append(record)
    return dict(records)


@pytest.mark.extended
async def test_redriven_messages_give_the_same_records_as_correctly_published_ones(
    any_kit: DeriveKit,
) -> None:
    kit = any_kit
    wrong = published(kit, MESSAGES)
    await kit.append(wrong)
    await kit.run_until_caught_up()
    expected = of_right_publishing(MESSAGES)
    assert await by_session(kit) != expected
    dead = await kit.dead_letters()
    assert {dict(letter.headers)["dead_reason"] for letter in dead} == {b"misrouted"}

    tried = await redriven(kit, dry=True)
    done = await redriven(kit)
    assert (done.messages, done.skipped_letters, dict(done.reasons)) == (
        len(dead),
        0,
        {"misrouted": len(dead)},
    )
    assert tried == done
    await kit.run_until_caught_up()
    assert await by_session(kit) == expected

    # Once more, and what had been published rightly meanwhile: nothing is there twice.
    assert (await redriven(kit)).messages == len(dead)
    await kit.publish(MESSAGES)
    await kit.run_until_caught_up()
    assert await by_session(kit) == expected
    assert len(await kit.dead_letters()) == len(dead)


def session_of_many(count: int) -> list[Sent]:
    """Return readings of one session: more than it knows the causes of at a time (R4)."""
    return [
        Sent(
            "many",
            codec.dumps(
                {
                    "type": "assistant",
                    "session_id": "many",
                    "uuid": f"u-{number}",
                    "message": {"id": f"m-{number}", "usage": {"input_tokens": 100 + number}},
                }
            ),
        )
        for number in range(count)
    ]


class Dying:
    """A producer whose broker goes away after so many records."""

    def __init__(self, producer: Producer, left: int) -> None:
        self._producer, self._left = producer, left

    async def start(self) -> None:
        await self._producer.start()

    async def send(self, record: NewRecord) -> None:
        if not self._left:
            raise RetryError("away")
        self._left -= 1
        await self._producer.send(record)

    async def flush(self) -> None:
        await self._producer.flush()

    async def stop(self) -> None:
        await self._producer.stop()


@pytest.mark.extended
@pytest.mark.parametrize("sent", [700, 5_400])
async def test_a_stopped_redrive_continues_without_duplicates(kit: DeriveKit, sent: int) -> None:
    """Not even in a session that has forgotten the first of those that were sent."""
    kit.config = replace(kit.config, allow_dead_letters=True)
    messages = [*session_of_many(5_500), *MESSAGES[:300]]
    await kit.append(published(kit, messages))
    await kit.run_until_caught_up()

    done = RedriveResult()
    producer = Dying(kit.log.producer(), sent)
    async with reading(kit) as letters:
        with pytest.raises(RetryError):
            await redrive(letters.as_sent(), config_of(kit), SystemClock(), producer, done)
    assert done.messages == sent
    await kit.run_until_caught_up()
    rest = tuple(Span(p, done.settled.get(p, 0), None) for p in range(kit.partitions))
    again = await redriven(kit, Selection(spans=rest))
    assert again.skipped_letters == 0
    await kit.run_until_caught_up()
    assert await by_session(kit) == of_right_publishing(messages)


@pytest.mark.extended
async def test_redriving_messages_already_derived_gives_no_records(any_kit: DeriveKit) -> None:
    kit = any_kit
    await kit.append(published(kit, MESSAGES))
    await kit.publish(MESSAGES)
    await kit.run_until_caught_up()
    before = await by_session(kit)
    assert (await redriven(kit)).messages > 100
    await kit.run_until_caught_up()
    assert await by_session(kit) == before


async def test_a_sent_message_is_the_original_with_the_address_of_its_letter(
    kit: DeriveKit,
) -> None:
    line = b'{"type":"assistant","session_id":"mine","message":{"usage":{"input_tokens":5}}} '
    own = (("a", b"\xff"), (TASK_ID_HEADER, b"t"), (REDRIVEN_HEADER, b"9:9"), ("a", b""))
    await kit.append([died(1, value=line, key=b"another", headers=own, sent_ms=SEEN_MS)])
    await redriven(kit)
    right = partition_of("mine", 4)
    (record,) = await kit.read(kit.config.messages_topic, right)
    assert (record.key, record.value) == (b"mine", line)
    assert record.headers == (*own[:2], own[3], (REDRIVEN_HEADER, b"1:0"))
    # It was not seen live, so its Kafka time is that of the sending, as of all that is published.
    assert record.timestamp_ms >= NOW_MS


async def test_a_live_message_keeps_its_timestamp(kit: DeriveKit) -> None:
    line = b'{"type":"assistant","session_id":"mine","message":{"usage":{"input_tokens":5}}}'
    await kit.append([died(value=line, headers=LIVE, sent_ms=SEEN_MS)])
    await redriven(kit)
    await kit.run_until_caught_up()
    events = await kit.events()
    times = {record.time_ms for partition in events for record in partition}
    assert times == {SEEN_MS}


def made(kit: DeriveKit, record: NewRecord, **changes: object) -> Ready | Skipped | None:
    """Return what becomes of a dead letter."""
    letter = letter_of(0, LogRecord(5, NOW_MS, record.key, record.value, record.headers))
    return prepare(letter, config_of(kit, **changes), NOW_MS)


USAGE = b'"message":{"usage":{"input_tokens":5}}'
ANONYMOUS = b'{"type":"assistant",' + USAGE + b"}"


@pytest.mark.parametrize(
    ("sent_ms", "stays"),
    [
        (NOW_MS - 30 * DAY_MS, "expired"),
        (NOW_MS - 30 * DAY_MS + HOUR_MS - 1, "expired"),
        (NOW_MS - 30 * DAY_MS + HOUR_MS, None),
        (NOW_MS + HOUR_MS, None),
        (NOW_MS + HOUR_MS + 1, "ahead"),
    ],
    ids=["30 days old", "its last hour", "an hour left", "an hour ahead", "further ahead"],
)
def test_a_live_message_outside_the_topics_time_limits_is_skipped(
    kit: DeriveKit, sent_ms: int, stays: str | None
) -> None:
    limited = made(kit, died(value=ANONYMOUS, headers=LIVE, sent_ms=sent_ms))
    assert (limited.reason if isinstance(limited, Skipped) else None) == stays
    plain = made(kit, died(value=ANONYMOUS, sent_ms=sent_ms))
    assert isinstance(plain, Ready)
    assert plain.record.timestamp_ms is None
    unlimited = {"retention_ms": -1, "max_ahead_ms": None}
    ready = made(kit, died(value=ANONYMOUS, headers=LIVE, sent_ms=sent_ms), **unlimited)
    assert isinstance(ready, Ready)
    assert ready.record.timestamp_ms == sent_ms


@pytest.mark.parametrize("expected", [b"-1", b"never", None])
def test_a_live_message_without_a_known_timestamp_loses_its_mark(
    kit: DeriveKit, expected: bytes | None
) -> None:
    """It would be given the time of the sending, which is wrong."""
    record = died(value=ANONYMOUS, headers=(("a", b"b"), *LIVE))
    last = () if expected is None else (("src_timestamp", expected),)
    ready = made(kit, record._replace(headers=(*record.headers[:-1], *last)))
    assert isinstance(ready, Ready)
    assert ready.record.headers == (("a", b"b"), (REDRIVEN_HEADER, b"0:5"))
    assert ready.record.timestamp_ms is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\xff", "not_utf8"),
        (b"\xef\xbb\xbf{}", "byte_order_mark"),
        (b"{", "not_json"),
        (b"[]", "not_object"),
        (b'{"a":' + b"[" * 1_024 + b"]" * 1_024 + b"}", "too_deep"),
    ],
)
@pytest.mark.parametrize("key", [b"s", None])
def test_unreadable_messages_are_skipped(
    kit: DeriveKit, value: bytes, reason: str, key: bytes | None
) -> None:
    for assign in (None, "s"):
        skipped = made(kit, died(value=value, key=key), assign_session=assign)
        assert isinstance(skipped, Skipped)
        assert skipped.reason == reason


def test_a_message_without_a_session_is_assigned_one(kit: DeriveKit) -> None:
    for key in (None, b"\xff", b""):
        skipped = made(kit, died(value=ANONYMOUS, key=key))
        assert isinstance(skipped, Skipped)
        assert skipped.reason == "no_session"
        given = made(kit, died(value=ANONYMOUS, key=key), assign_session="given")
        assert isinstance(given, Ready)
        assert (given.record.key, given.record.value) == (b"given", ANONYMOUS)
        assert given.record.partition == partition_of("given", 4)
    keyed = made(kit, died(value=ANONYMOUS, key=b"its own"), assign_session="given")
    assert isinstance(keyed, Ready)
    assert keyed.session_id == "its own"
    assert made(kit, died(value=b'{"type":"unheard of"}', key=None)) is None


def test_a_message_over_the_limit_is_shortened_as_by_publish(kit: DeriveKit) -> None:
    text = b"x" * 5_000
    line = b'{"type":"assistant","text":"' + text + b'",' + USAGE + b"}"
    ready = made(kit, died(reason="too_large", value=line), limit_bytes=3_000)
    assert isinstance(ready, Ready)
    assert ready.shortened
    value = ready.record.value or b""
    assert len(value) <= 3_000
    assert codec.loads(value)[MARK]["bytes"] == len(line)
    broken = made(kit, died(reason="too_large", value=line[:-1]), limit_bytes=3_000)
    assert isinstance(broken, Skipped)
    assert broken.reason == "too_large"


def test_a_letter_whose_record_would_be_too_large_is_skipped(kit: DeriveKit) -> None:
    """The limit is of the message; a record of it may need more, as the deriver found."""
    wide = b",".join([b"1e15"] * 1_500_000)
    line = (
        b'{"type":"system","subtype":"compact_boundary","session_id":"s","compact_metadata":'
        b'{"trigger":"auto","pre_tokens":5,"more":[' + wide + b"]}}"
    )
    skipped = made(kit, died(reason="too_large", value=line))
    assert isinstance(skipped, Skipped)
    assert skipped.reason == "too_large"
    assert "a record of it" in skipped.detail


async def test_skipped_letters_are_reported_by_reason(kit: DeriveKit) -> None:
    await kit.append(
        [
            *[died(n % 4, reason="not_json", value=b"{") for n in range(5)],
            died(reason="no_session", key=None, value=ANONYMOUS),
            died(reason="no_session", key=None, value=b'{"type":"unheard of"}'),
            died(value=ANONYMOUS),
        ]
    )
    done = await redriven(kit)
    assert (done.messages, done.meaningless, done.skipped_letters, done.letters) == (1, 1, 6, 8)
    assert {reason: left.letters for reason, left in done.skipped.items()} == {
        "not_json": 5,
        "no_session": 1,
    }
    assert len(done.skipped["not_json"].examples) == 3
    again = await redriven(kit, Selection(spans=(Span(0, 2, 3),)), assign_session="x")
    assert (again.messages, again.sessions) == (1, {"x"})


async def test_nothing_is_sent_without_a_producer(kit: DeriveKit) -> None:
    await kit.append([died(value=ANONYMOUS)])
    assert (await redriven(kit, dry=True)).messages == 1
    assert [await kit.read(kit.config.messages_topic, p) for p in range(4)] == [[]] * 4


async def test_a_timestamp_that_the_broker_rejects_is_reported(kafka: str, prefix: str) -> None:
    kit = DeriveKit(KafkaLog(KafkaOptions(kafka)), prefix)
    await kit.create_topics()
    await kit.append(
        [
            died(
                value=ANONYMOUS,
                headers=LIVE,
                sent_ms=NOW_MS + 2 * HOUR_MS,
                topic=kit.config.dead_topic,
            )
        ]
    )
    with pytest.raises(ConfigError, match=r"message\.timestamp"):
        await redriven(kit, max_ahead_ms=None)
    await kit.log.stop()
