"""What running workers note of their health, lag and age."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from streams.flow.derive.state_store import ChangelogChunk, StateStore
from streams.flow.derive.worker import run_derive
from streams.flow.project import view_write
from streams.ports import Health, LogRecord, ViewChanges
from tests.doubles.headers import by_name
from tests.doubles.log import FaultyLog
from tests.doubles.view_store import FaultyViews
from tests.flow.derive_kit import DeriveKit, Figures, samples, until
from tests.flow.project_kit import ProjectKit, sample_records


class SlowStore(StateStore):
    """A changelog that is read back only as far as it is let."""

    def __init__(self, log: FaultyLog, topic: str) -> None:
        super().__init__(log, topic)
        self.go_on = asyncio.Event()

    async def restore(self, partition: int) -> AsyncGenerator[ChangelogChunk, None]:
        async for entries in super().restore(partition):
            yield entries
            await self.go_on.wait()


class AheadClock(SystemClock):
    """A clock that a test moves on."""

    ahead_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.ahead_s


def _kit() -> DeriveKit:
    return DeriveKit(FaultyLog(SystemClock()), "health-", SystemClock())


async def test_a_worker_is_not_ready_until_it_has_restored() -> None:
    kit = _kit()
    await kit.create_topics()
    await kit.publish(samples())
    await kit.run_until_caught_up()
    assert isinstance(kit.log, FaultyLog)
    store = SlowStore(kit.log, kit.config.state_topic)
    stop = asyncio.Event()
    ports = replace(kit.ports(kit.config, Figures(), stop), state_store=store)
    worker = asyncio.create_task(run_derive(ports))

    def restoring() -> bool:
        answer = kit.health.ready().document["partitions"]
        assert isinstance(answer, dict)
        notes = [note for note in answer.values() if isinstance(note, dict)]
        return len(notes) == kit.partitions and all(note.get("done") for note in notes)

    await until(restoring)
    answer = kit.health.ready()
    assert not answer.ok
    assert answer.document["reasons"] == [f"partition {p} is restoring" for p in range(4)]
    assert len(kit.health.doing()) == kit.partitions
    assert kit.health.live().ok
    store.go_on.set()
    await until(lambda: kit.health.ready().ok)
    stop.set()
    await worker
    assert kit.health.ready().document["partitions"] == {}


async def test_a_standby_worker_is_ready() -> None:
    kit = _kit()
    kit.partitions = 1
    await kit.create_topics()
    async with kit.running():
        await until(lambda: kit.health.ready().ok)
        first, kit.health = kit.health, Health("second", SystemClock(), 60.0)
        async with kit.running():
            await until(lambda: kit.health.ready().ok and first.ready().ok)
            shares = [board.ready().document["partitions"] for board in (first, kit.health)]
            assert {} in shares
            assert shares != [{}, {}]


async def test_a_poll_that_never_ends_is_not_live() -> None:
    clock = AheadClock()
    kit = _kit()
    kit.health = Health("derive", clock, 60.0)
    kit.config = replace(kit.config, poll_timeout_s=3_600.0, revoke_timeout_s=0.1)
    await kit.create_topics()
    async with kit.running():
        await until(lambda: "poll of partition 0" in kit.health.doing())
        assert kit.health.live().ok
        clock.ahead_s = 3_600.0
        assert kit.health.live().ok, "a poll has its own time"
        clock.ahead_s = 3_700.0
        kit.health.beat()
        answer = kit.health.live()
        assert not answer.ok
        assert "poll of partition 0 has not ended" in str(answer.document["reasons"])


async def test_a_slow_batch_that_makes_progress_is_live(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one of thousands of large documents does, in a Redis that is slow."""
    monkeypatch.setattr(view_write, "MAX_DOCUMENTS", 20)
    clock, lives = AheadClock(), list[bool]()

    class SlowViews(FaultyViews):
        def before_write(self, changes: ViewChanges) -> None:
            del changes
            clock.ahead_s += 50.0
            kit.health.beat()
            # The other partitions' polls stand still with the clock, which tells nothing here.
            lives.append("write of" not in str(kit.health.live().document["reasons"]))

    kit = ProjectKit(FaultyLog(SystemClock()), SlowViews())
    kit.health = Health("project", clock, 60.0)
    await kit.create_topic()
    records = [record for part in sample_records() for record in part]
    # All of one partition, so that no other one writes meanwhile.
    name = records[0].data.session_id
    await kit.append([record for record in records if record.data.session_id == name])
    async with kit.running() as worker:
        await kit.caught_up(worker)
    assert len(lives) > 10
    assert all(lives)


async def test_a_worker_with_an_unavailable_log_is_live_and_not_ready() -> None:
    kit = _kit()
    await kit.create_topics()
    assert isinstance(kit.log, FaultyLog)
    kit.log.away = True
    async with kit.running() as worker:
        await until(lambda: worker.figures.counts["worker_retries", "kafka"] > 0)
        answer = kit.health.ready()
        assert (answer.ok, answer.document["phase"]) == (False, "waiting")
        assert "the broker in memory is away" in str(answer.document["reasons"])
        assert kit.health.live().ok
        kit.log.away = False
        await until(lambda: kit.health.ready().ok)


async def test_a_worker_with_an_unavailable_store_is_live_and_not_ready() -> None:
    store = FaultyViews()
    kit = ProjectKit(FaultyLog(SystemClock()), store)
    await kit.create_topic()
    async with kit.running() as worker:
        await until(lambda: kit.health.ready().ok)
        store.away = True
        await until(lambda: worker.figures.counts["worker_retries", "redis"] > 0)
        await until(lambda: not kit.health.ready().ok)
        assert "redis is away" in str(kit.health.ready().document["reasons"])
        assert kit.health.live().ok
        store.away = False
        await until(lambda: kit.health.ready().ok)
        assert worker.figures.gauges["project_generation_active",] == 1


async def test_the_lag_is_reported_and_removed_when_the_worker_stops() -> None:
    kit = _kit()
    await kit.create_topics()
    await kit.publish(samples())
    async with kit.running() as worker:
        await kit.caught_up(worker)
        assert ("worker_fenced", "0") in worker.figures.counts, "alarms see a rise from 0 only"
        assert ("derive_dead_letters", "misrouted") in worker.figures.counts
        assert ("derive_records", "compaction_failed") in worker.figures.counts
        gauges = worker.figures.gauges
        await until(lambda: all(gauges.get(("derive_lag_messages", str(p))) == 0 for p in range(4)))
        assert all(gauges["derive_lag_seconds", str(p)] == 0 for p in range(4))
    assert not [name for name, *_ in gauges if "lag" in name]


async def test_a_worker_reports_the_state_of_idle_partitions_it_takes_over() -> None:
    kit = _kit()
    await kit.create_topics()
    await kit.publish(samples())
    seen: list[dict[str, float]] = []
    for _ in range(2):
        kit.health = Health("derive", SystemClock(), 60.0)
        async with kit.running() as worker:
            await kit.caught_up(worker)
            await until(lambda: kit.health.ready().ok)
            gauges = worker.figures.gauges
            names = ("derive_sessions", "derive_position")
            seen.append({name: sum(gauges[name, str(p)] for p in range(4)) for name in names})
    assert seen[0] == seen[1]
    assert min(seen[0].values()) > 0


async def test_records_behind_an_open_transaction_count_as_unsettled() -> None:
    log = FaultyLog(SystemClock())
    kit = ProjectKit(log, FaultyViews())
    await kit.create_topic()
    records = [record for part in sample_records() for record in part]
    async with kit.running() as worker:
        await kit.append(records[:40])
        await kit.caught_up(worker)
        log.cut_commits = 1
        with pytest.raises(RetryError, match="cut"):
            await kit.append(records[40:80])
        gauges = worker.figures.gauges

        def is_reported() -> bool:
            unsettled = [gauges.get(("project_unsettled_records", str(p))) for p in range(4)]
            lags = [gauges.get(("project_lag_records", str(p))) for p in range(4)]
            ages = [gauges.get(("project_lag_seconds", str(p)), 0.0) > 0 for p in range(4)]
            return any(unsettled) and unsettled == lags and ages == list(map(bool, unsettled))

        await until(is_reported)


async def test_the_age_of_a_views_source_message_is_reported() -> None:
    """The deriver passes the message's Kafka time on; the projector takes it from there."""

    class Late(SystemClock):
        def now_ms(self) -> int:
            return super().now_ms() + 5_000

    kit = _kit()
    await kit.create_topics()
    await kit.publish(samples())
    await kit.run_until_caught_up()
    sources: dict[int, list[LogRecord]] = {
        p: await kit.read(kit.config.messages_topic, p) for p in range(4)
    }
    for partition, messages in sources.items():
        times = {record.offset: record.timestamp_ms for record in messages}
        for record in await kit.read(kit.config.events_topic, partition):
            headers = by_name(record.headers)
            assert int(headers["src_timestamp"]) == times[int(headers["src_offset"])]
    project = ProjectKit(kit.log, FaultyViews(), clock=Late())
    project.config = replace(project.config, events_topic=kit.config.events_topic)
    async with project.running() as worker:
        await until(lambda: project.health.ready().ok)
        assert worker.figures.observed["project_age_seconds"] == [], "a build is nobody's age"
        async with kit.running() as deriving:
            await kit.publish(samples(seed=7))
            await kit.caught_up(deriving)
        await until(lambda: worker.figures.observed["project_age_seconds"])
        assert min(worker.figures.observed["project_age_seconds"]) >= 5
