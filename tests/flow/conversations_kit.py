"""A worker that keeps conversations, on log and store in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import orjson

from contextgauge.clock import SystemClock
from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.partitioner import key_bytes, partition_of
from contextgauge.records import Json
from schemas.commands import CommandEntry, TextDeleted
from schemas.messages import AGENT_ID_HEADER, THREAD_ID_HEADER
from schemas.topics import AGENT_MESSAGES, CONTEXT_COMMANDS
from streams.codec.commands import write_entry
from streams.core.alerts.rules import Patterns
from streams.core.conversation.opt_in import KeptConversations
from streams.edge.memory.conversations import MemoryConversations
from streams.flow.conversations.config import ConversationsConfig, ConversationsPorts
from streams.flow.conversations.worker import run_conversations
from streams.ports import Headers, NewRecord
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import Figures, Worker, board, until

ALL = KeptConversations(sessions=Patterns(("*",)))
PARTITIONS = 2


class LateClock(SystemClock):
    """A clock that a test can set forward."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


def user(text: str, **more: Json) -> dict[str, Json]:
    return {"type": "user", "message": {"role": "user", "content": text}, **more}


SUMMARY: tuple[dict[str, Json], ...] = (
    {"type": "system", "subtype": "compact_boundary", "uuid": "b"},
    user("So far.", uuid="s", isCompactSummary=True),
)


class ConversationsKit:
    """A log with both topics, a store, and workers."""

    def __init__(self) -> None:
        self.clock = LateClock()
        self.log, self.store = FaultyLog(self.clock), MemoryConversations()
        self.config = ConversationsConfig(kept=ALL, poll_timeout_s=0.02, expire_s=0.01)

    async def publish(
        self,
        *lines: dict[str, Json],
        session: str = "s",
        agent: str | None = None,
        thread: str | None = None,
    ) -> None:
        named = {AGENT_ID_HEADER: agent, THREAD_ID_HEADER: thread}
        headers: Headers = tuple(
            (name, value.encode()) for name, value in named.items() if value is not None
        )
        values = [(orjson.dumps({**each, "session_id": session}), headers) for each in lines]
        await self._append(AGENT_MESSAGES.name, session, values)

    async def publish_bytes(self, value: bytes, session: str = "s") -> None:
        await self._append(AGENT_MESSAGES.name, session, [(value, ())])

    async def delete(self, session: str = "s") -> None:
        entry = CommandEntry("d", 0, TextDeleted(session_id=session, requested_by="me"))
        headers, value = write_entry(entry)
        await self._append(CONTEXT_COMMANDS.name, session, [(value, headers)])

    async def _append(self, topic: str, session: str, values: list[tuple[bytes, Headers]]) -> None:
        producer = self.log.producer()
        await producer.start()
        for value, headers in values:
            partition = partition_of(session, PARTITIONS)
            record = NewRecord(topic, partition, key_bytes(session), value, headers)
            await producer.send(record)
        await producer.flush()
        await producer.stop()

    def start(self, kept: KeptConversations | None = None) -> Worker:
        stop, figures = asyncio.Event(), Figures()
        ports = ConversationsPorts(
            log=self.log,
            store=self.store,
            config=self.config if kept is None else replace(self.config, kept=kept),
            telemetry=figures,
            health=board(),
            clock=self.clock,
            stop=stop,
        )
        return Worker(asyncio.create_task(run_conversations(ports)), stop, figures)

    @asynccontextmanager
    async def running(self, kept: KeptConversations | None = None) -> AsyncIterator[Worker]:
        worker = self.start(kept)
        try:
            yield worker
        finally:
            await worker.stop()

    async def caught_up(self) -> None:
        reader = self.log.reader(AGENT_MESSAGES.name, range(PARTITIONS))
        await reader.start()
        ends = [(await reader.bounds(each))[1] for each in range(PARTITIONS)]
        await reader.stop()

        async def done() -> bool:
            marks = [await self.store.mark(each) for each in range(PARTITIONS)]
            return [mark and mark.position for mark in marks] == ends

        await until(done)

    async def conversation(self, session: str = "s") -> SessionConversation:
        conversation = await self.store.conversation(session)
        assert conversation is not None
        return conversation

    async def texts(self, session: str = "s") -> list[str]:
        return texts_of(await self.conversation(session))

    async def becomes(self, check: Callable[[SessionConversation], bool]) -> None:
        async def done() -> bool:
            conversation = await self.store.conversation("s")
            return conversation is not None and check(conversation)

        await until(done)


def texts_of(conversation: SessionConversation) -> list[str]:
    return [
        each.text if each.compaction is None else f"[{each.compaction.summary}]"
        for each in conversation.history.active
    ]


async def new_kit() -> ConversationsKit:
    """Return one whose topics exist."""
    kit = ConversationsKit()
    await kit.log.create_topics([AGENT_MESSAGES, CONTEXT_COMMANDS], PARTITIONS)
    return kit
