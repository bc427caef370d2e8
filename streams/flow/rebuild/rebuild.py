"""`contextgauge rebuild`: views are rebuilt alongside the active ones, compared, swapped.

The project workers do the folding: they build whatever generation is next, and one that is held
they keep up to date without making it active. This is who begins it, compares it with the active
one and activates it. All that it knows is in the store, so it may end at any moment and be run
again:

    begin ──▶ built by the workers ──all caught up──▶ compared ──equal──▶ active
                      ▲                                  │
                      └── documents of it were lost ◀────┴──▶ different: held further
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from contextgauge.backoff import Backoff
from contextgauge.errors import ContextgaugeError, LostError, RetryError, StopError
from streams.flow.common.generations import GenerationTracker
from streams.flow.rebuild.compare import Compared, Pair, PartitionComparison
from streams.flow.rebuild.stillness import Stillness
from streams.ports import Clock, ViewPosition, ViewStore

_LOOK_S = 0.5
"""How often it is looked how far the workers are."""

_PAUSE_S = 0.05
"""How often it is looked whether a partition is where a comparison waits for it."""

_LEVEL_S = 5.0
"""So long it is waited for a moment at which the build is behind on no partition."""

_STILL = (
    "nothing has been folded for a while: see that project workers run (`contextgauge project`); "
    "this goes on as soon as they do (Ctrl-C ends it)"
)

_NOTICED_S = 2.0
"""So long after a build was given up all workers know of it."""

Phase: TypeAlias = Literal["building", "comparing", "swapping"]

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """How far a partition is. `position` and `begin` are null before it is begun.

    `end` is where the active generation is, null where its position is gone.
    """

    partition: int
    begin: int | None
    position: int | None
    end: int | None
    caught_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a rebuild is. `compared` of `sessions` are, once it is compared."""

    phase: Phase
    generation: int
    former: int
    held: bool
    partitions: tuple[PartitionProgress, ...] = ()
    compared: int = 0
    sessions: int = 0


class Cut(NamedTuple):
    """A partition of which the log no longer has what the active generation was folded from."""

    partition: int
    former_begin: int
    begin: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What a rebuild came to. `compared` is null where there was nothing to compare with."""

    generation: int
    former: int
    swapped: bool
    compared: Compared | None
    cut: list[Cut] = field(default_factory=list)


class _ReleasedError(ContextgaugeError):
    """The workers let the build become active by themselves: the active one lost documents."""


class Rebuild:
    """One run of the command. `show` gets the progress, `tell` what keeps it waiting."""

    def __init__(
        self,
        store: ViewStore,
        clock: Clock,
        *,
        show: Callable[[Progress], None],
        tell: Callable[[str], None],
    ) -> None:
        self._store, self._clock = store, clock
        self._show, self._tell = show, tell
        self._generations = GenerationTracker(store, clock, "rebuild")
        self._pair = Pair(0, 0, "")
        self._partitions = 0
        self._stillness = Stillness(clock)
        self.resumed = False
        """Whether the build had been begun before."""

    async def status(self) -> Progress | None:
        """Return how far the build is that is under way; None where there is none.

        Raises StopError where no generation is active either: an empty store is not done.
        """
        await self._generations.refresh()
        seen = self._generations.current
        if seen.next is None:
            if seen.active is None:
                raise _nothing()
            return None
        self._pair = Pair(seen.active or 0, seen.next, seen.build)
        await self._count_partitions()
        return await self._progress("building")

    async def abandon(self) -> int | None:
        """Give up the build that is held and delete it; return its number, None without one.

        Raises StopError where the workers need the build.
        """
        await self._generations.refresh()
        seen = self._generations.current
        if seen.next is None:
            return None
        self._pair = Pair(seen.active or 0, seen.next, seen.build)
        await self._count_partitions()
        await self._store.abandon(seen.next, seen.build)
        await self._generations.refresh()
        if (self._generations.current.next, self._generations.current.build) == (
            seen.next,
            seen.build,
        ):
            raise StopError(
                f"generation {seen.next} is being built because views were lost or are not there "
                "yet: it is needed, and becomes active by itself"
            )
        if self._generations.current.active == seen.next:
            raise StopError(f"generation {seen.next} became active just now: readers use it")
        # A worker that does not know it yet would begin the partition again.
        await self._clock.sleep(_NOTICED_S)
        for partition in range(self._partitions):
            await self._ask(partial(self._store.drop, seen.next, partition))
        return seen.next

    async def begin(self) -> Progress:
        """Begin the next generation, or go on with the one that is being built.

        Raises StopError where no generation is active.
        """
        await self._generations.refresh()
        seen = self._generations.current
        if seen.active is None:
            raise _nothing()
        self.resumed = seen.next is not None
        if seen.next is None:
            await self._store.begin_next(
                seen.active + 1, self._generations.new_build_name(), held=True
            )
            await self._generations.refresh()
            seen = self._generations.current
        self._pair = Pair(seen.active or 0, seen.next or 0, seen.build)
        await self._count_partitions()
        return await self._progress("building")

    async def run(self, *, accept: bool) -> Rebuilt:
        """Wait until it is built, compare it, and swap if it is equal, or if `accept` is set."""
        try:
            while True:
                try:
                    rebuilt = await self._try(accept=accept)
                except LostError as error:
                    self._tell(f"{error}: it is compared once it has caught up")
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
            activate = partial(
                self._generations.activate,
                pair.following,
                pair.build,
                self._partitions,
                compared=True,
            )
            await self._ask(activate)
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
            # First of all: what is held no longer or given up must not be compared.
            await self._look()
            if not self._partitions:
                await self._ask(self._count_partitions)
            progress = await self._ask(partial(self._progress, "building"))
            self._show(progress)
            if progress.partitions and all(item.caught_up for item in progress.partitions):
                return
            self._see_that_it_moves(progress)
            await self._clock.sleep(_LOOK_S)

    async def _until_level(self) -> None:
        """Wait until the build has all that readers of the active one are being shown.

        Where messages come in so fast that it never has on all partitions at one moment, it is
        enough that it has what they had been shown when this began.
        """
        progress = await self._ask(partial(self._progress, "swapping"))
        begin_s, begin = self._clock.monotonic_s(), progress
        while _behind(progress, progress):
            late = self._clock.monotonic_s() - begin_s >= _LEVEL_S
            if late and not _behind(progress, begin):
                return
            self._show(progress)
            for partition in _behind(progress, progress):
                # One that a comparison could not take away, as Redis was away or it was killed.
                lift = partial(
                    self._store.limit, self._pair.following, partition, self._pair.build, None
                )
                await self._ask(lift)
            await self._pause()
            progress = await self._ask(partial(self._progress, "swapping"))

    async def _compare(self) -> Compared:
        store, pair, total = self._store, self._pair, Compared()
        progress = await self._ask(partial(self._progress, "comparing"))
        for partition in range(self._partitions):

            def count(sessions: int) -> None:
                self._show(_with_compared(progress, total.sessions + sessions))

            async def compare(partition: int = partition) -> Compared:
                pause = self._pause
                comparison = PartitionComparison(store, pair, partition, pause=pause, count=count)
                return await comparison.run()

            total.take(await self._ask(compare))
        return total

    async def _cut(self) -> list[Cut]:
        found = []
        for partition in range(self._partitions):
            former, following = await self._positions(partition)
            if former and following and former.begin < following.begin:
                found.append(Cut(partition, former.begin, following.begin))
        return found

    async def _positions(self, partition: int) -> list[ViewPosition | None]:
        """Return where the active generation is, and where the build had been before that."""
        pair, ask, store = self._pair, self._ask, self._store
        following = await ask(partial(store.position, pair.following, partition))
        if not pair.former:
            return [None, following]
        return [await ask(partial(store.position, pair.former, partition)), following]

    async def _progress(self, phase: Phase) -> Progress:
        pair, partitions = self._pair, []
        sessions = 0
        for partition in range(self._partitions):
            former, following = await self._positions(partition)
            is_there = following is not None and following.build == pair.build
            partitions.append(
                PartitionProgress(
                    partition,
                    following.begin if following and is_there else None,
                    following.offset if following and is_there else None,
                    former and former.offset,
                    bool(following and is_there and following.caught_up),
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
            self._show(await self._ask(partial(self._progress, "building")))
            await self._clock.sleep(_LOOK_S)
            await self._ask(self._generations.refresh)
        if self._generations.current.active != pair.following:
            raise _gone(pair.following)
        return Rebuilt(generation=pair.following, former=pair.former, swapped=True, compared=None)

    async def _pause(self) -> None:
        """Wait a moment for the workers."""
        await self._clock.sleep(_PAUSE_S)
        await self._look()
        if self._stillness.is_due():
            self._see_that_it_moves(await self._ask(partial(self._progress, "swapping")))

    def _see_that_it_moves(self, progress: Progress) -> None:
        """Say so where workers that are waited for do nothing for long."""
        if self._stillness.is_long([item.position for item in progress.partitions]):
            self._tell(_STILL)

    async def _look(self) -> None:
        """See that the build is still wanted, and held."""
        pair = self._pair
        await self._ask(self._generations.refresh)
        seen = self._generations.current
        if seen.active == pair.following:
            raise _ReleasedError("it is active already")
        if (seen.next, seen.build) != (pair.following, pair.build):
            raise _gone(pair.following)
        if not seen.held:
            raise _ReleasedError("it is held no longer")

    async def _ask(self, attempt: Callable[[], Awaitable[_Result]]) -> _Result:
        """Do something with the store until it is done, however long the store is away."""
        backoff = Backoff(self._clock, asyncio.Event())
        while True:
            try:
                return await attempt()
            except RetryError as error:
                self._tell(f"{error}: trying again in {backoff.next_s:g} s (Ctrl-C ends it)")
                await backoff.wait()


def _behind(progress: Progress, shown: Progress) -> list[int]:
    """Return the partitions on which the build lacks what was shown at a look."""
    return [
        item.partition
        for item, then in zip(progress.partitions, shown.partitions, strict=True)
        if (item.position or 0) < (then.end or 0)
    ]


def _with_compared(progress: Progress, compared: int) -> Progress:
    return Progress(
        phase=progress.phase,
        generation=progress.generation,
        former=progress.former,
        held=progress.held,
        partitions=progress.partitions,
        compared=compared,
        sessions=max(progress.sessions, compared),
    )


def _nothing() -> StopError:
    return StopError(
        "there are no views yet, so there is nothing to rebuild: project workers build the first "
        "generation by themselves (`contextgauge project`)"
    )


def _gone(generation: int) -> StopError:
    return StopError(
        f"generation {generation} is no longer being built: it was abandoned, or Redis was "
        "emptied. The active generation is what it was; run `contextgauge rebuild` again"
    )
