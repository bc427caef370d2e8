"""The rule guard at work: a boundary in, a message with the user's turns that were lost out.

The owner of a partition waits until the conversation is known up to after the boundary, with its
summary, and publishes what it found to `agent.messages`, from which the deriver makes a record. A
record is acknowledged when its check is done, so a check outlives the worker that began it; its
message has the same id then.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

import structlog

from contextgauge.backoff import sleep_until
from contextgauge.compaction.history import History
from contextgauge.errors import RetryError
from contextgauge.json_codec import dumps
from schemas.records import MAIN_CHAIN, CompactBoundary, Record, event_type
from streams import codec
from streams.codec.cloudevents import rfc3339
from streams.core.control.pins import PinsCheck, around_boundary, check_pins, message_of
from streams.core.control.turn_overlap import GuardAllowance, GuardWork
from streams.flow.common.log_place import is_of_topic
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.retry import RetryLoop
from streams.flow.control.control_loop import AssignedPartition, PartitionHandler, PendingRecord
from streams.ports import Clock, Headers, Log, NewRecord, started
from streams.ports.conversations import ConversationReader

MAX_AGE_MS: Final = 10 * 60_000
"""A boundary that came to Kafka longer ago is not checked: the conversation has gone on."""

WAIT_MS: Final = 30_000
"""The summary follows its boundary at once, and conversations are a second or two behind."""

_LOOK_EVERY_S: Final = 1.0
_AT_ONCE: Final = 8
"""Checks at a time: each holds a whole conversation, of some megabytes at most."""

_BOUNDARY: Final = event_type(CompactBoundary.kind).encode()

logger = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class RuleGuardPorts(WorkerPorts):
    """What the guard needs of the outside world. `log` has the topic of messages.

    Without `has_texts` lost turns are counted in what is published, and not quoted.
    """

    log: Log
    conversations: ConversationReader
    has_texts: bool


def _judged(history: History, work: GuardWork) -> PinsCheck | None:
    around = around_boundary(history)
    return None if around is None else check_pins(around, work)


class _Judge:
    """Judges one conversation after the other, within what the worker may spend on all of them."""

    def __init__(self) -> None:
        self._one, self._allowance = asyncio.Lock(), GuardAllowance()

    async def judged(self, history: History, clock: Clock) -> PinsCheck | None:
        """Return the check of a conversation; None where nothing of it could be judged."""
        async with self._one:
            work = self._allowance.work(clock.now_ms())
            # Megabytes may have to be read: in a thread, for others use the event loop.
            check = await asyncio.to_thread(_judged, history, work)
            self._allowance.used(work)
        if check is not None and check.unknown and not any(check[:3]):
            logger.info("the user's turns were not checked: the worker has too much to check")
            return None
        return check


class RuleGuard:
    """Checks boundaries: `messages_topic` is where the results are published."""

    def __init__(self, messages_topic: str, ports: RuleGuardPorts) -> None:
        self._topic, self._ports = messages_topic, ports
        self._places, self._judge = asyncio.Semaphore(_AT_ONCE), _Judge()

    def opened(self, partition: AssignedPartition) -> "GuardedPartition":
        """Begin on a partition."""
        return GuardedPartition(partition, self._topic, self._ports, self._places, self._judge)


class GuardedPartition(PartitionHandler):
    """A partition, from its assignment until it is revoked."""

    def __init__(
        self,
        partition: AssignedPartition,
        topic: str,
        ports: RuleGuardPorts,
        places: asyncio.Semaphore,
        judge: _Judge,
    ) -> None:
        super().__init__(partition)
        self._topic, self._ports, self._places, self._judge = topic, ports, places, judge

    async def handle(self, pending: PendingRecord) -> None:
        """Begin the check of a boundary. Raises VersionError."""
        headers, value = pending.arrival.record.headers, pending.arrival.record.value
        upto = self._to_be_checked(headers, pending.arrival.record.timestamp_ms)
        record = None if upto is None else codec.from_binary(headers, value or b"")
        if record is not None and upto is not None and record.data.chain == MAIN_CHAIN:
            pending.hold()
            self.partition.spawn(self._check(pending, record, upto))

    def _to_be_checked(self, headers: Headers, logged_ms: int) -> int | None:
        """Return the offset of a recent boundary's message; None of any other record."""
        values = dict(headers)
        if values.get("ce_type") != _BOUNDARY:
            return None
        is_recent = self._ports.clock.now_ms() - logged_ms <= MAX_AGE_MS
        return codec.header_number(values.get("src_offset")) if is_recent else None

    async def _check(self, pending: PendingRecord, record: Record, offset: int) -> None:
        async with self._places:
            check = await self._result(record.data.session_id, offset)
            if check is not None:
                await RetryLoop(self._ports, "kafka").run(self._publish, record, check)
        pending.done()

    async def _result(self, session_id: str, offset: int) -> PinsCheck | None:
        """Return the check once the conversation is known so far; None where it cannot be."""
        clock, stop, log = self._ports.clock, self._ports.stop, self._ports.log
        retry, kafka = RetryLoop(self._ports, "redis"), RetryLoop(self._ports, "kafka")
        reader = self._ports.conversations
        until_ms = clock.now_ms() + WAIT_MS
        while True:
            mark = await retry.run(reader.mark, self.partition.number)
            conversation = await retry.run(reader.conversation, session_id)
            known = conversation or mark
            if known is None:
                return None
            if await kafka.run(is_of_topic, log, self._topic, known.topic_id):
                if conversation is None:
                    if known.position > offset:
                        return None  # its text is not kept
                elif conversation.state in {"too_large", "without_text"}:
                    return None
                elif conversation.position > offset and conversation.state == "whole":
                    return await self._judge.judged(conversation.history, clock)
            if clock.now_ms() >= until_ms:
                logger.info(
                    "the user's turns were not checked: the conversation is not known so far"
                )
                return None
            await sleep_until(clock, stop, _LOOK_EVERY_S)
            if stop.is_set():
                raise RetryError("the worker stops")

    async def _publish(self, record: Record, check: PinsCheck) -> None:
        """Append the result to the session's messages. Raises RetryError."""
        session_id, at = record.data.session_id, rfc3339(self._ports.clock.now_ms())
        body = message_of(check, session_id, record.id, at, has_texts=self._ports.has_texts)
        key = codec.key_bytes(session_id)
        async with started(self._ports.log.producer()) as producer:
            await producer.send(NewRecord(self._topic, self.partition.number, key, dumps(body)))
            await producer.flush()
        logger.info(
            "checked the user's turns",
            **{name: len(turns) for name, turns in check._asdict().items()},
        )
