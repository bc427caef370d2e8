"""What binds a stored position to the logs that it was stored for, and the check of it.

With each position is stored: the place of the last message that was derived, that of the last
record in `context.events` (`LogPlace`), and where this topic ended.

    messages   the last message is still at its offset; else the topic's id has to be the same
    events     end where the state says, and what follows are records of aborted transactions
               only; in a topic with another id, the last record is still at its offset

A message that retention deleted proves nothing, and is no contradiction. Where the broker has no
topic ids, they are not checked.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import structlog

from contextgauge.errors import PositionError, RetryError, VersionError
from streams.flow.common.log_place import Evidence, evidence, first_record
from streams.flow.derive.config import DeriveConfig
from streams.ports import (
    Approval,
    Clock,
    Log,
    LogPlace,
    LogRecord,
    NewRecord,
    PartitionReader,
    id_text,
    started,
)

MARKER = 1
"""Offsets that a transaction's end takes in each partition that it wrote to."""

_DIGEST_BYTES = 16
_NOWHERE = LogPlace()
_NO_ANCHOR = LogPlace(offset=-1)

START_ANEW = (
    "Restore all three topics to one point in time; or start again from what {messages} still "
    "holds: stop all derive workers, delete {events} and {state}, run `contextgauge topics create`,"
    " start the workers, and rebuild the views with `contextgauge rebuild`"
)

logger = structlog.get_logger()


class TopicIds(NamedTuple):
    """The ids of the topics; empty where the broker has none."""

    messages: str = ""
    events: str = ""
    state: str = ""


@dataclass(slots=True)
class LogProof:
    """What is stored with a position. `group` is the writer's.

    `messages` is the place of the last derived message, `events` that of the last record in
    `context.events`, which ended at `events_end` after the transaction of this. `anchor` is the
    place of a message that was derived while the topic certainly had the id of `messages`, its
    offset -1 where there is none yet: a worker goes on for a while after its topic was recreated,
    and what it stores then is of the new topic.
    """

    group: str | None = None
    messages: LogPlace = _NOWHERE
    events: LogPlace = _NOWHERE
    anchor: LogPlace = _NO_ANCHOR
    events_end: int | None = None

    def document(self) -> dict[str, str | int]:
        """Return it for the position's document."""
        values = {
            "group": self.group,
            "messages_id": self.messages.topic_id,
            "events_id": self.events.topic_id,
            "events_end": self.events_end,
        }
        for name, place in zip(_PLACES, (self.messages, self.anchor, self.events), strict=True):
            values |= {f"{name}_offset": place.offset, f"{name}_digest": place.digest}
        return {name: value for name, value in values.items() if value is not None and value != ""}

    def derive(self, message: LogRecord) -> None:
        """Take the last message of a batch."""
        self.messages = LogPlace(self.messages.topic_id, message.offset, digest(message))

    def write(self, records: int, last: NewRecord) -> None:
        """Take the records of a transaction. No one else writes any, so their end is known."""
        if self.events_end is not None:
            offset = self.events_end + records - 1
            self.events = LogPlace(self.events.topic_id, offset, digest(last))
            # The end of the transaction takes an offset behind its records.
            self.events_end += records + MARKER


_PLACES = ("last", "anchor", "event")
"""Of the last message, the anchor and the last record, as the document names them."""

_TYPES = {
    "group": str,
    "messages_id": str,
    "events_id": str,
    "events_end": int,
    **{f"{name}_offset": int for name in _PLACES},
    **{f"{name}_digest": str for name in _PLACES},
}


def read_proof(document: object) -> LogProof:
    """Return the proof of a position's document. Raises VersionError for a malformed one."""
    values: dict[str, Any] = document if isinstance(document, dict) else {"group": ()}
    if not all(isinstance(values[name], _TYPES[name]) for name in values.keys() & _TYPES.keys()):
        raise VersionError("what binds the stored position to its log cannot be read")
    get = values.get
    last, anchor, event = ((get(f"{name}_offset"), get(f"{name}_digest")) for name in _PLACES)
    return LogProof(
        get("group"),
        LogPlace(get("messages_id", ""), *last),
        LogPlace(get("events_id", ""), *event),
        LogPlace("", *anchor) if "anchor_offset" in values else _NO_ANCHOR,
        get("events_end"),
    )


def digest(record: LogRecord | NewRecord) -> str:
    """Return a digest of a record; of a message with its timestamp: published again it differs."""
    time = b"%d" % record.timestamp_ms if isinstance(record, LogRecord) else b""
    hashed = hashlib.blake2b(time, digest_size=_DIGEST_BYTES)
    headers = [part for name, value in record.headers for part in (name.encode(), value)]
    for part in (record.key, record.value, *headers):
        # With lengths: no two lists of parts give the same bytes, and null is not empty.
        hashed.update(b"-" if part is None else b"%d:" % len(part) + part)
    return hashed.hexdigest()


def _written_digest(record: LogRecord) -> str:
    """Return a record's digest as of when it was written: the broker may set the timestamp."""
    return digest(NewRecord("", 0, record.key, record.value, record.headers))


async def read_ids(log: Log, config: DeriveConfig) -> TopicIds:
    """Ask for the topics' ids. Raises RetryError, also where the broker does not know a topic."""
    names = (config.messages_topic, config.events_topic, config.state_topic)
    ids = await log.topic_ids(names)
    for name in names:
        if ids[name] is None:
            raise RetryError(f"the broker does not know the topic {name}, or not yet")
    return TopicIds(*[id_text(ids[name]) for name in names])


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
        self.proof = LogProof(config.group, LogPlace(ids.messages), LogPlace(ids.events))
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
            ids = self._ids
            proof.messages = stored.messages._replace(
                topic_id=ids.messages or stored.messages.topic_id
            )
            proof.events = stored.events._replace(topic_id=ids.events or stored.events.topic_id)
            proof.anchor = stored.anchor
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
        topic, last = self._config.messages_topic, proof.messages
        is_recreated = not last.is_of(self._ids.messages)
        reason = ""
        async with started(self._log.reader(topic, [self._partition])) as reader:
            seen = await self._evidence(reader, last, digest)
            if seen == "beyond_end":
                reason = (
                    f"it ends before offset {last.offset}, whose message was derived: the topic "
                    f"was recreated, or {_LOST_END}"
                )
            elif seen in {"other", "absent"}:
                reason = (
                    f"the message at offset {last.offset} is not the one that was derived: "
                    + ("the topic was recreated" if is_recreated else _LOST_END)
                )
            elif is_recreated and seen != "same":
                reason = (
                    "the topic was recreated, and the stored position belongs to the former one"
                )
            elif is_recreated:
                reason = await self._not_a_copy(reader, proof)
        if reason:
            raise self._contradiction(topic, reason)

    async def _not_a_copy(self, reader: PartitionReader, proof: LogProof) -> str:
        """Return why a topic with another id is no copy of the former one; empty where it is."""
        seen = await self._evidence(reader, proof.anchor, digest)
        if seen == "expired":
            return "the topic was recreated, and nothing that it still holds shows it is a copy"
        if seen != "same":
            return "the topic was recreated, and a worker went on in it before it noticed"
        topic = self._config.messages_topic
        logger.warning("a copy of the topic", topic=topic, partition=self._partition)
        return ""

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
                seen = await self._evidence(reader, proof.events, _written_digest)
                is_recreated = not proof.events.is_of(self._ids.events)
                if is_recreated and not (seen == "same" or proof.events_end == 0):
                    return end, "the topic was recreated, and the records derived before are gone"
                if seen in {"other", "absent"}:
                    # What ends transactions takes offsets too, so its end alone does not show it.
                    return end, f"the last record is not at offset {proof.events.offset}: {lost}"
            if end < expected:
                return end, f"it ends at {end}, and {expected} offsets were written: {lost}"
            begin = max(first, expected)
            extra = await first_record(reader, self._clock, self._partition, begin, end)
        if extra is None:
            return end, None
        state = self._config.state_topic
        if proof is None:
            return end, f"it holds records, and {state} has no state of them"
        return end, (
            f"it holds records from offset {extra.offset} on that {state} knows nothing of: "
            f"{state} lost its end, or an older backup of it was restored"
        )

    async def _evidence(
        self, reader: PartitionReader, place: LogPlace, digest_of: Callable[[LogRecord], str]
    ) -> Evidence:
        return await evidence(reader, self._clock, self._partition, place, digest_of)

    def _contradiction(self, topic: str, reason: str) -> PositionError:
        config = self._config
        remedy = START_ANEW.format(
            messages=config.messages_topic, events=config.events_topic, state=config.state_topic
        )
        return PositionError(f"{topic}-{self._partition}: {reason}. {remedy}")


_LOST_END = "the broker lost its last messages and took others, or another backup was restored"
