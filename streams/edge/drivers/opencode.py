"""opencode: the endpoint `POST /session/{id}/summarize` of its server.

It answers `true` when its loop has ended, also where the summary failed; so the summary itself is
looked for: a response with `summary` among the newest messages, and no `error`. A session that is
busy is left alone: what stops a compaction, `POST /session/{id}/abort`, would stop the turn too.
"""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from ssl import SSLContext
from types import MappingProxyType
from typing import Any, Final, Literal
from urllib.parse import quote

import aiohttp
import orjson

from contextgauge.backoff import Backoff
from contextgauge.ports import Clock
from contextgauge.units import MIB
from streams.edge.drivers.results import (
    ANSWER_S,
    COMPACTION_S,
    STOP_S,
    Fields,
    NotCompactedError,
    fields,
    result_of,
    text,
)
from streams.edge.unreachable import why_unreachable
from streams.ports.control import DriverResult

OPENCODE_URL: Final = "http://127.0.0.1:4096"
"""Where `opencode serve` listens by default."""

_NEWEST: Final = 20
"""Fieldss among which the summary is: a turn after it takes one for each call of the model."""
MOST_BYTES: Final = 32 * MIB
"""Of an answer: the newest messages may have files in them, each some megabytes."""
_DONE: Final = DriverResult("done", "opencode compacted the session")
_STATUS: Final = "/session/status"
_BUSY: Final = "the session is busy"
_CONFLICT: Final = 409
_LASTING: Final = frozenset({"ContextOverflowError", "MessageAbortedError", "ProviderAuthError"})
"""Errors of a summary that the same request would get again, or that its user wanted."""


@dataclass(frozen=True, slots=True)
class OpencodePlace:
    """Where a server is, and who asks. `context` as in `AppServerPlace`."""

    url: str
    username: str = "opencode"
    password: str | None = field(default=None, repr=False)
    context: SSLContext | None = field(default=None, repr=False)

    def headers(self) -> dict[str, str]:
        """Return the headers that prove who asks."""
        if self.password is None:
            return {}
        credentials = f"{self.username}:{self.password}".encode()
        return {"authorization": f"Basic {base64.b64encode(credentials).decode()}"}


class _LostError(NotCompactedError):
    """The connection cannot be made, or broke."""

    def __init__(self, reason: str) -> None:
        super().__init__("retry", reason)


class OpencodeDriver:
    """Sessions of one server.

    `model` is `provider/model`; None: the one that the session used last. Times as in
    `CodexDriver`.
    """

    name = "opencode"

    def __init__(
        self,
        place: OpencodePlace,
        clock: Clock,
        model: str | None = None,
        timeout_s: float = COMPACTION_S,
        *,
        answer_s: float = ANSWER_S,
        stop_s: float = STOP_S,
    ) -> None:
        self._place, self._clock, self._model, self._timeout_s = place, clock, model, timeout_s
        self._answer_s, self._stop_s = answer_s, stop_s
        self._session: aiohttp.ClientSession | None = None

    async def compact(self, session_id: str, instructions: str | None) -> DriverResult:
        """Have a session summarised, and look for the summary."""
        return await result_of(self._compact(session_id), instructions)

    async def stop(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _compact(self, session_id: str) -> DriverResult:
        path = f"/session/{quote(session_id, safe='')}"
        about = await self._ask("GET", path)
        directory = about.get("directory") if isinstance(about, dict) else None
        if not isinstance(directory, str):
            raise NotCompactedError("refused", "it does not speak the protocol of opencode")
        run = _OpencodeSession(self, path, session_id, directory)
        if await run.is_busy():
            raise NotCompactedError("retry", _BUSY)
        before = await run.messages(1)
        body = self._model_of(before[-1] if before else {})
        deadline_s = self._clock.monotonic_s() + self._timeout_s
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    answer = await self._ask("POST", f"{path}/summarize", directory, body)
                except _LostError as loss:
                    return await self._found_again(run, before, loss.result.reason, deadline_s)
        except TimeoutError:
            return await self._aborted(run, before)
        except asyncio.CancelledError:
            # Where the summary is there, an abort would stop whatever came after it.
            if not await self._is_done(run, before):
                await self._abort(run)
            raise
        if answer is not True:
            raise NotCompactedError("refused", "opencode did not answer true")
        try:
            return await run.result(before) or DriverResult(
                "refused", "opencode says that it is done, but there is no summary"
            )
        except NotCompactedError as ending:
            return DriverResult("started", f"opencode says it is done; {ending.result.reason}")

    def _model_of(self, newest: Fields) -> dict[str, str]:
        """Return the model to ask for. Raises NotCompactedError where there is none."""
        if self._model is not None:
            provider, _, model = self._model.partition("/")
        else:
            # A request has an object, a response the two names.
            used = fields(newest, "info", "model") or fields(newest, "info")
            provider, model = text(used, "providerID"), text(used, "modelID")
        if not provider or not model:
            raise NotCompactedError("refused", "no model is known of the session: set `model`")
        return {"providerID": provider, "modelID": model}

    async def _found_again(
        self, run: "_OpencodeSession", before: list[Fields], reason: str, deadline_s: float
    ) -> DriverResult:
        """Return what became of a compaction whose answer was lost: the server goes on with it."""
        pauses = Backoff(self._clock, asyncio.Event())
        while self._clock.monotonic_s() + pauses.next_s < deadline_s:
            await pauses.wait()
            try:
                if not await run.is_busy():
                    lost = f"the answer was lost ({reason}), and there is no summary"
                    return await run.result(before) or DriverResult("retry", lost)
            except _LostError as loss:
                reason = loss.result.reason
            else:
                pauses.reset()
        return DriverResult("started", f"the answer was lost: {reason}")

    async def _aborted(self, run: "_OpencodeSession", before: list[Fields]) -> DriverResult:
        why = f"not finished within {self._timeout_s:g} s"
        if not await self._abort(run):
            return DriverResult("started", f"{why}; opencode does not confirm that it stopped")
        if await self._is_done(run, before):
            return _DONE
        return DriverResult("retry", f"{why}: the compaction was aborted")

    async def _is_done(self, run: "_OpencodeSession", before: list[Fields]) -> bool:
        try:
            async with asyncio.timeout(self._stop_s):
                result = await run.result(before)
        except (TimeoutError, NotCompactedError):
            return False
        return result is not None and result.outcome == "done"

    async def _abort(self, run: "_OpencodeSession") -> bool:
        try:
            async with asyncio.timeout(self._stop_s):
                await self._ask("POST", f"{run.path}/abort", run.directory)
        except (TimeoutError, NotCompactedError):
            return False
        return True

    async def ask_briefly(self, path: str, directory: str, **query: str) -> Any:  # noqa: ANN401 -- JSON
        """Return what a GET answers. Raises NotCompactedError."""
        return await self._ask("GET", path, directory, query=query)

    async def _ask(
        self,
        method: Literal["GET", "POST"],
        path: str,
        directory: str | None = None,
        body: Mapping[str, str] | None = None,
        query: Mapping[str, str] = MappingProxyType({}),
    ) -> Any:  # noqa: ANN401 -- JSON
        """Return an answer's JSON. A request with a body may take as long as it does."""
        if directory is not None:
            query = {**query, "directory": directory}
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._place.headers())
        try:
            async with self._session.request(
                method,
                self._place.url.rstrip("/") + path,
                params=query,
                json=body,
                allow_redirects=False,  # only the configured server may have the password
                ssl=self._place.context or True,
                timeout=aiohttp.ClientTimeout(total=None if body else self._answer_s),
            ) as answer:
                content = await _content(answer, method, path)
                if answer.status >= 300:  # noqa: PLR2004 -- HTTP's own
                    raise _refused(method, path, answer.status, content)
                return orjson.loads(content)
        except orjson.JSONDecodeError:
            raise NotCompactedError(
                "refused", "it does not speak the protocol of opencode"
            ) from None
        except TimeoutError:
            # aiohttp's own, which ends a request; a deadline of the caller ends the task's wait.
            raise _LostError("it did not answer in time") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _LostError(f"it cannot be reached: {why_unreachable(error)}") from None


class _OpencodeSession:
    """One session: where it is on the server, and what can be read of it."""

    def __init__(self, driver: OpencodeDriver, path: str, session_id: str, directory: str) -> None:
        self._driver, self.path, self._session_id = driver, path, session_id
        self.directory = directory

    async def is_busy(self) -> bool:
        """Whether a turn is running. Raises NotCompactedError."""
        states = await self._driver.ask_briefly(_STATUS, self.directory)
        mine = fields(states, self._session_id) if isinstance(states, dict) else {}
        return text(mine, "type") not in {"", "idle"}

    async def messages(self, limit: int) -> list[Fields]:
        """Return the newest messages, oldest first. Raises NotCompactedError."""
        answer = await self._driver.ask_briefly(
            f"{self.path}/message", self.directory, limit=str(limit)
        )
        messages = answer if isinstance(answer, list) else []
        return [message for message in messages if isinstance(message, dict)]

    async def result(self, before: list[Fields]) -> DriverResult | None:
        """Return what the summary after the messages `before` says; None: there is none."""
        known = {fields(message, "info").get("id") for message in before}
        for message in reversed(await self.messages(_NEWEST)):
            info = fields(message, "info")
            if info.get("id") in known:
                break
            if info.get("role") == "assistant" and info.get("summary") is True:
                return _DONE if info.get("error") is None else _failed(fields(info, "error"))
        return None


async def _content(answer: aiohttp.ClientResponse, method: str, path: str) -> bytes:
    """Return an answer's bytes. Raises NotCompactedError where there are too many to hold."""
    content = bytearray()
    async for chunk in answer.content.iter_any():
        content += chunk
        if len(content) > MOST_BYTES:
            name = path.rpartition("/")[2]
            raise NotCompactedError(
                "refused",
                f"opencode's answer to {method} {name} is larger than {MOST_BYTES // MIB} MiB: "
                "check `url`, or compact the session in opencode itself",
            )
    return bytes(content)


def _failed(error: Fields) -> DriverResult:
    """Return what a summary's error means. Its message is left out: it may quote the text."""
    name = str(error.get("name"))
    lasting = name in _LASTING or fields(error, "data").get("isRetryable") is False
    return DriverResult(
        "refused" if lasting else "retry", f"the compaction failed in opencode: {name}"
    )


def _refused(method: str, path: str, status: int, content: bytes) -> NotCompactedError:
    """Return what a status means."""
    what = f"opencode answered {status}"
    if status in {401, 403}:
        return NotCompactedError("refused", f"{what}: correct `username` and `password_env`")
    if status == 404 and method == "GET" and path != _STATUS:  # noqa: PLR2004 -- HTTP's own
        return NotCompactedError("refused", f"{what}: it does not know the session")
    if status == _CONFLICT or b"BusyError" in content:
        return NotCompactedError("retry", _BUSY)
    if status in {408, 425, 429} or status >= 500:  # noqa: PLR2004 -- HTTP's own
        return _LostError(what)
    return NotCompactedError("refused", f"{what} to {method} {path.rpartition('/')[2]}")
