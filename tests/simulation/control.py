"""One run of the compaction service by a schedule: sessions, commands, workers and faults."""

import random
from collections.abc import Callable
from typing import Any, ClassVar

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
from streams.edge.memory.conversations import MemoryConversations
from streams.flow.common.ports import WorkerPorts
from streams.flow.control.commands.command_ports import CommandPorts
from streams.flow.control.commands.command_worker import CommandWorker
from streams.flow.control.session_owners import Owner
from streams.flow.conversations.config import ConversationsConfig, ConversationsPorts
from streams.flow.conversations.worker import run_conversations
from streams.ports import LogRecord, NewRecord
from tests.doubles.asked_contexts import MemoryAskedContexts
from tests.doubles.control_store import MemoryControlStore
from tests.simulation.acts import OF_ANY
from tests.simulation.broker_clients import ProcessLog
from tests.simulation.control_worker import AssigningStream, ControlLog, InlinePlanner, Provider
from tests.simulation.process import Process, Wire
from tests.simulation.schedule import Act, Schedule
from tests.simulation.view_server import ProcessStore, run_at_once
from tests.simulation.world import World

MESSAGES, COMMANDS = AGENT_MESSAGES.name, CONTEXT_COMMANDS.name
WORDS = "one two three four five six seven eight nine ten " * 6
PROFILE = Profile(
    name="simulated",
    keep_last=3,
    minimum_tokens=50,
    unknown_window_tokens=1_000,
    windows={"claude-sonnet-4-5": 1_000},
)

_QUIET_S = 6.0
"""After the last outcome: what may still come has come by then."""

_AT_SWAP = 0.1
"""How often a command is cancelled, or its session changes, right before a swap is written."""


async def _no_owner(_session_id: str) -> Owner:
    return Owner(is_known=True)


class Control(World):
    """Workers that carry out commands, and one that keeps conversations."""

    acts: ClassVar[dict[str, Callable[[Any, Act], None]]]
    kinds: ClassVar = ("control", "keeper")
    has_stable_ids = True
    """Transactional ids do not change with the worker."""

    def __init__(self, schedule: Schedule, trace: Callable[[str], None] | None = None) -> None:
        super().__init__(schedule, 1 + (schedule.input % 3 == 2), trace)
        self.sessions = [f"session-{each}" for each in range(1 + schedule.input // 3 % 3)]
        self.kept, self.views = MemoryConversations(), MemoryControlStore()
        self.stores = Wire(self.scheduler, "Redis")
        self.chance = random.Random(f"{schedule.seed} agents")
        self.provider = Provider(random.Random(f"{schedule.seed} provider"))
        self.commands: list[tuple[str, str]] = []
        self.published: list[tuple[str, dict[str, Json]]] = []
        self.streams: dict[str, AssigningStream] = {}
        self._numbers = 0
        self._done_s: float | None = None
        self._commands_late_s = self.chance.choice((0.0, 0.3, 3.0))
        summariser = self.provider if self.chance.random() < 0.8 else None
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

    def publish(self, session: str, line: dict[str, Json]) -> None:
        own: dict[str, Json] = {"session_id": session, "uuid": f"{session}-{self.number()}"}
        full = {**own, **line}
        self.published.append((session, full))
        self._append(MESSAGES, session, json_codec.dumps(full))

    def _append(self, topic: str, session: str, value: bytes, headers: Headers = ()) -> None:
        partition = partition_of(session, self.partitions)
        self.broker.publish([NewRecord(topic, partition, key_bytes(session), value, headers)])

    def say(self, session: str, turns: int) -> None:
        for _ in range(turns):
            number = self.number()
            content: list[Json] = [{"type": "text", "text": f"answer {number} {WORDS}"}]
            calls = self.chance.random() < 0.4
            if calls:
                content.append(
                    {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"a": 1}}
                )
            self._message(session, "user", f"question {number} {WORDS}")
            message: Json = {
                "id": f"msg-{number}",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": content,
                "usage": {"input_tokens": 100 + number, "output_tokens": 20},
            }
            self.publish(session, {"type": "assistant", "message": message})
            if calls:
                result: Json = {
                    "type": "tool_result",
                    "tool_use_id": f"t{number}",
                    "content": f"result {number} {WORDS}",
                }
                self._message(session, "user", [result])

    def _message(self, session: str, role: str, content: Json, **more: Json) -> None:
        self.publish(session, {"type": role, "message": {"role": role, "content": content}, **more})

    def compact_itself(self, session: str) -> None:
        """The runtime compacts by itself."""
        metadata: Json = {"trigger": "auto", "pre_tokens": 500}
        boundary: dict[str, Json] = {"type": "system", "subtype": "compact_boundary"}
        self.publish(session, {**boundary, "compact_metadata": metadata})
        self._message(session, "user", f"So far: {self.number()}", isCompactSummary=True)

    # Commands

    def send(self, session: str, data: CommandData) -> None:
        entry = CommandEntry(f"request-{self.number()}", self.scheduler.now_ms(), data)
        headers, value = write_entry(entry)
        self._append(COMMANDS, session, value, headers)

    def request(self, session: str) -> None:
        chance = self.chance
        command_id = f"command-{len(self.commands)}"
        log = self.broker.partition(MESSAGES, partition_of(session, self.partitions))
        data = CompactRequested(
            session_id=session,
            command_id=command_id,
            trigger=chance.choice(["manual", "auto", "model_change"]),
            requested_by="simulation",
            urgent=chance.random() < 0.15,
            upto_offset=log.stable_end() if chance.random() < 0.5 else None,
        )
        self.commands.append((session, command_id))
        self.send(session, data)
        if chance.random() < 0.2:
            self.send(session, data)

    def repeat(self) -> None:
        if self.commands:
            session, command_id = self.chance.choice(self.commands)
            self.send(
                session,
                CompactRequested(
                    session_id=session,
                    command_id=command_id,
                    trigger="manual",
                    requested_by="simulation",
                ),
            )

    def cancel(self) -> None:
        if self.commands:
            session, command_id = self.chance.choice(self.commands[-3:])
            self.send(
                session,
                CancelRequested(
                    session_id=session, command_id=command_id, requested_by="simulation"
                ),
            )

    def _before_swap(self) -> None:
        if self.is_healing or self.chance.random() >= _AT_SWAP:
            return
        session = self.chance.choice(self.sessions)
        match self.chance.randrange(4):
            case 0:
                self.compact_itself(session)
            case 1:
                self.say(session, 1)
            case _:
                self.cancel()

    # Workers

    def wires(self) -> list[Wire]:
        return [self.broker.wire, self.stores]

    def startable(self) -> list[str]:
        return ["control"]

    def is_replaced(self, process: Process) -> bool:
        return not any(each.kind == process.kind for each in self.processes)

    def work(self, kind: str, _group: str, process: Process, common: WorkerPorts) -> Any:
        conversations: Any = ProcessStore(self.kept, self.stores, process)
        if kind == "keeper":
            return run_conversations(
                ConversationsPorts(
                    **vars(common),
                    log=ProcessLog(self.broker, self.groups, process),
                    store=conversations,
                    config=ConversationsConfig(
                        kept=KeptConversations(sessions=Patterns(("*",))),
                        instance_id="only",
                        poll_timeout_s=1.0,
                        expire_s=1.0,
                    ),
                )
            )
        log = ControlLog(self.broker, self.groups, process)
        log.commands_late_s, log.before_swap = self._commands_late_s, self._before_swap
        self.streams[process.name] = stream = AssigningStream(self.partitions)
        views: Any = ProcessStore(self.views, self.stores, process)
        ports = CommandPorts(
            **vars(common),
            stream=stream,
            log=log,
            store=views,
            conversations=conversations,
            asked=MemoryAskedContexts(process.clock),
            drivers={},
            owner_of=_no_owner,
            plan=self.plan,
            commands_topic=COMMANDS,
            messages_topic=MESSAGES,
            partitions=self.partitions,
            transactional_prefix="control-" if self.has_stable_ids else f"control-{process.name}-",
            retention_ms=CONTEXT_COMMANDS.retention_ms,
            fenced_pause_s=2.0,
        )
        worker = CommandWorker(ports)
        worker._planner.close()  # noqa: SLF001 -- threads have a time of their own
        worker._planner = InlinePlanner(2)  # type: ignore[assignment]  # noqa: SLF001
        return worker.run()

    # The run

    def begin(self, chance: random.Random) -> None:
        for session in self.sessions:
            self.say(session, chance.choice([0, 4, 8, 12]))
        for kind in ("control", "keeper"):
            self.scheduler.at(chance.random(), self.start_worker, kind)

    def heal(self) -> None:
        self.provider.seconds, self.provider.fails = 0.1, 0.0
        controls = [each for each in self.processes if each.kind == "control"]
        for process in controls[1:]:
            self.kill(process)
        for kind in self.kinds:
            if not any(each.kind == kind for each in self.processes):
                self.start_worker(kind)

    def is_done(self) -> bool:
        now_s = self.scheduler.now_s
        if self.unfinished() or self._behind():
            self._done_s = None
        elif self._done_s is None:
            self._done_s = now_s
        return self._done_s is not None and now_s - self._done_s >= _QUIET_S

    def _behind(self) -> list[int]:
        """Return the partitions whose conversations are behind."""
        marks = [run_at_once(self.kept.mark, p) for p in range(self.partitions)]
        return [
            partition
            for partition, mark in enumerate(marks)
            if mark is None
            or mark.position < self.broker.partition(MESSAGES, partition).stable_end()
        ]

    def missing(self) -> str | None:
        from tests.simulation.invariants import violations  # noqa: PLC0415 -- of this world

        if not self.is_done():
            return f"no outcome of {self.unfinished()}, conversations behind: {self._behind()}"
        return "; ".join(violations(self)) or None

    def records(self, topic: str) -> list[LogRecord]:
        logs = [self.broker.partition(topic, partition) for partition in range(self.partitions)]
        return [record for log in logs for record in log.read(0, 1_000_000).records]

    def entries(self) -> list[CommandData]:
        return [read_entry(each.headers, each.value or b"").data for each in self.records(COMMANDS)]

    def unfinished(self) -> set[str]:
        done = {each.command_id for each in self.entries() if isinstance(each, CommandFinished)}
        return {command_id for _, command_id in self.commands} - done


def _reassign(world: Control, act: Act) -> None:
    process = world.worker_at(act.number)
    if process is not None and process.name in world.streams:
        process.loop.call_soon(world.streams[process.name].rebalance)


def _empty_stores(world: Control, _act: Act) -> None:
    for partition in range(world.partitions):
        run_at_once(world.kept.drop, partition)
    world.views.__init__()  # type: ignore[misc]  # emptied


def _provider(world: Control, act: Act) -> None:
    world.provider.seconds = (0.1, 1.0, 3.0, 6.0)[act.number % 4]
    world.provider.fails = (0.0, 0.0, 0.3, 1.0)[act.number // 4 % 4]


def _of_session(do: Callable[[Control, str, Act], None]) -> Callable[[Control, Act], None]:
    return lambda world, act: do(world, world.sessions[act.number % len(world.sessions)], act)


Control.acts = {
    **OF_ANY,
    "say": _of_session(lambda world, session, act: world.say(session, 1 + act.number // 7 % 6)),
    "request": _of_session(lambda world, session, _act: world.request(session)),
    "own boundary": _of_session(lambda world, session, _act: world.compact_itself(session)),
    "reset": _of_session(
        lambda world, session, _act: world.publish(
            session, {"type": "conversation_reset", "trigger": "clear"}
        )
    ),
    "cancel": lambda world, _act: world.cancel(),
    "repeat": lambda world, _act: world.repeat(),
    "reassign": _reassign,
    "empty stores": _empty_stores,
    "provider": _provider,
}
