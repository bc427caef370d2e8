"""The compaction service under test: an agent's messages in, one outcome of each command out."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from contextgauge import json_codec
from contextgauge.clock import SystemClock
from contextgauge.compaction.ports import SummaryAnswer, SummaryError, SummaryRequest
from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.errors import VersionError
from contextgauge.partitioner import key_bytes, partition_of
from contextgauge.records import Json
from schemas.commands import (
    CancelRequested,
    CommandAccepted,
    CommandData,
    CommandEntry,
    CommandFinished,
    CommandTrigger,
    CompactRequested,
)
from schemas.topics import AGENT_MESSAGES, CONTEXT_COMMANDS
from streams.codec.commands import read_entry, write_entry
from streams.core.control.plan import CompactedSession, ControlPlan, SessionPolicy
from streams.core.conversation.fold import ConversationFold
from streams.flow.control.commands.command_log import session_of
from streams.flow.control.commands.command_ports import CommandPorts
from streams.flow.control.commands.command_worker import CommandWorker
from streams.flow.control.commands.message_tail import lines_of
from streams.flow.control.session_owners import Owner
from streams.ports import Driver, Log, LogRecord, NewRecord
from streams.ports.conversations import Mark
from tests.doubles.asked_contexts import MemoryAskedContexts
from tests.doubles.control_store import MemoryControlStore
from tests.doubles.log import FaultyLog
from tests.doubles.record_stream import MemoryRecordStream
from tests.flow.derive_kit import worker_ports
from tests.patience import PATIENCE_S

SESSION = "session"
COMMANDS = CONTEXT_COMMANDS.name
MESSAGES = AGENT_MESSAGES.name
PARTITIONS = 2

_Data = TypeVar("_Data", bound=CommandData)


class Summaries:
    """A summariser that a test holds up, or has fail."""

    def __init__(self) -> None:
        self.name = "test"
        self.calls = 0
        self.failures = 0
        """So many of the next calls fail."""
        self.open = threading.Event()
        """No call returns before it is set."""
        self.open.set()
        self._let_go = threading.Semaphore(0)

    def let_one_go(self) -> None:
        """Let one call return, although they are held up."""
        self._let_go.release()

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        self.calls += 1
        while not self.open.is_set() and not self._let_go.acquire(blocking=False):  # noqa: ASYNC110 -- set by another thread
            await asyncio.sleep(0.002)
        if self.failures:
            self.failures -= 1
            raise SummaryError("the provider is away")
        return SummaryAnswer(f"{len(request.messages)} messages of work")


class LogConversations:
    """Conversations as of now, folded from the log each time; `lag` keeps them behind."""

    def __init__(self, log: FaultyLog) -> None:
        self.log = log
        self.held: int | None = None
        """The position beyond which nothing is folded."""
        self.topic_id = ""
        self.is_former = False
        """Whether they are still those of a former topic, without this one's sessions."""
        self.looks = 0

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def mark(self, partition: int) -> Mark:
        await asyncio.sleep(0)
        self.looks += 1
        end = self.log.partition(MESSAGES, partition).stable_end()
        topic_id = "former" if self.is_former else self.topic_id
        return Mark(end if self.held is None else min(end, self.held), "", topic_id)

    async def conversation(self, session_id: str) -> SessionConversation | None:
        partition = partition_of(session_id, PARTITIONS)
        mark = await self.mark(partition)
        fold, any_line = ConversationFold(), False
        records = self.log.partition(MESSAGES, partition).read(0, 1_000_000).records
        for offset, line in lines_of(records, session_id):
            if offset < mark.position:
                fold.add(line, offset)
                any_line = True
        if not any_line or self.is_former:
            return None
        return fold.result._replace(position=mark.position, topic_id=mark.topic_id)


def record_of(data: CommandData, number: int = 0, time_ms: int | None = None) -> NewRecord:
    """Return a request as it is appended."""
    entry = CommandEntry(f"{data.kind}-{number}", time_ms or SystemClock().now_ms(), data)
    headers, value = write_entry(entry)
    session_id = session_of(data) or SESSION
    partition = partition_of(session_id, PARTITIONS)
    return NewRecord(COMMANDS, partition, key_bytes(session_id), value, headers)


@dataclass
class CommandKit:
    """A log, and owners of its partitions."""

    log: FaultyLog = field(default_factory=lambda: FaultyLog(SystemClock()))
    summaries: Summaries = field(default_factory=Summaries)
    store: MemoryControlStore = field(default_factory=MemoryControlStore)
    drivers: dict[str, Driver] = field(default_factory=dict)
    driver: str = "service"
    opted_in: bool = True
    automatic: bool = True
    owners: dict[str, Owner] = field(default_factory=dict)
    facts: list[CompactedSession] = field(default_factory=list)
    """What the policy was asked for."""
    asked_owners: list[str] = field(default_factory=list)
    """The sessions whose owner was asked for."""
    messages: int = 0
    plan: ControlPlan | None = None

    def __post_init__(self) -> None:
        self.conversations = LogConversations(self.log)
        self.asked = MemoryAskedContexts(SystemClock())
        self.plan = ControlPlan(
            session=self._session,
            summariser=self.summaries,
            conversation_s=0.5,
            heartbeat_s=0.05,
            pause_s=0.01,
        )

    def _session(self, facts: CompactedSession) -> SessionPolicy:
        self.facts.append(facts)
        return SessionPolicy(self.opted_in, self.driver, automatic=self.automatic)

    async def _owner_of(self, session_id: str) -> Owner:
        self.asked_owners.append(session_id)
        return self.owners.get(session_id, Owner(is_known=True))

    def change(self, **changes: object) -> None:
        """Change the configuration."""
        assert self.plan is not None
        self.plan = replace(self.plan, **changes)  # type: ignore[arg-type]  # fields of the plan

    @classmethod
    async def created(cls, turns: int = 0) -> Self:
        """Return one with its topics, and so many turns of a conversation."""
        kit = cls()
        await kit.create()
        await kit.say(turns)
        return kit

    async def create(self) -> None:
        """Create the topics."""
        await self.log.create_topics([AGENT_MESSAGES, CONTEXT_COMMANDS], PARTITIONS)

    async def say(self, turns: int = 1, session_id: str = SESSION, words: int = 400) -> None:
        """Publish turns of a conversation: a user's question, and an answer."""
        for _ in range(turns):
            self.messages += 1
            number = self.messages
            text = f"question {number} " + "word " * words
            answer: list[Json] = [{"type": "text", "text": f"answer {number} " + "work " * words}]
            message: dict[str, Json] = {
                "id": f"msg-{number}",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": answer,
            }
            await self.publish(
                {"type": "user", "message": {"role": "user", "content": text}},
                {"type": "assistant", "message": message},
                session_id=session_id,
            )

    async def ask(self) -> None:
        """Publish a question of the user, without an answer."""
        await self.publish({"type": "user", "message": {"role": "user", "content": "and now?"}})

    async def publish(self, *lines: dict[str, Json], session_id: str = SESSION) -> None:
        """Publish messages of a session."""
        partition = partition_of(session_id, PARTITIONS)
        producer = self.log.producer()
        for line in lines:
            end = self.log.partition(MESSAGES, partition).next_offset
            own: dict[str, Json] = {"uuid": f"{session_id}-{end}", "session_id": session_id}
            value = json_codec.dumps({**line, **own})
            await producer.send(NewRecord(MESSAGES, partition, key_bytes(session_id), value))

    async def request(
        self,
        command_id: str = "command",
        *,
        session_id: str = SESSION,
        trigger: CommandTrigger = "manual",
        urgent: bool = False,
        upto_offset: int | None = None,
    ) -> None:
        """Request a compaction."""
        await self.send(
            CompactRequested(
                session_id=session_id,
                command_id=command_id,
                trigger=trigger,
                requested_by="test",
                urgent=urgent,
                upto_offset=upto_offset,
            )
        )

    async def cancel(self, command_id: str = "command") -> None:
        """Request that a command is cancelled."""
        await self.send(
            CancelRequested(session_id=SESSION, command_id=command_id, requested_by="test")
        )

    async def send(self, *entries: CommandData, time_ms: int | None = None) -> None:
        """Append requests, of now or of another time."""
        producer = self.log.producer()
        for data in entries:
            end = self.log.partition(COMMANDS, 0).next_offset
            await producer.send(record_of(data, end, time_ms))

    def ports(self, stop: asyncio.Event) -> CommandPorts:
        """Return what a worker is given."""
        assert self.plan is not None
        log: Log = self.log
        stream = MemoryRecordStream(log, COMMANDS, range(PARTITIONS), {}, lambda: 0, lambda: 0)
        return CommandPorts(
            **vars(worker_ports(stop=stop)),
            stream=stream,
            log=log,
            store=self.store,
            conversations=self.conversations,
            asked=self.asked,
            drivers=self.drivers,
            owner_of=self._owner_of,
            plan=self.plan,
            commands_topic=COMMANDS,
            messages_topic=MESSAGES,
            partitions=PARTITIONS,
            transactional_prefix="control-",
            retention_ms=CONTEXT_COMMANDS.retention_ms,
            fenced_pause_s=0.2,
        )

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[CommandWorker]:
        """Run a worker; it is killed at the end, and what it raised is raised."""
        worker = CommandWorker(self.ports(asyncio.Event()))
        running = asyncio.create_task(worker.run())
        try:
            yield worker
            if running.done():
                running.result()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def entries(self) -> list[CommandData]:
        """Return what the log of commands says."""
        entries = []
        for partition in range(PARTITIONS):
            for record in self.read(COMMANDS, partition):
                with suppress(VersionError):  # another program's
                    entries.append(read_entry(record.headers, record.value or b"").data)
        return entries

    def read(self, topic: str, partition: int) -> Sequence[LogRecord]:
        """Return the committed records of a partition."""
        return self.log.partition(topic, partition).read(0, 1_000_000).records

    def of(self, kind: type[_Data]) -> list[_Data]:
        """Return what the log of commands says, of one kind."""
        return [each for each in self.entries() if isinstance(each, kind)]

    def finished(self, command_id: str = "command") -> list[CommandFinished]:
        """Return the outcomes of a command: there must never be two."""
        return [each for each in self.of(CommandFinished) if each.command_id == command_id]

    async def outcome(self, command_id: str = "command") -> CommandFinished:
        """Wait for the outcome of a command."""
        await self.until(lambda: bool(self.finished(command_id)))
        (only,) = self.finished(command_id)
        return only

    async def carry_out(self, command_id: str = "command", **request: Any) -> CommandFinished:
        """Request a compaction, and run a worker until it has its outcome."""
        await self.request(command_id, **request)
        async with self.worker():
            return await self.outcome(command_id)

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not happened():  # noqa: ASYNC110 -- the log has no event that could be waited for
                await asyncio.sleep(0.002)

    def has_called(self, calls: int) -> bool:
        """Return whether the summariser was called so often."""
        return self.summaries.calls >= calls

    def kinds(self) -> list[str]:
        """Return the kinds of steps in the log, without heartbeats."""
        kinds = [each.kind for each in self.entries()]
        return [kind for index, kind in enumerate(kinds) if kind not in kinds[:index]]

    def lines(self, session_id: str = SESSION) -> list[dict[str, Json]]:
        """Return the messages of a session in the log."""
        records = self.read(MESSAGES, partition_of(session_id, PARTITIONS))
        return [line for _, line in lines_of(records, session_id)]

    def boundaries(self, session_id: str = SESSION) -> list[dict[str, Json]]:
        """Return the boundaries in the log."""
        return [
            each for each in self.lines(session_id) if each.get("subtype") == "compact_boundary"
        ]

    async def check(self, session_id: str = SESSION) -> None:
        """Check what must be so whatever was killed when."""
        accepted = self.of(CommandAccepted)
        requested = {each.command_id for each in self.of(CompactRequested)}
        outcomes = self.of(CommandFinished)
        counts = Counter(each.command_id for each in outcomes)
        assert counts == dict.fromkeys(requested, 1)
        assert len(accepted) == len({each.command_id for each in accepted})
        completed = [each for each in outcomes if each.outcome == "completed"]
        uuids = [each["uuid"] for each in self.boundaries(session_id)]
        assert uuids == [each.boundary_uuid for each in completed if each.session_id == session_id]
        conversation = await self.conversations.conversation(session_id)
        assert conversation is not None
        history = conversation.history
        # Each boundary has its effect, which only one that fits has.
        assert history.rounds == len(uuids)
        assert len(history.receipts) == len(uuids)
        there = {each.id for each in (*history.active, *history.archived)}
        said = {
            each["uuid"]
            for each in self.lines(session_id)
            if each.get("type") in ("user", "assistant") and not each.get("isCompactSummary")
        }
        assert said <= there
