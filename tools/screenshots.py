"""Take the screenshots in `docs/screens/` with simulated sessions and a real browser.

    make screenshots

The messages are derived and projected into in-memory views, which the application serves to
Chromium, so the screenshots show the real page.
"""

import asyncio
import base64
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import uvicorn
from playwright.async_api import Browser, ViewportSize, async_playwright

from contextgauge.clock import SystemClock
from contextgauge.normalise.signals import InputMessage
from contextgauge.records import Record
from contextgauge.window_catalog import bundled
from streams import codec
from streams.cli.asked import opened
from streams.cli.inputs import sources_of
from streams.cli.report.answers import Answers
from streams.cli.report.page import ReportOrigin, page
from streams.cli.share.share_page import share_page
from streams.cli.share.shared import shared
from streams.cli.simulate import ending_now
from streams.cli.transcripts import Replay
from streams.core.derivation.rules_config import Rules
from streams.edge.files.folders import write_folder
from streams.flow.derive.deriver import Deriver
from streams.flow.simulator import SimulatedMessage, SimulationOptions, simulate
from streams.serve.api.page import FOLDER
from tests.page.conftest import FLAGS, NARROW, WIDE
from tests.serve.kit import GrowingViews, api_over

TARGET = Path(__file__).parents[1] / "docs" / "screens"

OPTIONS = SimulationOptions(
    sessions=24, turns=70, seed=3, providers=("claude", "claude", "codex", "openai")
)
MESSAGES = 27_800
"""At this point one compaction is running, another session has an unknown size after one, and
four are near their threshold."""

HISTORY = SimulationOptions(sessions=4, turns=90, seed=2, providers=("claude", "claude", "codex"))
HISTORY_MESSAGES = 42_000
"""Few concurrent sessions over more than a day, for charts over hours."""

PROJECTS = (
    "orchard", "lighthouse", "ferry-times", "seed-bank", "tide-tables", "field-notes", "kiln",
    "paper-trail", "weir", "almanac", "granary", "beacon",
)  # fmt: skip

TALL = ViewportSize(width=WIDE["width"], height=1_500)
"""For a session, whose timeline is below the chart."""

QUALITY = 82
SETTLED_S = 1.5
"""Until the figures are loaded and the bars have finished their animation."""


def _named(message: SimulatedMessage, order: dict[str, int]) -> bytes:
    """Return the message with a separate folder per session: the simulator uses one for all."""
    number = order.setdefault(message.session_id, len(order))
    folder = PROJECTS[number % len(PROJECTS)].encode()
    return message.value.replace(b'"/srv/repo"', b'"/srv/%s"' % folder)


def views(options: SimulationOptions, messages: int) -> tuple[GrowingViews, str]:
    """Return the views of sessions whose last message is sent now, and the session to show."""
    deriver, store = Deriver(Rules(bundled())), GrowingViews(partitions=1)
    order: dict[str, int] = {}
    records = [
        record
        for message in simulate(ending_now(options, messages, sample=False), messages)
        for record in deriver.derive(
            InputMessage(_named(message, order), message.session_id)
        ).records
    ]
    store.add(*records)
    held = store.partitions[store.generation, 0].held

    def worth(session: bytes) -> int:
        view = codec.loads(held.views[session])
        compactions = len(held.compactions.get(session, {}))
        return compactions * 3 + min(len(view["chains"]), 5) + (8 if view["attempt"] else 0)

    return store, max(held.views, key=worth).decode()


@asynccontextmanager
async def _served(store: GrowingViews) -> AsyncIterator[str]:
    async def telling() -> None:
        while True:  # like an idle project worker
            await asyncio.sleep(1)
            store.report_heartbeat(None)

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(api_over(store).app, log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    tasks = [asyncio.create_task(server.serve([listener])), asyncio.create_task(telling())]
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _take(
    browser: Browser, address: str, name: str, scheme: Literal["light", "dark"]
) -> None:
    size = {"phone-dark": NARROW}.get(
        name, TALL if name.startswith(("session", "report", "shared")) else WIDE
    )
    context = await browser.new_context(viewport=size, color_scheme=scheme, device_scale_factor=1.5)
    tab = await context.new_page()
    await tab.goto(address)
    await asyncio.sleep(SETTLED_S)
    # Through the DevTools protocol, which supports WebP: a third of the size of PNG.
    screen = await context.new_cdp_session(tab)
    reply = await screen.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    (TARGET / f"{name}.webp").write_bytes(base64.b64decode(reply["data"]))
    await context.close()


def _files(folder: Path) -> dict[str, Path]:
    """Write a report and a shared session of simulated transcripts; return where they are."""
    sessions = simulate(ending_now(HISTORY, HISTORY_MESSAGES, sample=False), HISTORY_MESSAGES)
    write_folder(folder / "projects", ((each.file, each.value) for each in sessions))
    with opened([str(folder / "projects")]) as asked:
        report = page(Answers(asked.engine), ReportOrigin(asked.source, SystemClock().now_ms()))
    records: dict[str, list[Record]] = {}
    for block in Replay(sources_of([str(folder / "projects")])).records():
        for record in block:
            records.setdefault(record.data.session_id, []).append(record)
    session = max(map(shared, records.values()), key=lambda each: len(each.events("compaction")))
    written = {"report-light": report, "shared-dark": share_page(session)}
    for name, content in written.items():
        (folder / f"{name}.html").write_bytes(content)
    return {name: folder / f"{name}.html" for name in written}


async def main() -> None:
    """Take all screenshots."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("screenshots: no Chromium on this machine (Debian, Ubuntu: chromium)")
    if not (FOLDER / "vendor" / "uPlot.esm.js").exists():
        sys.exit("screenshots: the chart library is not there: make page")
    TARGET.mkdir(exist_ok=True)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        now, _ = views(OPTIONS, MESSAGES)
        async with _served(now) as address:
            await _take(browser, address, "overview-light", "light")
            await _take(browser, address, "overview-dark", "dark")
            await _take(browser, address, "phone-dark", "dark")
        with tempfile.TemporaryDirectory() as folder:
            for name, path in _files(Path(folder)).items():
                await _take(browser, path.as_uri(), name, "dark" if "dark" in name else "light")
        history, session = views(HISTORY, HISTORY_MESSAGES)
        async with _served(history) as address:
            await _take(browser, f"{address}#/session/{session}", "session-light", "light")
            await _take(browser, f"{address}#/session/{session}", "session-dark", "dark")
            await _take(browser, f"{address}#/analytics", "analytics-light", "light")
        await browser.close()
    for path in sorted(TARGET.glob("*.webp")):
        name = path.relative_to(TARGET.parents[1])
        sys.stdout.write(f"{name}: {path.stat().st_size // 1_000} kB\n")


if __name__ == "__main__":
    asyncio.run(main())
