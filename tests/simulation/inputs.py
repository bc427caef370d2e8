"""Small logs of messages with what must come of them, worked out once for all runs.

An input is taken by number: some sessions of the product's own simulator, thinned out so that most
messages give records. `groups` is the same for the projector alone: the records as transactions
of a prepared log, at the same offsets and times in every run.
"""

import random
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from contextgauge.normalise.signals import InputMessage
from contextgauge.partitioner import key_bytes, partition_of
from schemas.records import Record
from schemas.topics import AGENT_MESSAGES, CONTEXT_EVENTS, DAY_MS
from streams import codec
from streams.flow.derive.deriver import Deriver
from streams.flow.project.fold import LoggedRecord
from streams.ports import LogRecord, NewRecord, PartitionDump
from tests.doubles.dump import view_fold
from tests.flow.derive_kit import RULES, Sent, samples
from tests.simulation.broker import Broker
from tests.simulation.view_server import copy_of_documents
from tests.simulation.virtual_loop import START_MS, Scheduler

INPUTS = 400
SAMPLES = 6
"""How many different collections of sessions the inputs are taken from."""


class Message(NamedTuple):
    """A message, and how many of its partition's records are derived with it and all before."""

    record: NewRecord
    records_until: int


class Input(NamedTuple):
    """Messages in the order in which they are published; `ids` are their records, by partition."""

    partitions: int
    messages: tuple[Message, ...]
    by_partition: tuple[tuple[Message, ...], ...]
    ids: tuple[tuple[str, ...], ...]
    groups: tuple[tuple[NewRecord, ...], ...]


@lru_cache(maxsize=SAMPLES)
def _sessions(sample: int) -> list[list[Sent]]:
    """Return the sessions of a sample, without most of the messages that give no record."""
    sessions: dict[str, list[Sent]] = {}
    for sent in samples(sample + 1):
        sessions.setdefault(sent.session_id, []).append(sent)
    thin = []
    for session_id, lines in sessions.items():
        chance = random.Random(f"{sample} {session_id}")
        deriver, left = Deriver(RULES), []
        for sent in lines:
            gives = deriver.derive(InputMessage(sent.value, session_id)).records
            if gives or chance.random() < 0.05:
                left.append(sent)
        thin.append(left)
    return thin


@cache
def input_of(number: int) -> Input:
    """Return an input by its number."""
    chance = random.Random(f"input {number}")
    partitions = chance.choice([1, 1, 2, 2, 3])
    sessions = chance.sample(_sessions(chance.randrange(SAMPLES)), chance.randint(2, 4))
    queues = []
    most = chance.randint(9, 24)
    for lines in sessions:
        begin = chance.choice([0, 0, 0, chance.randrange(max(1, len(lines) - 8))])
        queues.append(lines[begin : begin + most // len(sessions) + 1])
    mixed = []
    while queues:
        queue = chance.choice(queues)
        count = chance.randint(1, 4)
        mixed += queue[:count]
        del queue[:count]
        queues = [each for each in queues if each]
    return _derived(chance, partitions, mixed)


def _derived(chance: random.Random, partitions: int, lines: Sequence[Sent]) -> Input:
    derivers = [Deriver(RULES) for _ in range(partitions)]
    ids: list[list[str]] = [[] for _ in range(partitions)]
    messages, records = [], list[tuple[int, Record]]()
    for session_id, value in lines:
        partition = partition_of(session_id, partitions)
        made = derivers[partition].derive(InputMessage(value, session_id)).records
        ids[partition] += [record.id for record in made]
        records += [(partition, record) for record in made]
        sent = NewRecord(AGENT_MESSAGES.name, partition, key_bytes(session_id), value)
        messages.append(Message(sent, len(ids[partition])))
    by_partition = tuple(
        tuple(each for each in messages if each.record.partition == partition)
        for partition in range(partitions)
    )
    groups = _groups(chance, records)
    return Input(partitions, tuple(messages), by_partition, tuple(map(tuple, ids)), groups)


def _groups(
    chance: random.Random, records: Sequence[tuple[int, Record]]
) -> tuple[tuple[NewRecord, ...], ...]:
    """Return the records as transactions, each of one partition."""
    groups: list[list[NewRecord]] = []
    logged_ms = START_MS
    last = -1
    for partition, record in records:
        if partition != last or chance.random() < 0.4:
            groups.append([])
            last = partition
        jumps = chance.random() < 0.04
        logged_ms += chance.choice([40, 95]) * DAY_MS if jumps else chance.randrange(2_000)
        headers, value = codec.to_binary(record)
        key = key_bytes(record.data.session_id)
        new = NewRecord(CONTEXT_EVENTS.name, partition, key, value, headers, logged_ms)
        groups[-1].append(new)
    return tuple(map(tuple, groups))


class ViewOracle:
    """What a partition's views must be at each position, folded once from its log's begin."""

    def __init__(self, begin: int = 0) -> None:
        self.begin = begin
        self._fold = view_fold()
        self._read: list[LogRecord] = []
        self._states = [copy_of_documents(self._fold.documents.held)]

    def at(self, records: Sequence[LogRecord], count: int) -> PartitionDump:
        """Return the documents after the first `count` of these records."""
        known = min(count, len(self._read))
        if known and (self._read[known - 1], self._read[0]) != (records[known - 1], records[0]):
            self.__init__(self.begin)  # type: ignore[misc]  # another log: begin anew
        for record in records[len(self._read) : count]:
            read = codec.from_binary(record.headers, record.value or b"")
            self._fold.add(LoggedRecord(record.offset, record.timestamp_ms, read))
            self._read.append(record)
            self._states.append(copy_of_documents(self._fold.documents.held))
        return self._states[count]


@lru_cache(maxsize=INPUTS * 3)
def prepared_oracle(_number: int, _partition: int) -> ViewOracle:
    """Return the oracle of a prepared log's partition, which all runs of that input share."""
    return ViewOracle()


def prepare(number: int) -> None:
    """Work out an input and its oracles, which are then the same for all runs."""
    given = input_of(number)
    broker = Broker(Scheduler(random.Random(0)), random.Random(0))
    broker.create_now(CONTEXT_EVENTS, given.partitions)
    for group in given.groups:
        broker.publish_transaction(group)
    for partition in range(given.partitions):
        records = broker.partition(CONTEXT_EVENTS.name, partition).read(0, 1_000_000).records
        prepared_oracle(number, partition).at(records, len(records))
