"""Dead letters of a test's own, and what reads them."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from contextgauge.clock import SystemClock
from schemas.messages import DeadLetter, DeadReason
from schemas.topics import DAY_MS, HOUR_MS
from streams.edge.kafka.fetching import records_of
from streams.edge.kafka.unpacking import LIMIT_BYTES
from streams.flow.dead_letters.letters import Letter, dead_record
from streams.flow.dead_letters.reading import DeadReading, Selection
from streams.flow.dead_letters.redrive import RedriveConfig, RedriveResult, redrive
from streams.flow.derive.record_writer import origin_headers, source_headers
from streams.ports import Clock, Headers, LogRecord, NewRecord
from tests.flow.derive_kit import RULES, DeriveKit

NOW_MS = SystemClock().now_ms()


def died(
    partition: int = 0,
    *,
    reason: DeadReason = "misrouted",
    value: bytes = b"{}",
    key: bytes | None = b"s",
    headers: Headers = (),
    sent_ms: int = NOW_MS,
    died_ms: int = NOW_MS,
    topic: str = "agent.messages.dead",
) -> NewRecord:
    """Return a dead letter as the derive worker writes it."""
    record = LogRecord(7, sent_ms, key, value, headers)
    source = source_headers(
        origin_headers("agent.messages", partition), record.offset, record.timestamp_ms
    )
    letter = dead_record(record, DeadLetter(reason, "why"), source, topic, partition)
    return letter._replace(timestamp_ms=died_ms)


def config_of(kit: DeriveKit, **changes: object) -> RedriveConfig:
    """Return how to redrive to the kit's topic."""
    config = RedriveConfig(
        topic=kit.config.messages_topic,
        partitions=kit.partitions,
        rules=RULES,
        limit_bytes=kit.config.limit_bytes,
        retention_ms=30 * DAY_MS,
        max_ahead_ms=HOUR_MS,
        unpack=partial(records_of, limit=LIMIT_BYTES),
    )
    return replace(config, **changes)  # type: ignore[arg-type]  # fields of the configuration


@asynccontextmanager
async def reading(
    kit: DeriveKit,
    selection: Selection | None = None,
    *,
    progress: Callable[[int, int], None] = lambda _read, _of: None,
    clock: Clock | None = None,
) -> AsyncIterator[DeadReading[Letter]]:
    """Give a look at the kit's dead letters."""
    reader = kit.log.reader(kit.config.dead_topic, range(kit.partitions))
    await reader.start()
    try:
        letters = DeadReading(
            reader,
            clock or SystemClock(),
            selection or Selection(),
            lambda letter: letter,
            progress,
        )
        await letters.begin(range(kit.partitions))
        yield letters
    finally:
        await reader.stop()


async def redriven(
    kit: DeriveKit, selection: Selection | None = None, *, dry: bool = False, **changes: object
) -> RedriveResult:
    """Redrive the kit's dead letters."""
    producer = kit.log.producer()
    await producer.start()
    try:
        async with reading(kit, selection) as letters:
            return await redrive(
                letters.as_sent(),
                config_of(kit, **changes),
                SystemClock(),
                None if dry else producer,
                RedriveResult(),
            )
    finally:
        await producer.stop()


def addresses(letters: Iterable[Letter]) -> list[str]:
    """Return where letters are."""
    return [letter.address for letter in letters]
