"""Exports of a topic: what is new each time, of the same log alone, through outages."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path

import duckdb
import pytest

from contextgauge.errors import ConfigError, RetryError, VersionError
from streams.codec import to_binary
from streams.edge.tables.folder import ArrowFolder
from streams.flow.common.unreadable import report_passed
from streams.flow.export.export import Export
from streams.flow.export.topic import SMALL_FILES, TopicSource, export_once, follow
from streams.ports import NewRecord
from tests.codec.test_records import records_of_every_kind
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import DeriveKit, HastyClock, samples, until
from tests.flow.export_kit import FailingFolder, committed_ids, exported_ids

RECORDS = records_of_every_kind()


class Exporting:
    """Exports of a kit's topic of records, each by a process of its own."""

    def __init__(self, kit: DeriveKit, place: Path, folder: ArrowFolder | None = None) -> None:
        self._kit, self._place = kit, place
        self.folder = folder or ArrowFolder(str(place), "parquet")
        self.lost: list[tuple[int, int]] = []
        self.failures: list[str] = []
        self.stop = asyncio.Event()
        self.source = TopicSource(
            log=kit.log,
            clock=HastyClock(),
            topic=kit.config.events_topic,
            stop=self.stop,
            passed=report_passed,
            lost=lambda partition, offsets: self.lost.append((partition, offsets)),
        )

    def opened(self) -> Export:
        """Return an export of the topic into the folder."""
        return Export(self.folder, "parquet", self.source.topic)

    async def run(self) -> int:
        """Export what is new; return how many rows."""
        with self.opened() as export:
            return await export_once(self.source, export)

    @asynccontextmanager
    async def followed(self, *, merge: bool = False) -> AsyncIterator[asyncio.Task[None]]:
        """Follow the topic while the context lasts; who expects an error awaits the task."""
        following = follow(
            self.source,
            self.opened,
            0.01,
            lambda _: None,
            lambda error, _: self.failures.append(str(error)),
            merge=merge,
        )
        task = asyncio.create_task(following)
        try:
            yield task
        finally:
            self.stop.set()
            if not task.done():
                await task

    async def until_exported(self) -> None:
        """Wait until the folder has all records of the topic."""
        wanted = await self.records()
        await until(lambda: committed_ids(self._place) == wanted)

    async def end(self, partition: int) -> int:
        """Return where a partition ends."""
        reader = self._kit.log.reader(self._kit.config.events_topic, [partition])
        await reader.start()
        try:
            return (await reader.bounds(partition))[1]
        finally:
            await reader.stop()

    async def records(self) -> list[str]:
        """Return the ids of all records in the topic."""
        return sorted(record.id for part in await self._kit.events() for record in part)


async def derived(kit: DeriveKit, seed: int) -> None:
    await kit.publish(samples(seed))
    await kit.run_until_caught_up()


@pytest.mark.extended
async def test_each_run_adds_what_is_new(kit: DeriveKit, tmp_path: Path) -> None:
    exporting = Exporting(kit, tmp_path)
    await derived(kit, 1)
    first = await exporting.run()
    assert first == len(await exporting.records()) > 0
    assert await exporting.run() == 0
    await derived(kit, 2)
    assert await exporting.run() > 0
    assert sorted(exported_ids(tmp_path)) == await exporting.records()
    places = duckdb.connect().execute(
        "SELECT DISTINCT topic_partition, topic_offset FROM read_parquet(?)",
        [f"{tmp_path}/kind=*/*/*.parquet"],
    )
    assert len(places.fetchall()) == len(await exporting.records())


async def test_what_retention_deleted_before_it_was_exported_is_reported(
    kit: DeriveKit, log: FaultyLog, tmp_path: Path
) -> None:
    exporting = Exporting(kit, tmp_path)
    await derived(kit, 1)
    await exporting.run()
    known = await exporting.records()
    ends = {each: await exporting.end(each) for each in range(kit.partitions)}
    await derived(kit, 2)
    partition = max(ends, key=lambda each: ends[each])
    log.delete_before(kit.config.events_topic, partition, ends[partition] + 2)
    await exporting.run()
    assert exporting.lost == [(partition, 2)]
    assert set(known) < set(exported_ids(tmp_path))


@pytest.mark.parametrize("loss", ["another topic", "a shorter log", "fewer partitions"])
async def test_another_log_is_refused(
    kit: DeriveKit, log: FaultyLog, tmp_path: Path, loss: str
) -> None:
    exporting = Exporting(kit, tmp_path)
    await derived(kit, 1)
    await exporting.run()
    if loss == "another topic":
        log.create_again(kit.config.events_topic)
    elif loss == "fewer partitions":
        log.delete_topic(kit.config.events_topic)
        await log.create_topics(kit.topics, 1)
    else:
        for partition in range(kit.partitions):
            log.truncate(kit.config.events_topic, partition, 1)
    with pytest.raises(ConfigError, match="is not the log that this folder has an export"):
        await exporting.run()


async def test_a_record_of_a_later_version_ends_the_export_before_it(
    kit: DeriveKit, tmp_path: Path
) -> None:
    exporting = Exporting(kit, tmp_path)
    await derived(kit, 1)
    await exporting.run()
    before = exported_ids(tmp_path)
    headers, value = to_binary(RECORDS[0])
    later = tuple((n, b"contextgauge.later.v9" if n == "ce_type" else v) for n, v in headers)
    await kit.append([NewRecord(kit.config.events_topic, 0, b"s", value, later)])
    with pytest.raises(VersionError, match="upgrade contextgauge"):
        await exporting.run()
    assert exported_ids(tmp_path) == before


def files_in(folder: Path) -> int:
    """Return how many files of tables there are."""
    return len(list(folder.glob("kind=*/*/*")))


def appended(kit: DeriveKit, partition: int, number: int) -> NewRecord:
    """Return a record for the topic."""
    headers, value = to_binary(RECORDS[number])
    return NewRecord(kit.config.events_topic, partition, b"s", value, headers)


async def test_partitions_that_are_added_while_it_follows_are_exported(
    kit: DeriveKit, log: FaultyLog, tmp_path: Path
) -> None:
    exporting = Exporting(kit, tmp_path)
    async with exporting.followed():
        await kit.append([appended(kit, 0, 0)])
        await until(lambda: len(committed_ids(tmp_path)) == 1)
        log.add_partitions(kit.config.events_topic, kit.partitions + 1)
        await kit.append([appended(kit, kit.partitions, 1)])
        await until(lambda: len(committed_ids(tmp_path)) == 2)
    assert committed_ids(tmp_path) == sorted(record.id for record in RECORDS[:2])


async def test_a_topic_that_is_created_again_while_it_follows_ends_the_export(
    kit: DeriveKit, log: FaultyLog, tmp_path: Path
) -> None:
    exporting = Exporting(kit, tmp_path)
    await kit.append([appended(kit, 0, 0), appended(kit, 0, 1)])
    async with exporting.followed() as following:
        await until(lambda: len(committed_ids(tmp_path)) == 2)
        log.create_again(kit.config.events_topic)
        await kit.append([appended(kit, 0, each) for each in (2, 3, 4)])
        with pytest.raises(ConfigError, match="is not the log that this folder has an export"):
            await following
    assert committed_ids(tmp_path) == sorted(record.id for record in RECORDS[:2])


async def test_what_happens_to_the_log_while_it_is_read_is_noticed(
    kit: DeriveKit, log: FaultyLog, tmp_path: Path
) -> None:
    topic = kit.config.events_topic
    exporting = Exporting(kit, tmp_path)
    await kit.append([appended(kit, each // 3, each) for each in range(6)])
    seen: list[tuple[int, int]] = []

    def retention(read: int, of: int) -> None:
        if not seen:
            log.delete_before(topic, 1, 2)
        seen.append((read, of))

    exporting.source.progress = lambda: nullcontext(retention)
    await exporting.run()
    assert (exporting.lost, seen[-1]) == ([(1, 2)], (6, 6))
    before = committed_ids(tmp_path)
    assert len(before) == 4

    def recreation(_read: int, _of: int) -> None:
        log.create_again(topic)

    await kit.append([appended(kit, 0, 6)])
    exporting.source.progress = lambda: nullcontext(recreation)
    with pytest.raises(ConfigError, match="it was created again"):
        await exporting.run()
    assert committed_ids(tmp_path) == before


async def test_a_broker_that_is_away_for_a_moment_is_asked_again(
    kit: DeriveKit, log: FaultyLog, tmp_path: Path
) -> None:
    exporting = Exporting(kit, tmp_path)
    await kit.append([appended(kit, 0, 0)])
    async with exporting.followed():
        await until(lambda: len(committed_ids(tmp_path)) == 1)
        log.away = True
        await until(lambda: len(exporting.failures) > 2)
        log.away = False
        await kit.append([appended(kit, 1, 1)])
        await until(lambda: len(committed_ids(tmp_path)) == 2)
    assert set(exporting.failures) == {"the broker in memory is away"}


@pytest.mark.extended
async def test_a_store_that_is_away_at_any_step_gets_each_record_once(
    kit: DeriveKit, tmp_path: Path
) -> None:
    await kit.append([appended(kit, each % 2, each) for each in range(4)])
    steps = FailingFolder(str(tmp_path / "whole"), "parquet")
    await Exporting(kit, tmp_path / "whole", steps).run()
    assert steps.steps > 8
    wanted = sorted(record.id for record in RECORDS[:4])

    def has_all(place: Path) -> bool:
        return sorted(exported_ids(place)) == wanted

    for fails_at in range(steps.steps):
        place = tmp_path / str(fails_at)
        folder = FailingFolder(str(place), "parquet", fails_at, RetryError("the store is away"))
        exporting = Exporting(kit, place, folder)
        async with exporting.followed():
            await until(partial(len, exporting.failures))
            await until(partial(has_all, place))
        assert exporting.failures == ["the store is away"]
        assert sorted(exported_ids(place)) == committed_ids(place) == wanted


@pytest.mark.extended
async def test_small_files_are_merged_while_it_follows(kit: DeriveKit, tmp_path: Path) -> None:
    exporting = Exporting(kit, tmp_path)
    counts = set()
    async with exporting.followed(merge=True):
        for _ in range(SMALL_FILES + 3):
            await kit.append([appended(kit, 0, 0)])
            await exporting.until_exported()
            counts.add(files_in(tmp_path))
    assert SMALL_FILES <= max(counts) <= SMALL_FILES + 1
    assert files_in(tmp_path) == 1
    assert len(exported_ids(tmp_path)) == SMALL_FILES + 3
