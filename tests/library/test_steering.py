"""Compactions on request in an agent's process: once each, and never in a response's midst."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import web

from contextgauge import steering
from contextgauge.addresses import session_address
from contextgauge.commands import CommandView, ControlView
from contextgauge.errors import ConfigError
from contextgauge.steering import steer
from streams import codec
from tests.patience import PATIENCE_S
from tests.web_kit import web_server

SESSION = "9c1/4"
COMMAND = CommandView(
    command_id="c-1",
    trigger="manual",
    requested_by="ann",
    instructions="keep the\n  names",
    cause_id=None,
    state="called",
    requested_ms=1,
    driver="claude-code",
)


@dataclass
class SystemMessage:
    subtype: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass
class AssistantMessage:
    content: str


@dataclass
class ResultMessage:
    result: str
    session_id: str = SESSION


class Client:
    """A client as the SDK's: prompts in, messages out, `receive_response` up to a result."""

    def __init__(self) -> None:
        self.prompts: list[Any] = []
        self.messages: asyncio.Queue[Any] = asyncio.Queue()
        self.interrupts = 0
        self.is_broken = False

    async def query(self, prompt: Any, session_id: str = "default") -> None:
        del session_id
        if self.is_broken:
            raise OSError("the process is gone")
        if isinstance(prompt, str):
            self.prompts.append(prompt)
            return
        async for each in prompt:
            self.prompts.append(each["message"]["content"])

    async def receive_messages(self) -> AsyncIterator[Any]:
        while (message := await self.messages.get()) is not None:
            yield message

    async def receive_response(self) -> AsyncIterator[Any]:
        async for message in self.receive_messages():
            yield message
            if isinstance(message, ResultMessage):
                return

    async def interrupt(self) -> None:
        self.interrupts += 1

    def answer(self, result: str) -> None:
        """Let Claude answer a prompt."""
        data = {"session_id": SESSION, "subtype": "init"}
        self.messages.put_nowait(SystemMessage("init", data))
        self.messages.put_nowait(AssistantMessage("…"))
        self.messages.put_nowait(ResultMessage(result))

    async def response(self) -> list[Any]:
        return [message async for message in self.receive_response()]


class Api:
    """The API's answer about a session."""

    def __init__(self) -> None:
        self.commands: list[CommandView] = []
        self.status, self.body = 200, b""
        self.asked: list[tuple[str, str | None]] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append((request.raw_path, request.headers.get("authorization")))
        view = ControlView(session_id=SESSION, commands=tuple(self.commands))
        return web.Response(status=self.status, body=self.body or codec.dumps({"control": view}))

    async def was_asked(self, times: int = 3) -> None:
        """Wait until it was asked so often from now on."""
        until = len(self.asked) + times
        async with asyncio.timeout(PATIENCE_S):
            while len(self.asked) < until:  # noqa: ASYNC110 -- of a server, by the clock of the client
                await asyncio.sleep(0.005)


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    api = Api()
    async with web_server(api.handle, "GET") as address:
        api.url = f"{address}/base/"
        yield api


@pytest.fixture
def client() -> Client:
    return Client()


@asynccontextmanager
async def steered(client: Client, api: Api, **named: Any) -> AsyncIterator[list[str]]:
    problems: list[str] = []
    async with steer(client, api.url, every_s=0.01, on_problem=problems.append, **named):
        yield problems
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("contextgauge")]
    assert "query" not in vars(client)
    assert "receive_messages" not in vars(client)


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 -- of a client that knows of no event
            await asyncio.sleep(0.005)


async def test_an_idle_session_is_compacted_once(client: Client, api: Api) -> None:
    async with steered(client, api, token="t0ken") as problems:  # noqa: S106 -- of this server
        await client.query("hello")
        client.answer("1")
        await client.response()
        api.commands = [COMMAND]
        await until(lambda: len(client.prompts) == 2)
        client.answer("compacted")
        await api.was_asked()
    assert client.prompts == ["hello", "/compact keep the names"]
    assert api.asked[0] == ("/base/v1/sessions/9c1%2F4/control", "Bearer t0ken")
    assert problems == []


async def test_an_id_that_clients_would_shorten_is_asked_for_by_its_hash(
    client: Client, api: Api
) -> None:
    async with steered(client, api, session_id=".."):
        await api.was_asked()
    assert api.asked[0][0] == f"/base/v1/sessions/{session_address('..')}/control"


async def test_nothing_is_sent_during_a_response(client: Client, api: Api) -> None:
    api.commands = [COMMAND]
    async with steered(client, api, session_id=SESSION):
        await client.query("hello")
        await api.was_asked()
        client.answer("1")
        await api.was_asked()
        # The response is there, but the program has not read it.
        assert client.prompts == ["hello"]
        await client.response()
        await until(lambda: len(client.prompts) == 2)


async def test_a_response_that_claude_began_by_itself_is_not_disturbed(
    client: Client, api: Api
) -> None:
    api.commands = [COMMAND]
    async with steered(client, api):
        reader = asyncio.create_task(client.response())
        client.messages.put_nowait(SystemMessage("init", {"session_id": SESSION}))
        client.messages.put_nowait(AssistantMessage("a task ended"))
        await api.was_asked()
        assert client.prompts == []
        client.messages.put_nowait(ResultMessage("by itself"))
        await reader
        await until(lambda: client.prompts)


async def test_a_prompt_waits_for_the_compaction_and_gets_its_own_response(
    client: Client, api: Api
) -> None:
    api.commands = [COMMAND]
    async with steered(client, api, session_id=SESSION):
        await until(lambda: client.prompts)
        asking = asyncio.create_task(client.query("and now?"))
        await api.was_asked()
        assert client.prompts == ["/compact keep the names"]
        client.answer("compacted")
        await asking
        assert client.prompts[1:] == ["and now?"]
        client.answer("2")
        response = await client.response()
    # The compaction's messages come first; its result would have ended the response.
    assert [type(each).__name__ for each in response] == [
        "SystemMessage",
        "AssistantMessage",
        "SystemMessage",
        "AssistantMessage",
        "ResultMessage",
    ]
    assert response[-1].result == "2"


async def test_a_program_that_always_reads_gets_all_but_the_result(
    client: Client, api: Api
) -> None:
    api.commands = [COMMAND]
    messages = []

    async def read() -> None:
        async for message in client.receive_messages():
            messages.append(message)  # noqa: PERF401 -- it never ends

    async with steered(client, api, session_id=SESSION):
        reader = asyncio.create_task(read())
        await until(lambda: client.prompts)
        client.answer("compacted")
        await client.query("hello")
        client.answer("1")
        client.messages.put_nowait(None)
        await reader
    assert [each.result for each in messages if isinstance(each, ResultMessage)] == ["1"]
    assert len(messages) == 5


async def test_a_reader_that_stops_during_the_compaction_blocks_nothing(
    client: Client, api: Api
) -> None:
    api.commands = [COMMAND]
    async with steered(client, api, session_id=SESSION):
        reader = asyncio.create_task(client.response())
        await until(lambda: client.prompts)
        reader.cancel()
        client.answer("compacted")
        await client.query("hello")
    assert client.prompts[1:] == ["hello"]


@pytest.mark.parametrize(
    "command",
    [
        replace(COMMAND, driver="service"),
        replace(COMMAND, driver=None, state="requested"),
        replace(COMMAND, state="finished"),
        replace(COMMAND, is_cancelling=True),
    ],
)
async def test_other_commands_are_left_alone(
    client: Client, api: Api, command: CommandView
) -> None:
    api.commands = [command]
    async with steered(client, api, session_id=SESSION):
        await api.was_asked()
    assert client.prompts == []


async def test_commands_are_sent_one_after_the_other(client: Client, api: Api) -> None:
    second = replace(COMMAND, command_id="c-2", instructions=None, state="accepted")
    api.commands = [COMMAND, second]
    async with steered(client, api, session_id=SESSION):
        await until(lambda: client.prompts)
        await api.was_asked()
        assert len(client.prompts) == 1
        client.answer("compacted")
        await until(lambda: len(client.prompts) == 2)
    assert client.prompts[1] == "/compact"


async def test_a_cancelled_command_is_interrupted_once(client: Client, api: Api) -> None:
    api.commands = [COMMAND]
    async with steered(client, api, session_id=SESSION):
        await until(lambda: client.prompts)
        assert client.interrupts == 0
        api.commands = [replace(COMMAND, is_cancelling=True)]
        await until(lambda: client.interrupts)
        client.answer("interrupted")
        await client.query("hello")
    assert client.interrupts == 1


async def test_prompts_of_a_stream_count_each(client: Client, api: Api) -> None:
    api.commands = [COMMAND]

    async def prompts() -> AsyncIterator[dict[str, Any]]:
        for text in ("one", "two"):
            yield {"type": "user", "message": {"role": "user", "content": text}}

    async with steered(client, api, session_id=SESSION):
        await client.query(prompts())
        client.answer("1")
        await client.response()
        await api.was_asked()
        assert client.prompts == ["one", "two"]
        client.answer("2")
        await client.response()
        await until(lambda: len(client.prompts) == 3)


async def test_two_prompts_may_be_answered_by_one_response(
    client: Client, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steering, "QUIET_S", 0.1)
    api.commands = [COMMAND]
    async with steered(client, api):
        await client.query("one")
        await client.query("two")
        client.answer("1 and 2")
        reader = asyncio.create_task(client.response())
        await reader
        waiting = asyncio.create_task(client.response())
        await until(lambda: len(client.prompts) == 3)
        client.messages.put_nowait(None)
        await waiting


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (401, b"", "the commands of the session cannot be read: HTTP 401"),
        (200, b"<html>", "the commands of the session cannot be read: the answer is not JSON"),
        (200, b'{"control": null}', None),
        (404, b"", None),
    ],
)
async def test_an_api_that_fails_is_reported_and_asked_again(
    client: Client, api: Api, status: int, body: bytes, problem: str | None
) -> None:
    api.status, api.body, api.commands = status, body, [COMMAND]
    async with steered(client, api, session_id=SESSION) as problems:
        await api.was_asked()
        assert client.prompts == []
        assert problems == ([problem] if problem else [])
        api.status, api.body = 200, b""
        await until(lambda: client.prompts)


async def test_an_api_that_is_away_disturbs_no_one(
    client: Client, api: Api, unused_tcp_port: int
) -> None:
    api.url = f"http://127.0.0.1:{unused_tcp_port}"
    async with steered(client, api, session_id=SESSION) as problems:
        await until(lambda: problems)
        await client.query("hello")
    assert problems == ["the commands of the session cannot be read: ConnectionRefusedError"]


async def test_an_api_that_is_silent_does_not_hold_the_end_up(client: Client, api: Api) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        asked.set()
        await reader.read()
        closed.set()
        writer.close()

    asked, closed = asyncio.Event(), asyncio.Event()
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as listener:
        api.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        async with asyncio.timeout(PATIENCE_S):
            async with steered(client, api, session_id=SESSION):
                await asked.wait()
            await closed.wait()


async def test_a_broken_client_is_reported_and_tried_again(client: Client, api: Api) -> None:
    client.is_broken = True
    api.commands = [COMMAND]
    async with steered(client, api, session_id=SESSION) as problems:
        await until(lambda: problems)
        client.is_broken = False
        await until(lambda: client.prompts)
    assert problems == ["a compaction could not be sent to Claude: OSError"]


async def test_without_a_session_no_one_is_asked(client: Client, api: Api) -> None:
    async with steered(client, api):
        await asyncio.sleep(0.05)
    assert api.asked == []


@pytest.mark.parametrize("url", ["localhost:8377", "ftp://x", "http://", "http://x:port"])
async def test_a_wrong_url_is_refused(client: Client, url: str) -> None:
    with pytest.raises(ConfigError, match="url is not valid"):
        async with steer(client, url):
            pass
