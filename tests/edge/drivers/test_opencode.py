"""The driver of opencode against a server with its API."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from contextgauge.clock import SystemClock
from streams.edge.drivers import opencode
from streams.edge.drivers.opencode import OpencodeDriver, OpencodePlace
from tests.edge.drivers.opencode_kit import (
    FOLDER,
    PASSWORD,
    RESPONSE,
    SESSION,
    OpencodeServer,
)
from tests.edge.drivers.time_limits import ANSWER_S, STOP_S
from tests.patience import PATIENCE_S


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def driver_of(
    stack: AsyncExitStack,
    server: OpencodeServer,
    timeout_s: float = PATIENCE_S,
    model: str | None = None,
    password: str | None = PASSWORD,
) -> OpencodeDriver:
    url = await stack.enter_async_context(server.listening())
    place = OpencodePlace(url + "/", password=password)
    driver = OpencodeDriver(
        place, SystemClock(), model, timeout_s, answer_s=ANSWER_S, stop_s=STOP_S
    )
    stack.push_async_callback(driver.stop)
    return driver


async def test_a_session_is_summarised_by_the_model_it_used_last(stack: AsyncExitStack) -> None:
    server = OpencodeServer()
    driver = await driver_of(stack, server)
    assert driver.name == "opencode"
    result = await driver.compact(SESSION, None)
    assert result == ("done", "opencode compacted the session")
    assert server.bodies == [{"providerID": "anthropic", "modelID": "claude-x"}]
    assert set(server.folders) == {FOLDER}
    assert not server.aborted.is_set()


async def test_a_request_names_its_model_too(stack: AsyncExitStack) -> None:
    server = OpencodeServer()
    server.messages.remove(RESPONSE)
    assert (await (await driver_of(stack, server)).compact(SESSION, None)).outcome == "done"
    assert server.bodies == [{"providerID": "openai", "modelID": "gpt-5.1"}]


async def test_a_configured_model_is_used(stack: AsyncExitStack) -> None:
    server = OpencodeServer()
    driver = await driver_of(stack, server, model="openrouter/qwen/qwen3")
    assert (await driver.compact(SESSION, None)).outcome == "done"
    assert server.bodies == [{"providerID": "openrouter", "modelID": "qwen/qwen3"}]


@pytest.mark.parametrize(
    ("behaviour", "outcome"), [("floods", "refused"), ("floods later", "started")]
)
async def test_an_answer_that_is_too_large_is_not_read_to_its_end(
    stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch, behaviour: str, outcome: str
) -> None:
    monkeypatch.setattr(opencode, "MOST_BYTES", 4_000)
    server = OpencodeServer(behaviour)
    result = await (await driver_of(stack, server)).compact(SESSION, None)
    assert result.outcome == outcome
    assert "opencode's answer to GET message is larger than" in result.reason
    assert bool(server.bodies) == (behaviour == "floods later")


async def test_an_empty_session_needs_a_configured_model(stack: AsyncExitStack) -> None:
    server = OpencodeServer()
    server.messages.clear()
    assert await (await driver_of(stack, server)).compact(SESSION, None) == (
        "refused",
        "no model is known of the session: set `model`",
    )


@pytest.mark.parametrize(
    ("behaviour", "outcome", "reason"),
    [
        ("busy", "retry", "the session is busy"),
        ("race", "retry", "the session is busy"),
        ("bad model", "refused", "opencode answered 400 to POST summarize"),
        (
            "breaks",
            "retry",
            "the answer was lost (opencode answered 500), and there is no summary",
        ),
        ("fails", "retry", "the compaction failed in opencode: APIError"),
        ("no credit", "refused", "the compaction failed in opencode: ProviderAuthError"),
        ("lies", "refused", "opencode says that it is done, but there is no summary"),
        ("lost later", "started", "opencode says it is done; opencode answered 502"),
        ("says no", "refused", "opencode did not answer true"),
        ("garbage", "refused", "it does not speak the protocol of opencode"),
        ("redirects", "refused", f"opencode answered 307 to GET {SESSION}"),
    ],
)
async def test_what_goes_wrong_has_a_result(
    stack: AsyncExitStack, behaviour: str, outcome: str, reason: str
) -> None:
    driver = await driver_of(stack, OpencodeServer(behaviour))
    assert await driver.compact(SESSION, None) == (outcome, reason)


async def test_an_unknown_session_is_refused(stack: AsyncExitStack) -> None:
    server = OpencodeServer()
    driver = await driver_of(stack, server)
    assert await driver.compact("../config", None) == (
        "refused",
        "opencode answered 404: it does not know the session",
    )
    assert server.paths() == ["GET /session/../config"]  # as one part of the path: %2F


async def test_a_server_that_is_silent_is_tried_again() -> None:
    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.8)
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        place = OpencodePlace(f"http://127.0.0.1:{port}")
        driver = OpencodeDriver(place, SystemClock(), answer_s=0.3)
        assert await driver.compact(SESSION, None) == ("retry", "it did not answer in time")
        await driver.stop()


async def test_a_call_cancelled_after_the_summary_aborts_nothing(stack: AsyncExitStack) -> None:
    server = OpencodeServer("late")
    call = asyncio.create_task((await driver_of(stack, server)).compact(SESSION, None))
    await server.requested.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not server.aborted.is_set()


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (lambda server: server.finish(), "done"),
        (lambda server: setattr(server, "is_busy", False), "retry"),
    ],
)
async def test_a_lost_answer_is_looked_for_in_the_session(
    stack: AsyncExitStack, end: Callable[[OpencodeServer], None], outcome: str
) -> None:
    server = OpencodeServer("drops")
    call = asyncio.create_task((await driver_of(stack, server)).compact(SESSION, None))
    await server.looked_for.wait()
    end(server)
    assert (await call).outcome == outcome
    assert len(server.bodies) == 1
