"""Views in a real Redis, written as a project worker writes them, and a server over them."""

import asyncio
import json
import subprocess
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from contextgauge.partitioner import partition_of
from schemas.records import Record
from schemas.views import SESSION_IDLE_MS
from streams import codec
from streams.edge.redis.view_store import RedisViews
from streams.flow.common.retry import RetryLoop
from streams.flow.project.partition import PartitionProjector, ViewPartition
from streams.ports import Batch, LogRecord, ProjectorHeartbeat
from tests.commands import Command
from tests.flow.derive_kit import worker_ports
from tests.patience import PATIENCE_S

PARTITIONS = 2


class Projection:
    """A projector of all partitions, given its records by hand."""

    def __init__(self, url: str, prefix: str) -> None:
        self.store = RedisViews(url, prefix)
        self._offsets = [0] * PARTITIONS
        self._projectors: list[PartitionProjector] = []

    async def start(self, generation: int = 1) -> None:
        """Begin a generation, and make it the active one."""
        await self.store.begin_next(generation, "build")
        retry = RetryLoop(worker_ports(), "redis")
        self._projectors = [
            PartitionProjector(
                self.store,
                retry,
                ViewPartition(generation, partition, PARTITIONS),
                strict=True,
                idle_ms=SESSION_IDLE_MS,
                writer=str(partition),
            )
            for partition in range(PARTITIONS)
        ]
        for projector in self._projectors:
            await projector.begin(0, "build")
            assert await projector.open()
        self._offsets = [0] * PARTITIONS
        await self.store.activate(generation, "build")
        await self.tell()

    async def add(self, *records: Record) -> None:
        """Project records."""
        parts: list[list[LogRecord]] = [[] for _ in range(PARTITIONS)]
        for record in records:
            headers, value = codec.to_binary(record)
            partition = partition_of(record.data.session_id, PARTITIONS)
            key = codec.key_bytes(record.data.session_id)
            parts[partition].append(LogRecord(self._offsets[partition], 0, key, value, headers))
            self._offsets[partition] += 2
        for partition, logged in enumerate(parts):
            await self._projectors[partition].apply(Batch(logged, self._offsets[partition]))
        await self.tell()

    async def tell(self) -> None:
        """Tell readers that all is well."""
        for offset, projector in zip(self._offsets, self._projectors, strict=True):
            await projector.report_heartbeat(ProjectorHeartbeat(SystemClock().now_ms(), offset, 0))


class Served:
    """A server as a process of its own; `port` stays where it is started again."""

    def __init__(self, command: Command, port: int, name: str = "serve", **settings: str) -> None:
        self._command, self._name, self.settings = command, name, settings
        self.url = f"http://127.0.0.1:{port}"
        self.process: subprocess.Popen[str] | None = None

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        port = {f"{self._name.upper()}_PORT": self.url.rpartition(":")[2]}
        self.process = self._command.start(self._name, **self.settings, **port)
        until_s = time.monotonic() + PATIENCE_S
        async with httpx.AsyncClient(base_url=self.url) as client:
            while time.monotonic() < until_s:
                assert self.process.poll() is None, self.process.communicate()
                try:
                    await client.get("/healthz")
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
                else:
                    return
        raise AssertionError("the server does not answer")

    def end(self, number: int) -> int:
        """Send a signal, and return the exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode


async def listen(
    url: str, place: str | None = None, **headers: str
) -> AsyncGenerator[tuple[str, str, Any], None]:
    """Yield the feed's events: kind, id and document; it ends when the server does."""
    sent = headers | ({"Last-Event-ID": place} if place else {})
    client = httpx.AsyncClient(base_url=url, timeout=PATIENCE_S)
    async with client, client.stream("GET", "/v1/stream", headers=sent) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        try:
            async for line in answer.aiter_lines():
                name, _, value = line.partition(": ")
                if line:
                    fields[name] = value
                elif "data" in fields:
                    yield fields["event"], fields.get("id", ""), json.loads(fields["data"])
                    fields = {}
                else:
                    yield "", fields.get("id", ""), None
                    fields = {}
        except httpx.TransportError:
            return


async def become(done: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not done():  # noqa: ASYNC110 -- what is waited for is not this test's to signal
            await asyncio.sleep(0.02)


async def until(url: str, path: str, status: int) -> httpx.Response:
    """Ask until the answer has this status."""
    until_s = time.monotonic() + PATIENCE_S
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as client:
        while True:
            answer = await client.get(path)
            if answer.status_code == status:
                return answer
            if time.monotonic() > until_s:
                raise RetryError(f"{path} is answered with {answer.status_code}: {answer.text}")
            await asyncio.sleep(0.1)
