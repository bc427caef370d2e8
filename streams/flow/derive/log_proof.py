"""What binds a stored position to the logs that it was stored for, and the check of it.

An offset means nothing in another log: a topic may have been deleted and created again, restored
from a backup, or have lost its end with a broker. So with each position is stored: the ids of the
topics, the last message that was derived, as a digest, and where `context.events` ended.

    messages   the last message is still at its offset; else the topic's id has to be the same
    events     end where the state says, and what follows are records of aborted transactions
               only; in a topic with another id, the last record is still at its offset

A message that retention deleted proves nothing, and is no contradiction. Where the broker has no
topic ids, they are not checked.
"""

import hashlib
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NamedTuple

import structlog

from contextgauge.errors import PositionError, RetryError, VersionError
from streams.flow.common.ranges import read_range
from streams.flow.derive.config import DeriveConfig
from streams.ports import (
    NO_ID,
    Approval,
    Clock,
    Log,
    LogRecord,
    NewRecord,
    PartitionReader,
    started,
)

MARKER = 1
"""Offsets that a transaction's end takes in each partition that it wrote to."""

_DIGEST_BYTES = 16

START_ANEW = (
    "Restore all three topics to one point in time; or start again from what {messages} still "
    "holds: stop all derive workers, delete {events} and {state}, run `contextgauge topics create`,"
    " start the workers, and rebuild the views with `contextgauge rebuild`"
)

logger = structlog.get_logger()


class TopicIds(NamedTuple):
    """The ids of the topics; None where the broker has none."""

    messages: str | None
    events: str | None
    state: str | None


@dataclass(slots=True)
class LogProof:
    """What is stored with a position. What there is nothing of yet is None.

    `group` is the writer's. `last_offset` is the last derived message's, `event_offset` the last
    record's in `context.events`, which ended at `events_end` after the transaction of this.
    `anchor_offset` is a message's that was derived while the topic certainly had `messages_id`, -1
    where there is none yet: a worker goes on for a while after its topic was recreated, and what
    it stores then is of the new topic.
    """

    group: str | None = None
    messages_id: str | None = None
    events_id: str | None = None
    events_end: int | None = None
    last_offset: int | None = None
    last_digest: str | None = None
    anchor_offset: int = -1
    anchor_digest: str | None = None
    event_offset: int | None = None
    event_digest: str | None = None

    def document(self) -> dict[str, str | int]:
        """Return it for the position's document."""
        values = [(name, getattr(self, name)) for name in _TYPES]
        return {name: value for name, value in values if value is not None}

    def derive(self, message: LogRecord) -> None:
        """Take the last message of a batch."""
        self.last_offset, self.last_digest = message.offset, digest(message)

    def write(self, records: int, last: NewRecord) -> None:
        """Take the records of a transaction. No one else writes any, so their end is known."""
        if self.events_end is not None:
            self.event_offset = self.events_end + records - 1
            self.event_digest = digest(last)
            self.events_end += records + MARKER


_NUMBERS = {"events_end", "last_offset", "anchor_offset", "event_offset"}
_TYPES = {name: int if name in _NUMBERS else str for name in LogProof.__slots__}


def read_proof(document: object) -> LogProof:
    """Return the proof of a position's document. Raises VersionError for a malformed one."""
    if not isinstance(document, dict):
        raise VersionError("what binds the stored position to its log cannot be read")
    known: dict[str, Any] = {name: document[name] for name in _TYPES if name in document}
    if not all(isinstance(value, _TYPES[name]) for name, value in known.items()):
        raise VersionError("what binds the stored position to its log cannot be read")
    return LogProof(**known)


def digest(record: LogRecord | NewRecord) -> str:
    """Return a digest of a record; of a message with its timestamp: published again it differs."""
    time = b"%d" % record.timestamp_ms if isinstance(record, LogRecord) else b""
    hashed = hashlib.blake2b(time, digest_size=_DIGEST_BYTES)
    headers = [part for name, value in record.headers for part in (name.encode(), value)]
    for part in (record.key, record.value, *headers):
        hashed.update(b"-" if part is None else b"%d:" % len(part) + part)
    return hashed.hexdigest()


async def read_ids(log: Log, config: DeriveConfig) -> TopicIds:
    """Ask for the topics' ids. Raises RetryError, also where the broker does not know a topic."""
    names = (config.messages_topic, config.events_topic, config.state_topic)
    ids = await log.topic_ids(names)
    for name in names:
        if ids[name] is None:
            raise RetryError(f"the broker does not know the topic {name}, or not yet")
    return TopicIds(
        *[found.hex if (found := ids[name]) and found != NO_ID else None for name in names]
    )


class OtherWriterError(RetryError):
    """Something else wrote to the partition: drop the state, and restore it."""


def alone(ends: Mapping[tuple[str, int], int | None]) -> Approval:
    """Return what approves a transaction if it begins where the partitions ended before it.

    It raises OtherWriterError where it does not, so nothing is committed.
    """

    async def approve(begins: Mapping[tuple[str, int], int]) -> bool:
        for (topic, partition), end in ends.items():
            begin = begins.get((topic, partition), end)
            if begin != end:
                raise OtherWriterError(
                    f"something else wrote to {topic}-{partition}, or it was recreated: a "
                    f"transaction began at offset {begin}, and the last one ended at {end}. Only "
                    "one deployment may derive these topics: `contextgauge doctor` lists the groups"
                )
        return True

    return approve


class LogCheck:
    """The check of one partition's stored position, before anything is derived."""

    def __init__(
        self, log: Log, clock: Clock, config: DeriveConfig, partition: int, ids: TopicIds
    ) -> None:
        self._log, self._clock, self._config = log, clock, config
        self._partition, self._ids = partition, ids
        self.proof = LogProof(config.group, ids.messages, ids.events)
        """What is stored from here on, once `bind` has returned."""

    async def bind(self, stored: LogProof | None, state_end: int) -> None:
        """Check that the state belongs to the logs; `stored` is None where there is no position.

        Raises PositionError where it does not, RetryError where another worker has written since
        the state was read, to `state_end`.
        """
        config, proof = self._config, self.proof
        if stored is not None:
            await self.check_messages(stored)
            # A broker too old for ids, among others, is no reason to forget one.
            proof.messages_id = proof.messages_id or stored.messages_id
            proof.events_id = proof.events_id or stored.events_id
            proof.last_offset, proof.last_digest = stored.last_offset, stored.last_digest
            proof.anchor_offset, proof.anchor_digest = stored.anchor_offset, stored.anchor_digest
            proof.event_offset, proof.event_digest = stored.event_offset, stored.event_digest
            if stored.group != config.group:
                logger.warning(
                    "another group derived this partition before: only one may",
                    partition=self._partition,
                    former=stored.group,
                    group=config.group,
                )
        proof.events_end, contradiction = await self._events(stored)
        if contradiction is None:
            return
        # It may be of a transaction whose markers are still being written, or of a worker that
        # has taken the partition over: once another producer has started, both have ended.
        producer = self._log.transactional_producer(config.transactional_id(self._partition))
        async with (
            started(producer),
            started(self._log.reader(config.state_topic, [self._partition])) as reader,
        ):
            _, end = await reader.bounds(self._partition)
            _, contradiction = await self._events(stored)
        if end != state_end or contradiction is None:
            raise OtherWriterError(f"another worker has written to {config.state_topic}")
        raise self._contradiction(config.events_topic, contradiction)

    async def check_messages(self, proof: LogProof) -> None:
        """Raise PositionError where the position was stored for another log of messages."""
        topic, offset = self._config.messages_topic, proof.last_offset
        is_recreated = _differ(proof.messages_id, self._ids.messages)
        async with started(self._log.reader(topic, [self._partition])) as reader:
            first, end = await reader.bounds(self._partition)
            if offset is not None and offset >= end:
                raise self._contradiction(
                    topic,
                    f"it ends at {end}, and the message at offset {offset} was derived: the topic "
                    f"was recreated, or {_LOST_END}",
                )
            if offset is not None and first <= offset < end:
                message = await self._record(reader, offset, offset + 1)
                if message is None:
                    first, _ = await reader.bounds(self._partition)  # it may just have expired
                if first <= offset and (message is None or digest(message) != proof.last_digest):
                    raise self._contradiction(
                        topic,
                        f"the message at offset {offset} is not the one that was derived: "
                        + ("the topic was recreated" if is_recreated else _LOST_END),
                    )
                if message is not None:
                    if is_recreated:
                        await self._copy(reader, proof, first)
                    return
        if is_recreated:
            raise self._contradiction(
                topic, "the topic was recreated, and the stored position belongs to the former one"
            )

    async def _copy(self, reader: PartitionReader, proof: LogProof, first: int) -> None:
        """Raise PositionError where a topic with another id is no copy of the former one."""
        topic, offset = self._config.messages_topic, proof.anchor_offset
        if offset < first:
            raise self._contradiction(
                topic, "the topic was recreated, and nothing that it still holds shows it is a copy"
            )
        message = await self._record(reader, offset, offset + 1)
        if message is None or digest(message) != proof.anchor_digest:
            raise self._contradiction(
                topic, "the topic was recreated, and a worker went on in it before it noticed"
            )
        logger.warning("a copy of the topic", topic=topic, partition=self._partition)

    async def _events(self, proof: LogProof | None) -> tuple[int, str | None]:
        """Return where the records end, and what contradicts the state, if anything does.

        `proof` is None where there is no stored position. The contradiction may be of another
        worker's transaction: it counts once a new producer has settled all of them.
        """
        topic = self._config.events_topic
        async with started(self._log.reader(topic, [self._partition])) as reader:
            first, end = await reader.bounds(self._partition)
            expected = 0 if proof is None or proof.events_end is None else proof.events_end
            lost = "the broker lost its last records, or an older backup was restored"
            if proof is not None:
                is_other = _differ(proof.events_id, self._ids.events)
                holds_last = await self._holds_last(reader, proof, first, end)
                if is_other and not (holds_last or proof.events_end == 0):
                    return end, "the topic was recreated, and the records derived before are gone"
                if holds_last is False:
                    # What ends transactions takes offsets too, so its end alone does not show it.
                    return end, f"the last record is not at offset {proof.event_offset}: {lost}"
            if end < expected:
                return end, f"it ends at {end}, and {expected} offsets were written: {lost}"
            extra = await self._record(reader, max(first, expected), end)
        if extra is None:
            return end, None
        state = self._config.state_topic
        if proof is None:
            return end, f"it holds records, and {state} has no state of them"
        return end, (
            f"it holds records from offset {extra.offset} on that {state} knows nothing of: "
            f"{state} lost its end, or an older backup of it was restored"
        )

    async def _holds_last(
        self, reader: PartitionReader, proof: LogProof, first: int, end: int
    ) -> bool | None:
        """Return whether the last record is at its offset; None where it may have expired."""
        offset = proof.event_offset
        if offset is None or not first <= offset < end:
            return None
        record = await self._record(reader, offset, offset + 1)
        if record is None:
            first, _ = await reader.bounds(self._partition)
            return None if first > offset else False
        written = NewRecord("", 0, record.key, record.value, record.headers)
        return digest(written) == proof.event_digest

    async def _record(self, reader: PartitionReader, begin: int, end: int) -> LogRecord | None:
        """Return the first committed record of a range; None where there is none."""
        found = read_range(reader, self._clock, self._partition, begin, end)
        async with aclosing(found) as batches:
            async for batch in batches:
                if batch.records:
                    return batch.records[0]
        return None

    def _contradiction(self, topic: str, reason: str) -> PositionError:
        config = self._config
        remedy = START_ANEW.format(
            messages=config.messages_topic, events=config.events_topic, state=config.state_topic
        )
        return PositionError(f"{topic}-{self._partition}: {reason}. {remedy}")


_LOST_END = "the broker lost its last messages and took others, or another backup was restored"


def _differ(stored: str | None, now: str | None) -> bool:
    return stored is not None and now is not None and stored != now
