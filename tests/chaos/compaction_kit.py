"""The compaction service's topics under test, and a server of summaries."""

import asyncio
from typing import Any

from aiohttp import web

from contextgauge.clock import SystemClock
from contextgauge.json_codec import dumps
from contextgauge.partitioner import key_bytes, partition_of
from schemas.commands import (
    CancelRequested,
    CommandData,
    CommandEntry,
    CommandFinished,
    CompactRequested,
)
from schemas.topics import AGENT_MESSAGES, CONTEXT_COMMANDS
from streams.codec.commands import read_entry, write_entry
from streams.core.control.ids import id_of
from streams.edge.kafka.log import KafkaLog
from streams.flow.common.ranges import read_range
from streams.ports import LogRecord, NewRecord, started

PARTITIONS = 2
FOLDER = "/srv/app"
SUMMARY = "\n".join(
    f"### {name}\nWhat was done so far."
    for name in (
        "Original task",
        "Completed work",
        "Key decisions",
        "Working memory",
        "Current state",
        "Pending work",
    )
)


class SummaryServer:
    """A server of summaries that holds its answers back while a test wants that."""

    def __init__(self) -> None:
        self.calls = 0
        self.go = asyncio.Event()
        self.go.set()
        self.url = ""
        self.is_away = False

    def was_called(self, before: int) -> bool:
        """Return whether it was called since it had so many calls."""
        return self.calls > before

    async def handle(self, request: web.Request) -> web.Response:
        await request.read()
        self.calls += 1
        if self.is_away:
            return web.json_response({"error": {"message": "away"}}, status=503)
        await self.go.wait()
        answer = {
            "id": "a",
            "object": "chat.completion",
            "created": 0,
            "model": "test",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": SUMMARY},
                }
            ],
            "usage": {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10},
        }
        return web.json_response(answer)


class ServiceUnderTest:
    """The topics of one test, and what a test does with them."""

    def __init__(self, log: KafkaLog, prefix: str) -> None:
        self.log = log
        self.messages = prefix + AGENT_MESSAGES.name
        self.commands = prefix + CONTEXT_COMMANDS.name
        self.said = 0

    async def say(self, session: str, turns: int) -> None:
        """Publish turns of a conversation."""
        records = []
        init = {"type": "system", "subtype": "init", "model": "test", "cwd": FOLDER}
        records.append(self._record(self.messages, session, dumps(init)))
        for _ in range(turns):
            self.said += 1
            for role in ("user", "assistant"):
                text = f"{role} {self.said} " + "word " * 300
                content: Any = text if role == "user" else [{"type": "text", "text": text}]
                line = {
                    "type": role,
                    "uuid": f"{role}-{self.said}",
                    "session_id": session,
                    "message": {"role": role, "content": content},
                }
                records.append(self._record(self.messages, session, dumps(line)))
        await self._send(*records)

    async def send(self, data: CompactRequested | CancelRequested) -> None:
        """Append a request."""
        entry = CommandEntry(id_of(data.kind, data.command_id), SystemClock().now_ms(), data)
        headers, value = write_entry(entry)
        record = self._record(self.commands, data.session_id, value)
        await self._send(record._replace(headers=headers))

    async def request(self, session: str, command_id: str) -> None:
        """Request a compaction."""
        await self.send(
            CompactRequested(
                session_id=session, command_id=command_id, trigger="manual", requested_by="test"
            )
        )

    def _record(self, topic: str, session: str, value: bytes) -> NewRecord:
        return NewRecord(topic, partition_of(session, PARTITIONS), key_bytes(session), value)

    async def _send(self, *records: NewRecord) -> None:
        async with started(self.log.producer()) as producer:
            for record in records:
                await producer.send(record)
            await producer.flush()

    async def read(self, topic: str) -> list[LogRecord]:
        """Return the committed records of a topic."""
        records: list[LogRecord] = []
        for number in range(PARTITIONS):
            async with started(self.log.reader(topic, [number])) as reader:
                first, end = await reader.bounds(number)
                async for batch in read_range(reader, SystemClock(), number, first, end):
                    records += batch.records
        return records

    async def entries(self) -> list[CommandData]:
        """Return the log of commands."""
        records = await self.read(self.commands)
        return [read_entry(record.headers, record.value or b"").data for record in records]

    async def outcome(self, command_id: str) -> CommandFinished | None:
        """Return a command's outcome, if it has one."""
        for data in await self.entries():
            if isinstance(data, CommandFinished) and data.command_id == command_id:
                return data
        return None
