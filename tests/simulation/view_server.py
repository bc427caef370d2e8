"""The server of views of a simulation, the store in memory, and what processes use of it."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from streams.edge.memory.held import HeldCounts
from streams.edge.memory.view_store import MemoryPartition, MemoryViews
from streams.ports import Generations, PartitionDump
from tests.simulation.process import Process, Wire
from tests.simulation.virtual_loop import Scheduler

LOSABLE = (
    "views", "compactions", "events", "readings", "recent", "pressure", "idle", "stats", "live",
    "agents",
)  # fmt: skip
"""Kinds of keys of which one may be lost."""


class ViewServer:
    """What arrives here takes effect at once, and completely."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.views = MemoryViews()
        self.wire = Wire(scheduler, "the view store")
        self.on_applied: Callable[[int, int, str], None] = lambda _generation, _partition, _who: (
            None
        )
        self.on_dropped: Callable[[int, int, str], None] = lambda _generation, _partition, _who: (
            None
        )
        self.on_activated: Callable[[int, str], None] = lambda _generation, _who: None
        self._snapshot: tuple[dict[tuple[int, int], MemoryPartition], Generations] | None = None

    def take_snapshot(self) -> None:
        """Save what is stored, to go back to."""
        copies = {place: copy_of(stored) for place, stored in self.views.partitions.items()}
        self._snapshot = (copies, self.views.numbers)

    def go_back(self) -> None:
        """Restart from the last snapshot, if there is one."""
        if self._snapshot is None:
            return
        partitions, self.views.numbers = self._snapshot
        self.views.partitions = {place: copy_of(each) for place, each in partitions.items()}

    def empty(self) -> None:
        """Lose all that is stored."""
        self.views.partitions, self.views.numbers = {}, Generations(None, None)

    def lose(self, generation: int, partition: int, what: str, number: int) -> bool:
        """Lose one key; return whether there was one."""
        stored = self.views.partitions.get((generation, partition))
        if stored is None or stored.position is None:
            return False
        held = stored.held
        keyed: dict[str, Any] = {
            "views": held.views, "compactions": held.compactions,
            "events": held.entries["events"], "readings": held.entries["readings"],
            "agents": held.agents,
        }  # fmt: skip
        rankings: dict[Any, Any] = held.rankings
        whole: dict[str, Any] = {
            **rankings, "idle": held.idle, "stats": held.stats, "live": held.live,
        }  # fmt: skip
        if what in whole:
            was_there = bool(whole[what])
            whole[what].clear()
            return was_there
        names = sorted(keyed[what])
        if not names:
            return False
        del keyed[what][names[number % len(names)]]
        return True


def copy_of(stored: MemoryPartition) -> MemoryPartition:
    """Return a copy of a partition; documents are never changed in place."""
    counts = HeldCounts(dict(stored.counts.totals), dict(stored.counts.sessions))
    return MemoryPartition(stored.position, copy_of_documents(stored.held), counts)


def copy_of_documents(held: PartitionDump) -> PartitionDump:
    """Return a copy of all documents of a partition."""
    return PartitionDump(
        views=dict(held.views),
        compactions={name: dict(each) for name, each in held.compactions.items()},
        entries={
            stream: {name: list(each) for name, each in sessions.items()}
            for stream, sessions in held.entries.items()
        },
        rankings={name: dict(each) for name, each in held.rankings.items()},
        idle=dict(held.idle),
        left=dict(held.left),
        stats=dict(held.stats),
        live=list(held.live),
        agents={name: dict(each) for name, each in held.agents.items()},
    )


def run_at_once(method: Callable[..., Coroutine[Any, Any, Any]], *args: Any, **kwargs: Any) -> Any:
    """Run what waits for nothing."""
    try:
        method(*args, **kwargs).send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a store in memory waits for something")


class ProcessStore:
    """A store in memory as one process sees it: each of its methods goes through the wire."""

    def __init__(self, store: Any, wire: Wire, process: Process) -> None:
        self._store, self._wire, self._process = store, wire, process

    async def start(self) -> None:
        await self._wire.call(self._process, _nothing)

    async def stop(self) -> None:
        """Do nothing: there is no connection to close."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            serve = partial(run_at_once, method, *args, **kwargs)
            return await self._wire.call(self._process, serve)

        setattr(self, name, call)
        return call


class ProcessViews(ProcessStore):
    """The view store, whose writes are judged when they happen."""

    def __init__(self, server: ViewServer, process: Process) -> None:
        super().__init__(server.views, server.wire, process)
        self._server = server

    async def apply(self, *args: Any, **kwargs: Any) -> Any:
        server, process = self._server, self._process

        def serve() -> Any:
            result = run_at_once(server.views.apply, *args, **kwargs)
            if result == "applied":
                server.on_applied(args[0], args[1], process.name)
            return result

        return await server.wire.call(process, serve)

    async def activate(self, generation: int, build: str, partitions: int = 0) -> None:
        server, process = self._server, self._process

        def serve() -> None:
            former = server.views.numbers.active
            run_at_once(server.views.activate, generation, build, partitions)
            if server.views.numbers.active != former:
                server.on_activated(generation, process.name)

        await server.wire.call(process, serve)

    async def drop(self, generation: int, partition: int, build: str | None = None) -> bool:
        server, process = self._server, self._process

        def serve() -> bool:
            is_there = (generation, partition) in server.views.partitions
            dropped: bool = run_at_once(server.views.drop, generation, partition, build)
            if is_there and dropped:
                server.on_dropped(generation, partition, process.name)
            return dropped

        return bool(await server.wire.call(process, serve))


def _nothing() -> None:
    return None
