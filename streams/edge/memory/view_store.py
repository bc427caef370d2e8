"""The view store's twin in memory, for the embedded mode and for tests."""

import asyncio
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from schemas.views import LEFT_KEPT_MS, LIVE_ENTRIES, STREAM_ENTRIES, EntryStream
from streams.edge.memory.held import HeldCounts
from streams.ports import (
    ApplyResult,
    Entry,
    Generations,
    HeldCheck,
    LiveBounds,
    PartitionDocuments,
    PartitionDump,
    ProjectorHeartbeat,
    Ranking,
    SessionDocuments,
    ViewChanges,
    ViewPosition,
)

_LOOK_S = 0.005
"""Polling interval of who waits for the feed, which is written in this process."""


def _empty() -> PartitionDump:
    return PartitionDump(
        {}, {}, {"events": {}, "readings": {}}, {"recent": {}, "pressure": {}}, {}, {}, {}, [], {}
    )


def _highest(scores: Mapping[bytes, float], limit: int) -> list[tuple[bytes, float]]:
    ranked = sorted(((score, session) for session, score in scores.items()), reverse=True)
    return [(session, score) for score, session in ranked[:limit]]


@dataclass(slots=True)
class MemoryPartition:
    """One partition of a generation: its documents, and the position they came from."""

    position: ViewPosition | None = None
    held: PartitionDump = field(default_factory=_empty)
    counts: HeldCounts = field(default_factory=HeldCounts)

    def apply(
        self, expected: int | None, position: ViewPosition, changes: ViewChanges
    ) -> ApplyResult:
        """Write all changes and the position, or nothing."""
        stored = self.position
        if (None if stored is None else stored.offset) != expected:
            same = stored and (stored.offset, stored.writer) == (position.offset, position.writer)
            return "done" if same else "mismatch"
        if stored is not None:
            if (stored.partitions, stored.build) != (position.partitions, position.build):
                return "mismatch"
            position = stored._replace(
                offset=position.offset,
                writer=position.writer,
                log=position.log,
            )
        else:
            position = position._replace(caught_up=False)
        if self._is_ahead(changes):
            return "damaged"
        self.counts.write(self.held, changes, self.write)
        self.position = position
        return "applied"

    def _is_ahead(self, changes: ViewChanges) -> bool:
        """Return whether a stream already has entries of the changes."""
        for stream, session, entry in changes.entries:
            entries = self.held.entries[stream].get(session)
            if session not in changes.leaving and entries and entries[-1].offset >= entry.offset:
                return True
        live = self.held.live
        return bool(changes.live and live and live[-1].offset >= changes.live[0].offset)

    def write(self, changes: ViewChanges) -> None:
        """Write the changes."""
        held = self.held
        for session, left_ms in changes.leaving.items():
            self._leave(session, left_ms)
        held.views.update(changes.views)
        for (session, name), document in changes.compactions.items():
            held.compactions.setdefault(session, {})[name] = document
        for stream, session, entry in changes.entries:
            entries = held.entries[stream].setdefault(session, [])
            entries.append(entry)
            del entries[:-STREAM_ENTRIES]
        held.live.extend(changes.live)
        del held.live[:-LIVE_ENTRIES]
        held.rankings["recent"].update(changes.recent)
        held.idle.update(changes.idle)
        for session, percent in changes.pressure.items():
            if percent is None:
                held.rankings["pressure"].pop(session, None)
            else:
                held.rankings["pressure"][session] = percent
        for name, stat in changes.stats.items():
            if stat is None:
                held.stats.pop(name, None)
            else:
                held.stats[name] = stat
        self._write_agents(changes)

    def _write_agents(self, changes: ViewChanges) -> None:
        agents = self.held.agents
        for (agent, session), recent_ms in changes.agents.items():
            if recent_ms is not None:
                agents.setdefault(agent, {})[session] = recent_ms
            elif agent in agents:
                agents[agent].pop(session, None)
                if not agents[agent]:
                    del agents[agent]

    def _leave(self, session: bytes, left_ms: int) -> None:
        held = self.held
        held.views.pop(session, None)
        held.compactions.pop(session, None)
        for entries in held.entries.values():
            entries.pop(session, None)
        for scores in (*held.rankings.values(), held.idle):
            scores.pop(session, None)
        for former, then_ms in list(held.left.items()):
            if then_ms <= left_ms - LEFT_KEPT_MS:
                del held.left[former]
        held.left[session] = left_ms

    def feed(self, after: int, limit: int) -> list[Entry]:
        """Return the live feed's first entries of offsets above `after`."""
        start = bisect_right(self.held.live, after, key=lambda entry: entry.offset)
        return self.held.live[start : start + limit]

    def longest_idle(self, before_ms: int, limit: int) -> list[bytes]:
        """Return sessions whose last Kafka timestamp lies before, the longest idle first."""
        idle = sorted(
            (logged_ms, session)
            for session, logged_ms in self.held.idle.items()
            if logged_ms < before_ms
        )
        return [session for _, session in idle[:limit]]


class MemoryViews:
    """The view store of one process."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[int, int], MemoryPartition] = {}
        self.numbers = Generations(None, None)

    async def start(self) -> None:
        """Do nothing: there is no connection to open."""

    async def stop(self) -> None:
        """Do nothing: there is no connection to close."""

    async def generations(self) -> Generations:
        return self.numbers

    async def position(self, generation: int, partition: int) -> ViewPosition | None:
        return self._partition(generation, partition).position

    async def views(
        self, generation: int, partition: int, sessions: Sequence[bytes]
    ) -> list[bytes | None]:
        held = self._partition(generation, partition).held
        return [held.views.get(session) for session in sessions]

    async def ranked(
        self, generation: int, partition: int, ranking: Ranking, limit: int
    ) -> list[tuple[bytes, float]]:
        return _highest(self._partition(generation, partition).held.rankings[ranking], limit)

    async def scores(
        self, generation: int, partition: int, sessions: Sequence[bytes], ranking: Ranking
    ) -> list[float | None]:
        scores = self._partition(generation, partition).held.rankings[ranking]
        return [scores.get(session) for session in sessions]

    async def session_count(self, generation: int, partition: int) -> int:
        return len(self._partition(generation, partition).held.rankings["recent"])

    async def agent_sessions(
        self, generation: int, partition: int, agent: bytes, limit: int
    ) -> list[tuple[bytes, float]]:
        held = self._partition(generation, partition).held
        return _highest(held.agents.get(agent, {}), limit)

    async def compactions(
        self, generation: int, partition: int, session: bytes
    ) -> dict[bytes, bytes]:
        return dict(self._partition(generation, partition).held.compactions.get(session, {}))

    async def entries(
        self, generation: int, partition: int, stream: EntryStream, session: bytes, after: int
    ) -> list[Entry]:
        held = self._partition(generation, partition).held
        return [entry for entry in held.entries[stream].get(session, []) if entry.offset > after]

    async def stats(
        self, generation: int, partition: int, fields: Sequence[bytes] | None = None
    ) -> dict[bytes, bytes]:
        stats = self._partition(generation, partition).held.stats
        names = stats if fields is None else fields
        return {name: stats[name] for name in names if name in stats}

    async def live(
        self, generation: int, partition: int, after: int, limit: int, wait_s: float = 0.0
    ) -> list[Entry]:
        waited_s = 0.0
        while True:
            entries = self._partition(generation, partition).feed(after, limit)
            if entries or waited_s >= wait_s:
                return entries
            await asyncio.sleep(_LOOK_S)
            waited_s += _LOOK_S

    async def live_bounds(self, generation: int, partition: int) -> LiveBounds:
        live = self._partition(generation, partition).held.live
        return LiveBounds(live[0].offset if live else None, len(live) < LIVE_ENTRIES)

    async def apply(
        self,
        generation: int,
        partition: int,
        *,
        expected: int | None,
        position: ViewPosition,
        changes: ViewChanges,
    ) -> ApplyResult:
        stored = self._partition(generation, partition)
        self.partitions[generation, partition] = stored
        return stored.apply(expected, position, changes)

    async def check(self, generation: int, partition: int, cursor: int = 0) -> HeldCheck:
        stored = self._partition(generation, partition)
        return stored.counts.check(stored.held, cursor)

    async def pick_compactions(
        self, generation: int, partition: int, names: Sequence[tuple[bytes, bytes]]
    ) -> list[bytes | None]:
        held = self._partition(generation, partition).held
        return [held.compactions.get(session, {}).get(name) for session, name in names]

    async def idle(
        self, generation: int, partition: int, before_ms: int, limit: int
    ) -> list[bytes]:
        return self._partition(generation, partition).longest_idle(before_ms, limit)

    async def left(self, generation: int, partition: int, sessions: Sequence[bytes]) -> list[bool]:
        held = self._partition(generation, partition).held
        present = held.rankings["recent"]
        return [session in held.left and session not in present for session in sessions]

    async def session_documents(
        self, generation: int, partition: int, sessions: Sequence[bytes]
    ) -> tuple[int | None, list[SessionDocuments]]:
        stored = self._partition(generation, partition)
        documents = [SessionDocuments.of(stored.held, session) for session in sessions]
        return stored.position and stored.position.offset, documents

    async def partition_documents(
        self, generation: int, partition: int
    ) -> tuple[int | None, PartitionDocuments]:
        stored = self._partition(generation, partition)
        offset = stored.position and stored.position.offset
        return offset, PartitionDocuments.of(stored.held)

    async def session_names(
        self,
        generation: int,
        partition: int,
        cursor: int = 0,  # noqa: ARG002 -- all at once
    ) -> tuple[int, list[bytes]]:
        return 0, list(self._partition(generation, partition).held.rankings["recent"])

    async def begin_next(self, generation: int, build: str) -> None:
        if self.numbers.next is None:
            self.numbers = Generations(self.numbers.active, generation, build)

    async def is_there(self, generation: int, partition: int) -> bool:
        return (generation, partition) in self.partitions

    async def caught_up(self, generation: int, partition: int, build: str) -> None:
        stored = self._partition(generation, partition)
        if stored.position is not None and stored.position.build == build:
            stored.position = stored.position._replace(caught_up=True)

    async def report_heartbeat(
        self, generation: int, partition: int, build: str, heartbeat: ProjectorHeartbeat
    ) -> None:
        stored = self._partition(generation, partition)
        if stored.position is not None and stored.position.build == build:
            stored.position = stored.position._replace(heartbeat=heartbeat)

    async def activate(self, generation: int, build: str, partitions: int = 0) -> None:
        if (self.numbers.next, self.numbers.build) != (generation, build):
            return
        places = [self._partition(generation, number).position for number in range(partitions)]
        if all(place and place.caught_up and place.build == build for place in places):
            self.numbers = Generations(max(self.numbers.active or 0, generation), None)

    async def drop(self, generation: int, partition: int, build: str | None = None) -> bool:
        numbers = self.numbers
        if numbers.active == generation:
            return False
        following = numbers.build if numbers.next == generation else None
        if following != build:
            return False
        self.partitions.pop((generation, partition), None)
        return True

    def _partition(self, generation: int, partition: int) -> MemoryPartition:
        return self.partitions.get((generation, partition)) or MemoryPartition()
