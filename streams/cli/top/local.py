"""What `contextgauge top` shows without Redis: the transcripts of this machine, or of paths."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from streams.cli.local_reading import progress_words, reading_of
from streams.cli.machine import collect_young_garbage, cores
from streams.cli.screen.figures import count
from streams.cli.top.frame import LocalState
from streams.edge.sqlite.database import NO_PAGE, InUseError
from streams.serve.api.serving import ReadTitles
from streams.settings import Settings
from streams.wiring import view as parts
from streams.wiring.view import LocalView

_LOOK_S = 0.02
"""Interval at which one frame waits until all has been read."""


class LocalSource(NamedTuple):
    """A local view that is not read yet. `reports` are why files cannot be read, as they come."""

    view: LocalView
    is_own: bool
    reports: list[str]

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[asyncio.Event]:
        """Read while the context lasts; the event is set where the reading ends before."""
        ended = asyncio.Event()
        async with reading_of(self.view, ended.set):
            yield ended

    async def wait_until_read(self, ended: asyncio.Event) -> None:
        """Wait until all has been read, or the reading has ended."""
        while self.state().progress is not None and not ended.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await ended.wait()

    @property
    def titles(self) -> ReadTitles:
        """Return what reads first prompts."""
        return parts.titles(self.view.views)

    def state(self) -> LocalState:
        """Return what a frame says of the reading."""
        done = self.view.reading.progress()
        words = "looking for transcripts …" if done is None else f"reading {progress_words(done)}"
        return LocalState(
            is_own=self.is_own,
            progress=None if done is not None and done.is_done else words,
            problem=self._problem(),
        )

    def _problem(self) -> str | None:
        rejected = dict(self.view.reading.rejected)
        if self.reports:
            return self.reports[-1]
        if rejected:
            lines, path = count(sum(rejected.values()), "line"), next(iter(rejected))
            where = path if len(rejected) == 1 else f"{path} and others"
            return f"{lines} could not be read: `contextgauge replay {where}` shows why"
        return None


def show_local(
    settings: Settings, paths: Sequence[str], show: Callable[[LocalSource], Awaitable[None]]
) -> None:
    """Run `show` on what the paths hold, or on this machine's transcripts where there are none.

    While another process has their local file, on a copy of it. Raises ConfigError.
    """
    checked = parts.checked_paths(paths)
    reports: list[str] = []
    collect_young_garbage()
    with parts.other_processes(settings, cores(), reports.append) as others:
        try:
            file = parts.take_file(settings, checked)
        except InUseError:
            file = parts.take_file_copy(settings, checked)
        try:
            file.announce(NO_PAGE)
            view = parts.local_view(settings, file.path, checked, reports.append, others)

            async def run() -> None:
                await show(LocalSource(view, not checked, reports))

            asyncio.run(run())
        finally:
            file.release()
