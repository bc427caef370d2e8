"""The overview in a real browser: ten thousand sessions, a hundred updates a second, a minute.

    python -m bench.page

The real application serves views in memory, in a process of its own; records are folded into
them as a projector would, and reach the page by the live feed. Chromium counts the time between
frames and every element that is made. Prints the figures of docs/PAGE.md.
"""

import argparse
import asyncio
import heapq
import itertools
import multiprocessing
import os
import random
import shutil
import socket
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

import uvicorn
from playwright.async_api import async_playwright

from contextgauge.normalise.signals import InputMessage
from contextgauge.window_catalog import bundled
from schemas.records import Record
from streams import codec
from streams.core.derivation.rules_config import Rules
from streams.flow.derive.deriver import Deriver
from tests.page.conftest import FLAGS, WIDE
from tests.serve.kit import GrowingViews, api_over

MODEL = "claude-sonnet-4-5-20250929"

_IN_SIGHT = 15
_AGAIN = 50
"""After so many updates others are the fullest, perhaps."""

MEASURE = """
async (ms) => {
  const made = [];
  const gone = new Set();
  const watching = new MutationObserver((changes) => {
    for (const change of changes) {
      for (const node of change.removedNodes) gone.add(node);
      for (const node of change.addedNodes) if (!gone.delete(node)) made.push(node.nodeName);
    }
  });
  watching.observe(document.querySelector(".sessions"), { childList: true, subtree: true });
  let writes = 0;
  new MutationObserver((changes) => { writes += changes.length; }).observe(
    document.querySelector(".rows"), { characterData: true, subtree: true });
  const frames = [];
  const until = performance.now() + ms;
  await new Promise((resolve) => {
    let last = performance.now();
    const frame = (at) => {
      frames.push(at - last);
      last = at;
      if (at < until) requestAnimationFrame(frame);
      else resolve();
    };
    requestAnimationFrame(frame);
  });
  return { frames, made, writes };
}
"""


class Sessions:
    """Sessions that each grow by a response now and then."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._deriver = Deriver(Rules(bundled()))
        self._draw = random.Random(1)  # noqa: S311 -- a load, not a secret
        self._numbers, self._turns = itertools.count(), itertools.count()
        self._fullest: list[int] = []
        self._used = [self._draw.randrange(5_000, 160_000) for _ in range(count)]

    def first(self) -> Iterator[Record]:
        """Yield the records that every session begins with."""
        for session in range(self.count):
            yield from self._respond(session)

    def next(self) -> list[Record]:
        """Return the records of one more response, half of them of sessions in sight."""
        if next(self._turns) % _AGAIN == 0:
            self._fullest = heapq.nlargest(_IN_SIGHT, range(self.count), self._used.__getitem__)
        in_sight = self._draw.random() < 0.5  # noqa: PLR2004 -- half
        session = self._draw.choice(self._fullest if in_sight else range(self.count))
        self._used[session] += self._draw.randrange(100, 1_500)
        if self._used[session] > 199_000:  # noqa: PLR2004 -- the window, nearly
            self._used[session] = 20_000
        return list(self._respond(session))

    def _respond(self, session: int) -> Iterator[Record]:
        number, used = next(self._numbers), self._used[session]
        usage = {"input_tokens": 4, "cache_read_input_tokens": used - 4, "output_tokens": 90}
        message = {"id": f"msg_{number}", "model": MODEL, "content": "", "usage": usage}
        name = f"{session:08x}-0000-4000-8000-000000000000"
        stamp = codec.rfc3339(int(time.time() * 1_000))
        body = {"type": "assistant", "uuid": f"u{number}", "session_id": name, "message": message}
        yield from self._deriver.derive(
            InputMessage(codec.dumps({**body, "timestamp": stamp}), name)
        ).records


def serve(listener: socket.socket, sessions: int, rate: int, ready: Connection) -> None:
    """Serve the sessions and let them grow, until the process is ended."""

    async def grow(views: GrowingViews, load: Sessions) -> None:
        began, sent = time.monotonic(), 0
        while True:
            due = int((time.monotonic() - began) * rate)
            for _ in range(due - sent):
                views.add(*load.next())
            sent = due
            await asyncio.sleep(0.01)

    async def run() -> None:
        load, views = Sessions(sessions), GrowingViews()
        views.add(*load.first())
        server = uvicorn.Server(uvicorn.Config(api_over(views).app, log_config=None))
        ready.send(None)
        await asyncio.gather(server.serve([listener]), grow(views, load))

    asyncio.run(run())


async def look(address: str, seconds: float) -> None:
    """Look at the page for so long, and print what was seen."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=FLAGS
        )
        page = await browser.new_page(viewport=WIDE)
        await page.goto(address)
        await page.wait_for_selector(".row[data-id]")
        await page.wait_for_selector(".live[data-state=live]")
        await asyncio.sleep(3)
        summary = await page.locator("#summary").inner_text()
        measured = await page.evaluate(MEASURE, seconds * 1_000)
        await browser.close()
    frames = sorted(measured["frames"][1:])
    spot = {
        part: frames[min(int(len(frames) * part), len(frames) - 1)] for part in (0.5, 0.95, 0.99)
    }
    short = sum(frame < 50 for frame in frames) / len(frames)  # noqa: PLR2004 -- ms, as asked
    print(f"sessions: {summary}; {len(frames):,} frames in {seconds:g} s")
    print(
        f"frame: median {spot[0.5]:.0f} ms, p95 {spot[0.95]:.0f} ms, p99 {spot[0.99]:.0f} ms, "
        f"longest {frames[-1]:.0f} ms; {short:.1%} under 50 ms"
    )
    print(f"texts written: {measured['writes']:,}; elements made: {len(measured['made'])}")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=100, help="updates a second")
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(
        target=serve, args=(listener, given.sessions, given.rate, theirs), daemon=True
    )
    process.start()
    theirs.close()
    ours.recv()
    print(f"{os.cpu_count()} CPUs, {given.rate} updates a second")
    try:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        asyncio.run(look(address, given.seconds))
    finally:
        process.kill()
        process.join()


if __name__ == "__main__":
    main()
