"""Some cheap faults on one broker and a Redis of the test's own; `make chaos` does them all.

`CHAOS_SEED` chooses another course of events.
"""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from streams.edge.local_stack.stack import LocalStack
from streams.flow.project.fold import LoggedRecord
from streams.ports import NewRecord
from tests.chaos.faults import FAULTS
from tests.chaos.oracle import compare_records
from tests.chaos.rounds import chosen, run_round
from tests.chaos.services import Services
from tests.chaos.world import World
from tests.conftest import require
from tests.flow.derive_kit import expected, samples

SEED = int(os.environ.get("CHAOS_SEED", "1"))


@pytest.fixture
async def services(kafka: str, tmp_path: Path) -> AsyncIterator[Services]:
    require(lambda: str(LocalStack(tmp_path).prepare(["redis"])))
    services = Services(tmp_path, kafka)
    await services.start()
    yield services
    services.stop()


@pytest.mark.parametrize(
    "name",
    [
        "derive worker killed",
        pytest.param("project worker paused", marks=pytest.mark.extended),
        pytest.param("Redis emptied", marks=pytest.mark.extended),
    ],
)
async def test_nothing_is_missing_doubled_or_out_of_order(services: Services, name: str) -> None:
    outcome = await run_round(services, FAULTS[name], SEED, print)
    assert outcome.violations == []
    assert outcome.messages > 0


@pytest.mark.extended
async def test_a_doubled_record_a_lost_view_and_a_lost_message_are_violations(
    services: Services, tmp_path: Path
) -> None:
    world = World(services, SEED, "violations", tmp_path)
    try:
        await world.begin()
        await world.stop_publishing()
        await world.arrived()
        await world.fleet.end()
        partition = max(range(world.kit.partitions), key=lambda p: len(world.oracle.records[p]))
        *_, last = await world.kit.read(world.kit.config.events_topic, partition)
        again = (world.kit.config.events_topic, partition, last.key, last.value, last.headers)
        await world.kit.append([NewRecord(*again)])
        async with services.redis() as redis:
            keys = [key async for key in redis.scan_iter(match=f"{world.key_prefix}:*:s:*")]
            await redis.unlink(keys[0])
        world.sent.append(("a session", b"never sent"))
        problems = await world.check()
    finally:
        await world.close()
    assert any("1 doubled" in problem for problem in problems)
    assert any("views" in problem for problem in problems)
    assert "1 acknowledged messages are not on the topic" in problems


def test_what_differs_is_named() -> None:
    right = [record for part in expected(samples()) for record in part][:4]
    for records, named in (
        (right, []),
        (right[1:], ["1 missing"]),
        ([*right, right[-1]], ["1 doubled"]),
        ([right[1], right[0], *right[2:]], ["1 out of order"]),
        ([replace(right[0], time_ms=1), *right[1:]], ["1 different"]),
    ):
        placed = [[LoggedRecord(offset, None, record) for offset, record in enumerate(records)]]
        wanted = [f"records of partition 0: {kind} (of 4)" for kind in named]
        assert compare_records(placed, [right], to_end=False) == wanted


def test_faults_are_chosen_by_name_group_and_part() -> None:
    assert [fault.name for fault in chosen("Redis killed", has_brokers=False)] == ["Redis killed"]
    assert len(chosen("edges", has_brokers=False)) == 4
    assert not any(fault.needs_brokers for fault in chosen("", has_brokers=False))
    assert len(chosen("", has_brokers=True)) >= 60
    with pytest.raises(SystemExit, match="--list"):
        chosen("nothing of the kind", has_brokers=True)
