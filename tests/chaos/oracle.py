"""What must come out: the records of the messages that are on the topic, worked out again.

It reads `agent.messages` as it grows, with one deriver of its own, directly from the brokers.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from schemas.records import Record
from streams import codec
from streams.edge.redis.view_store import RedisViews
from streams.flow.common.unreadable import poll_past
from streams.flow.derive.deriver import Deriver, input_message
from streams.flow.project.fold import LoggedRecord
from streams.ports import LogRecord, UnreadableBatch, started
from tests.doubles.dump import dump, fold_views
from tests.flow.derive_kit import RULES, DeriveKit, until

_POLLED: Final = 2_000


class ViolationError(AssertionError):
    """Something is missing, doubled, out of order or wrong, or did not come in time."""


class Oracle:
    """The expected records of each partition, and how many dead letters."""

    def __init__(self, kit: DeriveKit) -> None:
        self._kit = kit
        self._begin()

    def _begin(self) -> None:
        self._deriver = Deriver(RULES)
        self.records: list[list[Record]] = [[] for _ in range(self._kit.partitions)]
        self.values: list[bytes] = []
        self.dead = 0
        self._positions: dict[int, int] = {}

    def forget(self) -> None:
        """Begin from the beginning of the topic, as it is now."""
        self._begin()

    async def update(self) -> None:
        """Derive what has come to the topic since."""
        topic = self._kit.config.messages_topic
        async with started(self._kit.log.reader(topic, range(self._kit.partitions))) as reader:
            for partition in range(self._kit.partitions):
                begin, end = await reader.bounds(partition)
                position = self._positions.get(partition, begin)
                reader.seek(partition, position)
                while position < end:
                    batch = await poll_past(reader, partition, _POLLED, 0.1, self._pass)
                    position = batch.position
                    self._take(partition, batch.records)
                self._positions[partition] = position

    def _pass(self, _: UnreadableBatch) -> None:
        self.dead += 1

    def _take(self, partition: int, messages: Sequence[LogRecord]) -> None:
        for message in messages:
            derived = self._deriver.derive(input_message(message))
            self.records[partition] += derived.records
            self.values.append(message.value or b"")
            self.dead += derived.dead is not None

    async def last_ids_are_in(self, views: RedisViews) -> bool:
        """Return whether the active generation has the last record of each partition."""
        active = (await views.generations()).active
        if active is None:
            return False
        for partition, records in enumerate(self.records):
            if not records:
                continue
            position = await views.position(active, partition)
            if position is None or position.log.digest != records[-1].id:
                return False
        return True


async def read_records(kit: DeriveKit) -> list[list[LoggedRecord]]:
    """Return the derived records at their places, by partition."""
    return [
        [
            LoggedRecord(r.offset, r.timestamp_ms, codec.from_binary(r.headers, r.value or b""))
            for r in await kit.read(kit.config.events_topic, partition)
        ]
        for partition in range(kit.partitions)
    ]


async def until_projected(kit: DeriveKit, views: RedisViews) -> None:
    """Wait until the active generation holds all that is on the topic."""
    async with started(kit.log.reader(kit.config.events_topic, range(kit.partitions))) as reader:
        ends = [(await reader.bounds(partition))[1] for partition in range(kit.partitions)]

    async def done() -> bool:
        active = (await views.generations()).active
        if active is None:
            return False
        positions = [await views.position(active, p) for p in range(kit.partitions)]
        return all(
            position is not None and position.offset >= end
            for position, end in zip(positions, ends, strict=True)
        )

    await until(done)


def compare_records(
    placed: Sequence[Sequence[LoggedRecord]], right: Sequence[Sequence[Record]], *, to_end: bool
) -> list[str]:
    """Return what is missing, doubled, unasked for, out of order or different.

    `to_end`: of each partition only the last records are still there.
    """
    problems: list[str] = []
    for partition, (part, expected) in enumerate(zip(placed, right, strict=True)):
        records = [item.record for item in part]
        wanted = list(expected)[len(expected) - len(records) :] if to_end else list(expected)
        if records == wanted:
            continue
        counts = Counter(record.id for record in records)
        ids = {record.id for record in wanted}
        kinds = {
            "missing": len(ids - set(counts)),
            "doubled": sum(count - 1 for count in counts.values()),
            "unexpected": len(set(counts) - ids),
        }
        if not any(kinds.values()):
            in_order = [record.id for record in records] == [record.id for record in wanted]
            kinds = {"different": 1} if in_order else {"out of order": 1}
        listed = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
        problems.append(f"records of partition {partition}: {listed} (of {len(wanted)})")
    return problems


async def compare_views(placed: Sequence[Sequence[LoggedRecord]], views: RedisViews) -> list[str]:
    """Return which partitions' views are not the fold of the records."""
    active = (await views.generations()).active
    if active is None:
        return ["no generation of views is active"]
    problems = []
    for partition, part in enumerate(placed):
        held, right = await dump(views, active, partition), fold_views(part)
        if held != right:
            names = [
                name for name, value in right._asdict().items() if getattr(held, name) != value
            ]
            problems.append(f"views of partition {partition}: {', '.join(names)}")
    return problems
