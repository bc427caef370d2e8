"""The doctor asks the server that takes messages over HTTP, and knows another program's answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from streams.edge.ingest_probe import IngestProbe
from streams.edge.telemetry.server import listening, port_of


@asynccontextmanager
async def _answering(body: bytes) -> AsyncIterator[int]:
    """Answer every request with this body."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        writer.write(head % len(body) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("body", "reasons"),
    [
        (b'{"worker":"ingest","ready":true,"reasons":[]}', None),
        (b'{"worker":"ingest","ready":false,"reasons":["kafka is away"]}', "kafka is away"),
        (b'{"worker":"serve","ready":true,"reasons":[]}', "another program answers there"),
        (b"<html>", "another program answers there"),
    ],
)
async def test_what_a_server_answers_is_read(body: bytes, reasons: str | None) -> None:
    async with _answering(body) as port:
        facts = await IngestProbe("0.0.0.0", port).look()  # noqa: S104 -- asked, not listened on
    assert (facts.is_there, facts.reasons) == (True, reasons)
    assert facts.address == f"127.0.0.1:{port}"


async def test_where_nothing_listens_there_is_no_server() -> None:
    with listening("127.0.0.1", 0) as listener:
        port = port_of(listener)
    assert not (await IngestProbe("127.0.0.1", port).look()).is_there
    assert not (await IngestProbe("127.0.0.1", 0).look()).is_there
