"""What every driver does: the same outcomes for the same things, whatever the protocol."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from contextgauge.clock import SystemClock
from streams.edge.drivers.app_server import AppServerPlace
from streams.edge.drivers.codex import CodexDriver
from streams.edge.drivers.opencode import OpencodeDriver, OpencodePlace
from streams.ports.control import Driver
from tests.edge.drivers.codex_kit import THREAD, TOKEN, CodexServer
from tests.edge.drivers.opencode_kit import PASSWORD, SESSION, OpencodeServer
from tests.edge.drivers.time_limits import ANSWER_S, SOON_S, STOP_S
from tests.patience import PATIENCE_S


def codex(url: str, secret: str | None, timeout_s: float) -> Driver:
    place = AppServerPlace(url, token=secret)
    return CodexDriver(place, SystemClock(), timeout_s, answer_s=ANSWER_S, stop_s=STOP_S)


def opencode(url: str, secret: str | None, timeout_s: float) -> Driver:
    place = OpencodePlace(url, password=secret)
    return OpencodeDriver(place, SystemClock(), None, timeout_s, answer_s=ANSWER_S, stop_s=STOP_S)


@dataclass(frozen=True)
class Runtime:
    """A runtime with a driver: how both are made, and what its server has seen."""

    make: Callable[[str, str | None, float], Driver]
    server: Callable[[str], Any]
    scheme: str
    session: str
    unknown: str
    secret: str
    own_name: str
    was_asked: Callable[[Any], bool]
    stopped: Callable[[Any], asyncio.Event]


RUNTIMES = (
    Runtime(
        make=codex,
        server=CodexServer,
        scheme="ws",
        session=THREAD,
        unknown="0199",
        secret=TOKEN,
        own_name="Codex",
        was_asked=lambda server: "thread/compact/start" in server.methods(),
        stopped=lambda server: server.interrupted,
    ),
    Runtime(
        make=opencode,
        server=OpencodeServer,
        scheme="http",
        session=SESSION,
        unknown="../config",
        secret=PASSWORD,
        own_name="opencode",
        was_asked=lambda server: bool(server.bodies),
        stopped=lambda server: server.aborted,
    ),
)


class Driving:
    """A driver against a server that behaves as asked for."""

    def __init__(self, runtime: Runtime, stack: AsyncExitStack) -> None:
        self.runtime, self._stack = runtime, stack
        self.server: Any = None

    async def driver(
        self, behaviour: str = "compacts", timeout_s: float = PATIENCE_S, secret: str | None = None
    ) -> Driver:
        self.server = self.runtime.server(behaviour)
        url = await self._stack.enter_async_context(self.listening())
        return self.at(url, timeout_s, secret or self.runtime.secret)

    def listening(self) -> AbstractAsyncContextManager[str]:
        listening: AbstractAsyncContextManager[str] = self.server.listening()
        return listening

    def at(self, url: str, timeout_s: float, secret: str | None = None) -> Driver:
        driver = self.runtime.make(url, secret, timeout_s)
        self._stack.push_async_callback(driver.stop)
        return driver


@pytest.fixture(params=RUNTIMES, ids=lambda runtime: runtime.own_name.lower())
async def driving(request: pytest.FixtureRequest) -> AsyncIterator[Driving]:
    async with AsyncExitStack() as stack:
        yield Driving(request.param, stack)


async def test_instructions_are_reported_as_left_out_where_there_is_no_place_for_them(
    driving: Driving,
) -> None:
    driver = await driving.driver()
    result = await driver.compact(driving.runtime.session, "keep the names")
    assert result.outcome == "done"
    assert result.reason.endswith("; it accepts no instructions, so without them")


async def test_a_busy_session_is_left_alone(driving: Driving) -> None:
    driver = await driving.driver("busy")
    assert (await driver.compact(driving.runtime.session, None)).outcome == "retry"
    assert not driving.runtime.was_asked(driving.server)


async def test_an_unknown_session_is_refused(driving: Driving) -> None:
    driver = await driving.driver()
    assert (await driver.compact(driving.runtime.unknown, None)).outcome == "refused"
    assert not driving.runtime.was_asked(driving.server)


async def test_a_wrong_secret_is_refused_and_not_shown(driving: Driving) -> None:
    driver = await driving.driver(secret="another")  # noqa: S106 -- a wrong one
    result = await driver.compact(driving.runtime.session, None)
    assert result.outcome == "refused"
    assert "401" in result.reason
    assert "another" not in result.reason
    assert "another" not in repr(vars(driver))


async def test_a_server_that_is_not_there_is_tried_again(
    driving: Driving, unused_tcp_port: int
) -> None:
    driver = driving.at(f"{driving.runtime.scheme}://127.0.0.1:{unused_tcp_port}", PATIENCE_S)
    assert await driver.compact(driving.runtime.session, None) == (
        "retry",
        "it cannot be reached: the connection was refused",
    )


async def test_a_compaction_that_takes_too_long_is_stopped_and_tried_again(
    driving: Driving,
) -> None:
    driver = await driving.driver("hangs", SOON_S)
    result = await driver.compact(driving.runtime.session, None)
    assert result.outcome == "retry"
    assert result.reason.startswith(f"not finished within {SOON_S:g} s: the compaction was ")
    assert driving.runtime.stopped(driving.server).is_set()


async def test_a_stop_without_an_answer_leaves_the_outcome_open(driving: Driving) -> None:
    driver = await driving.driver("deaf", SOON_S)
    name = driving.runtime.own_name
    assert await driver.compact(driving.runtime.session, None) == (
        "started",
        f"not finished within {SOON_S:g} s; {name} does not confirm that it stopped",
    )


@pytest.mark.parametrize("behaviour", ["hangs", "deaf"])
async def test_a_cancelled_call_stops_the_compaction(driving: Driving, behaviour: str) -> None:
    driver = await driving.driver(behaviour)
    call = asyncio.create_task(driver.compact(driving.runtime.session, None))
    await driving.server.requested.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert driving.runtime.stopped(driving.server).is_set()


async def test_a_server_that_stays_away_leaves_the_outcome_open(driving: Driving) -> None:
    driving.server = driving.runtime.server("drops")
    async with driving.listening() as url:
        driver = driving.at(url, SOON_S, driving.runtime.secret)
        call = asyncio.create_task(driver.compact(driving.runtime.session, None))
        await driving.server.requested.wait()
    result = await call
    assert result.outcome == "started"
    assert result.reason.endswith(": it cannot be reached: the connection was refused")
