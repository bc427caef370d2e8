"""The state of one input partition: its sessions, its position, and what of it is persisted.

The changelog holds, under keys that are JSON arrays, `[session, part]` for each part of a
session's state, `[session, "activity"]` for when it was last active, and `["position"]`. Every
value is an object with its version `v`; an unknown one refuses the partition. All that is
written follows from the messages alone, whatever the batches: idleness is counted in whole hours
of the partition's Kafka time (`partition_time`) and looked at before each message. A session that
was active while a later time was claimed is active at that time, should the claim come true.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from schemas.records import Json
from schemas.topics import HOUR_MS
from streams.core.errors import ConfigError, VersionError
from streams.core.rules import Rules
from streams.core.state import STATE_VERSION, Session, pack, part_names, unpack
from streams.edge import codec
from streams.flow.dead_letters import dead_record, misrouted_check
from streams.flow.derive_config import DeriveConfig
from streams.flow.funnel import Funnel
from streams.flow.intake import intake
from streams.flow.partition_time import Claim, PartitionTime
from streams.flow.provenance import source_headers
from streams.ports import LogRecord, NewRecord

POSITION_VERSION = 1
"""Version of the position's and the activities' documents."""

_HOURS_PER_DAY = 24

POSITION_KEY = codec.dumps(["position"])
_ACTIVITY_PART = "activity"


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


class _Activity(NamedTuple):
    """When a session was last active: the hour, and the claim of a later one at that time."""

    hour: int
    claim: int | None


class PartitionState:
    """The sessions of one partition. `position` is None until one is stored."""

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
        self._funnel = Funnel(
            rules,
            misrouted_check(place.partition, place.partitions, partition_of),
            config.limit_bytes,
        )
        self._source = source_headers(config.messages_topic, place.partition)
        self._written: dict[str, Session] = {}
        # By last activity, the most idle first: Kafka time never goes back.
        self._activity: OrderedDict[str, _Activity] = OrderedDict()
        self._time = PartitionTime()
        self._now = _Activity(0, None)
        self._begin()

    @property
    def sessions(self) -> int:
        """How many sessions are held."""
        return len(self._funnel.sessions)

    def _begin(self) -> None:
        """Start a batch's account."""
        self._touched: dict[str, None] = {}
        self._moved: dict[str, None] = {}
        self._evicted: dict[str, None] = {}
        self._records: list[NewRecord] = []
        self._dead: list[bool] = []
        self._kinds: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._last_ms: int | None = None

    def apply(self, messages: Sequence[LogRecord]) -> None:
        """Derive messages, in order, as part of the batch that `finish` ends."""
        config, place = self._config, self._place
        take, keep = self._funnel.take, self._records.append
        for message in messages:
            if message.timestamp_ms > self._time.time_ms:
                self._advance(message)
            taken = take(intake(message))
            self._dead.append(taken.dead is not None)
            if taken.dead is None and taken.session_id is None:
                continue
            if taken.dead is not None:
                self._reasons[taken.dead.reason] += 1
                target = place.partition % place.dead_partitions
                source = self._source(message)
                keep(dead_record(message, taken.dead, source, config.dead_topic, target))
            elif taken.session_id is not None:
                self._touch(taken.session_id)
                if not taken.records:
                    continue
                source = self._source(message)
                key = codec.key_bytes(taken.session_id)
                for record in taken.records:
                    self._kinds[record.kind] += 1
                    headers, value = codec.to_binary(record)
                    keep(
                        NewRecord(
                            config.events_topic, place.partition, key, value, headers + source
                        )
                    )
        if messages:
            self._last_ms = messages[-1].timestamp_ms

    def finish(self, position: int) -> Work:
        """End the batch: return what is to be committed with the position after it."""
        changes: dict[bytes, bytes | None] = {}
        for session_id in self._evicted:
            before = self._written.pop(session_id, None)
            if before is not None:
                names = [*part_names(before), _ACTIVITY_PART]
                changes |= dict.fromkeys(_key(session_id, name) for name in names)
        sessions, written = self._funnel.sessions, self._written
        for session_id in self._touched:
            after = sessions.get(session_id)
            if after is None:
                continue
            for name, part in pack(written.get(session_id), after).items():
                changes[_key(session_id, name)] = None if part is None else _part(part)
            written[session_id] = after
        for session_id in self._moved:
            if session_id in sessions:
                changes[_key(session_id, _ACTIVITY_PART)] = self._activity_document(session_id)
        self.position = position
        changes[POSITION_KEY] = self._position_document(position)
        work = Work(
            self._records,
            changes,
            position,
            self._dead,
            self._kinds,
            self._reasons,
            len(self._evicted),
            self._last_ms,
        )
        self._begin()
        return work

    def _activity_document(self, session_id: str) -> bytes:
        hour, claim = self._activity[session_id]
        told = {} if claim is None else {"claim": claim}
        return codec.dumps({"v": POSITION_VERSION, "hour": hour, **told})

    def _position_document(self, position: int) -> bytes:
        claim = self._time.claim
        told = {} if claim is None else {"claim": claim._asdict()}
        return codec.dumps(
            {
                "v": POSITION_VERSION,
                "position": position,
                "kafka_time_ms": self._time.time_ms,
                "partitions": self._place.partitions,
                **told,
            }
        )

    def _touch(self, session_id: str) -> None:
        self._touched[session_id] = None
        self._be_active(session_id)

    def _be_active(self, session_id: str) -> None:
        if self._activity.get(session_id) != self._now:
            self._activity[session_id] = self._now
            self._activity.move_to_end(session_id)
            self._moved[session_id] = None

    def _advance(self, message: LogRecord) -> None:
        """Move the partition's time on, and let sessions go that have become too idle."""
        time, before = self._time, self._now
        borne_out = time.take(message.offset, message.timestamp_ms)
        hour, claim = time.time_ms // HOUR_MS, time.claim
        self._now = _Activity(hour, None if claim is None else claim.begin)
        if borne_out is not None:
            self._activate_since(borne_out)
        if hour == before.hour:
            return
        oldest = hour - self._config.idle_days * _HOURS_PER_DAY
        while self._activity:
            session_id, active = next(iter(self._activity.items()))
            if active.hour >= oldest:
                break
            del self._activity[session_id], self._funnel.sessions[session_id]
            self._evicted[session_id] = None

    def _activate_since(self, claim: Claim) -> None:
        """Take sessions that were active since a claim began as active now that it is true."""
        found = [name for name, active in self._activity.items() if active.claim == claim.begin]
        for session_id in found:
            self._be_active(session_id)

    def load_position(self, value: bytes) -> None:
        """Take the stored position. Raises VersionError, or ConfigError where counts changed."""
        document = _document(value, POSITION_VERSION, "the position")
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
        self._now = _Activity(time_ms // HOUR_MS, counts[0] if counts else None)

    def load_session(self, session_id: str, values: dict[str, bytes]) -> None:
        """Take one stored session. Raises VersionError where it cannot be read."""
        what = f"the state of session {session_id!r}"
        activity = values.pop(_ACTIVITY_PART, None)
        parts = {
            name: _document(value, STATE_VERSION, what).get("part")
            for name, value in values.items()
        }
        told = {} if activity is None else _document(activity, POSITION_VERSION, what)
        hour, claim = told.get("hour"), told.get("claim")
        session = unpack(session_id, parts)
        if not isinstance(hour, int) or not isinstance(claim, int | None):
            raise VersionError(f"{what} cannot be read: when it was last active is not told")
        self._funnel.sessions[session_id] = self._written[session_id] = session
        self._activity[session_id] = _Activity(hour, claim)

    def loaded(self) -> None:
        """End loading: put the sessions in the order of their activity."""
        self._activity = OrderedDict(sorted(self._activity.items(), key=lambda item: item[1].hour))


class StoredParts:
    """The changelog as it is read back: the last value of each key."""

    def __init__(self, topic: str) -> None:
        self.position: bytes | None = None
        self.sessions: dict[str, dict[str, bytes]] = {}
        self.entries = 0
        self._topic = topic

    def add(self, entries: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Take entries in their order. Raises VersionError for a key that is none of ours."""
        self.entries += len(entries)
        for key, value in entries:
            if key == POSITION_KEY:
                self.position = value
                continue
            session_id, name = self._split(key)
            if value is not None:
                self.sessions.setdefault(session_id, {})[name] = value
            elif session_id in self.sessions:
                self.sessions[session_id].pop(name, None)
                if not self.sessions[session_id]:
                    del self.sessions[session_id]

    def _split(self, key: bytes) -> tuple[str, str]:
        try:
            session_id, name = codec.loads(key)
        except ValueError:
            session_id = name = None
        if not isinstance(session_id, str) or not isinstance(name, str):
            raise VersionError(
                f"{self._topic} holds a key that this version of contextgauge does not know: "
                f"{key[:80]!r}. Upgrade contextgauge, or give it a topic of its own"
            )
        return session_id, name


def _key(session_id: str, name: str) -> bytes:
    return codec.dumps([session_id, name])


def _part(part: Json) -> bytes:
    return codec.dumps({"v": STATE_VERSION, "part": part})


def _document(value: bytes, version: int, what: str) -> dict[str, Json]:
    try:
        document = codec.loads(value)
    except ValueError:
        document = None
    found = document.get("v") if isinstance(document, dict) else None
    if not isinstance(document, dict) or found != version:
        raise VersionError(
            f"{what} was stored in version {found}; this build of contextgauge reads version "
            f"{version}: run the version that wrote it, or a newer one"
        )
    return document
