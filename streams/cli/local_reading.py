"""The reading of a local view in a thread, next to an event loop that shows what it has."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from streams.cli.screen.figures import count, size
from streams.ports import ReadingProgress
from streams.wiring.view import LocalView

_STOP_S = 10.0
"""The reading stops after the lines in hand, some milliseconds."""


@asynccontextmanager
async def reading_of(local: LocalView, on_end: Callable[[], None]) -> AsyncIterator[None]:
    """Read while the context lasts; raise at its end what ended the reading before.

    `on_end` is called in the event loop if that happens.
    """
    loop = asyncio.get_running_loop()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            local.reading.run()
        except BaseException as error:  # noqa: BLE001 -- raised where it is waited for
            failures.append(error)
            loop.call_soon_threadsafe(on_end)

    thread = threading.Thread(target=read, name="reading", daemon=True)
    await local.views.start()
    thread.start()
    try:
        yield
    finally:
        local.reading.stop()
        await asyncio.to_thread(thread.join, _STOP_S)
        await local.views.stop()
        if not thread.is_alive():
            local.close()
    if failures:
        raise failures[0]


def progress_words(done: ReadingProgress) -> str:
    """Return in words how much has been read."""
    files = f"{done.read_files:,} of {count(done.files, 'transcript')}"
    return f"{files} · {size(done.read_bytes)} of {size(done.bytes)}"
