"""An opencode server for tests: the endpoints of its published API that the driver uses."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

SESSION = "ses_4711"
FOLDER = "/srv/a project"
PASSWORD = "pa55"  # noqa: S105 -- of this server
CREDENTIALS = "Basic " + base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()

REQUEST = {
    "id": "msg_1",
    "role": "user",
    "model": {"providerID": "openai", "modelID": "gpt-5.1"},
}
RESPONSE = {"id": "msg_2", "role": "assistant", "providerID": "anthropic", "modelID": "claude-x"}
ANSWERS = {
    "race": (409, '{"_tag": "SessionBusyError"}'),
    "bad model": (400, '{"name": "BadRequest"}'),
    "breaks": (500, ""),
    "garbage": (200, "<html>"),
    "says no": (200, "false"),
}
"""Of `summarize`; all others answer true."""
FORMER = {"id": "msg_0", "role": "assistant", "summary": True}


class OpencodeServer:
    """One session, whose summary goes as `behaviour` says."""

    def __init__(self, behaviour: str = "compacts") -> None:
        self.behaviour = behaviour
        self.requests: list[tuple[str, str]] = []
        self.folders: list[str | None] = []
        self.bodies: list[dict[str, Any]] = []
        self.messages: list[dict[str, Any]] = [FORMER, REQUEST, RESPONSE]
        self.is_busy = behaviour == "busy"
        self.requested = asyncio.Event()
        self.aborted = asyncio.Event()
        self.looked_for = asyncio.Event()
        """The state was asked for again, after the answer was lost."""

    def paths(self) -> list[str]:
        return [f"{method} {path}" for method, path in self.requests]

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path))
        if request.headers.get("authorization") != CREDENTIALS:
            return web.Response(status=401)
        if self.behaviour == "redirects":
            return web.Response(status=307, headers={"location": "http://127.0.0.1:9/"})
        path = request.path.removeprefix(f"/session/{SESSION}")
        if path == "":
            return web.json_response({"id": SESSION, "directory": FOLDER})
        self.folders.append(request.query.get("directory"))
        if path == "/session/status":
            if self.requested.is_set():
                self.looked_for.set()
            return web.json_response({SESSION: {"type": "busy"}} if self.is_busy else {})
        if path == "/message":
            return self._newest(int(request.query["limit"]))
        if path == "/abort" and request.method == "POST":
            return await self._abort()
        if path == "/summarize" and request.method == "POST":
            self.bodies.append(await request.json())
            return await self._summarize(request)
        error = {"name": "NotFoundError", "data": {"message": f"Session not found: {path}"}}
        return web.json_response(error, status=404)

    def _newest(self, limit: int) -> web.Response:
        if self.behaviour == "lost later" and limit > 1:
            return web.Response(status=502)
        parts = []
        if self.behaviour == "floods" or (self.behaviour == "floods later" and limit > 1):
            parts.append({"type": "file", "url": "data:," + "x" * 5_000})
        newest = self.messages[-limit:]
        return web.json_response([{"info": each, "parts": parts} for each in newest])

    async def _abort(self) -> web.StreamResponse:
        self.aborted.set()
        if self.behaviour == "deaf":
            await asyncio.sleep(60)
        self.is_busy = False
        return web.json_response(True)  # noqa: FBT003 -- the body

    async def _summarize(self, request: web.Request) -> web.StreamResponse:
        self.is_busy = True
        self.messages.append({"id": "msg_3", "role": "user"})
        self.requested.set()
        match self.behaviour:
            case "hangs" | "deaf":
                await self.aborted.wait()
            case "late":
                self.finish()
                await asyncio.sleep(60)
            case "drops":
                assert request.transport is not None
                request.transport.abort()
                await asyncio.sleep(60)
            case "breaks" | "lies":
                self.is_busy = False
            case "fails":
                error = {"name": "APIError", "data": {"message": "text", "isRetryable": True}}
                self.finish(error=error)
            case "no credit":
                self.finish(error={"name": "ProviderAuthError", "data": {"message": "text"}})
            case _:
                self.finish()
        status, body = ANSWERS.get(self.behaviour, (200, "true"))
        return web.Response(status=status, text=body)

    def finish(self, **more: object) -> None:
        """The summary is there, and a turn of the user's after it."""
        self.is_busy = False
        summary = {"id": "msg_4", "role": "assistant", "summary": True, **more}
        self.messages += [summary, {"id": "msg_5", "role": "user"}]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Listen on a port of this machine; yield the URL."""
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self.serve)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()
