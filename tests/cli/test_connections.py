"""What a client may make the server hold before it has asked anything: bounded in size and time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from streams.cli.serve import connections
from streams.edge.telemetry.server import listening, port_of
from tests.patience import PATIENCE, PATIENCE_S
from tests.serve.redis_kit import become


async def _app(scope: Scope, _receive: Receive, send: Send) -> None:
    assert scope["type"] == "http"
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def served(most: int | None = None) -> AsyncIterator[int]:
    """Serve an application; yield its port."""
    listener = listening("127.0.0.1", 0)
    protocol = connections.bounded(most)
    config = uvicorn.Config(_app, http=protocol, lifespan="off", log_config=None, ws="none")
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve([listener]))
    await become(lambda: server.started)
    try:
        yield port_of(listener)
    finally:
        server.should_exit = True
        await running
        listener.close()


async def _answer(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        return await reader.read()


async def _is_sent_away(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, piece: bytes
) -> bool:
    """Send the piece again and again, 128 times at most; tell whether the server ended that."""
    try:
        for _ in range(128):
            if reader.at_eof():
                return True
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
    except ConnectionError:
        return True
    return False


async def test_an_endless_head_is_not_buffered() -> None:
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        assert await _is_sent_away(reader, writer, b"x" * 65_536)
        writer.close()


async def test_a_long_head_is_answered_with_431() -> None:
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        await asyncio.sleep(0.05)
        # Just more than is taken, so that nothing is unread when the server closes.
        for _ in range(3):
            writer.write(b"x" * (connections.MOST_HEAD_BYTES // 2))
            await asyncio.sleep(0.1)
        assert (await _answer(reader)).startswith(b"HTTP/1.1 431 ")
        writer.close()


async def test_endless_trailers_are_not_buffered() -> None:
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
        )
        assert await _is_sent_away(reader, writer, b"X-T: " + b"x" * 65_536 + b"\r\n")
        writer.close()


async def test_many_requests_of_one_connection_are_answered() -> None:
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        one = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 20_000 + b"\r\n\r\n"
        for _ in range(20):
            writer.write(one)
            async with asyncio.timeout(PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                assert await reader.readexactly(2) == b"ok"
            assert head.startswith(b"HTTP/1.1 200 ")
        writer.close()


@pytest.mark.parametrize("begin", [b"", b"\r\n", b"GET / HTTP/1.1\r\nHost: loc"])
async def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch, begin: bytes) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.1)
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(begin)
        response = await _answer(reader)
        assert (
            response.startswith(b"HTTP/1.1 408 ") if begin.startswith(b"GET") else response == b""
        )
        writer.close()


async def test_each_request_has_the_whole_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.3 * PATIENCE)
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            await reader.readuntil(b"ok")
        writer.write(b"GET / HT")
        assert (await _answer(reader)).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_connections_are_limited() -> None:
    async with served(2) as port:
        kept = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for reader, writer in kept:
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            async with asyncio.timeout(PATIENCE_S):
                await reader.readuntil(b"ok")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await _answer(reader)).startswith(b"HTTP/1.1 503 ")
        for _, each in [*kept, (reader, writer)]:
            each.close()
