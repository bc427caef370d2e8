"""The broker of a simulation: the log in memory, with what a real one has around it.

A transaction is written and ended by separate requests; its coordinator knows the epoch of each
transactional id, refuses older ones, aborts what takes too long, and writes the markers of each
partition when it gets to it: until then readers wait there, and so does the next transaction of
that id. `Broker` is the server; what processes use is in `broker_clients`.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from contextgauge.errors import ConfigError, FencedError, PositionError, RetryError
from schemas.topics import Topic
from streams.edge.memory.partition import Fate, MemoryTopicPartition, Transaction
from streams.ports import Batch, Ends, LogRecord, NewRecord, UnreadableBatchError
from tests.doubles.log import FaultyLog
from tests.simulation.process import Answer, Wire
from tests.simulation.virtual_loop import Scheduler, VirtualClock

TRANSACTION_S = 10.0
"""The product's default: an open transaction is aborted after so long."""

Target = tuple[str, int]


class Request(NamedTuple):
    """A request to write: its producer's epoch, its transaction there, and its place in that."""

    epoch: int
    number: int
    place: int


class TransactionalId:
    """What the coordinator knows of a transactional id."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.epoch = 0
        self.parts: dict[Target, Transaction] = {}
        """The open transaction: its part in each partition."""
        self.markers = 0
        """Markers of the last transaction that are still to be written."""
        self.waiting: list[Callable[[], None]] = []
        self.timer: Any = None
        self.written = Request(0, 0, 0)
        """What was written last."""
        self.places: dict[Request, dict[Target, tuple[int, int]]] = {}
        self.writer = ""


class Parked:
    """A fetch that waits for records."""

    __slots__ = ("answer", "most", "offset", "until_s")

    def __init__(self, offset: int, most: int, answer: Answer, until_s: float) -> None:
        self.offset, self.most, self.answer, self.until_s = offset, most, answer, until_s


class Broker(FaultyLog):
    """The server: what arrives here takes effect at once."""

    def __init__(self, scheduler: Scheduler, chance: random.Random) -> None:
        super().__init__(VirtualClock())
        self.scheduler, self._chance = scheduler, chance
        self.wire = Wire(scheduler, "the broker")
        self.ids: dict[str, TransactionalId] = {}
        self.on_committed: Callable[[TransactionalId, dict[Target, Transaction]], None] = (
            lambda _id, _parts: None
        )
        self.on_misuse: Callable[[str], None] = lambda _what: None
        self.marker_delay_s = 0.0
        self.stale_until_s = 0.0
        self._stale_ids: Mapping[str, UUID] = {}
        self.recreated: dict[str, int] = {}
        """How often each topic was recreated."""
        self._parked: dict[Target, list[Parked]] = {}
        self._moving: dict[Target, float] = {}
        self._sequences: dict[tuple[str, str, int], int] = {}

    # Topics and partitions

    def create_now(self, topic: Topic, partitions: int) -> None:
        """Create a topic, before anyone looks."""
        limit = topic.max_message_bytes
        self._topics[topic.name] = [MemoryTopicPartition(limit) for _ in range(partitions)]
        self._name(topic.name)

    def _name(self, topic: str) -> None:
        """Give a topic that was created its id."""
        self._created += 1
        self._ids[topic] = UUID(int=self._created)

    def ids_of(self, names: Sequence[str]) -> dict[str, UUID | None]:
        """Return the ids of topics, as the metadata of this broker has them."""
        is_stale = self.scheduler.now_s < self.stale_until_s
        ids = self._stale_ids if is_stale else self._ids
        return {name: ids.get(name) for name in names}

    def stop_learning(self, until_s: float, *, knows_topics: bool) -> None:
        """Have the metadata of the broker that is asked lag behind; of new ones it is empty."""
        self.stale_until_s = until_s
        self._stale_ids = dict(self._ids) if knows_topics else {}

    def recreate(self, topic: str) -> None:
        """Delete a topic, and create it again at once."""
        former = self._topics[topic]
        self._topics[topic] = [MemoryTopicPartition(each.max_message_bytes) for each in former]
        self._name(topic)
        self.recreated[topic] = self.recreated.get(topic, 0) + 1
        self._forget_open(former)
        for partition in range(len(former)):
            self.wake((topic, partition))

    def truncate(self, topic: str, partition: int, end: int) -> None:
        """Lose the log's tail, as where a replica that was behind became the leader."""
        log = self.partition(topic, partition)
        del log.entries[end:]
        log._stable = min(log._stable, end)  # noqa: SLF001 -- no broker offers this
        log.first = min(log.first, end)

    def _forget_open(self, former: Sequence[MemoryTopicPartition]) -> None:
        for each in self.ids.values():
            for target, part in list(each.parts.items()):
                if any(part.partitions[0] is log for log in former):
                    del each.parts[target]

    def move_leader(self, target: Target, seconds: float) -> None:
        """Have a partition without a leader for a while."""
        self._moving[target] = self.scheduler.now_s + seconds

    def moves_for_s(self, targets: Sequence[Target]) -> float:
        """Return for how long no leader answers for some partitions."""
        if not self._moving:
            return 0.0
        return max(self._moving.get(each, 0.0) for each in targets) - self.scheduler.now_s

    def counts(self, names: Sequence[str]) -> dict[str, int | None]:
        """Return the numbers of partitions, as the metadata of this broker has them."""
        is_stale = self.scheduler.now_s < self.stale_until_s
        known = self._stale_ids if is_stale else self._topics
        return {name: len(self._topics[name]) if name in known else None for name in names}

    # Reading

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        log = self.partition(topic, partition)
        return log.first, log.stable_end()

    def ends(self, target: Target) -> Ends | None:
        """Return where a partition ends; None where there is none such."""
        if target[1] >= len(self._topics.get(target[0], ())):
            return None
        log = self.partition(*target)
        return Ends(log.stable_end(), log.next_offset)

    def fetch(self, target: Target, offset: int, most: int, until_s: float, answer: Answer) -> None:
        """Answer with records, and where the partition ends, once there are any."""
        moving_s = self.moves_for_s((target,))
        if moving_s > 0:
            self.scheduler.after(moving_s, self.fetch, target, offset, most, until_s, answer)
            return
        fetch = Parked(offset, most, answer, until_s)
        if not self._serve(target, fetch):
            self._parked.setdefault(target, []).append(fetch)

    def _serve(self, target: Target, fetch: Parked) -> bool:
        try:
            log = self.partition(*target)
            batch = log.read(fetch.offset, fetch.most)
        except ConfigError:
            return False
        except (PositionError, UnreadableBatchError) as error:
            fetch.answer(error)
            return True
        if batch.position == fetch.offset:
            return False
        fetch.answer((batch, Ends(log.stable_end(), log.next_offset)))
        return True

    def wake(self, target: Target) -> None:
        """Look whether fetches that wait can be answered."""
        waiting = self._parked.get(target)
        if waiting:
            now_s = self.scheduler.now_s
            self._parked[target] = [
                fetch
                for fetch in waiting
                if fetch.until_s >= now_s and not self._serve(target, fetch)
            ]

    # Writing

    def add(
        self, records: Sequence[NewRecord], parts: dict[Target, Transaction] | None, now_ms: int
    ) -> dict[Target, tuple[int, int]]:
        """Append records; return each partition's first offset and the one after the last."""
        places: dict[Target, tuple[int, int]] = {}
        for record in records:
            target = record.topic, record.partition
            log = self.partition(*target)
            part = None
            if parts is not None:
                part = parts.get(target)
                if part is None:
                    part = parts[target] = Transaction()
                    part.partitions.append(log)
            offset = log.next_offset
            time_ms = now_ms if record.timestamp_ms is None else record.timestamp_ms
            entry = LogRecord(offset, time_ms, record.key, record.value, tuple(record.headers))
            log.append(entry, part)
            places[target] = (places.get(target, (offset, 0))[0], offset + 1)
        return places

    def publish(
        self, records: Sequence[NewRecord], now_ms: int = -1, sender: tuple[str, int] | None = None
    ) -> None:
        """Append records outside of transactions; the same ones of a sender only once."""
        if now_ms < 0:
            now_ms = self.scheduler.now_ms()
        if sender is not None:
            key = (sender[0], records[0].topic, records[0].partition)
            if self._sequences.get(key, -1) >= sender[1]:
                return
            self._sequences[key] = sender[1]
        for target in self.add(records, None, now_ms):
            self.wake(target)

    def publish_transaction(self, records: Sequence[NewRecord]) -> None:
        """Append a prepared transaction, already committed."""
        parts: dict[Target, Transaction] = {}
        for target in self.add(records, parts, 0):
            parts[target].end("committed")
            self.wake(target)

    def init(self, name: str, writer: str, answer: Answer) -> None:
        """Give out the next epoch of an id, once its last transaction is settled."""
        state = self.ids.setdefault(name, TransactionalId(name))
        if state.markers:
            state.waiting.append(lambda: self.init(name, writer, answer))
            return
        state.epoch += 1
        state.writer = writer
        epoch = state.epoch
        self._settle(state, "aborted", lambda: answer(epoch))

    def produce(
        self,
        name: str,
        request: Request,
        records: Sequence[NewRecord],
        now_ms: int,
        answer: Answer,
    ) -> None:
        """Write the next records of an id's transaction of a number, which begins with the first.

        What is repeated is written once, and one that was decided about takes nothing more.
        """
        state = self.ids[name]
        again = (name, request, records, now_ms, answer)
        if state.epoch != request.epoch:
            answer(_fenced(name))
            return
        if state.markers:
            state.waiting.append(lambda: self.produce(*again))
            return
        targets = [(record.topic, record.partition) for record in records]
        moving_s = self.moves_for_s(targets)
        if moving_s > 0:
            self.scheduler.after(moving_s, self.produce, *again)
            return
        if request <= state.written:
            answer(state.places.get(request, RetryError("a repeated request is too old")))
            return
        try:
            for record in records:
                self.check_size(record)
            if not state.parts:
                state.timer = self.scheduler.after(
                    TRANSACTION_S, self.time_out, name, request.epoch
                )
            places = self.add(records, state.parts, now_ms)
        except ConfigError as error:
            answer(error if self._has_all(targets) else RetryError(str(error)))
            return
        state.written, state.places = request, {request: places}
        answer(places)

    def _has_all(self, targets: Sequence[Target]) -> bool:
        return all(topic in self._topics for topic, _ in targets)

    def time_out(self, name: str, epoch: int | None = None) -> None:
        """Abort an open transaction that took too long, and fence its producer."""
        state = self.ids.get(name)
        if state is None or not state.parts or epoch not in (None, state.epoch):
            return
        state.epoch += 1
        self._settle(state, "aborted", lambda: None)

    def end(self, name: str, epoch: int, number: int, fate: Fate, answer: Answer) -> None:
        """Decide about the open transaction of a number, once; the markers follow."""
        state = self.ids[name]
        if state.epoch != epoch:
            answer(_fenced(name))
            return
        if state.written[:2] != (epoch, number):
            answer(RetryError("another transaction is open"))
            return
        self._settle(state, fate, lambda: None)
        answer(None)

    def _settle(self, state: TransactionalId, fate: Fate, then: Callable[[], None]) -> None:
        """Write the markers of the open transaction, each when its partition gets to it."""
        parts, state.parts = state.parts, {}
        if state.timer is not None:
            state.timer.cancel()
            state.timer = None
        if not parts:
            then()
            return
        state.waiting.append(then)
        state.markers = len(parts)
        left = dict(parts)
        for target, part in parts.items():
            delay_s = 0.0
            if self.marker_delay_s and self._chance.random() < 0.5:
                delay_s = self._chance.random() * self.marker_delay_s
            if delay_s:
                self.scheduler.after(delay_s, self._mark, state, left, target, part, fate)
            else:
                self._mark(state, left, target, part, fate)

    def _mark(
        self,
        state: TransactionalId,
        left: dict[Target, Transaction],
        target: Target,
        part: Transaction,
        fate: Fate,
    ) -> None:
        part.end(fate)
        self.wake(target)
        state.markers -= 1
        if state.markers:
            return
        if fate == "committed":
            self.on_committed(state, left)
        waiting, state.waiting = state.waiting, []
        for go_on in waiting:
            go_on()


def _fenced(name: str) -> FencedError:
    return FencedError(f"another producer took the transactional id {name} over")


def empty(position: int) -> Batch:
    """Return the result of a poll that found nothing."""
    return Batch((), position)
