"""A rebuild under test: its progress and notices, and readers that poll meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from contextgauge.clock import SystemClock
from schemas.records import Record
from schemas.views import SessionView
from streams.flow.rebuild.rebuild import Progress, Rebuild
from streams.ports import ViewReader, ViewStore
from streams.serve.views.sessions import active_sessions
from tests.flow.project_kit import HastyClock, ProjectKit, Worker


class Run:
    """One run of the command, without a screen."""

    def __init__(self, store: ViewStore) -> None:
        self.shown: list[Progress] = []
        self.notices: list[str] = []
        self.rebuild = Rebuild(store, HastyClock(), notify=self.notices.append)

    async def to_end(self) -> None:
        """Begin, and wait until the generation is active."""
        await self.rebuild.wait(await self.rebuild.begin(unchecked), self.shown.append)


async def unchecked(generation: int) -> None:
    """Let a rebuild begin whatever the log has."""


class RecordingReader:
    """A reader of views that records which generations were read."""

    def __init__(self, reader: ViewReader) -> None:
        self._reader = reader
        self.read: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        """Return the reader's method; all of them but `generations` take a generation first."""
        method = getattr(self._reader, name)

        def recording(*args: Any, **kwargs: Any) -> Any:
            if args:
                self.read.add(args[0])
            return method(*args, **kwargs)

        return recording


class Reader:
    """Polls the sessions, and checks every answer."""

    def __init__(self, reader: ViewReader, pause_s: float) -> None:
        self._reader, self._pause_s = reader, pause_s
        self._sequences: dict[tuple[int, str], int] = {}
        self.polls = 0
        self.generations: list[int] = []
        """Those that answers came from, in order, each once in a row."""
        self.lists: list[list[SessionView]] = []
        """The last two lists: of the former generation, and of the present one."""

    async def run(self) -> None:
        """Poll until cancelled. Raises what a reader would, and AssertionError for a mixture."""
        while True:
            await self.poll()
            await asyncio.sleep(self._pause_s)

    async def poll(self) -> None:
        """Ask for a list; then, of one generation, for one of its sessions and its records."""
        recording = RecordingReader(self._reader)
        reader = cast("ViewReader", recording)
        sessions = await active_sessions(reader, SystemClock())
        views = await sessions.ranked("recent", 20)
        self._check(recording, views)
        pinned = await active_sessions(reader, SystemClock())
        recording.read.clear()
        view = views[self.polls % len(views)]
        session = await pinned.find(view.session_id)
        records = await pinned.records(view.session_id, readings=True)
        assert records or session.sequence
        count = await pinned.count()
        self._check(recording, [session])
        assert pinned.snapshot is not None
        assert recording.read == {pinned.snapshot.generation}
        assert count >= len(views)
        self.polls += 1

    def _check(self, recording: RecordingReader, views: list[SessionView]) -> None:
        assert len(recording.read) == 1, f"an answer mixes generations: {recording.read}"
        assert views
        (generation,) = recording.read
        if not self.generations or self.generations[-1] != generation:
            assert not self.generations or self.generations[-1] < generation
            self.generations.append(generation)
            self.lists.append(views)
        if len(views) > 1:
            self.lists[-1] = views
        for view in views:
            # Within a generation a session goes forward only.
            before = self._sequences.get((generation, view.session_id), 0)
            assert view.sequence >= before
            self._sequences[generation, view.session_id] = view.sequence


@asynccontextmanager
async def polling(
    reader: ViewReader, readers: int = 2, pause_s: float = 0.0
) -> AsyncIterator[list[Reader]]:
    """Poll with several readers; raises at the end what one of them raised."""
    polled = [Reader(reader, pause_s) for _ in range(readers)]
    tasks = [asyncio.create_task(each.run()) for each in polled]
    try:
        yield polled
    finally:
        for task in tasks:
            task.cancel()
        # A reader that failed is why its test waited in vain.
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(error, Exception):
                raise error


@asynccontextmanager
async def projecting(kit: ProjectKit, records: list[Record]) -> AsyncIterator[Worker]:
    """Run a worker that has projected these records."""
    await kit.append(records)
    async with kit.running() as worker:
        await kit.caught_up(worker)
        yield worker


async def drip(kit: ProjectKit, records: list[Record]) -> None:
    """Append records one by one, far more often than a generation is looked at."""
    for record in records:
        await kit.append([record])
        await asyncio.sleep(0.02)
