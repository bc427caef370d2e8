"""The state of one input partition: its sessions, its position, and what of it is persisted.

Its storage format is in `stored_sessions`; an unknown version refuses the partition. A session that
rests is held in that format: a restored one until a message comes for it, and one that had none
for hours.

All that is written follows from the messages alone, not from the batches: idleness is counted in
whole hours of the partition's Kafka time (`PartitionTime`) and checked before each message. A
session that was active while a later time was claimed counts as active at that time if the claim
is confirmed.
"""

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from contextgauge import json_codec
from contextgauge.errors import ConfigError, VersionError
from contextgauge.normalise.usual import NOTHING
from contextgauge.partitioner import key_bytes
from schemas.messages import DeadLetter
from schemas.topics import HOUR_MS
from streams import compiled
from streams.compiled.plain_messages import UsualRecord
from streams.core.derivation.rules_config import Rules
from streams.core.derivation.state import Session
from streams.flow.dead_letters.letters import misrouted_check
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.deriver import LARGE_BYTES, Deriver, DeriveResult, input_message
from streams.flow.derive.log_proof import LogProof, read_proof
from streams.flow.derive.partition_time import Claim, PartitionTime
from streams.flow.derive.record_writer import RecordWriter
from streams.flow.derive.stored_sessions import (
    POSITION_KEY,
    Activity,
    StoredSessions,
    changes_of,
    removal_of,
    wrong_version,
)
from streams.ports import LogRecord, NewRecord, UnreadableBatch, ValueStore

_read_record: Final = compiled.messages().read_record

POSITION_VERSION: Final = 1
"""Version of the position's document."""

_HOURS_PER_DAY: Final = 24

_SLICE_SESSIONS: Final = 10_000
"""Sessions put in order in a row while restoring: a few milliseconds."""

_COOLED: Final = 20
"""Sessions that are stored away after a batch, at most: some milliseconds. After one of more than
400 messages it is one for each 20 of them, and never fewer than came into use with the batch, so
that they do not pile up in a backlog."""


@dataclass(slots=True)
class Work:
    """The result of a batch: records for its topics, changes of the state, and counts.

    `position` is the input's position after it, `dead` one flag per message, `last_ms` the
    Kafka time of its last message, `events_begin` where its records have to begin.
    """

    records: list[NewRecord] = field(default_factory=list)
    changes: dict[bytes, bytes | None] = field(default_factory=dict)
    position: int = 0
    dead: list[bool] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    evicted: int = 0
    last_ms: int | None = None
    events_begin: int | None = None


class InputPartition(NamedTuple):
    """Which partition this is, and of how many."""

    partition: int
    partitions: int
    dead_partitions: int


def _take(
    stored: StoredSessions, in_use: dict[str, None], entered: list[str], session_id: str
) -> Session | None:
    """Take a session out of its rest; None where it does not rest."""
    session = stored.take(session_id)
    if session is not None:
        in_use[session_id] = None
        entered.append(session_id)
    return session


class PartitionState:
    """The state of one partition. `position` is None until one is stored; `proof` binds it.

    To restore it: `add` all that the changelog holds, then exhaust `load`.
    """

    def __init__(
        self,
        rules: Rules,
        config: DeriveConfig,
        place: InputPartition,
        values: ValueStore | None = None,
    ) -> None:
        self.position: int | None = None
        self.proof = LogProof()
        self._last: LogRecord | None = None
        self._config = config
        self._place = place
        self._stored = StoredSessions(config.state_topic, values)
        # The sessions in use, those first that had no message for longest.
        self._in_use: OrderedDict[str, None] = OrderedDict()
        self._entered: list[str] = []
        self._deriver = Deriver(
            rules,
            misrouted_check(place.partition, place.partitions),
            config.limit_bytes,
            # Not a method: a state in a cycle would stay, with its file, until the next collection.
            partial(_take, self._stored, self._in_use, self._entered),
        )
        # What messages contain (R35) is in none of what is read in place.
        self._usual_bytes = 0 if rules.content else min(config.limit_bytes, LARGE_BYTES)
        self._writer = RecordWriter(
            config, place.partition, place.partition % place.dead_partitions
        )
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
        self._moved: dict[str, None] = {}
        self._work = Work()

    def apply(self, messages: Sequence[LogRecord]) -> None:
        """Derive messages, in order, as part of the batch that `finish` ends."""
        for index in range(len(messages)):
            usual = _read_record(messages, index, self._usual_bytes)
            if usual is None:
                self._apply_one(messages[index])
            else:
                self._apply_usual(usual, messages, index)
        if messages:
            self._last = messages[-1]
            self._work.last_ms = self._last.timestamp_ms

    def _apply_usual(self, usual: UsualRecord, messages: Sequence[LogRecord], index: int) -> None:
        """Derive a message that was read in place."""
        offset, timestamp_ms = usual.offset, usual.timestamp_ms
        if timestamp_ms > self._time.time_ms:
            self._advance(offset, timestamp_ms)
        if usual.message is NOTHING:
            self._work.dead.append(False)
            return
        result = self._deriver.derive_usual(usual)
        self._work.dead.append(result.dead is not None)
        if result.dead is not None:
            self._bury(messages[index], result.dead)
        elif result.changed:
            self._take_changed(result, offset, timestamp_ms)

    def _apply_one(self, message: LogRecord) -> None:
        if message.timestamp_ms > self._time.time_ms:
            self._advance(message.offset, message.timestamp_ms)
        result = self._deriver.derive(input_message(message))
        self._work.dead.append(result.dead is not None)
        if result.dead is not None:
            self._bury(message, result.dead)
        elif result.changed:
            self._take_changed(result, message.offset, message.timestamp_ms)

    def _bury(self, message: LogRecord, dead: DeadLetter) -> None:
        """Add a dead letter to the batch."""
        self._work.reasons[dead.reason] += 1
        self._work.records.append(self._writer.dead_letter(message, dead))

    def bury_batch(self, batch: UnreadableBatch) -> None:
        """Add the dead letter of a batch that cannot be read: for a flood, it counts as one."""
        self._work.dead.append(True)
        self._work.reasons[batch.reason] += 1
        self._work.records.append(self._writer.dead_batch(batch))

    def _take_changed(self, result: DeriveResult, offset: int, timestamp_ms: int) -> None:
        """Add what a message changed to the batch."""
        session_id = result.session_id
        if session_id is None:
            return
        self._be_active(session_id)
        if not result.records:
            return
        work, key = self._work, key_bytes(session_id)
        for record in result.records:
            work.kinds[record.data.kind] += 1
            work.records.append(self._writer.event(record, key, offset, timestamp_ms))

    def finish(self, position: int) -> Work:
        """End the batch: return what is to be committed with the position after it."""
        work, activity = self._work, self._activity
        changes = work.changes
        for session_id, before, after in self._deriver.end_steps():
            changes |= changes_of(session_id, before, after, activity[session_id])
            self._moved.pop(session_id, None)
        for session_id in self._moved:
            if session_id in activity:
                changes |= self._move(session_id)
        self.position = work.position = position
        self._prove(work)
        changes[POSITION_KEY] = self._position_document(position)
        self._begin()
        self._cool(len(work.dead))
        return work

    def _cool(self, messages: int) -> None:
        """Let sessions rest that had no message for hours: more of them after many messages."""
        in_use, oldest = self._in_use, self._now.hour - self._config.cold_hours
        entered = len(self._entered)
        for session_id in self._entered:
            # What a message did not change, as one that was published again, is as old as before.
            if session_id in in_use and self._activity[session_id].hour < oldest:
                self.rest(session_id)
        self._entered.clear()
        for _ in range(max(_COOLED, messages // _COOLED, entered)):
            session_id = next(iter(in_use), "")
            if session_id not in in_use or self._activity[session_id].hour >= oldest:
                return
            self.rest(session_id)

    def rest(self, session_id: str) -> None:
        """Store a session in use away until its next message; between batches."""
        del self._in_use[session_id]
        session = self._deriver.sessions.pop(session_id)
        self._stored.keep(session_id, session, self._activity[session_id])

    @property
    def in_use(self) -> Collection[str]:
        """The sessions that do not rest."""
        return self._in_use.keys()

    def _prove(self, work: Work) -> None:
        """Bind the position to the logs."""
        proof = self.proof
        if self._last is not None:
            proof.derive(self._last)
            self._last = None
        work.events_begin = proof.events_end
        topic = self._config.events_topic
        records = [record for record in work.records if record.topic == topic]
        if records:
            proof.write(len(records), records[-1])

    def _move(self, session_id: str) -> dict[bytes, bytes | None]:
        """Return the changes for a session whose activity alone has changed."""
        activity, session = self._activity[session_id], self._deriver.sessions.get(session_id)
        if session is None:
            return self._stored.be_active(session_id, activity)
        return changes_of(session_id, session, session, activity)

    def _position_document(self, position: int) -> bytes:
        claim = self._time.claim
        open_claim = {} if claim is None else {"claim": claim._asdict()}
        return json_codec.dumps(
            {
                "v": POSITION_VERSION,
                "position": position,
                "kafka_time_ms": self._time.time_ms,
                "partitions": self._place.partitions,
                "log": self.proof.document(),
                **open_claim,
            }
        )

    def _be_active(self, session_id: str) -> None:
        active = self._activity.get(session_id)
        if active is not self._now and active != self._now:
            self._activity[session_id] = self._now
            self._activity.move_to_end(session_id)
            self._moved[session_id] = None
            if session_id in self._in_use:
                self._in_use.move_to_end(session_id)
            elif session_id not in self._stored:
                self._in_use[session_id] = None
                self._entered.append(session_id)

    def _advance(self, offset: int, timestamp_ms: int) -> None:
        """Advance the partition's time, and evict sessions that have become idle."""
        time, before = self._time, self._now
        confirmed = time.take(offset, timestamp_ms)
        hour, claim = time.time_ms // HOUR_MS, time.claim
        claim_begin = None if claim is None else claim.begin
        if hour != before.hour or claim_begin != before.claim:
            # Kept as the same object otherwise: `_be_active` compares by identity first.
            self._now = Activity(hour, claim_begin)
        if confirmed is not None:
            # Sessions that were active since the claim began were so at the confirmed time.
            begin, activity = confirmed.begin, self._activity.items()
            for session_id in [name for name, active in activity if active.claim == begin]:
                self._be_active(session_id)
        if hour == before.hour:
            return
        oldest = hour - self._config.idle_days * _HOURS_PER_DAY
        while self._activity:
            session_id, active = next(iter(self._activity.items()))
            if active.hour >= oldest:
                break
            del self._activity[session_id]
            self._in_use.pop(session_id, None)
            written = self._deriver.drop(session_id)
            self._work.changes |= (
                self._stored.drop(session_id)
                if written is None
                else removal_of(session_id, written)
            )
            self._work.evicted += 1

    def add(self, entries: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Take entries of the changelog, in their order. Raises VersionError for a foreign key."""
        self._stored.add(entries)

    @property
    def stored_sessions(self) -> int:
        """How many sessions rest: after a restore all of them."""
        return len(self._stored)

    def load(self) -> Iterator[None]:
        """Index what was added, in steps of some milliseconds.

        Raises VersionError for what another version stored, ConfigError where the partition
        counts changed.
        """
        if self._stored.position is not None:
            self._load_position(self._stored.position)
        by_hour: dict[int, list[tuple[str, Activity]]] = {}
        for page in self._stored.activities():
            for session_id, activity in page:
                by_hour.setdefault(activity.hour, []).append((session_id, activity))
            yield
        for hour in sorted(by_hour):
            sessions = by_hour.pop(hour)
            for begin in range(0, len(sessions), _SLICE_SESSIONS):
                self._activity.update(sessions[begin : begin + _SLICE_SESSIONS])
                yield

    def _load_position(self, value: bytes) -> None:
        """Take the stored position."""
        try:
            document = json_codec.loads(value)
        except ValueError:
            document = None
        stored_version = document.get("v") if isinstance(document, dict) else None
        if not isinstance(document, dict) or stored_version != POSITION_VERSION:
            raise wrong_version("the position", stored_version, POSITION_VERSION)
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
        self.proof = read_proof(document.get("log"))
        self._time = PartitionTime(time_ms, Claim(*counts) if counts else None)
        self._now = Activity(time_ms // HOUR_MS, counts[0] if counts else None)
