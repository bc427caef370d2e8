"""The driver of Codex against an app server of its protocol: over sockets, and as a process."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from contextgauge.clock import SystemClock
from streams.edge.drivers.app_server import AppServerPlace
from streams.edge.drivers.codex import CodexDriver
from tests.edge.drivers.codex_kit import THREAD, TOKEN, CodexServer
from tests.edge.drivers.time_limits import ANSWER_S, SOON_S, STOP_S
from tests.flow.derive_kit import until
from tests.patience import PATIENCE, PATIENCE_S

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def over_socket(
    stack: AsyncExitStack,
    server: CodexServer,
    timeout_s: float = PATIENCE_S,
    token: str | None = TOKEN,
) -> CodexDriver:
    url = await stack.enter_async_context(server.listening())
    place = AppServerPlace(url, token=token)
    return CodexDriver(place, SystemClock(), timeout_s, answer_s=ANSWER_S, stop_s=STOP_S)


def as_process(behaviour: str, timeout_s: float = PATIENCE_S) -> CodexDriver:
    module = "tests.edge.drivers.codex_kit"
    command = ("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", module, behaviour)
    place = AppServerPlace(command=command)
    return CodexDriver(place, SystemClock(), timeout_s, answer_s=PATIENCE_S, stop_s=STOP_S)


async def test_a_thread_is_compacted_over_a_web_socket(stack: AsyncExitStack) -> None:
    server = CodexServer()
    driver = await over_socket(stack, server)
    assert driver.name == "codex"
    result = await driver.compact(THREAD, None)
    assert result == ("done", "Codex compacted the thread")
    assert server.methods() == [
        "initialize",
        "initialized",
        "thread/resume",
        "thread/compact/start",
    ]
    assert server.messages[-1]["params"] == {"threadId": THREAD}
    # The approval that the server asked for is another client's to answer.
    assert all("method" in message for message in server.messages)
    await until(lambda: not server.open)
    assert (server.connections, server.close_codes) == (1, [1000])


async def test_a_thread_is_compacted_over_a_unix_socket(tmp_path: Path) -> None:
    server = CodexServer()
    async with server.listening(tmp_path / "codex.sock") as url:
        driver = CodexDriver(AppServerPlace(url), SystemClock())
        assert (await driver.compact(THREAD, None)).outcome == "done"


async def test_a_thread_is_compacted_by_a_process() -> None:
    assert (await as_process("compacts").compact(THREAD, None)).outcome == "done"


@pytest.mark.parametrize("behaviour", ["legacy", "needs turns", "never ends"])
async def test_other_versions_are_understood(stack: AsyncExitStack, behaviour: str) -> None:
    driver = await over_socket(stack, CodexServer(behaviour))
    assert (await driver.compact(THREAD, None)).outcome == "done"


@pytest.mark.parametrize(
    ("behaviour", "outcome", "reason"),
    [
        ("busy", "retry", "the thread is busy with a turn"),
        ("away", "retry", "it answered the handshake with 503"),
        ("silent", "retry", f"Codex did not answer initialize within {ANSWER_S:g} s"),
        (
            "overloaded",
            "retry",
            "Codex answered thread/compact/start with error -32001: Server overloaded",
        ),
        (
            "fails",
            "retry",
            "the compaction failed in Codex: responseStreamDisconnected, HTTP 503",
        ),
        ("stopped", "refused", "the compaction was interrupted in Codex"),
        ("lies", "refused", "Codex ended the turn without a compaction"),
        ("garbage", "refused", "it does not speak the protocol of Codex"),
    ],
)
async def test_what_goes_wrong_has_a_result(
    stack: AsyncExitStack, behaviour: str, outcome: str, reason: str
) -> None:
    driver = await over_socket(stack, CodexServer(behaviour))
    assert await driver.compact(THREAD, None) == (outcome, reason)


async def test_an_unknown_thread_is_refused(stack: AsyncExitStack) -> None:
    driver = await over_socket(stack, CodexServer())
    result = await driver.compact("0199", None)
    assert result == (
        "refused",
        "Codex answered thread/resume with error -32600: no rollout found for 0199",
    )


async def test_a_lost_connection_is_made_again_and_the_compaction_followed(
    stack: AsyncExitStack,
) -> None:
    server = CodexServer("drops")
    call = asyncio.create_task((await over_socket(stack, server)).compact(THREAD, None))
    await server.resumed.wait()
    await server.finish()
    assert await call == ("done", "Codex compacted the thread")
    assert server.methods().count("thread/compact/start") == 1
    assert server.connections == 2


async def test_a_compaction_that_ended_during_the_break_has_an_open_outcome(
    stack: AsyncExitStack,
) -> None:
    server = CodexServer("drops")
    call = asyncio.create_task((await over_socket(stack, server)).compact(THREAD, None))
    await server.requested.wait()
    await server.finish()
    assert await call == (
        "started",
        "the connection was lost while Codex compacted: the thread is idle again",
    )


async def test_a_request_without_an_answer_may_have_started_it(stack: AsyncExitStack) -> None:
    server = CodexServer("lost at once")
    driver = await over_socket(stack, server, timeout_s=SOON_S)
    result = await driver.compact(THREAD, None)
    # It is active, and no turn is known that could be interrupted.
    assert result.outcome == "started"
    assert server.methods().count("thread/compact/start") == 1


async def test_a_process_that_dies_took_the_compaction_with_it() -> None:
    result = await as_process("dies").compact(THREAD, None)
    assert result == ("retry", "its process ended with 3")


async def test_a_process_that_stays_is_killed() -> None:
    """What holds of every driver (conftest.py) includes that it is gone."""
    assert (await as_process("stays").compact(THREAD, None)).outcome == "done"


@pytest.mark.extended
async def test_a_process_that_hangs_is_interrupted_and_ended() -> None:
    limit_s = 5 * PATIENCE
    result = await as_process("hangs", limit_s).compact(THREAD, None)
    assert result == ("retry", f"not finished within {limit_s:g} s: the compaction was interrupted")


async def test_a_command_that_is_not_there_is_refused() -> None:
    driver = CodexDriver(AppServerPlace(command=("codex-of-nowhere", "x")), SystemClock())
    assert await driver.compact(THREAD, None) == (
        "refused",
        "codex-of-nowhere cannot be started (No such file or directory): correct `command`",
    )
