"""`contextgauge rebuild`: rebuilds the views while readers use the active ones.

The project workers build the next generation; one that is held they keep up to date without
activating it. `Rebuild` begins it, compares it with the active one and activates it. Its state is
in the store, so it can end at any time and be run again:

    begin ──▶ built by the workers ──all caught up──▶ compared ──equal──▶ active
                      ▲                                  │
                      └── documents of it were lost ◀────┴──▶ different: remains held
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import ParamSpec, TypeVar

from contextgauge.backoff import Backoff
from contextgauge.errors import ContextgaugeError, LostError, RetryError, StopError
from streams.flow.common.generations import GenerationTracker
from streams.flow.rebuild.compare import Compared, Pair, PartitionComparison
from streams.flow.rebuild.progress import (
    Cut,
    IdleDetector,
    PartitionProgress,
    Phase,
    Progress,
    Rebuilt,
)
from streams.ports import Clock, Generations, ViewPosition, ViewStore

_POLL_S = 0.5
"""How often the workers' progress is checked."""

_PAUSE_S = 0.05
"""How often a comparison checks the position that it waits for."""

_LEVEL_S = 5.0
"""How long to wait for a time at which no partition of the build is behind."""

_IDLE = (
    "No progress for a while. Check that project workers run (`contextgauge project`). Waiting "
    "(Ctrl-C to stop)"
)

_NOTICED_S = 2.0
"""After this time all workers know that a build was abandoned."""

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class _ReleasedError(ContextgaugeError):
    """The workers activate the build by themselves: the active generation lost documents."""


class Rebuild:
    """One run of the command. `show` gets the progress, `notify` what it waits for."""

    def __init__(
        self,
        store: ViewStore,
        clock: Clock,
        *,
        show: Callable[[Progress], None],
        notify: Callable[[str], None],
    ) -> None:
        self._store, self._clock = store, clock
        self._show, self._notify = show, notify
        self._generations = GenerationTracker(store, clock, "rebuild")
        self._pair = Pair(0, 0, "")
        self._partitions = 0
        self._idle_detector = IdleDetector(clock)
        self.resumed = False
        """Whether the build had been started before."""

    async def status(self) -> Progress | None:
        """Return the progress of the current build; None if there is none.

        Raises StopError if no generation is active either.
        """
        seen = await self._look()
        if seen.next is None:
            if seen.active is None:
                raise _no_views()
            return None
        await self._count_partitions()
        return await self._progress("building")

    async def abandon(self) -> int | None:
        """Discard the held build; return its generation, None if there is none.

        Raises StopError if the workers need the build.
        """
        seen = await self._look()
        if seen.next is None:
            return None
        await self._count_partitions()
        await self._store.abandon(seen.next, seen.build)
        await self._generations.refresh()
        now = self._generations.current
        if (now.next, now.build) == (seen.next, seen.build):
            raise StopError(
                f"generation {seen.next} is required, because views were lost or do not exist yet: "
                "it becomes active automatically"
            )
        if now.active == seen.next:
            raise StopError(f"generation {seen.next} has just become active: readers use it")
        # A worker that does not know this yet would start the partition again.
        await self._clock.sleep(_NOTICED_S)
        for partition in range(self._partitions):
            await self._ask(self._store.drop, seen.next, partition)
        return seen.next

    async def begin(self) -> Progress:
        """Begin the next generation, or continue with the one that is being built.

        Raises StopError if no generation is active.
        """
        seen = await self._look()
        if seen.active is None:
            raise _no_views()
        await self._count_partitions()
        self.resumed = seen.next is not None
        if seen.next is None:
            build = self._generations.new_build_name()
            await self._store.begin_next(seen.active + 1, build, held=True)
            await self._look()
        return await self._progress("building")

    async def _look(self) -> Generations:
        """Return the generations as they are now; a build, if any, is this run's from here on."""
        await self._generations.refresh()
        seen = self._generations.current
        self._pair = Pair(seen.active or 0, seen.next or 0, seen.build)
        return seen

    async def run(self, *, accept: bool) -> Rebuilt:
        """Wait until it is built, compare it, and swap if it is equal or if `accept` is set."""
        try:
            while True:
                try:
                    rebuilt = await self._try(accept=accept)
                except LostError as error:
                    self._notify(f"{error}: it will be compared when it has caught up")
                else:
                    if rebuilt is not None:
                        return rebuilt
        except _ReleasedError:
            return await self._until_active()

    async def _try(self, *, accept: bool) -> Rebuilt | None:
        pair = self._pair
        await self._until_caught_up()
        compared, cut = await self._compare(), await self._cut()
        swapped = False
        if not (compared.different or cut) or accept:
            await self._until_level()
            await self._ask(
                self._generations.activate,
                pair.following,
                pair.build,
                self._partitions,
                compared=True,
            )
            swapped = self._generations.current.active == pair.following
            if not swapped:
                return None
        return Rebuilt(
            generation=pair.following,
            former=pair.former,
            swapped=swapped,
            compared=compared,
            cut=cut,
        )

    async def _count_partitions(self) -> None:
        for generation in (self._pair.former, self._pair.following):
            position = await self._store.position(generation, 0) if generation else None
            if position is not None:
                self._partitions = position.partitions
                return

    async def _until_caught_up(self) -> None:
        while True:
            # First, since a build that is released or abandoned must not be compared.
            await self._check()
            if not self._partitions:
                await self._ask(self._count_partitions)
            progress = await self._ask(self._progress, "building")
            self._show(progress)
            if progress.partitions and all(item.caught_up for item in progress.partitions):
                return
            self._check_idle(progress)
            await self._clock.sleep(_POLL_S)

    async def _until_level(self) -> None:
        """Wait until the build has everything that the active generation shows to readers.

        If messages arrive too fast for that on all partitions at one time, it is enough that it
        has what the active generation had when this began.
        """
        progress = await self._ask(self._progress, "swapping")
        begin_s, begin = self._clock.monotonic_s(), progress
        while _behind(progress, progress):
            late = self._clock.monotonic_s() - begin_s >= _LEVEL_S
            if late and not _behind(progress, begin):
                return
            self._show(progress)
            for partition in _behind(progress, progress):
                # A limit that a comparison could not remove: it was killed, or Redis was down.
                pair = self._pair
                await self._ask(self._store.limit, pair.following, partition, pair.build, None)
            await self._pause()
            progress = await self._ask(self._progress, "swapping")

    async def _compare(self) -> Compared:
        store, pair, total = self._store, self._pair, Compared()
        progress = await self._ask(self._progress, "comparing")
        for partition in range(self._partitions):

            def count(sessions: int) -> None:
                compared = total.sessions + sessions
                expected = max(progress.sessions, compared)
                self._show(replace(progress, compared=compared, sessions=expected))

            async def compare(partition: int) -> Compared:
                pause = self._pause
                comparison = PartitionComparison(store, pair, partition, pause=pause, count=count)
                return await comparison.run()

            total.add_partition(await self._ask(compare, partition))
        return total

    async def _cut(self) -> list[Cut]:
        cuts = []
        for partition in range(self._partitions):
            former, following = await self._positions(partition)
            if former and following and former.begin < following.begin:
                cuts.append(Cut(partition, former.begin, following.begin))
        return cuts

    async def _positions(self, partition: int) -> list[ViewPosition | None]:
        """Return the position of the active generation, and an earlier one of the build."""
        pair, ask, store = self._pair, self._ask, self._store
        following = await ask(store.position, pair.following, partition)
        if not pair.former:
            return [None, following]
        return [await ask(store.position, pair.former, partition), following]

    async def _progress(self, phase: Phase) -> Progress:
        pair, partitions = self._pair, []
        sessions = 0
        for partition in range(self._partitions):
            former, following = await self._positions(partition)
            if following is not None and following.build != pair.build:
                following = None
            partitions.append(
                PartitionProgress(
                    partition,
                    following and following.begin,
                    following and following.offset,
                    former and former.offset,
                    caught_up=following is not None and following.caught_up,
                )
            )
            if phase == "comparing":
                sessions += await self._store.session_count(pair.former, partition)
        return Progress(
            phase=phase,
            generation=pair.following,
            former=pair.former,
            held=self._generations.current.held,
            partitions=tuple(partitions),
            sessions=sessions,
        )

    async def _until_active(self) -> Rebuilt:
        pair = self._pair
        while self._generations.current.next == pair.following:
            self._show(await self._ask(self._progress, "building"))
            await self._clock.sleep(_POLL_S)
            await self._ask(self._generations.refresh)
        if self._generations.current.active != pair.following:
            raise _gone(pair.following)
        return Rebuilt(generation=pair.following, former=pair.former, swapped=True, compared=None)

    async def _pause(self) -> None:
        """Wait a short time for the workers."""
        await self._clock.sleep(_PAUSE_S)
        await self._check()
        if self._idle_detector.is_due():
            self._check_idle(await self._ask(self._progress, "swapping"))

    def _check_idle(self, progress: Progress) -> None:
        """Notify if the workers make no progress for long."""
        if self._idle_detector.is_idle([item.position for item in progress.partitions]):
            self._notify(_IDLE)

    async def _check(self) -> None:
        """Check that the build still exists and is held."""
        pair = self._pair
        await self._ask(self._generations.refresh)
        seen = self._generations.current
        if seen.active == pair.following:
            raise _ReleasedError("it is active already")
        if (seen.next, seen.build) != (pair.following, pair.build):
            raise _gone(pair.following)
        if not seen.held:
            raise _ReleasedError("it is no longer held")

    async def _ask(
        self,
        attempt: Callable[_Given, Awaitable[_Result]],
        *args: _Given.args,
        **kwargs: _Given.kwargs,
    ) -> _Result:
        """Retry a request to the store until it succeeds, however long the store is down."""
        backoff = Backoff(self._clock, asyncio.Event())
        while True:
            try:
                return await attempt(*args, **kwargs)
            except RetryError as error:
                self._notify(f"{error}: retrying in {backoff.next_s:g} s (Ctrl-C to stop)")
                await backoff.wait()


def _behind(progress: Progress, shown: Progress) -> list[int]:
    """Return the partitions on which the build is behind what was shown before."""
    return [
        item.partition
        for item, then in zip(progress.partitions, shown.partitions, strict=True)
        if (item.position or 0) < (then.end or 0)
    ]


def _no_views() -> StopError:
    return StopError(
        "there are no views yet, so there is nothing to rebuild: project workers build the first "
        "generation (`contextgauge project`)"
    )


def _gone(generation: int) -> StopError:
    return StopError(
        f"generation {generation} is no longer being built: it was abandoned, or Redis was "
        "emptied. The active generation is unchanged; run `contextgauge rebuild` to start again"
    )
