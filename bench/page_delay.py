"""From publishing a message to its figure on the page, over the whole chain.

    python -m bench.page_delay [--messages 120] [--rate 4]

Kafka, a derive and a project worker, Redis and a server with default settings, and a Chromium that
shows the overview. One session's responses are published by `contextgauge.Publisher` at a steady
pace; each makes the window one per cent fuller, so each shows on the page. Timed is from
before `publish` until the page has written the figure, which is painted with that frame.
"""

import argparse
import asyncio
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.async_api import Page, async_playwright

from bench.freshness import PREFIX, pipeline, settings_of
from bench.systems import ROOT
from contextgauge import Publisher
from streams.edge.local_stack.stack import LocalStack
from tests.page.conftest import FLAGS, WIDE

SESSION = "0d0d0d0d-0000-4000-8000-000000000000"
MODEL = "claude-sonnet-4-5-20250929"
STEP = 2_000
"""Tokens: one per cent of this model's window."""
LOWEST, STEPS = 10, 60
"""Percentages go round from the first, so many."""

WATCH = """
() => {
  window.written = [];
  const share = document.querySelector(".row[data-id] .gauge-share");
  new MutationObserver(() => {
    const percent = parseInt(share.textContent, 10);
    window.written.push([percent, performance.timeOrigin + performance.now()]);
  }).observe(share, { characterData: true, subtree: true });
}
"""


def _message(number: int, percent: int) -> dict[str, object]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": percent * STEP, "output_tokens": 50}
    message = {"id": f"msg_{number}", "model": MODEL, "content": "", "usage": usage}
    return {
        "type": "assistant",
        "uuid": f"u{number}",
        "session_id": SESSION,
        "message": message,
    }


async def _measure(page: Page, bootstrap: str, messages: int, rate: float) -> list[float]:
    """Publish, and return each figure's delay, ms."""
    sent: list[tuple[int, float]] = []
    async with Publisher(
        when_full="wait", bootstrap_servers=bootstrap, topic_prefix=PREFIX
    ) as publisher:
        await publisher.publish(_message(0, 5))
        await page.wait_for_selector(f".row[data-id='{SESSION}']")
        await asyncio.sleep(2)
        await page.evaluate(WATCH)
        for number in range(1, messages + 1):
            percent = LOWEST + number % STEPS
            sent.append((percent, time.time() * 1_000))
            await publisher.publish(_message(number, percent))
            await asyncio.sleep(1 / rate)
    await asyncio.sleep(2)
    written: list[list[float]] = await page.evaluate("window.written")
    delays, place = [], 0
    for percent, sent_ms in sent:
        matching = next(
            (index for index in range(place, len(written)) if written[index][0] == percent), None
        )
        if matching is not None:
            delays.append(written[matching][1] - sent_ms)
            place = matching + 1
    return delays


async def run(messages: int, rate: float) -> None:
    """Run the chain, measure, and print."""
    with tempfile.TemporaryDirectory(prefix="page-delay-") as name:
        folder = Path(name)
        stack = LocalStack(folder / "stack")
        services = stack.start(["kafka", "redis"])
        bootstrap, redis_url = services["kafka"].address, services["redis"].address
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        environment = settings_of(bootstrap, redis_url)
        environment["CONTEXTGAUGE_SERVE_PORT"] = str(port)
        try:
            async with pipeline(stack, folder), async_playwright() as playwright:
                server = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "streams", "serve", env=environment, cwd=ROOT,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )  # fmt: skip
                await asyncio.sleep(5)
                browser = await playwright.chromium.launch(
                    executable_path=shutil.which("chromium"), args=FLAGS
                )
                page = await browser.new_page(viewport=WIDE)
                await page.goto(f"http://127.0.0.1:{port}/")
                delays = sorted(await _measure(page, bootstrap, messages, rate))
                await browser.close()
                server.terminate()
                await server.wait()
        finally:
            stack.stop()
    spot = [delays[min(int(len(delays) * part), len(delays) - 1)] for part in (0.5, 0.95, 0.99)]
    print(f"{len(delays)} of {messages} figures seen, {rate:g} messages a second")
    print(f"publish to page: p50 {spot[0]:.0f} ms, p95 {spot[1]:.0f} ms, p99 {spot[2]:.0f} ms")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=120)
    parser.add_argument("--rate", type=float, default=4, help="messages a second")
    given = parser.parse_args()
    asyncio.run(run(given.messages, given.rate))


if __name__ == "__main__":
    main()
