"""A connection to a Codex app server: JSON-RPC over a WebSocket, or the pipes of a process.

The protocol is that of `codex app-server`: one JSON object per text frame or line, without the
member `jsonrpc`. A connection has one user at a time, which reads it as it waits: there is no task
in the background. Requests of the server, such as for an approval, are left to the thread's other
clients: an answer of ours would decide them.
"""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any, Final, Protocol

import aiohttp
import orjson

from contextgauge import __version__
from streams import codec
from streams.edge.drivers.results import ANSWER_S, STOP_S, Fields, NotCompactedError, fields
from streams.edge.unreachable import why_unreachable

_MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
"""Servers before 0.124 answer `thread/resume` with the whole conversation."""
_HEARTBEAT_S: Final = 20.0
"""A server that is gone without a word is noticed so soon."""
_MAX_REASON: Final = 200
"""Characters of a server's error: about requests, before any model is asked."""
_OVERLOADED, _INTERNAL = -32_001, -32_603
"""Errors that may pass; all others are answers to the request itself."""
_FINAL_STATUSES: Final = frozenset({400, 401, 403, 404, 405, 426})
"""Of the WebSocket's handshake: a wrong token, or no app server."""
_UNWANTED: Final = (
    "item/agentMessage/delta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/plan/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "turn/diff/updated",
)
"""Notifications that the server is asked not to send: text only, of which nothing is needed."""


@dataclass(frozen=True, slots=True)
class AppServerPlace:
    """Where an app server is: a URL (ws, wss, unix), or the command that starts one.

    `context` is for authorities of the server's own; None: the system's.
    """

    url: str | None = None
    command: Sequence[str] = ()
    token: str | None = field(default=None, repr=False)
    context: SSLContext | None = field(default=None, repr=False)


class AppServerLostError(NotCompactedError):
    """The connection cannot be made, or broke."""

    def __init__(self, reason: str) -> None:
        super().__init__("retry", reason)


class RpcError(NotCompactedError):
    """The server answered a request with an error."""

    def __init__(self, method: str, error: Fields) -> None:
        code = error.get("code")
        text = " ".join(str(error.get("message", "")).split())[:_MAX_REASON]
        outcome: Any = "retry" if code in {_OVERLOADED, _INTERNAL} else "refused"
        super().__init__(outcome, f"Codex answered {method} with error {code}: {text}")


class _Wire(Protocol):
    async def send(self, message: bytes) -> None:
        """Send a message. Raises AppServerLostError."""

    async def receive(self) -> str | bytes:
        """Wait for a message. Raises AppServerLostError."""


class AppServer:
    """An initialised connection."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire
        self._next_id = 0
        self._waiting: deque[tuple[str, Fields]] = deque()

    async def request(self, method: str, params: Fields, answer_s: float | None = None) -> Fields:
        """Send a request and return its result.

        Raises RpcError, AppServerLostError, and NotCompactedError where no answer came in time.
        """
        try:
            async with asyncio.timeout(answer_s):
                return await self._request(method, params)
        except TimeoutError:
            raise NotCompactedError(
                "retry", f"Codex did not answer {method} within {answer_s:g} s"
            ) from None

    async def _request(self, method: str, params: Fields) -> Fields:
        identity = self._next_id
        self._next_id += 1
        await self._send({"method": method, "id": identity, "params": params})
        while True:
            message = await self._receive()
            if "method" in message:
                self._note(message)
            elif message.get("id") == identity:
                if isinstance(error := message.get("error"), Mapping):
                    raise RpcError(method, error)
                return fields(message, "result")

    async def notify(self, method: str) -> None:
        """Send a notification. Raises AppServerLostError."""
        await self._send({"method": method})

    async def event(self) -> tuple[str, Fields]:
        """Wait for the next notification: its method and params. Raises AppServerLostError."""
        while not self._waiting:
            message = await self._receive()
            if "method" in message:
                self._note(message)
        return self._waiting.popleft()

    def _note(self, message: Fields) -> None:
        if "id" not in message:
            self._waiting.append((str(message["method"]), fields(message, "params")))

    async def _send(self, message: Fields) -> None:
        await self._wire.send(codec.dumps(message))

    async def _receive(self) -> Fields:
        try:
            message = orjson.loads(await self._wire.receive())
        except orjson.JSONDecodeError:
            message = None
        if not isinstance(message, dict):
            raise NotCompactedError("refused", "it does not speak the protocol of Codex")
        return message


@asynccontextmanager
async def connected(
    place: AppServerPlace, *, answer_s: float = ANSWER_S, stop_s: float = STOP_S
) -> AsyncIterator[AppServer]:
    """Connect to a server, or start one, and initialise it; close it, or end it, at the end.

    Raises NotCompactedError.
    """
    opened = (
        _web_socket(place, place.url, answer_s, stop_s)
        if place.url is not None
        else _process(place.command, stop_s)
    )
    async with opened as wire:
        server = AppServer(wire)
        us = {"name": "contextgauge", "title": "contextgauge", "version": __version__}
        abilities = {"experimentalApi": True, "optOutNotificationMethods": _UNWANTED}
        opening = {"clientInfo": us, "capabilities": abilities}
        await server.request("initialize", opening, answer_s)
        await server.notify("initialized")
        yield server


class _WebSocketWire:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def send(self, message: bytes) -> None:
        try:
            await self._socket.send_str(message.decode())
        except (aiohttp.ClientError, OSError) as error:
            raise AppServerLostError(f"it cannot be reached: {why_unreachable(error)}") from None

    async def receive(self) -> str | bytes:
        message = await self._socket.receive()
        if message.type in {aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY}:
            return message.data  # type: ignore[no-any-return]  # the types leave it open
        raise AppServerLostError("it closed the connection")


@asynccontextmanager
async def _web_socket(
    place: AppServerPlace, url: str, answer_s: float, stop_s: float
) -> AsyncIterator[_Wire]:
    connector = None
    if url.startswith("unix://"):
        connector, url = aiohttp.UnixConnector(url.removeprefix("unix://")), "ws://localhost/"
    headers = {} if place.token is None else {"authorization": f"Bearer {place.token}"}
    async with contextlib.AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        try:
            async with asyncio.timeout(answer_s):
                socket = await session.ws_connect(
                    url,
                    headers=headers,
                    heartbeat=_HEARTBEAT_S,
                    max_msg_size=_MAX_MESSAGE_BYTES,
                    ssl=place.context or True,
                    timeout=aiohttp.ClientWSTimeout(ws_close=stop_s),
                )
        except TimeoutError:
            raise AppServerLostError("it did not answer in time") from None
        except aiohttp.WSServerHandshakeError as error:
            why = f"it answered the handshake with {error.status}"
            if error.status in _FINAL_STATUSES:
                raise NotCompactedError("refused", why) from None
            raise AppServerLostError(why) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise AppServerLostError(f"it cannot be reached: {why_unreachable(error)}") from None
        stack.push_async_callback(socket.close)
        yield _WebSocketWire(socket)


class _ProcessWire:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def send(self, message: bytes) -> None:
        assert self.process.stdin is not None  # noqa: S101 -- it was started with a pipe
        try:
            self.process.stdin.write(message + b"\n")
            await self.process.stdin.drain()
        except OSError:
            raise AppServerLostError(await self._how_it_ended()) from None

    async def receive(self) -> str | bytes:
        assert self.process.stdout is not None  # noqa: S101 -- it was started with a pipe
        try:
            line = await self.process.stdout.readline()
        except ValueError:
            raise NotCompactedError("refused", "it sent a line of more than 64 MiB") from None
        if not line.endswith(b"\n"):
            raise AppServerLostError(await self._how_it_ended())
        return line

    async def _how_it_ended(self) -> str:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self.process.wait()
        code = self.process.returncode
        return "its process closed its pipes" if code is None else f"its process ended with {code}"


@asynccontextmanager
async def _process(command: Sequence[str], stop_s: float) -> AsyncIterator[_Wire]:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # its log may have the conversation's text
            limit=_MAX_MESSAGE_BYTES,
            start_new_session=True,
        )
    except OSError as error:
        raise NotCompactedError(
            "refused", f"{command[0]} cannot be started ({error.strerror}): correct `command`"
        ) from None
    try:
        yield _ProcessWire(process)
    finally:
        await _end(process, stop_s)


async def _end(process: asyncio.subprocess.Process, stop_s: float) -> None:
    """Close the process's input, at which it should exit; stop it, and what it started, if not."""
    try:
        if process.stdin is not None:
            process.stdin.close()
        for number in (None, signal.SIGTERM):
            if number is not None:
                _signal(process.pid, number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(stop_s):
                    await process.wait()
                break
    finally:
        _signal(process.pid, signal.SIGKILL)
        await asyncio.shield(process.wait())


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
