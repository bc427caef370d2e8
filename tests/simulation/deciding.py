"""One run of the decisions: sessions that grow and wait, and workers that die, late or replaced.

What carries commands out is a stand-in: it takes one of a session at a time, and ends each with
some outcome; a compaction that completes begins an epoch, whose size it says.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from contextgauge.errors import RetryError
from contextgauge.partitioner import key_bytes
from schemas.commands import (
    CommandEntry,
    CommandFinished,
    CommandOutcome,
    CompactionDecided,
    CompactRequested,
)
from schemas.records import CompactBoundary, ContextReading, ContextReset, Record
from schemas.topics import CONTEXT_COMMANDS, CONTEXT_EVENTS
from streams import codec
from streams.codec.commands import read_entry
from streams.core.alerts.rules import Patterns
from streams.core.control.thresholds import SessionRule
from streams.edge.commands import LogCommandSink
from streams.flow.control.control_loop import ControlLoop
from streams.flow.control.decisions.compaction_decisions import DecisionPorts, Decisions, Topics
from streams.flow.control.session_owners import Owner
from streams.ports import NewRecord
from tests.core.given import Given, assistant, boundary, clear, init
from tests.doubles.log import FaultyLog
from tests.doubles.record_stream import MemoryRecordStream
from tests.flow.derive_kit import worker_ports
from tests.simulation.virtual_loop import VirtualClock

EVENTS, COMMANDS = CONTEXT_EVENTS.name, CONTEXT_COMMANDS.name
MAX_AGE_MS = 3_600_000
THRESHOLD = 170_000
_OUTCOMES: tuple[CommandOutcome, ...] = (
    "completed",
    "completed",
    "completed",
    "completed",
    "failed",
    "failed",
    "nothing_to_compact",
    "cancelled",
)
_WAITED_S = 4_000.0
"""Longer than the longest pause, and than a reading is young."""


class Sent(NamedTuple):
    """A record as it is in the log."""

    record: Record
    logged_ms: int


class DecidingWorld:
    """Everything of one run: `heal` ends the faults, and waits for what is owed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = VirtualClock()
        self.log = FaultyLog(self.clock)
        self.given = Given()
        self.sessions = [f"session-{number}" for number in range(self.chance.randint(1, 3))]
        self.sent: list[Sent] = []
        self.acknowledged: dict[int, int] = {}
        self.send_fails = self.lookup_fails = 0.0
        self.worst_s = 0.0
        self.is_healed = False
        self._sink = LogCommandSink(self.log, COMMANDS)
        self._worker: list[asyncio.Task[None]] = []
        self._stream: MemoryRecordStream | None = None
        self._numbers = 0

    # The agents

    async def say(self, session: str, percent: int) -> None:
        """A response of the model, which reports a size."""
        self._numbers += 1
        body = assistant(f"r{self._numbers}", read=2_000 * percent, at=self._at_s())
        await self._derive(session, body)

    def _at_s(self) -> float:
        return (self.clock.now_ms() - self._start_ms) / 1_000

    async def _derive(self, session: str, *bodies: dict[str, object]) -> None:
        for record in self.given.take(*({**body, "session_id": session} for body in bodies)):
            now_ms = self.clock.now_ms()
            own = replace(record, time_ms=now_ms)
            headers, value = codec.to_binary(own)
            self.sent.append(Sent(own, now_ms))
            key = key_bytes(session)
            await self._producer.send(NewRecord(EVENTS, 0, key, value, headers, now_ms))

    # What carries commands out

    async def _carry_out(self) -> None:
        reader = self.log.reader(COMMANDS, [0])
        await reader.start()
        reader.seek(0, 0)
        seen: set[str] = set()
        async with asyncio.TaskGroup() as group:
            while True:
                for record in (await reader.poll(0, 1_000, 1.0)).records:
                    data = read_entry(record.headers, record.value or b"").data
                    if isinstance(data, CompactRequested) and data.command_id not in seen:
                        seen.add(data.command_id)
                        group.create_task(self._command(data))

    async def _command(self, data: CompactRequested) -> None:
        chance = self.chance
        await asyncio.sleep(chance.random() * chance.choice([0.5, 5.0, 90.0]))
        outcome = "completed" if self.is_healed else chance.choice(_OUTCOMES)
        self._numbers += 1
        finished = CommandFinished(
            session_id=data.session_id, command_id=data.command_id, outcome=outcome, attempt=1
        )
        entry = CommandEntry(f"finished-{self._numbers}", self.clock.now_ms(), finished)
        await self._sink.send([entry])
        if outcome == "completed":
            await asyncio.sleep(chance.random())  # the deriver
            await self._derive(data.session_id, boundary({"trigger": "auto"}, at=self._at_s()))
            if chance.random() < 0.8:
                helps = self.is_healed or chance.random() < 0.8
                await self.say(data.session_id, chance.randint(10, 60) if helps else 88)

    # Workers

    async def send(self, entries: Sequence[CommandEntry]) -> None:
        await asyncio.sleep(self.chance.random() * self.worst_s)
        if self.chance.random() < self.send_fails:
            raise RetryError("Kafka is away")
        await self._sink.send(entries)
        if self.chance.random() < self.send_fails:
            raise RetryError("the reply was lost")

    async def start(self) -> None:
        """Nothing: it is in memory."""

    async def stop(self) -> None:
        """Nothing, as above."""

    async def owner_of(self, _session_id: str) -> Owner:
        await asyncio.sleep(self.chance.random() * self.worst_s)
        if self.chance.random() < self.lookup_fails:
            raise RetryError("Redis is away")
        return Owner("agent", "/repo")

    def start_worker(self) -> None:
        stop = asyncio.Event()
        ports = DecisionPorts(
            **vars(worker_ports(self.clock, stop=stop)),
            log=self.log,
            sink=self,
            owner_of=self.owner_of,
        )
        rules = (SessionRule(agents=Patterns(("agent",)), automatic=True),)
        decisions = Decisions(rules, MAX_AGE_MS, Topics(EVENTS, COMMANDS), ports)

        def oldest_ms() -> int:
            return self.clock.now_ms() - MAX_AGE_MS

        stream = MemoryRecordStream(self.log, EVENTS, (0,), self.acknowledged, oldest_ms, oldest_ms)
        self._stream = stream
        loop = ControlLoop("decisions", stream, [decisions.opened], ports)
        self._worker = [asyncio.create_task(loop.run())]

    async def kill_worker(self) -> None:
        for task in self._worker:
            task.cancel()
        results = await asyncio.gather(*self._worker, return_exceptions=True)
        self._worker, self._stream = [], None
        for result in results:
            if isinstance(result, Exception):
                raise result

    # The run

    async def run(self) -> None:
        chance = self.chance
        await self.log.create_topics([CONTEXT_EVENTS, CONTEXT_COMMANDS], 1)
        self._start_ms = self.clock.now_ms()
        self._producer = self.log.producer()
        for session in self.sessions:
            await self._derive(session, init(at=0, runtime="other"))
        executor = asyncio.create_task(self._carry_out())
        for _ in range(chance.randint(5, 30)):
            await self._act()
            await asyncio.sleep(chance.random() * chance.choice([0.0, 0.5, 5.0, 70.0]))
        await self._heal()
        await self.kill_worker()
        executor.cancel()
        await asyncio.gather(executor, return_exceptions=True)

    async def _act(self) -> None:
        chance, session = self.chance, self.chance.choice(self.sessions)
        match chance.choice(_ACTS):
            case "small":
                await self.say(session, chance.randint(5, 84))
            case "large":
                await self.say(session, chance.randint(85, 99))
            case "own boundary":
                await self._derive(session, boundary({"trigger": "auto"}, at=self._at_s()))
            case "reset":
                await self._derive(session, clear(at=self._at_s()))
            case "kill":
                await self.kill_worker()
            case "start" if not self._worker:
                self.start_worker()
            case "rebalance" if self._stream is not None:
                await asyncio.sleep(0.1)
                await self._stream.rebalance()
            case "faults":
                self.send_fails = chance.choice([0.0, 0.0, 0.3])
                self.lookup_fails = chance.choice([0.0, 0.0, 0.5, 1.0])
                self.worst_s = chance.choice([0.0, 0.1, 2.0])

    async def _heal(self) -> None:
        self.send_fails = self.lookup_fails = self.worst_s = 0.0
        self.is_healed = True
        if not self._worker:
            self.start_worker()
        until_s = self.clock.monotonic_s() + _WAITED_S
        while self.clock.monotonic_s() < until_s and (self._is_behind() or self.waiting()):
            for task in self._worker:
                if task.done():
                    task.result()
            await asyncio.sleep(5.0)

    def _is_behind(self) -> bool:
        return self.acknowledged.get(0, 0) < self.log.partition(EVENTS, 0).stable_end()

    def entries(self) -> list[CommandEntry]:
        records = self.log.partition(COMMANDS, 0).read(0, 1_000_000).records
        return [read_entry(each.headers, each.value or b"") for each in records]

    def waiting(self) -> set[str]:
        """Return the sessions that are above the threshold, and were not compacted since."""
        waiting: set[str] = set()
        for record, _ in self.sent:
            data = record.data
            if isinstance(data, (CompactBoundary, ContextReset)):
                waiting.discard(data.session_id)
            elif isinstance(data, ContextReading) and data.used_tokens >= THRESHOLD:
                waiting.add(data.session_id)
            elif isinstance(data, ContextReading):
                waiting.discard(data.session_id)
        return waiting


_ACTS = (
    *["small"] * 3, *["large"] * 6, "own boundary", "reset", "kill", "kill",
    *["start"] * 4, "rebalance", "rebalance", "faults", "faults",
)  # fmt: skip


def violations(world: DecidingWorld) -> list[str]:
    """Return all that is wrong after a run."""
    wrong: list[str] = []
    logged = {each.record.id: each.logged_ms for each in world.sent}
    opened: dict[str, str] = {}
    completed: dict[str, int] = {}
    known: set[str] = set()
    stopped: set[str] = set()
    for entry in world.entries():
        data = entry.data
        if isinstance(data, CommandFinished):
            opened.pop(data.session_id, None)
            if data.outcome == "completed":
                completed[data.session_id] = entry.time_ms
        elif isinstance(data, CompactRequested) and data.command_id not in known:
            known.add(data.command_id)
            if data.session_id in opened:
                wrong.append(f"two commands of {data.session_id} are open")
            opened[data.session_id] = data.command_id
            if logged[data.cause_id or ""] <= completed.get(data.session_id, -1):
                wrong.append(f"{data.command_id} is because of a reading from before the swap")
        elif isinstance(data, CompactionDecided) and data.reason == "no_progress":
            stopped.add(data.session_id)
    return wrong + [f"{each} waits for ever" for each in sorted(world.waiting() - stopped)]
