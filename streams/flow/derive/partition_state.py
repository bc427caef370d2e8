"""The state of one input partition: its sessions, its position, and what of it is persisted.

`stored_sessions` tells how it is stored; an unknown version refuses the partition. What was
restored lies there as it was stored, until a message comes for it.

All that is written follows from the messages alone, whatever the batches: idleness is counted in
whole hours of the partition's Kafka time (`partition_time`) and looked at before each message. A
session that was active while a later time was claimed is active at that time, should the claim
come true.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from contextgauge import json_codec
from contextgauge.errors import ConfigError, VersionError
from contextgauge.partitioner import key_bytes
from schemas.topics import HOUR_MS
from streams.codec import cloudevents
from streams.core.derivation.rules import Rules
from streams.core.derivation.state import Session
from streams.flow.common.provenance import source_headers
from streams.flow.dead_letters.letters import dead_record, misrouted_check
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.deriver import Funnel
from streams.flow.derive.intake import intake
from streams.flow.derive.partition_time import Claim, PartitionTime
from streams.flow.derive.stored_sessions import (
    POSITION_KEY,
    Activity,
    StoredSessions,
    changes_of,
    read_document,
    removal_of,
)
from streams.ports import LogRecord, NewRecord

POSITION_VERSION: Final = 1
"""Version of the position's document."""

_HOURS_PER_DAY: Final = 24

_SLICE_SESSIONS: Final = 10_000
"""Sessions put in order in a row while restoring: a few milliseconds."""


class Work(NamedTuple):
    """What a batch gave: the records of its topics, the changes of the state, and figures.

    `position` is the input's position after it, `dead` one flag per message, `last_ms` the
    Kafka time of its last message.
    """

    records: list[NewRecord]
    changes: dict[bytes, bytes | None]
    position: int
    dead: list[bool]
    kinds: Counter[str]
    reasons: Counter[str]
    evicted: int
    last_ms: int | None


class Place(NamedTuple):
    """Which partition this is, and of how many."""

    partition: int
    partitions: int
    dead_partitions: int


class PartitionState:
    """The sessions of one partition. `position` is None until one is stored.

    To restore it: `add` all that the changelog holds, then exhaust `load`.
    """

    def __init__(
        self,
        rules: Rules,
        config: DeriveConfig,
        place: Place,
        partition_of: Callable[[str, int], int],
    ) -> None:
        self.position: int | None = None
        self._config = config
        self._place = place
        self._stored = StoredSessions(config.state_topic)
        self._funnel = Funnel(
            rules,
            misrouted_check(place.partition, place.partitions, partition_of),
            config.limit_bytes,
            self._stored.take,
        )
        self._source = source_headers(config.messages_topic, place.partition)
        # All sessions, the most idle first: Kafka time never goes back.
        self._activity: OrderedDict[str, Activity] = OrderedDict()
        self._time = PartitionTime()
        self._now = Activity(0, None)
        self._begin()

    @property
    def sessions(self) -> int:
        """How many sessions are held."""
        return len(self._activity)

    def _begin(self) -> None:
        """Start a batch's account."""
        # With what is stored of each, None for a new one.
        self._touched: dict[str, Session | None] = {}
        self._moved: dict[str, None] = {}
        self._changes: dict[bytes, bytes | None] = {}
        self._evicted = 0
        self._records: list[NewRecord] = []
        self._dead: list[bool] = []
        self._kinds: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._last_ms: int | None = None

    def apply(self, messages: Sequence[LogRecord]) -> None:
        """Derive messages, in order, as part of the batch that `finish` ends."""
        config, place = self._config, self._place
        funnel, keep = self._funnel, self._records
        for message in messages:
            if message.timestamp_ms > self._time.time_ms:
                self._advance(message)
            taken = funnel.take(intake(message))
            self._dead.append(taken.dead is not None)
            if taken.dead is None and taken.session_id is None:
                continue
            if taken.dead is not None:
                self._reasons[taken.dead.reason] += 1
                target = place.partition % place.dead_partitions
                source = self._source(message)
                keep.append(dead_record(message, taken.dead, source, config.dead_topic, target))
            elif taken.session_id is not None:
                self._touched.setdefault(taken.session_id, taken.before)
                self._be_active(taken.session_id)
                if not taken.records:
                    continue
                source = self._source(message)
                key = key_bytes(taken.session_id)
                for record in taken.records:
                    self._kinds[record.data.kind] += 1
                    headers, value = cloudevents.to_binary(record)
                    keep.append(
                        NewRecord(
                            config.events_topic, place.partition, key, value, headers + source
                        )
                    )
        if messages:
            self._last_ms = messages[-1].timestamp_ms

    def finish(self, position: int) -> Work:
        """End the batch: return what is to be committed with the position after it."""
        changes, sessions, activity = self._changes, self._funnel.sessions, self._activity
        for session_id, before in self._touched.items():
            changes |= changes_of(session_id, before, sessions[session_id], activity[session_id])
        for session_id in self._moved:
            if session_id in activity and session_id not in self._touched:
                changes |= self._move(session_id)
        self.position = position
        changes[POSITION_KEY] = self._position_document(position)
        work = Work(
            self._records,
            changes,
            position,
            self._dead,
            self._kinds,
            self._reasons,
            self._evicted,
            self._last_ms,
        )
        self._begin()
        return work

    def _move(self, session_id: str) -> dict[bytes, bytes | None]:
        """Return the change that a session is which was active later than it is stored."""
        activity, session = self._activity[session_id], self._funnel.sessions.get(session_id)
        if session is None:
            return self._stored.be_active(session_id, activity)
        return changes_of(session_id, session, session, activity)

    def _position_document(self, position: int) -> bytes:
        claim = self._time.claim
        told = {} if claim is None else {"claim": claim._asdict()}
        return json_codec.dumps(
            {
                "v": POSITION_VERSION,
                "position": position,
                "kafka_time_ms": self._time.time_ms,
                "partitions": self._place.partitions,
                **told,
            }
        )

    def _be_active(self, session_id: str) -> None:
        active = self._activity.get(session_id)
        if active is not self._now and active != self._now:
            self._activity[session_id] = self._now
            self._activity.move_to_end(session_id)
            self._moved[session_id] = None

    def _advance(self, message: LogRecord) -> None:
        """Move the partition's time on, and let sessions go that have become too idle."""
        time, before = self._time, self._now
        borne_out = time.take(message.offset, message.timestamp_ms)
        hour, claim = time.time_ms // HOUR_MS, time.claim
        now = Activity(hour, None if claim is None else claim.begin)
        if now != before:
            # Else it stays the same object, by which it is known that nothing has changed.
            self._now = now
        if borne_out is not None:
            self._activate_since(borne_out)
        if hour == before.hour:
            return
        oldest = hour - self._config.idle_days * _HOURS_PER_DAY
        while self._activity:
            session_id, active = next(iter(self._activity.items()))
            if active.hour >= oldest:
                break
            del self._activity[session_id]
            after = self._funnel.sessions.pop(session_id, None)
            if after is None:
                self._changes |= self._stored.drop(session_id)
            elif (written := self._touched.pop(session_id, after)) is not None:
                self._changes |= removal_of(session_id, written)
            self._evicted += 1

    def _activate_since(self, claim: Claim) -> None:
        """Take sessions that were active since a claim began as active now that it is true."""
        found = [name for name, active in self._activity.items() if active.claim == claim.begin]
        for session_id in found:
            self._be_active(session_id)

    def add(self, entries: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Take entries of the changelog, in their order. Raises VersionError for a foreign key."""
        self._stored.add(entries)

    @property
    def stored_sessions(self) -> int:
        """How many sessions were added so far."""
        return len(self._stored)

    def load(self) -> Iterator[None]:
        """Take over what was added, in steps of some milliseconds.

        Raises VersionError for what another version stored, ConfigError where the partition
        counts changed.
        """
        if self._stored.position is not None:
            self._load_position(self._stored.position)
        by_hour: dict[int, list[tuple[str, Activity]]] = {}
        for found in self._stored.activities():
            for session_id, activity in found:
                by_hour.setdefault(activity.hour, []).append((session_id, activity))
            yield
        for hour in sorted(by_hour):
            sessions = by_hour.pop(hour)
            for begin in range(0, len(sessions), _SLICE_SESSIONS):
                self._activity.update(sessions[begin : begin + _SLICE_SESSIONS])
                yield

    def _load_position(self, value: bytes) -> None:
        """Take the stored position."""
        document = read_document(value, POSITION_VERSION, "the position")
        partitions = document.get("partitions")
        if partitions != self._place.partitions:
            raise ConfigError(
                f"{self._config.state_topic} was written with {partitions} partitions, now there "
                f"are {self._place.partitions}: sessions would be on others. Go back to "
                f"{partitions}, or create new topics under another CONTEXTGAUGE_TOPIC_PREFIX"
            )
        position, time_ms = document.get("position"), document.get("kafka_time_ms")
        claim = document.get("claim", {})
        figures = [claim.get(name) for name in Claim._fields] if isinstance(claim, dict) else [None]
        counts = [figure for figure in figures if isinstance(figure, int)]
        is_whole = len(counts) == len(Claim._fields) or claim == {}
        if not isinstance(position, int) or not isinstance(time_ms, int) or not is_whole:
            raise VersionError(f"the position in {self._config.state_topic} cannot be read")
        self.position = position
        self._time = PartitionTime(time_ms, Claim(*counts) if counts else None)
        self._now = Activity(time_ms // HOUR_MS, counts[0] if counts else None)
