"""Codex: the method `thread/compact/start` of its app server, and what it reports meanwhile.

A session is a thread. To follow it a connection has to resume it, which does not change it. The
compaction runs as a turn: `turn/started`, `item/started` and `item/completed` of an item
`contextCompaction` (earlier versions: `thread/compacted`), `turn/completed`. Started while another
turn runs, it would end that turn, so an active thread is left alone.
"""

import asyncio
from typing import Final, Literal

from contextgauge.backoff import Backoff
from contextgauge.ports import Clock
from streams.edge.drivers.app_server import (
    AppServer,
    AppServerLostError,
    AppServerPlace,
    RpcError,
    connected,
)
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
from streams.ports.control import DriverResult

_ITEM: Final = "contextCompaction"
_DONE: Final = DriverResult("done", "Codex compacted the thread")
_LASTING: Final = frozenset(
    {"badRequest", "contextWindowExceeded", "cyberPolicy", "sandboxError", "unauthorized"}
)
"""Errors of a turn that the same request would get again, of `codexErrorInfo`."""
_PASSING: Final = frozenset({408, 429})
"""HTTP statuses of the provider below 500 that may pass."""


class CodexDriver:
    """Threads of one app server.

    A compaction that takes longer than `timeout_s` is interrupted. `stop_s` is the time for that,
    and for a process of ours to exit.
    """

    name = "codex"

    def __init__(
        self,
        place: AppServerPlace,
        clock: Clock,
        timeout_s: float = COMPACTION_S,
        *,
        answer_s: float = ANSWER_S,
        stop_s: float = STOP_S,
    ) -> None:
        self._place, self._clock, self._timeout_s = place, clock, timeout_s
        self._answer_s, self._stop_s = answer_s, stop_s

    async def compact(self, session_id: str, instructions: str | None) -> DriverResult:
        """Start a compaction and follow it to its end, over a broken connection too."""
        return await result_of(self._compact(session_id), instructions)

    async def stop(self) -> None:
        """Nothing is left open between two calls."""

    async def _compact(self, thread: str) -> DriverResult:
        run = _CodexCompaction(thread, self._answer_s, self._stop_s)
        deadline_s = self._clock.monotonic_s() + self._timeout_s
        pauses = Backoff(self._clock, asyncio.Event())
        while True:
            try:
                async with connected(
                    self._place, answer_s=self._answer_s, stop_s=self._stop_s
                ) as server:
                    return await self._follow(server, run, deadline_s)
            except AppServerLostError as loss:
                if run.is_compacted:
                    return _DONE
                # A process took the compaction with it; a server on its own goes on.
                if not run.is_requested or self._place.url is None:
                    raise
                run.missed = True
                if self._clock.monotonic_s() + pauses.next_s >= deadline_s:
                    return _lost(loss.result.reason)
            except NotCompactedError as ending:
                if run.missed and ending.result.outcome != "started":
                    return _lost(ending.result.reason)
                raise
            await pauses.wait()

    async def _follow(
        self, server: AppServer, run: "_CodexCompaction", deadline_s: float
    ) -> DriverResult:
        try:
            async with asyncio.timeout(deadline_s - self._clock.monotonic_s()):
                return await run.follow(server)
        except TimeoutError:
            return await run.interrupted(server, f"not finished within {self._timeout_s:g} s")
        except asyncio.CancelledError:
            if run.is_requested:
                await run.interrupted(server, "cancelled")
            raise


class _CodexCompaction:
    """One compaction, over as many connections as it takes."""

    def __init__(self, thread: str, answer_s: float, stop_s: float) -> None:
        self._thread, self._answer_s, self._stop_s = thread, answer_s, stop_s
        self._turn: str | None = None
        self.is_requested = False
        self.is_compacted = False
        self.missed = False
        """Notifications may have been missed, as the connection was lost."""

    async def follow(self, server: AppServer) -> DriverResult:
        """Start it, or find it again, and wait for its end. Raises NotCompactedError."""
        is_active = await self._resumed(server)
        if not self.is_requested:
            if is_active:
                raise NotCompactedError("retry", "the thread is busy with a turn")
            await self._request(server)
        elif not is_active:
            return _lost("the thread is idle again")
        while True:
            try:
                # The item is what counts: the turn's end follows at once, or it is not needed.
                async with asyncio.timeout(self._stop_s if self.is_compacted else None):
                    method, params = await server.event()
            except TimeoutError:
                return _DONE
            if (result := self._result_after(method, params)) is not None:
                return result

    async def _resumed(self, server: AppServer) -> bool:
        """Subscribe to the thread; return whether a turn is active."""
        params = {"threadId": self._thread, "excludeTurns": True}
        try:
            answer = await server.request("thread/resume", params, self._answer_s)
        except RpcError as error:
            if error.result.outcome == "retry":
                raise
            # Threads of some versions can only be resumed with their turns.
            answer = await server.request(
                "thread/resume", {"threadId": self._thread}, self._answer_s
            )
        return fields(answer, "thread", "status").get("type") == "active"

    async def _request(self, server: AppServer) -> None:
        self.is_requested = True
        try:
            await server.request("thread/compact/start", {"threadId": self._thread})
        except RpcError:
            self.is_requested = False
            raise

    def _result_after(self, method: str, params: Fields) -> DriverResult | None:
        """Return what a notification says of the compaction's end; None: nothing yet."""
        if not self.is_requested or params.get("threadId", self._thread) != self._thread:
            return None
        item, turn = fields(params, "item"), fields(params, "turn")
        if method == "turn/started" and self._turn is None:
            self._turn = text(turn, "id") or None
        elif method in {"item/started", "item/completed"} and item.get("type") == _ITEM:
            self._turn = text(params, "turnId") or self._turn
            self.is_compacted |= method == "item/completed"
        elif method == "thread/compacted":
            self.is_compacted = True
        elif method == "thread/closed":
            return DriverResult("retry", "Codex unloaded the thread")
        elif method == "turn/completed" and self._turn in {None, turn.get("id")}:
            return self._result_of(turn)
        return None

    def _result_of(self, turn: Fields) -> DriverResult:
        match turn.get("status"):
            case "failed" if not self.is_compacted:
                return _failed(fields(turn, "error").get("codexErrorInfo"))
            case "interrupted" if not self.is_compacted:
                return DriverResult("refused", "the compaction was interrupted in Codex")
            case _ if self.is_compacted or (self.missed and self._turn is not None):
                return _DONE
            case _ if self.missed:
                return DriverResult("started", "a turn of the thread ended; which one is unknown")
        return DriverResult("refused", "Codex ended the turn without a compaction")

    async def interrupted(self, server: AppServer, why: str) -> DriverResult:
        """Ask Codex to stop, and return what is known then. Never raises."""
        if self.is_compacted:
            return _DONE
        if not self.is_requested:
            return DriverResult("retry", f"{why}: Codex does not answer")
        try:
            async with asyncio.timeout(self._stop_s):
                result = await self._interrupt(server)
        except (TimeoutError, NotCompactedError):
            return DriverResult("started", f"{why}; Codex does not confirm that it stopped")
        if result.outcome == "done":
            return result
        return DriverResult("retry", f"{why}: the compaction was interrupted")

    async def _interrupt(self, server: AppServer) -> DriverResult:
        asked = False
        while True:
            if self._turn is not None and not asked:
                asked = True
                params = {"threadId": self._thread, "turnId": self._turn}
                await server.request("turn/interrupt", params)
            if (result := self._result_after(*await server.event())) is not None:
                return result


def _lost(reason: str) -> DriverResult:
    return DriverResult("started", f"the connection was lost while Codex compacted: {reason}")


def _failed(info: object) -> DriverResult:
    """Return what a failed turn means. Its message is left out: it may quote the conversation."""
    name, status = info if isinstance(info, str) else "other", None
    if isinstance(info, dict) and info:
        name = str(next(iter(info)))
        status = fields(info, name).get("httpStatusCode")
    outcome: Literal["retry", "refused"] = "refused" if name in _LASTING else "retry"
    if isinstance(status, int) and 400 <= status < 500 and status not in _PASSING:  # noqa: PLR2004 -- HTTP's own
        outcome = "refused"
    note = "" if status is None else f", HTTP {status}"
    return DriverResult(outcome, f"the compaction failed in Codex: {name}{note}")
