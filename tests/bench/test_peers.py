"""The peers do the same job: their records equal ours one by one, so that nobody does less."""

import functools
from pathlib import Path

import pytest

from bench import systems, workload
from bench.compare import compare_topics
from bench.measure import Broker, run
from bench.peers.quix.derivation import derive
from bench.run import SOURCE_CONFIG
from contextgauge.normalise.signals import InputMessage
from contextgauge.window_catalog import bundled
from streams import codec
from streams.core.derivation.rules_config import Rules
from streams.edge.local_stack.stack import LocalStack
from streams.flow.derive.deriver import Deriver
from tests.conftest import require

Facts = tuple[str, str, str, int, str | None, object]
"""Id, kind, subject, sequence, time and data of a record."""


@functools.cache
def small(sessions: int, seed: int) -> list[workload.Message]:
    return list(workload.generate(6_000, sessions, seed))


def ours(messages: list[workload.Message]) -> list[Facts]:
    deriver = Deriver(Rules(bundled()))
    return [
        (
            record.id,
            record.kind,
            record.subject,
            record.sequence,
            None if record.time_ms is None else codec.rfc3339(record.time_ms),
            codec.loads(codec.to_binary(record)[1]),
        )
        for message in messages
        for record in deriver.derive(
            InputMessage(message.value, message.key.decode(), message.at_ms)
        ).records
    ]


def theirs(messages: list[workload.Message]) -> list[Facts]:
    stored: dict[bytes, bytes] = {}
    facts: list[Facts] = []
    for message in messages:
        key = message.key
        derived = derive(stored.get(key), message.value, key.decode(), message.at_ms)
        if derived is None:
            continue
        stored[key] = derived.state
        facts += [
            (out.record_id, out.kind, out.subject, number, derived.time, _plain(out.data))
            for number, out in enumerate(derived.records, derived.sequence)
        ]
    return facts


def _plain(data: object) -> object:
    return codec.loads(codec.dumps(data))


@pytest.mark.extended
@pytest.mark.parametrize(("sessions", "seed"), [(3, 1), (3, 2), (40, 3)])
def test_the_hand_written_rules_give_our_records(sessions: int, seed: int) -> None:
    messages = small(sessions, seed)

    assert theirs(messages) == ours(messages)


@pytest.mark.extended
def test_the_workload_exercises_every_kind_of_record_of_a_stream() -> None:
    kinds = {facts[1] for seed in (1, 2, 4) for facts in ours(small(3, seed))}

    assert kinds >= {
        "session_info", "context_limits", "context_reading", "context_warning", "context_edit",
        "compaction_start", "compaction_progress", "compact_boundary", "compaction_summary",
        "compaction_complete", "compaction_failed", "context_reset",
    }  # fmt: skip


def test_the_workload_is_reproducible_and_cached_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "CACHE", tmp_path)

    first = list(workload.generate(500, 5))

    assert list(workload.generate(500, 5)) == first
    assert list(workload.read(workload.cached(500, 5))) == first
    assert list(workload.generate(500, 5, seed=2)) != first


@pytest.mark.parametrize("name", ["quix_eos", "kafka_streams_eos_v2"])
async def test_through_kafka_a_peer_writes_our_records(name: str, tmp_path: Path) -> None:
    system = next(each for each in systems.SYSTEMS if each.name == name)
    if (missing := system.missing()) or (missing := systems.not_built(system)):
        pytest.skip(missing)
    messages = small(40, 3)
    stack = LocalStack(tmp_path / "stack")
    try:
        address = require(lambda: stack.start(["kafka"])["kafka"].address)
        broker = Broker(address, stack.services()["kafka"].process.pid)
        await broker.start()
        await broker.create(systems.SOURCE, SOURCE_CONFIG)
        await workload.publish(address, systems.SOURCE, iter(messages))
        for each in (systems.SYSTEMS[0], system):
            job = systems.Job(address, f"{each.name}-run", tmp_path / each.name)
            job.folder.mkdir()
            await run(broker, each, job, len(messages))
        target = system.command(job).target
        outcome = await compare_topics(address, systems.OURS, target)
        await broker.stop()
    finally:
        stack.stop()
    assert outcome.compared > 1_000
    assert not outcome.differences, outcome.summary("ours", name)
