"""A rebuild under test: its progress and notices, and readers that poll meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from contextgauge.clock import SystemClock
from schemas.records import Record
from schemas.views import EntryStream, SessionView
from streams.flow.rebuild.progress import Progress, Rebuilt
from streams.flow.rebuild.rebuild import Rebuild
from streams.ports import (
    Clock,
    Entry,
    Generations,
    LiveBounds,
    Ranking,
    ViewPosition,
    ViewReader,
    ViewStore,
)
from streams.serve.views.sessions import active_sessions
from tests.flow.project_kit import HastyClock, ProjectKit, Worker


class Run:
    """One run of the command, without a screen."""

    def __init__(self, store: ViewStore, clock: Clock | None = None) -> None:
        self.shown: list[Progress] = []
        self.notices: list[str] = []
        self.rebuild = Rebuild(
            store, clock or HastyClock(), show=self.shown.append, notify=self.notices.append
        )

    async def to_end(self, *, accept: bool = False) -> Rebuilt:
        """Begin, and run to the end."""
        await self.rebuild.begin()
        return await self.rebuild.run(accept=accept)


class RecordingReader:
    """A reader of views that records which generations were read."""

    def __init__(self, reader: ViewReader) -> None:
        self._reader = reader
        self.read: set[int] = set()

    async def start(self) -> None:
        await self._reader.start()

    async def stop(self) -> None:
        await self._reader.stop()

    async def generations(self) -> Generations:
        return await self._reader.generations()

    async def position(self, generation: int, partition: int) -> ViewPosition | None:
        self.read.add(generation)
        return await self._reader.position(generation, partition)

    async def views(
        self, generation: int, partition: int, sessions: Sequence[bytes]
    ) -> list[bytes | None]:
        self.read.add(generation)
        return await self._reader.views(generation, partition, sessions)

    async def ranked(
        self, generation: int, partition: int, ranking: Ranking, limit: int
    ) -> list[tuple[bytes, float]]:
        self.read.add(generation)
        return await self._reader.ranked(generation, partition, ranking, limit)

    async def scores(
        self, generation: int, partition: int, sessions: Sequence[bytes], ranking: Ranking
    ) -> list[float | None]:
        self.read.add(generation)
        return await self._reader.scores(generation, partition, sessions, ranking)

    async def session_count(self, generation: int, partition: int) -> int:
        self.read.add(generation)
        return await self._reader.session_count(generation, partition)

    async def compactions(
        self, generation: int, partition: int, session: bytes
    ) -> dict[bytes, bytes]:
        self.read.add(generation)
        return await self._reader.compactions(generation, partition, session)

    async def entries(
        self, generation: int, partition: int, stream: EntryStream, session: bytes, after: int
    ) -> list[Entry]:
        self.read.add(generation)
        return await self._reader.entries(generation, partition, stream, session, after)

    async def stats(
        self, generation: int, partition: int, fields: Sequence[bytes] | None = None
    ) -> dict[bytes, bytes]:
        self.read.add(generation)
        return await self._reader.stats(generation, partition, fields)

    async def agent_sessions(
        self, generation: int, partition: int, agent: bytes, limit: int
    ) -> list[tuple[bytes, float]]:
        self.read.add(generation)
        return await self._reader.agent_sessions(generation, partition, agent, limit)

    async def live(
        self, generation: int, partition: int, after: int, limit: int, wait_s: float = 0.0
    ) -> list[Entry]:
        self.read.add(generation)
        return await self._reader.live(generation, partition, after, limit, wait_s)

    async def live_bounds(self, generation: int, partition: int) -> LiveBounds:
        self.read.add(generation)
        return await self._reader.live_bounds(generation, partition)


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
        sessions = await active_sessions(recording, SystemClock())
        views = await sessions.ranked("recent", 20)
        self._check(recording, views)
        pinned = await active_sessions(recording, SystemClock())
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


def assert_equal_and_swapped(done: Rebuilt) -> None:
    assert done.swapped
    assert done.compared is not None
    assert done.compared.different == 0
