"""Sends dead letters back to `agent.messages`, those that can be derived from now.

A letter is tried first, by what a publisher and the deriver do with it: what would only die again
stays. What is sent has the original bytes and headers, so the causes of its records are what they
were (R4), and what had been derived already gives nothing a second time. Only the key and the
partition are made right, and a line over the limit is shortened as `publish` shortens it.

A session knows its last 4 096 messages, so what is sent again must not be longer ago than that: one
that is stopped tells from where to go on.

The Kafka timestamp is that of the sending, as for all that is published; but one that is marked
live keeps the time at which it was seen, since that is its event time (R28).
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.containers import Line
from contextgauge.delivery.keys import keyed
from schemas.messages import NO_SESSION, OBSERVED_HEADER, REDRIVEN_HEADER, DeadLetter, DeadReason
from schemas.topics import HOUR_MS
from streams import codec
from streams.core.derivation.rules import Rules
from streams.flow.dead_letters.letters import MENDS, Letter, misrouted_check
from streams.flow.derive.deriver import Funnel
from streams.flow.derive.intake import intake, text_of
from streams.ports import Clock, Headers, LogRecord, NewRecord, Producer

StayReason: TypeAlias = DeadReason | Literal["expired", "ahead"]

SETTLED_EVERY = 1_000
"""Letters between two looks at what is acknowledged: far fewer than the 4 096 messages that a
session knows for certain (R4), so what is sent twice in between gives nothing twice."""

EXAMPLES = 3
"""Addresses told of those that stay for one reason."""

STAY_MENDS: Final[Mapping[str, str]] = {
    **MENDS,
    "too_large": "raise CONTEXTGAUGE_MESSAGE_LIMIT_BYTES for the derive workers, or mend the "
    "producer",
    "misrouted": "have the derive workers and this command use the same settings",
    "expired": "raise CONTEXTGAUGE_MESSAGES_RETENTION_DAYS, and the topic's retention.ms",
    "ahead": "wait until its time has come, and set the publisher's clock right",
}
"""What to do about a letter that stays."""

_MARGIN_MS = HOUR_MS
"""A message with less than this left could be deleted before a worker that is away derives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveConfig:
    """Where to, and by which rules.

    `retention_ms` (-1: for ever) and `max_ahead_ms` are those of the topic of messages;
    `assign_session` is for letters that name no session.
    """

    topic: str
    partitions: int
    partition_of: Callable[[str, int], int]
    rules: Rules
    limit_bytes: int
    retention_ms: int
    max_ahead_ms: int | None
    assign_session: str | None = None


class Stays(NamedTuple):
    """Why a letter stays where it is."""

    reason: StayReason
    detail: str


class Ready(NamedTuple):
    """A letter as it would be sent."""

    session_id: str
    record: NewRecord
    shortened: bool


@dataclass(slots=True)
class Left:
    """Letters that stay for one reason: how many, one's detail, the addresses of a few."""

    detail: str
    letters: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Redriven:
    """What was done, or would be. `reasons` are those for which the letters sent had died."""

    messages: int = 0
    sent_bytes: int = 0
    shortened: int = 0
    meaningless: int = 0
    """Letters that name no session and say nothing that a record is made of: they stay too."""
    reasons: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)
    left: dict[StayReason, Left] = field(default_factory=dict)
    settled: dict[int, int] = field(default_factory=dict, compare=False)
    """Of each partition of dead letters the offset before which all selected ones are dealt with:
    they stay, or the broker has acknowledged them. A redrive that was stopped goes on from here."""

    @property
    def letters(self) -> int:
        """How many were looked at."""
        return self.messages + self.meaningless + self.stay

    @property
    def stay(self) -> int:
        """How many would die again."""
        return sum(left.letters for left in self.left.values())


def prepare(letter: Letter, config: RedriveConfig, now_ms: int) -> Ready | Stays | None:
    """Return what is sent of a letter, or why it stays; None where it means nothing to anyone.

    Shortening a gigantic line takes seconds: on an event loop, call it in a thread.
    """
    found = _keyed(letter, config)
    if found is None:
        return None
    if isinstance(found, DeadLetter):
        return Stays(found.reason, found.detail)
    session_id, value = found
    partition = config.partition_of(session_id, config.partitions)
    key = codec.key_bytes(session_id)
    time_ms, headers = _event_time(letter)
    if time_ms is not None and (stays := _untimely(time_ms, config, now_ms)) is not None:
        return stays
    sent_ms = now_ms if time_ms is None else time_ms
    check = misrouted_check(partition, config.partitions, config.partition_of)
    funnel = Funnel(config.rules, check, config.limit_bytes)
    taken = funnel.take(intake(LogRecord(letter.offset, sent_ms, key, value, headers)))
    if taken.dead is not None:
        return Stays(taken.dead.reason, taken.dead.detail)
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
    """Return the session and the bytes as `publish` would; its key stands for the container."""
    line = Line("", 0, letter.value, len(letter.value), text_of(letter.key))
    found = keyed(line, config.limit_bytes)
    if found == NO_SESSION and config.assign_session is not None:
        found = keyed(line._replace(session_hint=config.assign_session), config.limit_bytes)
    return found


def _event_time(letter: Letter) -> tuple[int | None, Headers]:
    """Return the Kafka time to be kept, if any, and the message's own headers.

    Of a message marked live whose Kafka time is not known the mark goes: it would be given the
    time of the sending.
    """
    headers = tuple(item for item in letter.headers if item[0] != REDRIVEN_HEADER)
    time_ms = -1 if letter.origin is None else letter.origin.timestamp_ms
    marked = LogRecord(letter.offset, max(time_ms, 0), letter.key, letter.value, headers)
    if intake(marked).received_ms is None:
        return None, headers
    if time_ms < 0:
        return None, tuple(item for item in headers if item[0] != OBSERVED_HEADER)
    return time_ms, headers


def _untimely(time_ms: int, config: RedriveConfig, now_ms: int) -> Stays | None:
    """Say why the topic would not keep, or not take, a message with this Kafka time."""
    oldest_ms = now_ms - config.retention_ms + _MARGIN_MS
    if config.retention_ms >= 0 and time_ms < oldest_ms:
        return Stays(
            "expired",
            f"it was seen live, at {codec.rfc3339(time_ms)}: {config.topic} does not keep messages "
            "for so long, and might delete it before it is derived",
        )
    if config.max_ahead_ms is not None and time_ms > now_ms + config.max_ahead_ms:
        return Stays(
            "ahead", f"its time lies further ahead of this clock than {config.topic} takes"
        )
    return None


async def redrive(
    letters: AsyncIterator[Letter],
    config: RedriveConfig,
    clock: Clock,
    producer: Producer | None,
    done: Redriven,
) -> Redriven:
    """Send the letters that can be derived from, in their order, and wait until all are taken.

    Each partition's letters come in their order. What was done is counted in `done`, which is
    returned, and holds where to go on after an error or a cancellation. Without a producer nothing
    is sent: it tells what would be. Raises what the producer raises; what was sent until then
    stays sent.
    """
    passed: dict[int, int] = {}
    async for letter in letters:
        now_ms = clock.now_ms()
        if len(letter.value) > config.limit_bytes:
            found = await asyncio.to_thread(prepare, letter, config, now_ms)
        else:
            found = prepare(letter, config, now_ms)
        if isinstance(found, Ready) and producer is not None:
            await producer.send(found.record)
        _count(done, letter, found)
        passed[letter.partition] = letter.offset + 1
        if producer is not None and done.letters % SETTLED_EVERY == 0:
            await producer.flush()
            done.settled = dict(passed)
    if producer is not None:
        await producer.flush()
        done.settled = passed
    return done


def _count(done: Redriven, letter: Letter, found: Ready | Stays | None) -> None:
    if found is None:
        done.meaningless += 1
    elif isinstance(found, Stays):
        left = done.left.setdefault(found.reason, Left(found.detail))
        left.letters += 1
        if len(left.examples) < EXAMPLES:
            left.examples.append(letter.address)
    else:
        done.messages += 1
        done.sent_bytes += len(found.record.value or b"")
        done.shortened += found.shortened
        done.reasons[letter.reason] += 1
        done.sessions.add(found.session_id)
