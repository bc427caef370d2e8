"""An HTTP server on a free port that answers by a script, and keeps what it was sent."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from contextgauge.json_codec import dumps, loads
from contextgauge.records import Json


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, JSON: `cut` ends the connection after half of it, `hang` sends nothing."""

    body: Json = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    trouble: Literal["cut", "hang"] | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: Any


class ScriptedServer:
    """Answers each request with the next reply, the last one again and again."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.received: list[Received] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def script(self, *replies: Reply) -> None:
        self.replies = list(replies)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().strip().split("\r\n")
                pairs = (line.split(": ", 1) for line in lines)
                headers = {name.lower(): value for name, value in pairs}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.received.append(
                    Received(first.split(" ")[1], headers, loads(body) if body else None)
                )
                reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                if not await _send(writer, reply):
                    break
        writer.close()


async def _send(writer: asyncio.StreamWriter, reply: Reply) -> bool:
    """Send a reply; False where the connection ends with it."""
    if reply.trouble == "hang":
        await asyncio.Event().wait()
    headers = {"content-type": "application/json", "transfer-encoding": "chunked", **reply.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    body = dumps(reply.body)
    body = body[: len(body) // 2] if reply.trouble == "cut" else body
    writer.write(f"HTTP/1.1 {reply.status} Scripted\r\n{lines}\r\n{len(body):x}\r\n".encode())
    writer.write(body + b"\r\n")
    await writer.drain()
    if reply.trouble == "cut":
        return False
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


@asynccontextmanager
async def scripted_server() -> AsyncIterator[ScriptedServer]:
    """Run a server; what hangs is ended with it."""
    scripted = ScriptedServer()
    server = await asyncio.start_server(scripted.handle, "127.0.0.1", 0)
    scripted.port = server.sockets[0].getsockname()[1]
    try:
        yield scripted
    finally:
        server.close()
