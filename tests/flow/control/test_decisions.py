"""Decisions over a log: entries in the log of commands, each once, whatever is killed when."""

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from contextgauge.errors import ConfigError, PositionError, RetryError
from contextgauge.units import MINUTE_MS
from schemas.commands import (
    CommandEntry,
    CommandFinished,
    CompactionDecided,
    CompactRequested,
    ThresholdsSet,
)
from schemas.records import Runtime
from schemas.topics import CONTEXT_COMMANDS
from streams.codec.commands import read_entry
from streams.core.alerts.rules import Patterns
from streams.core.control.thresholds import SessionRule
from streams.edge.commands import LogCommandSink
from streams.flow.control.control_loop import ControlLoop
from streams.flow.control.decisions.compaction_decisions import (
    DecisionPartition,
    DecisionPorts,
    Decisions,
    Topics,
)
from streams.flow.control.session_owners import Owner
from streams.ports import NewRecord
from tests.doubles.record_stream import MemoryRecordStream
from tests.flow.control.control_kit import TOPIC, ControlKit, pressured, until_so
from tests.patience import PATIENCE_S

COMMANDS = CONTEXT_COMMANDS.name
MAX_AGE_MS = 600_000
ON = SessionRule(automatic=True)


class DecisionKit(ControlKit):
    """A worker that only decides, over the log in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.rules: tuple[SessionRule, ...] = (ON,)
        self.fail_sends = 0
        self.runtimes: dict[str, Runtime] = {}
        self.asking: set[str] = set()
        self.sink = LogCommandSink(self.log, COMMANDS)

    async def create(self) -> None:
        await super().create()
        await self.log.create_topics([CONTEXT_COMMANDS], 2)

    async def send(self, entries: Sequence[CommandEntry]) -> None:
        if self.fail_sends:
            self.fail_sends -= 1
            raise RetryError("Kafka is away")
        await self.sink.send(entries)

    async def start(self) -> None:
        """Nothing: it connects by itself."""

    async def stop(self) -> None:
        await self.sink.stop()

    async def owner_of(self, session_id: str) -> Owner:
        self.asked.append(session_id)
        if self.agents_are_away:
            raise RetryError("away")
        agent_id, folder = self.agents.get(session_id), self.folders.get(session_id)
        asks = session_id in self.asking
        return Owner(agent_id, folder, runtime=self.runtimes.get(session_id), asks=asks)

    @asynccontextmanager
    async def deciding(self) -> AsyncIterator[asyncio.Task[None]]:
        stop = asyncio.Event()
        ports = DecisionPorts(
            telemetry=self.figures,
            health=self.health,
            clock=self.clock,
            stop=stop,
            log=self.log,
            sink=self,
            owner_of=self.owner_of,
        )
        decisions = Decisions(self.rules, MAX_AGE_MS, Topics(TOPIC, COMMANDS), ports)

        def oldest_ms() -> int:
            return self.clock.at_ms - MAX_AGE_MS

        stream = MemoryRecordStream(
            self.log, TOPIC, (0, 1), self.acknowledged, oldest_ms, oldest_ms
        )
        loop = ControlLoop("decisions", stream, [decisions.opened], ports)
        task = asyncio.create_task(loop.run())
        try:
            yield task
            stop.set()
            await asyncio.wait_for(task, PATIENCE_S)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def entries(self) -> list[CommandEntry]:
        records = self.log.partition(COMMANDS, 0).read(0, 1_000_000).records
        return [read_entry(each.headers, each.value or b"") for each in records]

    def requests(self) -> list[CompactRequested]:
        data = (entry.data for entry in self.entries())
        return [each for each in data if isinstance(each, CompactRequested)]

    async def until_requested(self, count: int) -> None:
        await until_so(lambda: len(self.requests()) >= count)


@pytest.fixture
async def kit() -> DecisionKit:
    kit = DecisionKit()
    await kit.create()
    # Sessions of these tests are on partition 0, as their records are.
    return kit


SESSION = "s4"  # murmur2 puts it on partition 0 of two


async def test_a_runtime_that_compacts_itself_is_compacted_once_its_agent_asks(
    kit: DecisionKit,
) -> None:
    kit.runtimes[SESSION] = "claude-code"
    await kit.write(pressured(50, 86, session=SESSION))
    async with kit.deciding():
        await kit.until_acknowledged()
        (decided,) = [entry.data for entry in kit.entries()]
        assert isinstance(decided, CompactionDecided)
        assert (decided.fired, decided.reason) == (False, "no_driver")
        kit.asking.add(SESSION)
        kit.clock.at_ms += MINUTE_MS
        await kit.until_requested(1)


async def test_a_reading_above_the_threshold_is_a_request_in_the_log(kit: DecisionKit) -> None:
    await kit.write(pressured(50, 86, session=SESSION))
    async with kit.deciding():
        await kit.until_requested(1)
        await kit.until_acknowledged()
    decided, requested = kit.entries()
    assert isinstance(decided.data, CompactionDecided)
    assert isinstance(requested.data, CompactRequested)
    assert kit.figures.counts["control_decisions", "above_threshold"] == 1


async def test_a_worker_that_died_before_the_acknowledgement_requests_nothing_twice(
    kit: DecisionKit,
) -> None:
    await kit.write(pressured(86, 87, session=SESSION))
    async with kit.deciding():
        await kit.until_acknowledged()
    kit.acknowledged.clear()
    before = kit.entries()
    async with kit.deciding():
        await kit.until_acknowledged()
    assert [entry.id for entry in kit.entries()] == [entry.id for entry in before]
    assert len(kit.requests()) == 1


async def test_nothing_is_acknowledged_before_it_is_in_the_log(kit: DecisionKit) -> None:
    kit.fail_sends = 1_000_000
    await kit.write(pressured(86, session=SESSION))
    async with kit.deciding():
        await until_so(lambda: kit.fail_sends < 1_000_000)
        assert kit.acknowledged.get(0, 0) < kit.log.partition(TOPIC, 0).stable_end()
    assert kit.entries() == []
    kit.fail_sends = 2
    async with kit.deciding():
        await kit.until_acknowledged()
    assert len(kit.requests()) == 1


async def test_thresholds_that_were_set_hold_from_the_start_and_meanwhile(
    kit: DecisionKit,
) -> None:
    kit.rules = ()
    on = ThresholdsSet(scope="agent", name="reviewer", requested_by="ada", automatic=True)
    await kit.sink.send([CommandEntry("e-1", kit.clock.at_ms, on)])
    kit.agents[SESSION] = "reviewer"
    await kit.write(pressured(86, session=SESSION))
    async with kit.deciding():
        await kit.until_requested(1)
    assert kit.asked == [SESSION]


async def test_whose_session_it_is_is_looked_up_again_where_it_could_not_be(
    kit: DecisionKit,
) -> None:
    kit.rules = (SessionRule(agents=Patterns(("reviewer",)), automatic=True),)
    kit.agents[SESSION] = "reviewer"
    kit.agents_are_away = True
    records = pressured(86, 87, session=SESSION)
    await kit.write(records[:-1])
    async with kit.deciding():
        await kit.until_acknowledged()
        assert kit.entries() == []
        kit.agents_are_away = False
        await kit.write(records[-1:])
        await kit.until_requested(1)


async def test_no_session_is_compacted_that_a_rule_may_exclude(kit: DecisionKit) -> None:
    kit.rules = (
        SessionRule(automatic=True),
        SessionRule(agents=Patterns(("secret",)), automatic=False),
    )
    kit.agents[SESSION] = "secret"
    kit.agents_are_away = True
    records = pressured(86, 87, session=SESSION)
    await kit.write(records[:-1])
    async with kit.deciding():
        await kit.until_acknowledged()
        assert kit.entries() == []
        kit.agents_are_away = False
        await kit.write(records[-1:])
        await kit.until_acknowledged()
    assert kit.entries() == []


async def finish(kit: DecisionKit, command_id: str) -> None:
    data = CommandFinished(session_id=SESSION, command_id=command_id, outcome="failed", attempt=1)
    await kit.sink.send([CommandEntry(f"finished {command_id}", kit.clock.at_ms, data)])


async def test_a_silent_session_is_requested_again_after_a_failure_by_the_next_worker(
    kit: DecisionKit,
) -> None:
    # A sidechain and another session are read back, too, and give rise to nothing.
    await kit.write(pressured(30, session="s9"))
    await kit.write(pressured(50, 86, session=SESSION))
    async with kit.deciding():
        await kit.until_requested(1)
        await kit.until_acknowledged()
    (first,) = kit.requests()
    kit.clock.at_ms += 10_000
    await finish(kit, first.command_id)
    kit.clock.at_ms += 60_000
    for _ in range(2):
        async with kit.deciding():
            await kit.until_requested(2)
    second = kit.requests()[1]
    assert second.cause_id == first.cause_id
    assert len(kit.requests()) == 2


async def test_a_silent_session_is_evaluated_when_it_can_be_looked_up_again(
    kit: DecisionKit,
) -> None:
    kit.rules = (SessionRule(agents=Patterns(("reviewer",)), automatic=True),)
    kit.agents[SESSION] = "reviewer"
    kit.agents_are_away = True
    await kit.write(pressured(86, session=SESSION))
    async with kit.deciding():
        await kit.until_acknowledged()
        assert kit.entries() == []
        kit.agents_are_away = False
        await kit.until_requested(1)


async def test_an_excluded_session_that_is_read_back_is_left_alone(kit: DecisionKit) -> None:
    kit.rules = (
        SessionRule(automatic=True),
        SessionRule(agents=Patterns(("secret",)), automatic=False),
    )
    kit.agents[SESSION] = "secret"
    kit.agents_are_away = True
    await kit.write(pressured(86, session=SESSION))
    async with kit.deciding():
        await kit.until_acknowledged()
    async with kit.deciding():
        kit.agents_are_away = False
        asked = len(kit.asked)
        await until_so(lambda: len(kit.asked) > asked)
    assert kit.entries() == []


@pytest.mark.parametrize("content", [b"other", None])
async def test_an_entry_that_cannot_be_read_is_left_out(
    kit: DecisionKit, content: bytes | None
) -> None:
    producer = kit.log.producer()
    await producer.send(NewRecord(COMMANDS, 0, b"s", b"{}", (("ce_type", content),)))
    await producer.flush()
    await kit.write(pressured(86, session=SESSION))
    async with kit.deciding():
        await kit.until_acknowledged()


async def test_a_log_of_commands_that_is_gone_ends_the_worker(kit: DecisionKit) -> None:
    del kit.log._topics[COMMANDS]  # noqa: SLF001 -- as an operator deletes it
    await kit.write(pressured(86, session=SESSION))
    with pytest.raises(ConfigError, match="create the topics"):
        async with kit.deciding() as deciding:
            await asyncio.wait_for(deciding, PATIENCE_S)


async def test_a_log_of_commands_that_became_shorter_ends_the_worker(kit: DecisionKit) -> None:
    await kit.write(pressured(90, session=SESSION))
    async with kit.deciding():
        await kit.until_requested(1)
    await kit.write(pressured(50, session=SESSION))

    async def follow_until_it_is_shorter() -> None:
        async with kit.deciding() as deciding:
            await kit.until_acknowledged()  # so what was written has been read
            kit.log.delete_topic(COMMANDS)
            await kit.log.create_topics([CONTEXT_COMMANDS], 2)
            await asyncio.wait_for(deciding, PATIENCE_S)

    with pytest.raises(RetryError, match=r"is not what was read .* start the worker again"):
        await follow_until_it_is_shorter()


async def test_what_fails_while_it_ends_is_not_reported_as_forgotten(
    kit: DecisionKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail_at_the_end(*_: object) -> None:
        reading.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise PositionError("as a client may that is cut off") from None

    reading, messages = asyncio.Event(), list[str]()
    monkeypatch.setattr(DecisionPartition, "_follow", fail_at_the_end)
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: messages.append(context["message"])
    )
    async with kit.deciding():
        await reading.wait()
    gc.collect()
    await asyncio.sleep(0)
    assert messages == []
