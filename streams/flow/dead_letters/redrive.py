"""Sends dead letters that can be derived now back to `agent.messages`.

Each letter is first processed as a publisher and the deriver would: one that would become a dead
letter again is skipped, and of a batch that can be read now, each message. Sent messages have the
original bytes and headers, so the causes of their records are the same (R4), and messages that were
already derived give no second record. Only the key and the partition are corrected, and a line over
the limit is shortened as by `publish`.

A session recognises duplicates among its last 262 144 messages (R4). A redrive that was stopped
need not start over: it reports where to continue.

The Kafka timestamp is the time of sending, as for all published messages; but a message marked
live keeps the time at which it was seen, which is its event time (R28).
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.containers import Line
from contextgauge.delivery.outgoing import keyed
from contextgauge.partitioner import partition_of
from schemas.messages import NO_SESSION, OBSERVED_HEADER, REDRIVEN_HEADER, DeadLetter, DeadReason
from schemas.topics import HOUR_MS
from streams import codec
from streams.core.derivation.rules_config import Rules
from streams.flow.dead_letters.letters import REMEDIES, Letter, Origin, misrouted_check
from streams.flow.derive.deriver import Deriver, input_message, text_of
from streams.ports import (
    Clock,
    Headers,
    LogRecord,
    NewRecord,
    Producer,
    UnreadableBatchError,
)

SkipReason: TypeAlias = DeadReason | Literal["cut", "expired", "ahead"]

Unpack: TypeAlias = Callable[[bytes], Iterable[LogRecord]]
"""Returns the records of a batch. Raises UnreadableBatchError, also for a later one."""

SETTLED_EVERY = 1_000
"""Letters between two flushes: far fewer than the 262 144 messages of which a session recognises
duplicates (R4), so sending the letters since the last flush again gives no second record."""

EXAMPLES = 3
"""Addresses reported of the letters that are skipped for one reason."""

SKIP_REMEDIES: Final[Mapping[str, str]] = {
    **REMEDIES,
    "too_large": "raise CONTEXTGAUGE_MESSAGE_LIMIT_BYTES for the derive workers, or fix the "
    "producer",
    "misrouted": "use the same settings for the derive workers and this command",
    "cut": "publish the message again: the topic that it came from has it until it expires there",
    "expired": "raise CONTEXTGAUGE_MESSAGES_RETENTION_DAYS, and the topic's retention.ms",
    "ahead": "wait until that time, and correct the publisher's clock",
}
"""How to handle a letter that is skipped."""

_MARGIN_MS = HOUR_MS
"""A message closer to its deletion could be gone before a restarted worker derives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveConfig:
    """The target topic, and the rules of the derivation.

    `retention_ms` (-1: forever) and `max_ahead_ms` are the target topic's; `assign_session` is for
    letters that name no session, `unpack` for those of batches.
    """

    topic: str
    partitions: int
    rules: Rules
    limit_bytes: int
    retention_ms: int
    max_ahead_ms: int | None
    unpack: Unpack
    assign_session: str | None = None


class Skipped(NamedTuple):
    """Why a letter is not sent."""

    reason: SkipReason
    detail: str


class Ready(NamedTuple):
    """A letter as it is sent."""

    session_id: str
    record: NewRecord
    shortened: bool


@dataclass(slots=True)
class SkippedLetters:
    """Letters skipped for one reason: how many, one's detail, the addresses of a few."""

    detail: str
    letters: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(slots=True)
class RedriveResult:
    """What was sent, or would be. `reasons` are those of the dead letters that were sent."""

    messages: int = 0
    sent_bytes: int = 0
    shortened: int = 0
    meaningless: int = 0
    """Letters without a session or anything to derive: they are skipped, too."""
    reasons: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)
    skipped: dict[SkipReason, SkippedLetters] = field(default_factory=dict)
    settled: dict[int, int] = field(default_factory=dict, compare=False)
    """By partition of dead letters, the offset before which all selected ones are skipped or
    acknowledged by the broker: a redrive that was stopped continues from here."""

    @property
    def letters(self) -> int:
        """How many were processed."""
        return self.messages + self.meaningless + self.skipped_letters

    @property
    def skipped_letters(self) -> int:
        """How many would become dead letters again."""
        return sum(skipped.letters for skipped in self.skipped.values())


def prepare(letter: Letter, config: RedriveConfig, now_ms: int) -> Ready | Skipped | None:
    """Return the message to send, or why it is skipped; None where there is nothing to derive.

    Shortening a very large line takes seconds: on an event loop, call this in a thread.
    """
    if letter.cut is not None:
        stored_bytes = len(letter.value)
        return Skipped("cut", f"only {stored_bytes:,} of its {letter.size:,} bytes are kept")
    result = _keyed(letter, config)
    if result is None:
        return None
    if isinstance(result, DeadLetter):
        return Skipped(result.reason, result.detail)
    session_id, value = result
    partition = partition_of(session_id, config.partitions)
    key = codec.key_bytes(session_id)
    time_ms, headers = _event_time(letter)
    if time_ms is not None and (skipped := _untimely(time_ms, config, now_ms)) is not None:
        return skipped
    sent_ms = now_ms if time_ms is None else time_ms
    check = misrouted_check(partition, config.partitions)
    deriver = Deriver(config.rules, check, config.limit_bytes)
    taken = deriver.derive(input_message(LogRecord(letter.offset, sent_ms, key, value, headers)))
    if taken.dead is not None:
        return Skipped(taken.dead.reason, taken.dead.detail)
    record = NewRecord(
        config.topic,
        partition,
        key,
        value,
        (*headers, (REDRIVEN_HEADER, letter.address.encode())),
        time_ms,
    )
    return Ready(session_id, record, value is not letter.value)


def _keyed(letter: Letter, config: RedriveConfig) -> tuple[str, bytes] | DeadLetter | None:
    """Return the session and the bytes as `publish` would; the key is the session hint."""
    line = Line("", 0, letter.value, len(letter.value), text_of(letter.key))
    result = keyed(line, config.limit_bytes)
    if result == NO_SESSION and config.assign_session is not None:
        result = keyed(line._replace(session_hint=config.assign_session), config.limit_bytes)
    return result


def _event_time(letter: Letter) -> tuple[int | None, Headers]:
    """Return the Kafka timestamp to keep, if any, and the message's own headers.

    A message marked live loses the mark if its Kafka timestamp is unknown: its event time would
    become the time of sending.
    """
    # A letter that was sent before and failed again gets the latest address only.
    headers = tuple(item for item in letter.headers if item[0] != REDRIVEN_HEADER)
    time_ms = -1 if letter.origin is None else letter.origin.timestamp_ms
    marked = LogRecord(letter.offset, max(time_ms, 0), letter.key, letter.value, headers)
    if input_message(marked).received_ms is None:
        return None, headers
    if time_ms < 0:
        return None, tuple(item for item in headers if item[0] != OBSERVED_HEADER)
    return time_ms, headers


def _untimely(time_ms: int, config: RedriveConfig, now_ms: int) -> Skipped | None:
    """Return why the topic would not keep, or not accept, a message with this timestamp."""
    oldest_ms = now_ms - config.retention_ms + _MARGIN_MS
    if config.retention_ms >= 0 and time_ms < oldest_ms:
        return Skipped(
            "expired",
            f"it was seen live at {codec.rfc3339(time_ms)}, longer ago than {config.topic} keeps "
            "messages: it might be deleted before it is derived",
        )
    if config.max_ahead_ms is not None and time_ms > now_ms + config.max_ahead_ms:
        return Skipped(
            "ahead", f"its timestamp is further in the future than {config.topic} accepts"
        )
    return None


async def redrive(
    letters: AsyncIterator[Letter],
    config: RedriveConfig,
    clock: Clock,
    producer: Producer | None,
    result: RedriveResult,
) -> RedriveResult:
    """Send the letters that can be derived, in their order, and wait for all acknowledgements.

    Each partition's letters must come in their order. Results are counted in `result`, which is
    returned, and has the position to continue from after an error or a cancellation. Without a
    producer nothing is sent, and the result is what would be. Raises what the producer raises;
    messages sent before that remain sent.
    """
    passed: dict[int, int] = {}
    async for letter in letters:
        for message in _messages_of(letter, config):
            now_ms = clock.now_ms()
            if isinstance(message, Skipped):
                prepared: Ready | Skipped | None = message
            elif len(message.value) > config.limit_bytes:
                prepared = await asyncio.to_thread(prepare, message, config, now_ms)
            else:
                prepared = prepare(message, config, now_ms)
            if isinstance(prepared, Ready) and producer is not None:
                await producer.send(prepared.record)
            _count(result, letter, prepared)
        # Settled by the next flush only: until then the broker may not have acknowledged it.
        passed[letter.partition] = letter.offset + 1
        if producer is not None and result.letters % SETTLED_EVERY == 0:
            await producer.flush()
            result.settled = dict(passed)
    if producer is not None:
        await producer.flush()
        result.settled = passed
    return result


def _messages_of(letter: Letter, config: RedriveConfig) -> Iterator[Letter | Skipped]:
    """Yield the message of a letter, or those of its batch."""
    origin = letter.origin
    if origin is None or origin.last_offset is None or letter.cut is not None:
        yield letter
        return
    try:
        for offset, timestamp_ms, key, value, headers, _ in config.unpack(letter.value):
            if origin.offset <= offset <= origin.last_offset:
                own = Origin(origin.topic, origin.partition, offset, timestamp_ms)
                yield letter._replace(key=key, value=value or b"", headers=headers, origin=own)
    except UnreadableBatchError as error:
        yield Skipped(error.batch.reason, error.batch.detail)


def _count(result: RedriveResult, letter: Letter, prepared: Ready | Skipped | None) -> None:
    if prepared is None:
        result.meaningless += 1
    elif isinstance(prepared, Skipped):
        skipped = result.skipped.setdefault(prepared.reason, SkippedLetters(prepared.detail))
        skipped.letters += 1
        if len(skipped.examples) < EXAMPLES:
            skipped.examples.append(letter.address)
    else:
        result.messages += 1
        result.sent_bytes += len(prepared.record.value or b"")
        result.shortened += prepared.shortened
        result.reasons[letter.reason] += 1
        result.sessions.add(prepared.session_id)
