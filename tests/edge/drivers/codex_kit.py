"""A Codex app server for tests: its protocol over a WebSocket, a Unix socket, or pipes.

Run as a module it serves the pipes, as `codex app-server` does; the argument is how it behaves.
"""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web

THREAD = "0199a213-81c0-7800-8aa1-bbab2a035a53"
TOKEN = "t0ken"  # noqa: S105 -- of this server
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Dropped(Exception):  # noqa: N818 -- what happens
    """The server closes the connection."""


class CodexServer:
    """One thread, whose compaction goes as `behaviour` says."""

    def __init__(self, behaviour: str = "compacts") -> None:
        self.behaviour = behaviour
        self.messages: list[dict[str, Any]] = []
        self.connections = 0
        self.open = 0
        self.close_codes: list[int | None] = []
        self.requested = asyncio.Event()
        """A compaction was asked for, and its turn began."""
        self.resumed = asyncio.Event()
        """The thread was resumed after that, over another connection."""
        self.interrupted = asyncio.Event()
        self._active = behaviour == "busy"
        self._send: Send | None = None

    def methods(self) -> list[str]:
        return [message["method"] for message in self.messages if "method" in message]

    async def handle(self, message: dict[str, Any], send: Send) -> None:
        """Answer one message, as the protocol has it."""
        self.messages.append(message)
        assert "jsonrpc" not in message
        if "id" not in message or "method" not in message:
            return
        identity, method, params = message["id"], message["method"], message["params"]
        if self.behaviour == "silent":
            return
        error = self._error(method, params)
        if error is not None:
            await send({"id": identity, "error": error})
        elif method == "initialize":
            assert set(params["clientInfo"]) == {"name", "title", "version"}
            await send({"id": identity, "result": {"userAgent": "codex/0.151.0"}})
        elif method == "thread/resume":
            self._send = send
            status = {"type": "active", "activeFlags": []} if self._active else {"type": "idle"}
            thread = {"id": params["threadId"], "status": status, "turns": []}
            await send({"id": identity, "result": {"thread": thread}})
            if self.requested.is_set():
                self.resumed.set()
        elif method == "thread/compact/start":
            await self._compact(identity, send)
        elif method == "turn/interrupt":
            assert params == {"threadId": THREAD, "turnId": "turn-7"}
            self.interrupted.set()
            if self.behaviour != "deaf":
                await send({"id": identity, "result": {}})
                await self._end("interrupted")

    def _error(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if self.behaviour == "overloaded" and method == "thread/compact/start":
            return {"code": -32001, "message": "Server overloaded"}
        if method == "thread/resume":
            if self.behaviour == "needs turns" and "excludeTurns" in params:
                return {"code": -32600, "message": "this thread needs its turns"}
            if params["threadId"] != THREAD:
                return {"code": -32600, "message": f"no rollout found for {params['threadId']}"}
        return None

    async def _compact(self, identity: int, send: Send) -> None:
        self._active = True
        if self.behaviour == "lost at once":
            raise Dropped
        await send({"id": 99, "method": "item/commandExecution/requestApproval", "params": {}})
        await send({"id": identity, "result": {}})
        other = {"threadId": "another", "turn": {"id": "turn-of-another", "status": "completed"}}
        await self.tell("turn/completed", other)
        await self.tell("turn/started", {"turn": {"id": "turn-7", "status": "inProgress"}})
        former = {"id": "turn-6", "status": "interrupted"}
        await self.tell("turn/completed", {"turn": former})  # of a turn before, and late
        self.requested.set()
        if self.behaviour == "drops":
            self._send = None
            raise Dropped
        if self.behaviour in {"hangs", "deaf"}:
            return
        if self.behaviour == "dies":
            sys.exit(3)
        if self.behaviour == "garbage":
            await send("<html>")  # type: ignore[arg-type]  # the point
            return
        if self.behaviour == "legacy":
            await self.tell("thread/compacted", {"turnId": "turn-7"})
        elif self.behaviour not in {"lies", "fails", "stopped"}:
            await self.item()
        if self.behaviour != "never ends":
            status = {"fails": "failed", "stopped": "interrupted"}.get(self.behaviour, "completed")
            await self._end(status)

    async def item(self) -> None:
        params = {"turnId": "turn-7", "item": {"type": "contextCompaction", "id": "item-1"}}
        await self.tell("item/started", params)
        await self.tell("item/completed", params)

    async def _end(self, status: str) -> None:
        self._active = False
        info = {"responseStreamDisconnected": {"httpStatusCode": 503}}
        turn: dict[str, Any] = {"id": "turn-7", "status": status, "items": [], "error": None}
        if status == "failed":
            turn["error"] = {"message": "the text of a user", "codexErrorInfo": info}
        await self.tell("turn/completed", {"turn": turn})

    async def finish(self) -> None:
        """End a compaction that goes on, whether anyone is connected or not."""
        await self._end("completed")

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        if self._send is not None:
            await self._send({"method": method, "params": {"threadId": THREAD, **params}})

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve one WebSocket."""
        assert "origin" not in request.headers
        if request.headers.get("authorization") not in {None, f"Bearer {TOKEN}"}:
            return web.Response(status=401)
        if self.behaviour == "away":
            return web.Response(status=503)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.connections += 1
        self.open += 1
        try:
            async for frame in socket:
                if frame.type is WSMsgType.TEXT:
                    await self.handle(
                        json.loads(frame.data), lambda each: socket.send_str(_text(each))
                    )
        except Dropped:
            await socket.close()
        finally:
            self.open -= 1
            self.close_codes.append(socket.close_code)
        return socket

    @asynccontextmanager
    async def listening(self, path: Path | None = None) -> AsyncIterator[str]:
        """Listen on a port of this machine, or a socket's path; yield the URL."""
        app = web.Application()
        app.router.add_get("/", self.serve)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        if path is not None:
            await web.UnixSite(runner, str(path)).start()
            url = f"unix://{path}"
        else:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"ws://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield url
        finally:
            await runner.cleanup()


def _text(message: object) -> str:
    return message if isinstance(message, str) else json.dumps(message)


async def _pipes(behaviour: str) -> None:
    server = CodexServer(behaviour)
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)

    async def send(message: dict[str, Any]) -> None:
        sys.stdout.write(_text(message) + "\n")
        sys.stdout.flush()

    while line := await lines.readline():
        await server.handle(json.loads(line), send)
    if behaviour == "stays":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(_pipes(sys.argv[1]))
