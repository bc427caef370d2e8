"""Compactions on request, in a program with a client of the Claude Agent SDK.

Claude Code can only be steered through the input of its own process. So this process asks the API
for the commands that wait for its session, and sends `/compact` between two responses. The client
is used by its public methods only, and may be any object that has them.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from contextgauge.clock import SystemClock
from contextgauge.control_client import CommandSource, OpenCommand
from contextgauge.errors import RetryError
from contextgauge.ports import Clock

_logger = logging.getLogger("contextgauge")

QUIET_S: Final = 5.0
"""After a response nothing follows for so long: it answered all that was sent before it. Claude
Code may take several prompts into one response; a next response begins at once."""
LONGEST_S: Final = 600.0
"""A prompt of the program waits no longer for a compaction."""
REPORT_S: Final = 30.0
"""A problem that lasts is reported at most so often, and the pause after it grows up to this."""


class SteeredClient(Protocol):
    """What a `ClaudeSDKClient` has."""

    async def query(self, prompt: Any, session_id: str = "default") -> None:  # noqa: ANN401 -- a text, or messages
        """Send a prompt."""

    def receive_messages(self) -> AsyncIterator[Any]:
        """Receive messages, without end."""

    async def interrupt(self) -> None:
        """Stop the response that is under way."""


@asynccontextmanager
async def steer(
    client: SteeredClient,
    url: str,
    *,
    token: str | None = None,
    session_id: str | None = None,
    every_s: float = 5.0,
    on_problem: Callable[[str], None] | None = None,
) -> AsyncIterator[None]:
    """Compact the client's session whenever the control plane asks for it.

    `url` is that of `contextgauge serve`, `token` a reader's. The session is the one that the
    client's messages name, unless `session_id` does. Each command is sent once, when no response
    is under way; a prompt that the program sends meanwhile waits. The program receives the
    messages of such a compaction, but not its result message, which would end a
    `receive_response` of its own. Problems go to `on_problem`, or the logger `contextgauge`.
    """
    source = CommandSource(url, token)
    steering = _Steering(client, source, session_id, every_s, on_problem or _logger.warning)
    with steering.attached():
        task = asyncio.create_task(steering.run(), name="contextgauge-steer")
        try:
            yield
        finally:
            task.cancel()
            source.close()
            with contextlib.suppress(asyncio.CancelledError):
                await task


class _Steering:
    """The client's traffic, and what is asked of it."""

    def __init__(
        self,
        client: SteeredClient,
        source: CommandSource,
        session_id: str | None,
        every_s: float,
        report: Callable[[str], None],
    ) -> None:
        self._client, self._source, self._every_s = client, source, every_s
        self._clock: Clock = SystemClock()
        self._report_to_user = report
        self._reported_s: float | None = None
        self._session_id, self._is_session_fixed = session_id, session_id is not None
        self._query: Callable[..., Awaitable[None]] = client.query
        self._receive = client.receive_messages
        self._sent: set[str] = set()
        """Commands of this process: each is sent once."""
        self._expected: deque[bool] = deque()
        """For each prompt without a result yet, in order: whether it is a compaction of ours."""
        self._is_answering = False
        self._result_s: float | None = None
        """When the last message came, if it was a result."""
        self._compacted = asyncio.Event()
        self._input = asyncio.Lock()
        """Held while a compaction is under way: prompts wait."""
        self._output = asyncio.Lock()
        """Held by the one who waits for the next message: the program, or we."""
        self._held: deque[Any] = deque()
        """Messages that were read in the program's stead, which it receives next."""

    @contextlib.contextmanager
    def attached(self) -> Any:  # noqa: ANN401 -- a context manager
        """Let the client's prompts and messages pass through here."""
        client: Any = self._client
        before = {name: vars(client).get(name) for name in ("query", "receive_messages")}
        client.query, client.receive_messages = self.query, self.receive_messages
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    delattr(client, name)
                else:
                    setattr(client, name, value)

    async def query(self, prompt: Any, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 -- as the client's
        """Send a prompt of the program's, once no compaction is under way."""
        if not isinstance(prompt, AsyncIterable):
            async with self._input:
                self._expected.append(False)
                await self._query(prompt, *arguments, **named)
            return
        await self._query(self._counted(prompt), *arguments, **named)

    async def _counted(self, prompts: AsyncIterable[Any]) -> AsyncIterator[Any]:
        async for prompt in prompts:
            async with self._input:
                if isinstance(prompt, Mapping) and prompt.get("type") == "user":
                    self._expected.append(False)
            yield prompt

    async def receive_messages(self) -> AsyncIterator[Any]:
        """Receive messages for the program."""
        messages = self._receive()
        try:
            while True:
                async with self._output:
                    if self._held:
                        message = self._held.popleft()
                    else:
                        message = await anext(messages)
                        if self._is_ours(message):
                            continue
                yield message
        except StopAsyncIteration:
            return
        finally:
            await _close(messages)

    def _is_ours(self, message: object) -> bool:
        """Note a message; return whether it is the result of a compaction that was asked for."""
        kind = type(message).__name__
        session_id = getattr(message, "session_id", None)
        if isinstance(data := getattr(message, "data", None), Mapping):
            session_id = data.get("session_id", session_id)
        if isinstance(session_id, str) and session_id and not self._is_session_fixed:
            self._session_id = session_id
        if kind != "ResultMessage":
            self._result_s = None
            self._is_answering |= kind in {"AssistantMessage", "StreamEvent"}
            return False
        self._is_answering, self._result_s = False, self._clock.monotonic_s()
        if self._expected and self._expected.popleft():
            self._compacted.set()
            return True
        return False

    def _is_idle(self) -> bool:
        """Whether no response is under way, and none is about to begin."""
        if self._is_answering:
            return False
        is_quiet = (
            self._result_s is not None
            and self._output.locked()
            and self._clock.monotonic_s() - self._result_s >= QUIET_S
        )
        if is_quiet and not any(self._expected):
            self._expected.clear()
        return not self._expected

    async def run(self) -> None:
        """Ask for commands and carry them out, until cancelled."""
        pause_s = self._every_s
        while True:
            await self._clock.sleep(pause_s)
            try:
                for command in await self._open_commands():
                    if command.command_id not in self._sent and not command.is_cancelling:
                        await self._carry_out(command)
                pause_s = self._every_s
            except RetryError as error:
                self._report(str(error))
                pause_s = min(pause_s * 2, max(REPORT_S, self._every_s))
            except Exception as error:  # noqa: BLE001 -- the agent works on, whatever it is
                self._report(f"a compaction could not be sent to Claude: {type(error).__name__}")

    async def _open_commands(self) -> list[OpenCommand]:
        if self._session_id is None:
            return []
        return await self._source.commands(self._session_id)

    def _report(self, text: str) -> None:
        now_s = self._clock.monotonic_s()
        if self._reported_s is None or now_s - self._reported_s >= REPORT_S:
            self._reported_s = now_s
            self._report_to_user(text)

    async def _carry_out(self, command: OpenCommand) -> None:
        """Send a command, if Claude is idle, and wait for its result."""
        async with self._input:
            if not self._is_idle():
                return
            self._compacted.clear()
            self._expected.append(True)
            try:
                await self._query(command.prompt)
            except Exception:
                self._expected.pop()
                raise
            self._sent.add(command.command_id)
            reading = asyncio.create_task(
                self._read_until_compacted(), name="contextgauge-steer-read"
            )
            try:
                async with asyncio.timeout(LONGEST_S):
                    await self._watched(command, reading)
            except TimeoutError:
                self._report("Claude did not finish a compaction within 10 minutes")
            finally:
                reading.cancel()
                await asyncio.wait({reading})

    async def _watched(self, command: OpenCommand, reading: "asyncio.Task[None]") -> None:
        """Wait until the result was read. Interrupts Claude if the command is cancelled."""
        is_stopped = False
        while not reading.done():
            await asyncio.wait({reading}, timeout=self._every_s)
            if not reading.done() and not is_stopped and await self._is_cancelled(command):
                is_stopped = True
                await self._client.interrupt()
        reading.result()

    async def _is_cancelled(self, command: OpenCommand) -> bool:
        try:
            commands = await self._open_commands()
        except RetryError:
            return False
        return any(
            each.command_id == command.command_id and each.is_cancelling for each in commands
        )

    async def _read_until_compacted(self) -> None:
        """Read in the program's stead, unless it does; it receives these messages later."""
        async with self._output:
            messages = self._receive()
            try:
                while not self._compacted.is_set():
                    message = await anext(messages)
                    if not self._is_ours(message):
                        self._held.append(message)
            except StopAsyncIteration:
                return
            finally:
                await _close(messages)


async def _close(messages: AsyncIterator[Any]) -> None:
    close = getattr(messages, "aclose", None)
    if close is not None:
        await close()
