"""The live feed over HTTP: what a connection receives, and what becomes of one that is not read."""

import asyncio
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn

from schemas.records import Record
from streams.edge.files.tokens import hashed
from streams.edge.telemetry.server import listening, port_of
from streams.ports import Entry, Generations
from streams.serve.feed import listener as listener_module
from streams.serve.feed import stream
from tests.conftest import LONG
from tests.patience import PATIENCE_S
from tests.serve.kit import Api, GrowingViews, api_over
from tests.serve.redis_kit import become, listen


@asynccontextmanager
async def served(api: Api) -> AsyncIterator[int]:
    """Serve an application in this process; yield its port."""
    listener = listening("127.0.0.1", 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
    config = uvicorn.Config(api.app, log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve([listener]))
    await become(lambda: server.started)
    try:
        yield port_of(listener)
    finally:
        await api.app.state.feed.stop()
        server.should_exit = True
        await running
        listener.close()


def _figure(api: Api, name: str, **labels: str) -> float:
    return api.telemetry.registry.get_sample_value(f"contextgauge_{name}", labels) or 0.0


async def test_a_silent_feed_shows_that_it_is_alive(
    monkeypatch: pytest.MonkeyPatch, records: list[Record]
) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_S", 0.05)
    views = GrowingViews()
    views.add(*records[:3])
    async with served(api_over(views)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            head = await reader.readuntil(b"\r\n\r\n")
            received = await reader.readuntil(b": heartbeat\r\n\r\n")
        assert b"text/event-stream" in head
        assert b"content-encoding" not in head.lower()
        assert b"no-store" in head
        assert b"id: 1:" in received
        writer.close()


async def test_a_revoked_token_ends_its_feed(
    monkeypatch: pytest.MonkeyPatch, records: list[Record]
) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_S", 0.05)
    views = GrowingViews()
    views.add(*records[:3])
    known = {hashed("mine"): "me", hashed("another"): "other"}
    api = api_over(views, readers=lambda: known)
    head = b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    async with served(api) as port:
        seen = []
        for token in (b"mine", b"another"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head + b"Authorization: Bearer " + token + b"\r\n\r\n")
            await reader.readuntil(b": heartbeat\r\n\r\n")
            seen.append((reader, writer))
        del known[hashed("mine")]
        (reader, writer), (other, second) = seen
        async with asyncio.timeout(PATIENCE_S):
            last = await reader.read()
            await other.readuntil(b": heartbeat\r\n\r\n")
        assert b"event: cut_off" in last
        assert b"revoked" in last
        assert _figure(api, "serve_stream_readers") == 1
        assert _figure(api, "serve_stream_cut_off_total", reason="token") == 1
        writer.close()
        second.close()
    assert api.reported == []


async def test_a_listener_that_reads_nothing_is_disconnected(
    monkeypatch: pytest.MonkeyPatch, records: list[Record]
) -> None:
    monkeypatch.setattr(stream, "_SEND_S", 1.0)
    views = GrowingViews()
    views.add(*records[:3])
    api = api_over(views)
    async with served(api) as port:
        stuck = socket.socket()
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        stuck.connect(("127.0.0.1", port))
        stuck.send(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        heard = 0

        async def hear() -> None:
            nonlocal heard
            async for kind, _, _ in listen(f"http://127.0.0.1:{port}"):
                heard += kind == "record"

        hearing = asyncio.create_task(hear())
        await become(lambda: _figure(api, "serve_stream_readers") == 2)
        added = 0
        while not _figure(api, "serve_stream_cut_off_total", reason="stuck"):
            views.add(*records)
            added += len(records)
            await asyncio.sleep(0.05)
            assert added < 100_000
        assert _figure(api, "serve_stream_readers") == 1
        # The other one is not held up by it.
        await become(lambda: heard >= added)
        hearing.cancel()
        stuck.close()
    assert api.reported == []


@pytest.mark.parametrize(("is_local", "service"), [(False, "Redis"), (True, "The local file")])
async def test_an_outage_ends_a_catch_up_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, records: list[Record], is_local: bool, service: str
) -> None:
    monkeypatch.setattr(listener_module, "_CHUNK", 2)
    views = GrowingViews()
    views.add(*records)
    api = api_over(views, is_local=is_local)
    async with served(api) as port:
        url, kinds = f"http://127.0.0.1:{port}", []
        async for kind, _, document in listen(url, "1:0,0,0"):
            kinds.append((kind, document))
            views.away = True
    assert kinds[-1][0] == "cut_off"
    assert service in kinds[-1][1]["reason"]
    # A look at the views may have come meanwhile.
    assert {doing for doing, _ in api.reported} <= {"checking the views"}


class Counting(asyncio.Protocol):
    """A reader that only counts."""

    def __init__(self) -> None:
        self.records = 0
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        request = b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 1:0,0,0\r\n\r\n"
        transport.write(request)  # type: ignore[attr-defined]  # uvloop's own class

    def data_received(self, data: bytes) -> None:
        whole = self._rest + data
        self.records += whole.count(b"event: record\n")
        # The beginning of one may be at the end of this piece.
        end = whole.rfind(b"\n\n")
        self._rest = b"" if end < 0 else whole[end:].replace(b"event: record\n", b"")[-13:]


@pytest.mark.extended
@pytest.mark.has_long_form
async def test_many_clients_get_every_record_from_one_reader_of_the_views(
    records: list[Record],
) -> None:
    """300 clients; a thousand in the long form."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    readers = min(1_000 if LONG else 300, most // 3)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    views = Asked()
    views.add(*records[:3])
    api, loop, made = api_over(views, streams=readers), asyncio.get_running_loop(), []
    async with served(api) as port:
        for _ in range(readers):
            _, reader = await loop.create_connection(Counting, "127.0.0.1", port)
            made.append(reader)
        # All at once, as after a restart, with a place from before.
        await become(lambda: all(reader.records == 3 for reader in made))
        assert _figure(api, "serve_stream_readers") == readers
        views.asked = 0
        for start in range(3, len(records), 20):
            views.add(*records[start : start + 20])
            await asyncio.sleep(0.01)
        await become(lambda: min(reader.records for reader in made) >= len(records))
        assert {reader.records for reader in made} == {len(records)}
        # Some turns of each partition's tail, whoever listens.
        assert views.asked < readers
        for reader in made:
            reader.transport.close()
    assert api.reported == []


class Asked(GrowingViews):
    """Counts the questions that are asked of the feed."""

    asked = 0

    async def live(
        self, generation: int, partition: int, after: int, limit: int, wait_s: float = 0.0
    ) -> list[Entry]:
        self.asked += 1
        return await super().live(generation, partition, after, limit, wait_s)


async def test_listeners_are_counted_in_and_out(records: list[Record]) -> None:
    views = GrowingViews()
    views.add(*records[:3])
    api = api_over(views, streams=2)
    async with served(api) as port:
        url = f"http://127.0.0.1:{port}"
        listeners = [listen(url) for _ in range(2)]
        for events in listeners:
            await anext(events)
        assert _figure(api, "serve_stream_readers") == 2
        for events in listeners:
            await events.aclose()
        await become(lambda: _figure(api, "serve_stream_readers") == 0)


async def test_simultaneous_connections_do_not_exceed_the_limit(records: list[Record]) -> None:
    views = _Slow()
    views.add(*records[:3])
    api = api_over(views, streams=2)
    async with served(api) as port:
        head, made = b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n", []
        for _ in range(6):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head)
            made.append((reader, writer))
        async with asyncio.timeout(PATIENCE_S):
            heads = [await reader.readuntil(b"\r\n\r\n") for reader, _ in made]
        assert sorted(head.split()[1] for head in heads) == [b"200"] * 2 + [b"503"] * 4
        for _, writer in made:
            writer.close()


class _Slow(GrowingViews):
    """Lets who asks wait, so that all have come before the first is let in."""

    async def generations(self) -> Generations:
        await asyncio.sleep(0.3)
        return await super().generations()
