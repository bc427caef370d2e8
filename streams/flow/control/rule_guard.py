"""The rule guard at work: a boundary in, a message with the rules that were lost out.

The owner of a partition waits until the conversation is known up to after the boundary, with its
summary, and publishes what it found to `agent.messages`, from which the deriver makes a record. A
record is acknowledged when its check is done, so a check outlives the worker that began it; its
message has the same id then.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from contextgauge.backoff import sleep_until
from contextgauge.compaction.history import History
from contextgauge.errors import RetryError
from contextgauge.json_codec import dumps
from schemas.records import MAIN_CHAIN, CompactBoundary, Record, event_type
from streams import codec
from streams.codec.cloudevents import rfc3339
from streams.core.control.pins import PinsCheck, around_boundary, check_pins, message_of
from streams.flow.common.log_place import is_of_topic
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.retry import RetryLoop
from streams.ports import Headers, Log, NewRecord, ReceivedRecord, started
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

    Without `has_texts` lost rules are counted in what is published, and not quoted.
    """

    log: Log
    conversations: ConversationReader
    has_texts: bool


def _judged(history: History) -> PinsCheck | None:
    around = around_boundary(history)
    return None if around is None else check_pins(*around)


@dataclass(slots=True)
class _Waiting:
    arrival: ReceivedRecord
    is_done: bool = False


@dataclass(slots=True, eq=False)
class GuardedPartition:
    """A partition, from its assignment until it is revoked."""

    position: int
    is_ours: bool = True
    waiting: deque[_Waiting] = field(default_factory=deque)

    def advance(self) -> None:
        """Acknowledge what is done, in order."""
        while self.is_ours and self.waiting and self.waiting[0].is_done:
            self.waiting.popleft().arrival.acknowledge()


class RuleGuard:
    """Handles the records of one stream: `messages_topic` is where the results are published."""

    def __init__(self, messages_topic: str, ports: RuleGuardPorts) -> None:
        self._topic, self._ports = messages_topic, ports
        self._partitions: dict[int, GuardedPartition] = {}
        self._checking: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._failed: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Run until stopped, next to the stream. Raises what a check raised."""
        failed = self._failed = asyncio.get_running_loop().create_future()
        stopping = asyncio.create_task(self._ports.stop.wait())
        awaited: set[asyncio.Future[Any]] = {stopping, failed}
        try:
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                failed.result()
        finally:
            tasks = (stopping, failed, *self._checking)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def assigned(self, positions: Mapping[int, int]) -> None:
        """Start on these partitions and no others."""
        self.revoked()
        self._partitions = {number: GuardedPartition(at) for number, at in positions.items()}

    def revoked(self) -> None:
        """Release all partitions: their next worker checks what was not acknowledged."""
        for partition in self._partitions.values():
            partition.is_ours = False
        self._partitions = {}

    async def handle(self, arrivals: Sequence[ReceivedRecord]) -> None:
        """Begin the checks of boundaries; all else is done at once. Raises VersionError."""
        for arrival in arrivals:
            partition = self._partitions.get(arrival.partition)
            if partition is None or not arrival.is_current():
                continue  # of a former assignment: it is read again
            if arrival.record.offset < partition.position:
                continue
            partition.position = arrival.record.offset + 1
            waiting = _Waiting(arrival)
            partition.waiting.append(waiting)
            headers, value = arrival.record.headers, arrival.record.value
            upto = self._to_be_checked(headers, arrival.record.timestamp_ms)
            record = None if upto is None else codec.from_binary(headers, value or b"")
            if record is None or upto is None or record.data.chain != MAIN_CHAIN:
                waiting.is_done = True
            else:
                task = asyncio.create_task(self._check(partition, waiting, record, upto))
                self._checking.add(task)
                task.add_done_callback(self._checking.discard)
            arrival.release()
        for partition in self._partitions.values():
            partition.advance()

    def _to_be_checked(self, headers: Headers, logged_ms: int) -> int | None:
        """Return the offset of a recent boundary's message; None of any other record."""
        found = dict(headers)
        if found.get("ce_type") != _BOUNDARY:
            return None
        is_recent = self._ports.clock.now_ms() - logged_ms <= MAX_AGE_MS
        return codec.header_number(found.get("src_offset")) if is_recent else None

    async def _check(
        self, partition: GuardedPartition, waiting: _Waiting, record: Record, offset: int
    ) -> None:
        try:
            async with self._places:
                number = waiting.arrival.partition
                check = await self._result(number, partition, record.data.session_id, offset)
                if check is not None and partition.is_ours:
                    await RetryLoop(self._ports, "kafka").run(self._publish, number, record, check)
        except RetryError:
            return  # the worker stops; it is not acknowledged, and so checked again
        except Exception as error:  # noqa: BLE001 -- `run` raises it
            if self._failed is not None and not self._failed.done():
                self._failed.set_exception(error)
            return
        waiting.is_done = True
        partition.advance()

    async def _result(
        self, number: int, partition: GuardedPartition, session_id: str, offset: int
    ) -> PinsCheck | None:
        """Return the check once the conversation is known so far; None where it cannot be."""
        clock, stop, log = self._ports.clock, self._ports.stop, self._ports.log
        retry, kafka = RetryLoop(self._ports, "redis"), RetryLoop(self._ports, "kafka")
        reader = self._ports.conversations
        until_ms = clock.now_ms() + WAIT_MS
        while partition.is_ours:
            mark = await retry.run(reader.mark, number)
            conversation = await retry.run(reader.conversation, session_id)
            kept = conversation or mark
            if kept is None:
                return None
            if await kafka.run(is_of_topic, log, self._topic, kept.topic_id):
                if conversation is None:
                    if kept.position > offset:
                        return None  # its text is not kept
                elif conversation.state in {"too_large", "without_text"}:
                    return None
                elif conversation.position > offset and conversation.state == "whole":
                    # Megabytes may have to be read: in a thread, for others use the event loop.
                    return await asyncio.to_thread(_judged, conversation.history)
            if clock.now_ms() >= until_ms:
                logger.info("the rules were not checked: the conversation is not known so far")
                return None
            await sleep_until(clock, stop, _LOOK_EVERY_S)
            if stop.is_set():
                raise RetryError("the worker stops")
        return None

    async def _publish(self, partition: int, record: Record, check: PinsCheck) -> None:
        """Append the result to the session's messages. Raises RetryError."""
        session_id, at = record.data.session_id, rfc3339(self._ports.clock.now_ms())
        body = message_of(check, session_id, record.id, at, has_texts=self._ports.has_texts)
        key = codec.key_bytes(session_id)
        async with started(self._ports.log.producer()) as producer:
            await producer.send(NewRecord(self._topic, partition, key, dumps(body)))
            await producer.flush()
        logger.info("checked the rules", kept=len(check.kept), lost=len(check.lost))
