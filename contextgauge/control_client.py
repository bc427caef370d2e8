"""The open commands of a session, from the API of `contextgauge serve`."""

import asyncio
import contextlib
import http.client
import socket
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from contextgauge.addresses import session_address
from contextgauge.errors import ConfigError, RetryError

_DRIVER: Final = "claude-code"
_OPEN: Final = frozenset({"accepted", "planned", "called"})
_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 4 * 1024 * 1024
"""A larger answer is not one of the API's."""
_NOT_FOUND: Final = 404


class OpenCommand(NamedTuple):
    """A compaction that waits to be sent."""

    command_id: str
    instructions: str | None
    is_cancelling: bool

    @property
    def prompt(self) -> str:
        """What makes Claude Code compact: one line, as a command ends with its line."""
        return " ".join(["/compact", *(self.instructions or "").split()])


class CommandSource:
    """Asks one server. Raises ConfigError for a URL that is none of HTTP."""

    def __init__(self, url: str, token: str | None) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError("steer: url is not valid: write http://host:port or https://…")
        self._is_secure, self._host, self._port = parts.scheme == "https", parts.hostname, port
        self._prefix = parts.path.rstrip("/")
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._connection: http.client.HTTPConnection | None = None

    async def commands(self, session_id: str) -> list[OpenCommand]:
        """Return the commands of a session that Claude Code has to carry out. Raises RetryError."""
        return await asyncio.to_thread(self._commands, session_id)

    def close(self) -> None:
        """End a request that is under way."""
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _commands(self, session_id: str) -> list[OpenCommand]:
        secure = http.client.HTTPSConnection
        kind = secure if self._is_secure else http.client.HTTPConnection
        connection = self._connection = kind(self._host, self._port, timeout=_TIMEOUT_S)
        path = f"{self._prefix}/v1/sessions/{session_address(session_id)}/control"
        try:
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
            content = answer.read(_MOST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise RetryError(
                f"the commands of the session cannot be read: {type(error).__name__}"
            ) from None
        finally:
            self._connection = None
            connection.close()
        if answer.status == _NOT_FOUND:  # the control plane knows nothing of the session yet
            return []
        if answer.status != http.client.OK:
            raise RetryError(f"the commands of the session cannot be read: HTTP {answer.status}")
        return _commands_of(content)


def _commands_of(content: bytes) -> list[OpenCommand]:
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise RetryError("the commands of the session cannot be read: the answer is not JSON")
    view: Any = document.get("control")
    views: Any = view.get("commands") if isinstance(view, dict) else None
    return [
        OpenCommand(
            each["command_id"],
            instructions if isinstance(instructions := each.get("instructions"), str) else None,
            each.get("is_cancelling") is True,
        )
        for each in (views if isinstance(views, list) else [])
        if isinstance(each, dict)
        and isinstance(each.get("command_id"), str)
        and each.get("driver") == _DRIVER
        and each.get("state") in _OPEN
    ]
