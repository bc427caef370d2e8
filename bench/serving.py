"""What the HTTP server carries: requests a second, and the live feed's delay.

    python -m bench.serving [--sessions 10000] [--seconds 10] [--readers 1000] [--updates 100]

One server over one Redis. Sessions are projected first, and go on meanwhile: `--updates` records a
second, as a project worker writes them. Routes are asked over kept connections, by 16 readers that
ask again at once. The feed's delay is from a record's time, which is when it is handed to the
projection, until a reader has it. Writer, readers, server and Redis share this machine.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import uvloop

from bench.process import cost, load
from bench.systems import ROOT
from contextgauge.clock import SystemClock
from contextgauge.partitioner import partition_of
from schemas.records import ContextLimits, ContextReading, Record, RecordData, SessionInfo
from schemas.views import SESSION_IDLE_MS
from streams import codec
from streams.edge.local_stack.stack import LocalStack
from streams.edge.redis.view_store import RedisViews
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.edge.telemetry.server import listening, port_of
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.retry import RetryLoop
from streams.flow.project.partition import PartitionProjector, ViewPartition
from streams.ports import Batch, Health, LogRecord, ProjectorHeartbeat

PARTITIONS = 4
WINDOW = 200_000
_BATCH_S = 0.02
_ASKERS = 16
_SAMPLED = 20
"""Readers of the feed whose events are looked at; of the others they are counted."""
_AT_ONCE = 50
"""Connections that are opened at once."""
_STUCK_S = 60.0
_TIME = re.compile(rb'"time_ms":(\d+)')
_EVENT = b"event: record"
_WARM_UP_S = 2.0

Result = dict[str, Any]


class Writer:
    """Projects sessions that grow, all partitions in this process."""

    def __init__(self, url: str) -> None:
        self._store = RedisViews(url)
        self._offsets = [0] * PARTITIONS
        self._sequences: dict[str, int] = {}
        health = Health("bench", clock := SystemClock(), _STUCK_S)
        ports = WorkerPorts(
            telemetry=PrometheusTelemetry(), health=health, clock=clock, stop=asyncio.Event()
        )
        retry = RetryLoop(ports, "redis")
        self._projectors = [
            PartitionProjector(
                self._store,
                retry,
                ViewPartition(1, partition, PARTITIONS),
                strict=True,
                idle_ms=SESSION_IDLE_MS,
                writer=str(partition),
            )
            for partition in range(PARTITIONS)
        ]

    async def start(self) -> None:
        """Begin a generation, and make it the active one."""
        await self._store.begin_next(1, "bench")
        for projector in self._projectors:
            await projector.begin(0, "bench")
            await projector.open()
        await self._store.activate(1, "bench")

    async def begin(self, sessions: int) -> None:
        """Project what begins so many sessions."""
        for start in range(0, sessions, 1_000):
            names = [_name(number) for number in range(start, min(start + 1_000, sessions))]
            await self._add([data for name in names for data in _beginning(name)])

    async def grow(self, sessions: int, per_s: int) -> None:
        """Project so many readings a second, of one session after the other, for ever."""
        number, began_s = 0, time.monotonic()
        while True:
            due = int((time.monotonic() - began_s) * per_s) - number
            if due > 0:
                some = range(number, number + due)
                await self._add([_reading(_name(n * 7 % sessions), n % 150) for n in some])
                number += due
            await asyncio.sleep(_BATCH_S)

    async def _add(self, added: Sequence[RecordData]) -> None:
        now_ms = SystemClock().now_ms()
        parts: list[list[LogRecord]] = [[] for _ in range(PARTITIONS)]
        for data in added:
            name = data.session_id
            sequence = self._sequences[name] = self._sequences.get(name, 0) + 1
            record = Record(f"{name}-{sequence}", data.chain, now_ms, sequence, "bench", data)
            headers, value = codec.to_binary(record)
            partition = partition_of(name, PARTITIONS)
            offset = self._offsets[partition]
            self._offsets[partition] += 1
            parts[partition].append(LogRecord(offset, now_ms, name.encode(), value, headers))
        for partition, logged in enumerate(parts):
            projector = self._projectors[partition]
            await projector.apply(Batch(logged, self._offsets[partition]))
            await projector.report_heartbeat(
                ProjectorHeartbeat(now_ms, self._offsets[partition], 0)
            )


def _name(number: int) -> str:
    return f"0198c7a2-{number:08x}-7c41"


def _common(name: str) -> dict[str, Any]:
    return {
        "session_id": name,
        "chain": "main",
        "model": "claude-sonnet-5",
        "task_id": None,
        "subagent_type": None,
    }


def _beginning(name: str) -> list[RecordData]:
    info = SessionInfo(
        **_common(name),
        runtime="claude-code",
        runtime_version="2.1.40",
        cwd="/srv/shop",
        forked_from=None,
        publisher_agent_id=f"agent-{name[-6]}",
    )
    unknown = ("auto_compact_source", "total_tokens", "categories", "message_breakdown")
    limits = ContextLimits(
        **_common(name),
        window=WINDOW,
        window_source="runtime",
        auto_compact_enabled=True,
        auto_compact_threshold=166_666,
        effective_window=WINDOW,
        **cast("Any", dict.fromkeys(unknown)),
    )
    return [info, limits, *(_reading(name, number) for number in range(8))]


def _reading(name: str, number: int) -> ContextReading:
    used = 20_000 + 1_000 * number
    return ContextReading(
        **_common(name),
        response_id=f"msg_{number}",
        used_tokens=used,
        input_tokens=10,
        cache_creation_tokens=1_000,
        cache_read_tokens=used - 1_010,
        previous_output_tokens=200,
        window=WINDOW,
        window_source="runtime",
        used_percent=used * 10_000 // WINDOW / 100,
        messages=number + 1,
        messages_total=number + 1,
    )


class Asked(NamedTuple):
    """Answers of one route: how many, how fast, of which status, and their bytes."""

    delays_s: list[float]
    statuses: set[int]
    length: int


async def ask(port: int, path: str, headers: str, until_s: float) -> Asked:
    """Ask again and again over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n".encode()
    delays_s: list[float] = []
    statuses: set[int] = set()
    length = 0
    while (now_s := time.monotonic()) < until_s:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        statuses.add(int(head[9:12]))
        length_header = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        length = int(length_header[1]) if length_header else 0
        await reader.readexactly(length)
        delays_s.append(time.monotonic() - now_s)
    writer.close()
    return Asked(delays_s, statuses, length)


async def measure_route(
    port: int, pid: int, name: str, route: tuple[str, str], seconds: float
) -> Result:
    """Return what one route carries, with `_ASKERS` that ask at once."""
    path, headers = route
    await ask(port, path, headers, time.monotonic() + 0.5)
    before, began_s = cost(pid).cpu_s, time.monotonic()
    askers = await asyncio.gather(
        *(ask(port, path, headers, began_s + seconds) for _ in range(_ASKERS))
    )
    taken_s = time.monotonic() - began_s
    delays_s = sorted(delay for each in askers for delay in each.delays_s)
    return {
        "route": name,
        "statuses": sorted({status for each in askers for status in each.statuses}),
        "bytes": askers[0].length,
        "requests_per_s": round(len(delays_s) / taken_s),
        "p50_ms": round(_part(delays_s, 0.5) * 1_000, 1),
        "p99_ms": round(_part(delays_s, 0.99) * 1_000, 1),
        "server_cores": round((cost(pid).cpu_s - before) / taken_s, 2),
    }


def _part(ordered: Sequence[float], part: float) -> float:
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)] if ordered else 0.0


class Reader(asyncio.Protocol):
    """A reader of the feed."""

    def __init__(self, path: str, *, is_sampled: bool) -> None:
        self._path, self._is_sampled = path, is_sampled
        self.events = 0
        self.delays_ms: list[int] = []
        self.is_counting = False
        self.is_open = False
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the feed."""
        writer = cast("asyncio.WriteTransport", transport)  # uvloop's own is none by its class
        writer.write(f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        self._transport, self.is_open = transport, True

    def close(self) -> None:
        """End it."""
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Count what came."""
        if not self.is_counting:
            return
        self.events += data.count(_EVENT)
        if self._is_sampled:
            now_ms = SystemClock().now_ms()
            self.delays_ms += [now_ms - int(sent_ms) for sent_ms in _TIME.findall(data)]

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that it is gone."""
        del exc
        self.is_open = False


async def measure_feed(port: int, pid: int, readers: int, seconds: float) -> Result:
    """Return how late events are with so many readers, and what it costs."""
    loop, all_of_them = asyncio.get_running_loop(), []
    began_s = time.monotonic()
    for start in range(0, readers, _AT_ONCE):
        made = [
            Reader("/v1/stream", is_sampled=number % max(readers // _SAMPLED, 1) == 0)
            for number in range(start, min(start + _AT_ONCE, readers))
        ]
        await asyncio.gather(
            *(loop.create_connection(lambda r=reader: r, "127.0.0.1", port) for reader in made)  # type: ignore[misc]  # a lambda's default
        )
        all_of_them += made
    connected_s = time.monotonic() - began_s
    await asyncio.sleep(_WARM_UP_S)
    for reader in all_of_them:
        reader.is_counting = True
    before, began_s = cost(pid), time.monotonic()
    await asyncio.sleep(seconds)
    taken_s, after = time.monotonic() - began_s, cost(pid)
    still_open = sum(reader.is_open for reader in all_of_them)
    for reader in all_of_them:
        reader.close()
    counts = sorted(reader.events for reader in all_of_them)
    delays = sorted(float(delay) for reader in all_of_them for delay in reader.delays_ms)
    return {
        "readers": readers,
        "still_open": still_open,
        "connected_s": round(connected_s, 2),
        "events_per_s_each": round(counts[len(counts) // 2] / taken_s, 1),
        "fewest_and_most_events": [counts[0], counts[-1]],
        "delivered_per_s": round(sum(counts) / taken_s),
        "delay_p50_ms": _part(delays, 0.5),
        "delay_p99_ms": _part(delays, 0.99),
        "delay_max_ms": delays[-1] if delays else None,
        "server_cores": round((after.cpu_s - before.cpu_s) / taken_s, 2),
        "server_peak_mib": round(after.peak_mib),
    }


async def measure(url: str, sessions: int, seconds: float, readers: int, updates: int) -> Result:
    """Fill Redis, start server and writer, and measure."""
    writer = Writer(url)
    await writer.start()
    began_s = time.monotonic()
    await writer.begin(sessions)
    figures: Result = {
        "sessions": sessions,
        "updates_per_s": updates,
        "filled_s": round(time.monotonic() - began_s, 1),
        "load_before": load(),
        "routes": [],
        "feed": [],
    }
    with listening("127.0.0.1", 0) as listener:
        port = port_of(listener)
    environment = {
        **os.environ,
        "CONTEXTGAUGE_REDIS_URL": url,
        "CONTEXTGAUGE_SERVE_PORT": str(port),
        "CONTEXTGAUGE_SERVE_REQUESTS_PER_S": "0",
        "CONTEXTGAUGE_SERVE_STREAMS": str(readers + 100),
    }
    command = [sys.executable, "-m", "streams", "serve"]
    server = subprocess.Popen(command, cwd=ROOT, env=environment)  # noqa: ASYNC220 -- at the start
    growing = asyncio.create_task(writer.grow(sessions, updates))
    try:
        await _answers(port)
        session = _name(5)
        routes = {
            "/healthz": ("/healthz", ""),
            "a session": (f"/v1/sessions/{session}", ""),
            "a session, 304": (f"/v1/sessions/{session}", "If-None-Match: *\r\n"),
            "50 sessions by pressure": ("/v1/sessions?sort=pressure", ""),
            "50 sessions, gzip": ("/v1/sessions", "Accept-Encoding: gzip\r\n"),
            "50 sessions, filtered": ("/v1/sessions?min_percent=50&q=shop", ""),
            "1 000 sessions": ("/v1/sessions?limit=1000", ""),
            "a session's readings": (f"/v1/sessions/{session}/readings", ""),
            "an agent's events": (f"/api/agents/{session}/events", ""),
            "aggregates": ("/v1/stats", ""),
        }
        for name, route in routes.items():
            result = await measure_route(port, server.pid, name, route, seconds)
            figures["routes"].append(result)
            print(json.dumps(result), file=sys.stderr, flush=True)
        for count in (1, readers // 10, readers):
            result = await measure_feed(port, server.pid, count, seconds)
            figures["feed"].append(result)
            print(json.dumps(result), file=sys.stderr, flush=True)
    finally:
        growing.cancel()
        server.terminate()
        server.wait()
    return figures


async def _answers(port: int) -> None:
    for _ in range(200):
        try:
            await ask(port, "/v1/sessions?limit=1", "", time.monotonic() + 0.001)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            return
    raise SystemExit("the server does not answer")


def main() -> None:
    """Run the measurement; its last line is a JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--readers", type=int, default=1_000)
    parser.add_argument("--updates", type=int, default=100)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        stack = LocalStack(Path(name) / "stack")
        try:
            url = stack.start(["redis"])["redis"].address
            figures = uvloop.run(
                measure(url, chosen.sessions, chosen.seconds, chosen.readers, chosen.updates)
            )
        finally:
            stack.stop()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
