"""A real Chromium, the page's files behind an address, and whatever the tests say the API tells."""

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio
import uvicorn
from playwright.async_api import Browser, Page, ViewportSize, async_playwright, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streams.serve.api.page import FOLDER, page_routes
from streams.serve.api.totals import added_up
from tests.npm_files import fetched, missing, npm_file
from tests.page.pretend import PUSHED, Api, folded, records_of, sample_lines
from tests.page.shown import NOW_MS, SESSION, Shown
from tests.patience import PATIENCE_S

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
"""Chromium asks nobody but the server under test."""

WIDE: ViewportSize = {"width": 1440, "height": 900}
NARROW: ViewportSize = {"width": 390, "height": 844}


def _chromium() -> str:
    # The shell is the same engine without a browser around it: two thirds of the CPU time.
    return (
        shutil.which("chromium-headless-shell")
        or shutil.which("chromium")
        or missing("no Chromium on this machine (Debian, Ubuntu: apt-get install chromium)")
    )


@pytest.fixture(scope="session")
def axe() -> str:
    """The accessibility checker's source."""
    return npm_file("axe-core/axe.min.js").read_text()


@pytest.fixture(scope="session")
def charts() -> str:
    """The chart library's source, as the page is served it."""
    return fetched(FOLDER / "vendor" / "uPlot.esm.js").read_text()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """A Chromium with an empty profile."""
    executable = _chromium()
    expect.set_options(timeout=PATIENCE_S * 1_000)
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield started
        await started.close()


DRAWN = """
(() => {
  // What charts show: words with where they stand, bars and bands from where to where, and lines.
  // A chart that is drawn again clears its canvas, and one that is replaced leaves the page: what
  // either showed before counts no more.
  let marks = [];
  const draws = (kind, canvas, value) => marks.push({ kind, canvas, value });
  const shows = (kind) =>
    marks.filter((mark) => mark.kind === kind && mark.canvas.isConnected).map(({ value }) => value);
  window.drawn = {
    get words() { return shows("words"); },
    get bands() { return shows("bands"); },
    get lines() { return shows("lines"); },
    bars: [],
  };
  const { clearRect, fillText, fillRect, moveTo, lineTo } = CanvasRenderingContext2D.prototype;
  let from = [0, 0];
  CanvasRenderingContext2D.prototype.clearRect = function (...area) {
    marks = marks.filter(({ canvas }) => canvas !== this.canvas);
    return clearRect.apply(this, area);
  };
  CanvasRenderingContext2D.prototype.moveTo = function (x, y) {
    from = [x, y];
    return moveTo.call(this, x, y);
  };
  CanvasRenderingContext2D.prototype.lineTo = function (x, y) {
    draws("lines", this.canvas, [...from, x, y, this.lineWidth, this.strokeStyle]);
    return lineTo.call(this, x, y);
  };
  CanvasRenderingContext2D.prototype.fillRect = function (x, y, width, height) {
    draws("bands", this.canvas, [x, x + width]);
    return fillRect.call(this, x, y, width, height);
  };
  CanvasRenderingContext2D.prototype.fillText = function (words, x, ...more) {
    draws("words", this.canvas, [words, x]);
    return fillText.call(this, words, x, ...more);
  };
  const { arcTo } = Path2D.prototype;
  let height = 0;
  Path2D.prototype.arcTo = function (x1, y1, x2, y2, radius) {
    if (x1 === x2) height = Math.abs(y2 - y1);
    else if (x1 < x2 && height > 0) drawn.bars.push([x1, x2]);
    return arcTo.call(this, x1, y1, x2, y2, radius);
  };
})();
"""


class Said:
    """What the page said on its console that it should not have."""

    def __init__(self, page: Page) -> None:
        self.errors: list[str] = []
        self.addresses: set[str] = set()
        page.on("console", lambda message: self._console(message.type, message.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.addresses.add(request.url))

    def _console(self, kind: str, words: str) -> None:
        # The browser itself notes each answer that is an error; the page's own words are others.
        if kind in {"error", "warning"} and not words.startswith("Failed to load resource"):
            self.errors.append(words)


class Answering:
    """Answers what tabs ask of the API, by what the running test says.

    By a server, and not by Playwright: while that answers in a browser's place, the browser keeps
    none of the page's files, and loads them again for each test.
    """

    def __init__(self) -> None:
        self.url = ""
        self.api = Api()

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        return await self.api.answer(request)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _window(browser: Browser, page_url: str) -> AsyncIterator[Page]:
    """The first tab of the context that tests share.

    It stays open: a page that is loaded in a context without another tab takes twice the CPU time.
    """
    context = await browser.new_context(viewport=WIDE, reduced_motion="no-preference")
    tab = await context.new_page()
    await tab.goto(f"{page_url}page/any/icon.svg")
    yield tab
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(
    _window: Page, _answering: Answering, request: pytest.FixtureRequest
) -> AsyncIterator[Page]:
    """A tab; at the end nothing was wrong on its console, and nobody else was asked.

    A test that moves Playwright's clock is marked `own_context`: it is a context's, not a tab's.
    """
    _answering.api = Api()
    context = _window.context
    if is_own := request.node.get_closest_marker("own_context") is not None:
        browser = cast("Browser", context.browser)
        context = await browser.new_context(viewport=WIDE, reduced_motion="no-preference")
    tab = await context.new_page()
    said = Said(tab)
    yield tab
    hosts = {address.split("/")[2] for address in said.addresses if address.startswith("http")}
    await (context if is_own else tab).close()
    await _window.evaluate("localStorage.clear()")
    assert said.errors == []
    assert {host.split(":")[0] for host in hosts} <= {"127.0.0.1"}


async def stop_clock(page: Page, at_ms: float) -> None:
    """Let it be this moment in what the tab loads, Unix time; timers go on."""
    await page.add_init_script(
        f"""globalThis.stoppedMs = {at_ms};
        globalThis.Date = Date.isStopped ? Date : class extends Date {{
          static isStopped = true;
          constructor(...given) {{ super(...(given.length > 0 ? given : [stoppedMs])); }}
          static now() {{ return stoppedMs; }}
        }};"""
    )


HASTE = 10
"""So many times sooner do the page's own timers end: nobody waits for what it waits for."""


@pytest_asyncio.fixture(loop_scope="session")
async def hasty(page: Page) -> None:
    """Let the page's timers end sooner; requests take as long as they take."""
    await page.add_init_script(
        f"""for (const name of ["setTimeout", "setInterval"]) {{
          const plain = window[name];
          window[name] = (call, ms, ...more) => plain(call, (ms ?? 0) / {HASTE}, ...more);
        }}"""
    )


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to pytest."""
        yield


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _answering() -> AsyncIterator[Answering]:
    answering = Answering()
    app = Starlette(routes=[*page_routes(), Route("/v1/{rest:path}", answering.answer)])
    listener = socket.create_server(("127.0.0.1", 0))
    answering.url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    server = _Server(uvicorn.Config(app, log_config=None, lifespan="off", date_header=False))
    serving = asyncio.create_task(server.serve([listener]))
    yield answering
    server.should_exit = True
    await serving


@pytest.fixture(scope="session")
def page_url(_answering: Answering) -> str:
    """The page's address."""
    return _answering.url


@pytest_asyncio.fixture(loop_scope="session")
async def api(page: Page, _answering: Answering) -> Api:
    """An API that tells what the test says."""
    await page.add_init_script(PUSHED)
    return _answering.api


@pytest_asyncio.fixture(loop_scope="session")
async def shown(page: Page, page_url: str, api: Api, tmp_path: Path) -> Shown:
    """The session's page, for an agent that has said a little; the clock stands where it does."""
    await stop_clock(page, NOW_MS)
    made = Shown(tmp_path / "agent.jsonl", api, page)
    made.agent.begin(NOW_MS - 600_000)
    for number in range(8):
        made.agent.respond(NOW_MS - 500_000 + number * 40_000, 20_000 + number * 19_000)
    made.fill()
    await page.goto(f"{page_url}#/session/{SESSION}")
    await expect(page.locator(".hero .gauge-share")).to_contain_text("76%")
    return made


@pytest.fixture(scope="module")
def sample() -> Any:
    """The simulator's sample as the projection leaves it."""
    return folded(records_of(sample_lines(NOW_MS)))


@pytest.fixture
def sampled(api: Api, sample: Any) -> Api:
    """An API that tells of the sample."""
    api.fill(sample)
    return api


@pytest_asyncio.fixture(loop_scope="session")
async def filled(page: Page, sampled: Api, sample: Any) -> Api:
    """An API that tells of the sample, an hour after it."""
    await stop_clock(page, NOW_MS + 3_600_000)
    sampled.stats = added_up([sample.stats], "hour")
    return sampled


async def open_live(page: Page, page_url: str) -> None:
    """Open the overview, until its figures are live."""
    await page.goto(page_url)
    await expect(page.locator(".live")).to_have_attribute("data-state", "live")
