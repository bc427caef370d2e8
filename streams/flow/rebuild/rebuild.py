"""Begins the next generation of the views, and waits until the workers have activated it.

All state is in the store, so the command may end at any time: the workers go on, and the next run
waits for the same build.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from contextgauge.backoff import Backoff
from contextgauge.errors import ConfigError, FormerViewsError, RetryError, StopError
from streams.flow.common.generations import GenerationTracker
from streams.ports import Clock, Log, ViewPosition, ViewStore, started

_POLL_S = 0.5
"""How often the workers' progress is checked."""

_IDLE_S = 15.0
"""A worker that has written nothing for so long is probably down: it is replaced by then."""

_IDLE = (
    "No progress for a while. Check that project workers run (`contextgauge project`). Waiting "
    "(Ctrl-C to stop)"
)

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """How far a partition is built. `position` and `begin` are None before it is started.

    `end` is the position of the active generation, None if that is lost.
    """

    partition: int
    begin: int | None
    position: int | None
    end: int | None
    caught_up: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is; the partitions are empty while their number is unknown."""

    generation: int
    active: int | None
    partitions: tuple[PartitionProgress, ...] = ()


class Rebuild:
    """One rebuild; `notify` is called with what to report while waiting."""

    def __init__(self, store: ViewStore, clock: Clock, *, notify: Callable[[str], None]) -> None:
        self._store, self._clock, self._notify = store, clock, notify
        self._generations = GenerationTracker(store, clock, "rebuild")
        self.resumed = False
        """Whether the build had been started before."""

    async def status(self) -> Progress | None:
        """Return the progress of the current build; None if there is none.

        Raises StopError if no generation is active either.
        """
        await self._generations.refresh()
        if self._generations.current.next is not None:
            return await self._progress()
        if self._generations.current.active is None:
            raise _no_views()
        return None

    async def begin(self, check: Callable[[int], Awaitable[None]]) -> Progress:
        """Begin the next generation, or take the one that is being built.

        `check` is awaited with the active generation before one is begun; what it raises is raised.
        Raises StopError if no generation is active.
        """
        await self._generations.refresh()
        active = self._generations.current.active
        if active is None:
            raise _no_views()
        self.resumed = self._generations.current.next is not None
        if not self.resumed:
            await check(active)
            await self._generations.begin_next()
        return await self._progress()

    async def wait(self, begun: Progress, show: Callable[[Progress], None]) -> None:
        """Wait until the generation is active. Raises StopError where its build is gone."""
        build = self._generations.current.build
        positions, since_s = None, self._clock.monotonic_s()
        has_notified = False
        while True:
            await self._ask(self._generations.refresh)
            generations = self._generations.current
            if (generations.active or 0) >= begun.generation:
                return
            if (generations.next, generations.build) != (begun.generation, build):
                raise _gone(begun.generation)
            progress = await self._ask(self._progress)
            show(progress)
            now_s = self._clock.monotonic_s()
            current = [item.position for item in progress.partitions]
            if current != positions:
                positions, since_s = current, now_s
            elif now_s - since_s >= _IDLE_S and not has_notified:
                has_notified = True
                self._notify(_IDLE)
            await self._clock.sleep(_POLL_S)

    async def _progress(self) -> Progress:
        generations, store = self._generations.current, self._store
        following, active = generations.next or 0, generations.active
        partitions: list[PartitionProgress] = []
        count = 1
        while len(partitions) < count:
            number = len(partitions)
            old = None if active is None else await _position(store, active, number)
            new = await store.position(following, number)
            if new is not None and new.build != generations.build:
                new = None
            known = old or new
            if known is None and not partitions:
                return Progress(following, active)
            count = max(count, known.partitions if known else 0)
            partitions.append(
                PartitionProgress(
                    number,
                    new and new.begin,
                    new and new.offset,
                    old and old.offset,
                    caught_up=new is not None and new.caught_up,
                )
            )
        return Progress(following, active, tuple(partitions))

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


async def _position(store: ViewStore, generation: int, partition: int) -> ViewPosition | None:
    """Return a position; None also where the views have a former format: they are replaced."""
    try:
        return await store.position(generation, partition)
    except FormerViewsError:
        return None


async def check_log(log: Log, topic: str, store: ViewStore, generation: int) -> None:
    """Raise StopError where the log no longer has records that a generation contains.

    A generation that is built from it would lack them, and be activated nevertheless.
    """
    partitions = (await log.partition_counts([topic]))[topic]
    if partitions is None:
        raise ConfigError(
            f"no topic {topic}: views that are built now would be empty. `contextgauge topics "
            "create` creates it"
        )
    begins = {}
    for partition in range(partitions):
        position = await _position(store, generation, partition)
        if position is not None:
            begins[partition] = position.begin
    if not begins:
        return  # all of them are lost or replaced anyway
    lost: list[str] = []
    async with started(log.reader(topic, list(begins))) as reader:
        for partition, begin in begins.items():
            first, _ = await reader.bounds(partition)
            if begin < first:
                lost.append(f"partition {partition} (offsets {begin} to {first - 1})")
    if lost:
        raise StopError(
            "the log no longer has records that the views contain, and a rebuild would lose the "
            f"sessions and totals from them: {', '.join(lost)}. To rebuild nevertheless, pass "
            "--accept-loss"
        )


def _no_views() -> StopError:
    return StopError(
        "there are no views yet, so there is nothing to rebuild: project workers build the first "
        "generation (`contextgauge project`)"
    )


def _gone(generation: int) -> StopError:
    return StopError(
        f"generation {generation} is no longer being built: Redis was emptied or restored. Run "
        "`contextgauge rebuild` to start again"
    )
