"""One simulated run: sessions, commands, workers and faults by a seed, then healing and checks."""

import asyncio
import random

from contextgauge import json_codec
from contextgauge.compaction.profiles import Profile
from contextgauge.partitioner import key_bytes, partition_of
from contextgauge.ports import Headers
from contextgauge.records import Json
from schemas.commands import (
    CancelRequested,
    CommandData,
    CommandEntry,
    CommandFinished,
    CompactRequested,
)
from schemas.topics import AGENT_MESSAGES, CONTEXT_COMMANDS
from streams.codec.commands import read_entry, write_entry
from streams.core.alerts.rules import Patterns
from streams.core.control.plan import ControlPlan, SessionPolicy
from streams.core.conversation.opt_in import KeptConversations
from streams.edge.memory.asked_contexts import MemoryAskedContexts
from streams.edge.memory.conversations import MemoryConversations
from streams.flow.control.commands.command_ports import CommandPorts
from streams.flow.control.session_owners import Owner
from streams.flow.conversations.config import ConversationsConfig, ConversationsPorts
from streams.flow.conversations.worker import run_conversations
from streams.ports import LogRecord, NewRecord
from tests.doubles.control_store import MemoryControlStore
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import worker_ports
from tests.simulation.faulty_worker import AssigningStream, Faults, SimulatedWorker, SlowSummaries
from tests.simulation.virtual_loop import VirtualClock

MESSAGES, COMMANDS = AGENT_MESSAGES.name, CONTEXT_COMMANDS.name
HEALING_S = 120.0
WORDS = "one two three four five six seven eight nine ten " * 6
PROFILE = Profile(
    name="simulated",
    keep_last=3,
    minimum_tokens=50,
    unknown_window_tokens=1_000,
    windows={"claude-sonnet-4-5": 1_000},
)


async def _no_owner(_session_id: str) -> Owner:
    return Owner(is_known=True)


class World:
    """Everything of one run."""

    stable_ids = True
    """Transactional ids do not change with the worker."""

    def __init__(self, seed: int, skipped: frozenset[int] = frozenset()) -> None:
        self.seed, self.skipped = seed, skipped
        self.done: list[str] = []
        """What was done to the service: the number, time and kind of each act."""
        self.chance = random.Random(seed)
        self.clock = VirtualClock()
        self.log = FaultyLog(self.clock)
        self.faults = Faults(self.chance)
        self.kept, self.views = MemoryConversations(), MemoryControlStore()
        self.partitions = self.chance.choice([1, 1, 2])
        self.sessions = [f"session-{each}" for each in range(self.chance.randint(1, 3))]
        self.workers: list[SimulatedWorker] = []
        self.keeper: asyncio.Task[None] | None = None
        self.commands: list[tuple[str, str]] = []
        self.published: list[tuple[str, dict[str, Json]]] = []
        self.acts = 0
        self._numbers = 0
        self._producer = self.log.producer()
        self.faults.before_swap = self.cancel
        summariser = SlowSummaries(self.faults) if self.chance.random() < 0.8 else None
        self.plan = ControlPlan(
            session=lambda _facts: SessionPolicy(opted_in=True, profile=PROFILE),
            summariser=summariser,
            max_age_ms=30_000,
            command_s=25.0,
            call_s=4.0,
            conversation_s=3.0,
            check_s=1.0,
            heartbeat_s=0.7,
            pause_s=0.2,
            most_plans=4,
        )

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    # The agent's side

    async def publish(self, session: str, line: dict[str, Json]) -> None:
        own: dict[str, Json] = {"session_id": session, "uuid": f"{session}-{self.number()}"}
        full = {**own, **line}
        self.published.append((session, full))
        await self._append(MESSAGES, session, json_codec.dumps(full))

    async def _append(self, topic: str, session: str, value: bytes, headers: Headers = ()) -> None:
        partition = partition_of(session, self.partitions)
        await self._producer.send(NewRecord(topic, partition, key_bytes(session), value, headers))

    async def say(self, session: str, turns: int) -> None:
        for _ in range(turns):
            number = self.number()
            content: list[Json] = [{"type": "text", "text": f"answer {number} {WORDS}"}]
            usage: Json = {"input_tokens": 100 + number, "output_tokens": 20}
            calls = self.chance.random() < 0.4
            if calls:
                content.append(
                    {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"a": 1}}
                )
            await self.publish(
                session,
                {
                    "type": "user",
                    "message": {"role": "user", "content": f"question {number} {WORDS}"},
                },
            )
            message: Json = {
                "id": f"msg-{number}",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": content,
                "usage": usage,
            }
            await self.publish(session, {"type": "assistant", "message": message})
            if calls:
                result: Json = {
                    "type": "tool_result",
                    "tool_use_id": f"t{number}",
                    "content": f"result {number} {WORDS}",
                }
                await self.publish(
                    session, {"type": "user", "message": {"role": "user", "content": [result]}}
                )

    async def compact_itself(self, session: str) -> None:
        """The runtime compacts by itself."""
        await self.publish(
            session,
            {
                "type": "system",
                "subtype": "compact_boundary",
                "compact_metadata": {"trigger": "auto", "pre_tokens": 500},
            },
        )
        await self.publish(
            session,
            {
                "type": "user",
                "isCompactSummary": True,
                "message": {"role": "user", "content": f"So far: {self.number()}"},
            },
        )

    # Commands

    async def send(self, data: CommandData, session: str) -> None:
        entry = CommandEntry(f"request-{self.number()}", self.clock.now_ms(), data)
        headers, value = write_entry(entry)
        await self._append(COMMANDS, session, value, headers)

    async def request(self, session: str) -> None:
        chance = self.chance
        command_id = f"command-{len(self.commands)}"
        partition = self.log.partition(MESSAGES, partition_of(session, self.partitions))
        data = CompactRequested(
            session_id=session,
            command_id=command_id,
            trigger=chance.choice(["manual", "auto", "model_change"]),
            requested_by="simulation",
            urgent=chance.random() < 0.15,
            upto_offset=partition.stable_end() if chance.random() < 0.5 else None,
        )
        self.commands.append((session, command_id))
        await self.send(data, session)
        if chance.random() < 0.2:
            await self.send(data, session)

    async def repeat(self) -> None:
        if self.commands:
            session, command_id = self.chance.choice(self.commands)
            again = CompactRequested(
                session_id=session,
                command_id=command_id,
                trigger="manual",
                requested_by="simulation",
            )
            await self.send(again, session)

    async def cancel(self) -> None:
        if self.commands:
            session, command_id = self.chance.choice(self.commands[-3:])
            await self.send(
                CancelRequested(
                    session_id=session, command_id=command_id, requested_by="simulation"
                ),
                session,
            )

    # Workers

    def ports(self, stop: asyncio.Event) -> CommandPorts:
        stream = AssigningStream(self.partitions)
        prefix = "control-" if self.stable_ids else f"control-{self.number()}-"
        return CommandPorts(
            **vars(worker_ports(self.clock, stop=stop)),
            stream=stream,
            log=self.log,
            store=self.views,
            conversations=self.kept,
            asked=MemoryAskedContexts(self.clock),
            drivers={},
            owner_of=_no_owner,
            plan=self.plan,
            commands_topic=COMMANDS,
            messages_topic=MESSAGES,
            partitions=self.partitions,
            transactional_prefix=prefix,
            retention_ms=CONTEXT_COMMANDS.retention_ms,
            fenced_pause_s=2.0,
        )

    async def start_worker(self) -> SimulatedWorker:
        worker = SimulatedWorker(self.ports(asyncio.Event()), self.faults)
        self.workers.append(worker)
        return worker

    async def kill_worker(self) -> None:
        if self.workers:
            await self.workers.pop(self.chance.randrange(len(self.workers))).kill()

    def keep(self) -> None:
        ports = ConversationsPorts(
            **vars(worker_ports(self.clock)),
            log=self.log,
            store=self.kept,
            config=ConversationsConfig(
                kept=KeptConversations(sessions=Patterns(("*",))),
                instance_id="only",
                poll_timeout_s=1.0,
                expire_s=1.0,
            ),
        )
        self.keeper = asyncio.create_task(run_conversations(ports))

    async def stop_keeping(self) -> None:
        if self.keeper is not None:
            keeper, self.keeper = self.keeper, None
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)

    async def empty_stores(self) -> None:
        for partition in range(self.partitions):
            await self.kept.drop(partition)
        self.views.__init__()  # type: ignore[misc]  # emptied

    # The run

    async def run(self) -> None:
        chance = self.chance
        await self.log.create_topics([AGENT_MESSAGES, CONTEXT_COMMANDS], self.partitions)
        for session in self.sessions:
            await self.say(session, chance.choice([0, 4, 8, 12]))
        self.keep()
        await self.start_worker()
        for number in range(chance.randint(6, 25)):
            # Its own chances: an act that is skipped changes no other one.
            chance.seed(f"{self.seed} {number}")
            if number not in self.skipped:
                await self._act()
            self.acts += 1
            if chance.random() < 0.7:
                await asyncio.sleep(chance.choice([0.0, 0.01, 0.1, 0.5, 2.0]) * chance.random())
        await self._heal()

    async def _act(self) -> None:  # noqa: C901, PLR0912 -- one case for each act
        chance, session = self.chance, self.chance.choice(self.sessions)
        kind = chance.choice(_ACTS)
        self.done.append(f"{self.acts:4} {self.clock.monotonic_s():9.3f} s  {kind} ({session})")
        match kind:
            case "say":
                await self.say(session, chance.randint(1, 6))
            case "request":
                await self.request(session)
            case "cancel":
                await self.cancel()
            case "repeat":
                await self.repeat()
            case "own boundary":
                await self.compact_itself(session)
            case "reset":
                await self.publish(session, {"type": "conversation_reset", "trigger": "clear"})
            case "kill":
                await self.kill_worker()
                if not self.workers or chance.random() < 0.3:
                    await self.start_worker()
            case "dies at a step" if self.workers:
                chance.choice(self.workers).steps_left = chance.randint(1, 12)
            case "second worker" if len(self.workers) < 2:
                await self.start_worker()
            case "rebalance" if self.workers and not self.workers[0].running.done():
                self.workers[0].stream.rebalance()
            case "keeper":
                await self.stop_keeping()
                if chance.random() < 0.7:
                    self.keep()
            case "keeper back":
                if self.keeper is None:
                    self.keep()
            case "emptied":
                await self.empty_stores()
            case "faults":
                self._change_faults()

    def _change_faults(self) -> None:
        chance, faults = self.chance, self.faults
        faults.cut = chance.choice([0, 0, 0.1])
        faults.lost = chance.choice([0, 0, 0.1])
        faults.hang = chance.choice([0, 0, 0.05])
        faults.slow = chance.choice([0, 0.05, 0.3])
        faults.summary_s = chance.choice([0.1, 1.0, 3.0, 6.0])
        faults.summary_fails = chance.choice([0, 0, 0.3, 1.0])

    async def _heal(self) -> None:
        self.faults.heal()
        while self.workers:
            await self.kill_worker()
        if self.keeper is None:
            self.keep()
        worker = await self.start_worker()
        until = self.clock.monotonic_s() + HEALING_S
        while self.unfinished():
            if worker.running.done():
                worker.running.result()
            assert self.clock.monotonic_s() < until, f"no outcome of {self.unfinished()}"
            await asyncio.sleep(0.5)
        for partition in range(self.partitions):
            end = self.log.partition(MESSAGES, partition).stable_end()
            while (mark := await self.kept.mark(partition)) is None or mark.position < end:
                assert self.clock.monotonic_s() < until, "conversations are behind for good"
                await asyncio.sleep(0.5)
        await asyncio.sleep(6.0)  # what may still come
        await worker.kill()
        await self.stop_keeping()

    def records(self, topic: str) -> list[LogRecord]:
        found: list[LogRecord] = []
        for partition in range(self.partitions):
            found += self.log.partition(topic, partition).read(0, 1_000_000).records
        return found

    def entries(self) -> list[CommandData]:
        return [read_entry(each.headers, each.value or b"").data for each in self.records(COMMANDS)]

    def unfinished(self) -> set[str]:
        done = {each.command_id for each in self.entries() if isinstance(each, CommandFinished)}
        return {command_id for _, command_id in self.commands} - done


_ACTS = (
    *["say"] * 5, *["request"] * 6, *["cancel"] * 3, "repeat", "repeat", "own boundary", "reset",
    "kill", "kill", "dies at a step", "dies at a step", "second worker", "second worker",
    "rebalance", "keeper", "keeper back", "keeper back", "emptied", "faults", "faults",
)  # fmt: skip
