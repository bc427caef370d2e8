"""Looks at the log after every commit and at the views after every write: an independent judge.

It knows each input's records beforehand. At any time a partition's committed records must be a
prefix of these, once each; the stored position must be that of just these records, and only go
forward; the views must be the fold of the records before their position, totals and rankings
included.
"""

from contextgauge import json_codec
from contextgauge.records import Json
from schemas.topics import AGENT_MESSAGES, CONTEXT_EVENTS, CONTEXT_STATE
from streams.edge.memory.partition import MemoryTopicPartition, Transaction
from streams.flow.common.topic_watch import LOOK_S
from streams.flow.derive.stored_sessions import POSITION_KEY
from streams.ports import LogRecord, PartitionDump
from tests.simulation.broker import Broker, Target, TransactionalId
from tests.simulation.inputs import Input, ViewOracle, prepared_oracle
from tests.simulation.schedule import Schedule
from tests.simulation.view_server import ViewServer

MESSAGES, EVENTS, STATE = AGENT_MESSAGES.name, CONTEXT_EVENTS.name, CONTEXT_STATE.name


_NOTICED_S = LOOK_S + 2.0
"""Within which a worker has noticed that a topic is another one."""


class ViolationError(AssertionError):
    """Something that must never be so."""


class Auditor:
    """The judge of one run. `check_...` raise ViolationError."""

    def __init__(
        self, schedule: Schedule, given: Input, broker: Broker, server: ViewServer
    ) -> None:
        self._schedule, self._given = schedule, given
        self._broker, self._views = broker, server.views
        self.derived = [0] * given.partitions
        """How many of each partition's records are committed."""
        self.positions: list[int] = [0] * given.partitions
        """The committed positions in the messages."""
        self.spoilt: set[tuple[int, int, str]] = set()
        """Partitions of a build that lost keys: only healing is asked of them."""
        self._writers: list[tuple[str, int]] = [("", 0)] * given.partitions
        self._events: list[tuple[MemoryTopicPartition | None, int]] = [(None, 0)] * given.partitions
        self._records: list[list[LogRecord]] = [[] for _ in range(given.partitions)]
        self._oracles: dict[tuple[int, int], ViewOracle] = {}
        self._until = [
            {(each.record.key, each.record.value): each.records_until for each in reversed(share)}
            for share in given.by_partition
        ]
        self.lost_state: set[int] = set()
        """Partitions whose state lost its end: who restores it commits positions again."""
        self.was_cut = False
        """Whether a topic lost some of what was audited: what is there is judged anew."""
        self.moved_s: float | None = None
        """When the ground moved, if it did."""
        self.said: list[str] = []
        """What workers stopped with, for a person to look at."""
        self.broken: dict[int, str] = {}
        """Partitions of which a commit was wrong after the ground had moved, and how."""

    # Records

    def committed(self, state: TransactionalId, parts: dict[Target, Transaction]) -> None:
        """Judge a transaction that was committed, by what is in the log now."""
        for (topic, partition), part in parts.items():
            if topic == STATE:
                try:
                    self._check_commit(state, partition, part)
                except ViolationError as error:
                    self._judge_broken(partition, error)
                else:
                    # Such as a state that lost its end, and was restored from what is left.
                    self.broken.pop(partition, None)

    def _judge_broken(self, partition: int, error: ViolationError) -> None:
        """Raise where a worker had the time to notice that the ground moved, or said that it did.

        One more commit is allowed to it; and any number until it looks at the topics' ids again.
        """
        has_said = any(f"-{partition} " in text for text in self.said)
        if self.moved_s is None or has_said:
            raise error
        former = self.broken.setdefault(partition, str(error))
        if former != str(error) and self._broker.scheduler.now_s > self.moved_s + _NOTICED_S:
            raise ViolationError(f"goes on after {former}")

    def _check_commit(self, state: TransactionalId, partition: int, part: Transaction) -> None:
        self._check_records(partition)
        writer = (state.name, state.epoch)
        former = self._writers[partition]
        self._writers[partition] = writer
        if former[0] not in ("", writer[0]):
            raise ViolationError(f"partition {partition}: written by {former[0]} and {writer[0]}")
        if former[1] > writer[1]:
            raise ViolationError(f"partition {partition}: epoch {writer[1]} after {former[1]}")
        position = self._position_of(partition, part)
        if position is None:
            raise ViolationError(f"partition {partition}: a commit without a position")
        count = self._count_at(partition, position)
        if count != self.derived[partition]:
            raise ViolationError(
                f"partition {partition}: position {position} stands for {count} records, "
                f"and {self.derived[partition]} are there"
            )
        may_repeat = partition in self.lost_state or self._broker.recreated.get(MESSAGES)
        if position <= self.positions[partition] and not may_repeat:
            raise ViolationError(
                f"partition {partition}: position {position} after {self.positions[partition]}"
            )
        self.positions[partition] = position

    def _check_records(self, partition: int) -> None:
        """Judge the records that were not looked at yet."""
        log = self._broker.partition(EVENTS, partition)
        known, offset = self._events[partition]
        if known is not log or offset > len(log.entries):
            offset = 0
            if known is not None:
                self.derived[partition] = 0
        ids, count = self._given.ids[partition], self.derived[partition]
        batch = log.read(max(offset, log.first), 1_000_000)
        for record in batch.records:
            record_id = _id_of(record)
            if count >= len(ids) or record_id != ids[count]:
                raise ViolationError(self._wrong(partition, count, record_id))
            count += 1
        self.derived[partition] = count
        self._events[partition] = (log, batch.position)

    def _wrong(self, partition: int, count: int, record_id: str) -> str:
        ids = self._given.ids[partition]
        if record_id in ids[:count]:
            return f"partition {partition}: record {ids.index(record_id)} again after {count}"
        if record_id in ids:
            return f"partition {partition}: record {ids.index(record_id)} where {count} is due"
        return f"partition {partition}: an unknown record where {count} is due"

    def _position_of(self, partition: int, part: Transaction) -> int | None:
        for entry in reversed(self._broker.partition(STATE, partition).entries):
            record = entry.record
            if entry.transaction is part and record is not None and record.key == POSITION_KEY:
                document: dict[str, Json] = json_codec.loads(record.value or b"")
                position = document["position"]
                return position if isinstance(position, int) else None
        return None

    def _count_at(self, partition: int, position: int) -> int:
        """Return how many records the messages before a position give."""
        until, entries = self._until[partition], self._broker.partition(MESSAGES, partition).entries
        most = 0
        for entry in entries[:position]:
            if entry.record is not None:
                most = max(most, until[entry.record.key, entry.record.value])
        return most

    def is_derived(self) -> bool:
        """Return whether all that was published is in the events, and its position stored."""
        if self.broken:
            return False
        for partition, ids in enumerate(self._given.ids):
            if self.derived[partition] < len(ids):
                return False
            if self.positions[partition] < self._broker.partition(MESSAGES, partition).stable_end():
                return False
        return True

    # Views

    def applied(self, generation: int, partition: int, who: str) -> None:
        """Judge the views that a worker has just written."""
        stored = self._views.partitions[generation, partition]
        position = stored.position
        if position is None or (generation, partition, position.build) in self.spoilt:
            return
        difference = self._difference(generation, partition)
        if difference and self.was_cut:
            self.spoilt.add((generation, partition, position.build))
        elif difference:
            raise ViolationError(
                f"views of partition {partition} at {position.offset}, generation {generation}, "
                f"by {who}: {difference}"
            )

    def activated(self, generation: int, who: str) -> None:
        """Judge a generation that readers use from now on: all of it must be there."""
        for partition in range(self._given.partitions):
            stored = self._views.partitions.get((generation, partition))
            if stored is None or stored.position is None or not stored.position.caught_up:
                raise ViolationError(
                    f"generation {generation} activated by {who} without partition {partition}"
                )

    def dropped(self, generation: int, partition: int, who: str) -> None:
        """Judge that a worker deletes views: never those that readers use."""
        if generation == self._views.numbers.active:
            raise ViolationError(f"{who} dropped partition {partition} of the active generation")

    def _difference(self, generation: int, partition: int) -> str:
        """Return what of a partition's views is not the fold at its position; empty: nothing."""
        stored = self._views.partitions[generation, partition]
        if stored.position is None:
            return ""
        records = self._read_events(partition)
        offset, begin = stored.position.offset, stored.position.begin
        if begin > self._broker.partition(EVENTS, partition).first and not self.was_cut:
            return f"they begin at {begin}, and the log does not"
        count = len(records)
        while count and records[count - 1].offset >= offset:
            count -= 1
        skipped = 0
        while skipped < count and records[skipped].offset < begin:
            skipped += 1
        oracle = self._oracle(partition, begin)
        expected = oracle.at(records[skipped:] if skipped else records, count - skipped)
        return difference(expected, stored.held)

    def see_events(self, partition: int) -> None:
        """Read a partition of the events before some are deleted: a projector may have them."""
        self._read_events(partition)

    def forget_events(self, partition: int) -> None:
        """Read a partition of the events again: it has lost its tail."""
        if self._schedule.stage == "project":
            self._events[partition] = (None, 0)

    def _read_events(self, partition: int) -> list[LogRecord]:
        """Return the committed records of the events; those that retention deleted stay known."""
        log = self._broker.partition(EVENTS, partition)
        known, offset = self._events[partition]
        records = self._records[partition]
        if self._schedule.stage == "project":
            if known is not log or offset > len(log.entries):
                records.clear()
                offset = 0
            if offset < log.stable_end():
                batch = log.read(max(offset, log.first), 1_000_000)
                records += batch.records
                self._events[partition] = (log, batch.position)
            return records
        return list(log.read(log.first, 1_000_000).records)

    def _oracle(self, partition: int, begin: int) -> ViewOracle:
        if self._schedule.stage == "project" and not begin and not self.was_cut:
            return prepared_oracle(self._schedule.input, partition)
        return self._oracles.setdefault((partition, begin), ViewOracle(begin))

    def is_projected(self) -> bool:
        """Return whether the active views are complete."""
        active = self._views.numbers.active
        if active is None:
            return False
        for partition in range(self._given.partitions):
            stored = self._views.partitions.get((active, partition))
            if stored is None or stored.position is None:
                return False
            if stored.position.offset < self._broker.partition(EVENTS, partition).stable_end():
                return False
            if self._difference(active, partition):
                return False
        return True

    def last_difference(self) -> str:
        """Return what is wrong with the active views at the end."""
        active = self._views.numbers.active
        if active is None:
            return "no generation is active"
        differences = []
        for partition in range(self._given.partitions):
            stored = self._views.partitions.get((active, partition))
            if stored is None or stored.position is None:
                differences.append(f"partition {partition} is missing")
            else:
                end = self._broker.partition(EVENTS, partition).stable_end()
                wrong = self._difference(active, partition)
                if wrong or stored.position.offset < end:
                    differences.append(
                        f"partition {partition} at {stored.position.offset} of {end} {wrong}"
                    )
        return "; ".join(differences)


def _id_of(record: LogRecord) -> str:
    for name, value in record.headers:
        if name == "ce_id" and value is not None:
            return value.decode()
    return ""


def difference(expected: PartitionDump, held: PartitionDump) -> str:
    """Return the kinds of documents in which two partitions differ."""
    if expected == held:
        return ""
    return ", ".join(name for name in PartitionDump._fields if not _same(expected, held, name))


def _same(expected: PartitionDump, held: PartitionDump, name: str) -> bool:
    """Return whether a kind is the same but for what is there and empty."""
    one, two = getattr(expected, name), getattr(held, name)
    if name in ("entries", "rankings", "agents", "compactions"):
        return {key: _without_empty(each) for key, each in one.items() if each} == {
            key: _without_empty(each) for key, each in two.items() if each
        }
    return bool(one == two)


def _without_empty(part: object) -> object:
    if isinstance(part, dict):
        return {key: each for key, each in part.items() if each or not isinstance(each, list)}
    return part
