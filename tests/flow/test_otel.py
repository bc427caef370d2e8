"""The OpenTelemetry worker: events at a collector, acknowledged when it has accepted them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from contextgauge.errors import RetryError
from schemas.records import Record
from schemas.topics import CONTEXT_EVENTS
from streams import codec
from streams.edge.memory.log import MemoryLog
from streams.edge.otlp.backend import OtlpBackend, signals
from streams.flow.control.session_owners import Owner
from streams.flow.otel.otel_worker import OtelPorts, OtelWorker
from streams.ports import NewRecord
from tests.core.given import Given, assistant, boundary, init
from tests.doubles.record_stream import MemoryRecordStream
from tests.flow.control.control_kit import GivenClock, until_so
from tests.flow.derive_kit import Figures, board
from tests.otlp_collector import Collector, collecting
from tests.patience import PATIENCE_S

TOPIC = CONTEXT_EVENTS.name


class ExportKit:
    """A topic in memory, a collector, and workers one after the other."""

    def __init__(self, collector: Collector) -> None:
        self.clock = GivenClock()
        self.log = MemoryLog(self.clock)
        self.collector = collector
        self.acknowledged: dict[int, int] = {}
        self.figures = Figures()
        self.health = board()
        self.owners: dict[str, Owner] = {}
        self.stream: MemoryRecordStream | None = None

    async def write(self, records: Sequence[Record]) -> None:
        producer = self.log.producer()
        await producer.start()
        for record in records:
            headers, value = codec.to_binary(record)
            await producer.send(
                NewRecord(TOPIC, 0, b"key", value, headers, record.time_ms or self.clock.at_ms)
            )
        await producer.flush()
        await producer.stop()

    @asynccontextmanager
    async def exporting(self) -> AsyncIterator[MemoryRecordStream]:
        """Run a worker meanwhile, and end it in good order."""
        stop = asyncio.Event()
        wanted = signals()
        backend = OtlpBackend(wanted, "test-1")
        stream = MemoryRecordStream(self.log, TOPIC, (0,), self.acknowledged, lambda: 0, lambda: 0)
        worker = OtelWorker(
            OtelPorts(
                stream=stream,
                backend=backend,
                owner_of=self._owner_of,
                with_events=wanted.events,
                telemetry=self.figures,
                health=self.health,
                clock=self.clock,
                stop=stop,
            )
        )
        task = asyncio.create_task(worker.run())
        try:
            yield stream
            stop.set()
            await asyncio.wait_for(task, PATIENCE_S)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await backend.stop()

    async def _owner_of(self, session_id: str) -> Owner:
        if session_id not in self.owners:
            raise RetryError("away")
        return self.owners[session_id]


@pytest.fixture
async def kit(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ExportKit]:
    async with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=one")
        # As long as the exporter tries by itself, within which nothing is acknowledged either.
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
        kit = ExportKit(collector)
        await kit.log.create_topics([CONTEXT_EVENTS], 1)
        yield kit


def some(count: int = 3, session: str = "s1") -> list[Record]:
    """Return the records of a session with so many responses and a compaction."""
    responses = [assistant(f"r{number}", read=1_000 * number) for number in range(1, count + 1)]
    bodies = [*responses, boundary({"trigger": "manual", "pre_tokens": 5}, at=60)]
    return Given().take(*(body | {"session_id": session} for body in bodies))


async def test_each_record_is_an_event_and_acknowledged(kit: ExportKit) -> None:
    records = some()
    await kit.write(records)
    async with kit.exporting():
        await until_so(lambda: kit.acknowledged.get(0) == len(records))
    assert kit.collector.ids() == [record.id for record in records]
    event = kit.collector.events[0]
    assert event["event"] == f"contextgauge.{records[0].kind}"
    assert event["service.name"] == "contextgauge"
    assert event["gen_ai.conversation.id"] == "s1"
    assert kit.collector.headers[0]["x-tenant"] == "one"
    assert kit.figures.counts["otel_events", "accepted"] == len(records)
    # At its end, the worker sends the sums.
    (boundaries,) = kit.collector.figures["contextgauge.compaction.boundaries"]
    assert boundaries == {"contextgauge.compaction.trigger": "manual", "sum": 1}


@pytest.mark.parametrize("status", [503, 401, 302])
async def test_nothing_is_acknowledged_before_the_collector_accepts_it(
    kit: ExportKit, status: int
) -> None:
    records = some()
    await kit.write(records)
    kit.collector.status = status
    async with kit.exporting():
        await until_so(lambda: kit.figures.counts["otel_events", "failed"] > len(records))
        assert kit.acknowledged == {0: 0}
        assert not kit.health.ready().ok
    assert kit.acknowledged == {0: 0}  # nor at the end
    kit.collector.status = 200
    async with kit.exporting():
        await until_so(lambda: kit.acknowledged[0] == len(records))
        assert kit.health.ready().ok
    assert kit.collector.ids() == [record.id for record in records]
    assert len(kit.collector.figures["contextgauge.compaction.boundaries"]) == 1


async def test_what_the_collector_rejects_is_not_sent_again(kit: ExportKit) -> None:
    records = some()
    await kit.write(records)
    kit.collector.rejected = 2
    async with kit.exporting():
        await until_so(lambda: kit.acknowledged.get(0) == len(records))
    assert kit.figures.counts["otel_events", "rejected"] == 2
    assert kit.figures.counts["otel_events", "accepted"] == len(records) - 2


async def test_after_a_rebalance_the_next_owner_sends_what_was_not_accepted(
    kit: ExportKit,
) -> None:
    records = some()
    await kit.write(records)
    kit.collector.status = 503
    async with kit.exporting() as stream:
        await until_so(lambda: kit.figures.counts["otel_events", "failed"] > 0)
        await stream.rebalance()
        kit.collector.status = 200
        await until_so(lambda: kit.acknowledged[0] == len(records))
    # What the former owner was sending may arrive as well: the same ids, which backends drop.
    assert list(dict.fromkeys(kit.collector.ids())) == [record.id for record in records]
    assert len(kit.collector.ids()) <= 2 * len(records)
    (boundaries,) = kit.collector.figures["contextgauge.compaction.boundaries"]
    assert boundaries["sum"] == 1


async def test_events_have_the_runtime_of_their_session(kit: ExportKit) -> None:
    kit.owners["looked-up"] = Owner(is_known=True, runtime="codex")
    kit.owners["new"] = Owner()
    derived = Given().take(init(at=0), assistant("r", at=1))
    records = [*derived, *some(1, "looked-up"), *some(1, "new"), *some(1, "no-redis")]
    await kit.write(records)
    async with kit.exporting():
        await until_so(lambda: kit.acknowledged.get(0) == len(records))
    runtimes = {
        event["gen_ai.conversation.id"]: event.get("contextgauge.runtime.name")
        for event in kit.collector.events
    }
    assert runtimes == {
        derived[0].data.session_id: "claude-code",
        "looked-up": "codex",
        "new": None,
        "no-redis": None,
    }


async def test_metrics_only(kit: ExportKit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    records = some()
    await kit.write(records)
    async with kit.exporting():
        await until_so(lambda: kit.acknowledged.get(0) == len(records))
    assert kit.collector.events == []
    assert kit.figures.total("otel_events") == 0
    assert "contextgauge.compaction.boundaries" in kit.collector.figures
