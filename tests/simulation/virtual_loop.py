"""Processes in virtual time: each has an event loop of its own, and one scheduler runs them all.

A loop runs what is ready in the order in which it became ready, as asyncio does. Which process
goes first where several have something to do is a seeded choice, and so is how long each request
takes (`wire`). Time jumps to the next thing that is due: nothing is ever waited for, no thread and
no selector takes part, and the same seed gives the same run.
"""

import asyncio
import random
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from heapq import heappop, heappush
from typing import Any, TypeVar

START_MS = 1_800_000_000_000
"""The time of day at which each run begins."""

_MOST_STEPS = 500_000
"""A run that takes more steps than this turns in a circle."""

_MOST_STEPS_ALONE = 5_000_000
"""The same where one process may wait for an hour of virtual time, and polls meanwhile."""

T = TypeVar("T")


class SpinningError(AssertionError):
    """A process never waits, or the run does not end."""


class _Handle(partial[Any]):
    """One callback that is due, of a loop or (None) of the world around the processes.

    A run makes hundreds of them: as a `partial` each is made and called without a frame of its own.
    """

    loop: "ProcessLoop | None" = None
    due_s = 0.0
    dropped = False

    def cancel(self) -> None:
        self.dropped = True

    def cancelled(self) -> bool:
        return self.dropped

    def when(self) -> float:
        return self.due_s


class Task(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address."""

    def __init__(self, work: Any, loop: Any, number: int) -> None:
        self._number = number  # before the base's, which puts the task into a set
        super().__init__(work, loop=loop, name="task")
        self._log_destroy_pending = False  # that of a killed process

    def __hash__(self) -> int:
        return self._number


class Scheduler:
    """Runs all processes of one run, and what the world does to them."""

    def __init__(self, chance: random.Random, most_steps: int = _MOST_STEPS) -> None:
        self.now_s = 0.0
        self.steps = 0
        self.tasks = 0
        self._chance = chance
        self._most_steps = most_steps
        self._due: list[tuple[float, int, _Handle]] = []
        self._number = 0
        self._ready: list[ProcessLoop] = []
        self._stopped = False

    def now_ms(self) -> int:
        return START_MS + int(self.now_s * 1_000)

    def at(self, due_s: float, callback: Callable[..., Any], *args: Any) -> _Handle:
        """Have the world do something at a time."""
        return self.push(_Handle(callback, *args), due_s)

    def after(self, seconds: float, callback: Callable[..., Any], *args: Any) -> _Handle:
        """Have the world do something after a while."""
        due_s = self.now_s + seconds
        handle = _Handle(callback, *args)
        self._number += 1
        heappush(self._due, (due_s, self._number, handle))
        return handle

    def push(self, handle: _Handle, due_s: float) -> _Handle:
        self._number += 1
        heappush(self._due, (due_s, self._number, handle))
        return handle

    def wake(self, loop: "ProcessLoop") -> None:
        """Note that a loop has something to do."""
        if not loop.is_awake:
            loop.is_awake = True
            self._ready.append(loop)

    def stop(self) -> None:
        """End `run` after the step under way."""
        self._stopped = True

    def run(self, until_s: float) -> bool:
        """Run until `stop`, or until that time; return whether it was stopped."""
        ready, due = self._ready, self._due
        self._stopped = False
        while not self._stopped:
            if ready:
                index = 0 if len(ready) == 1 else self._chance.randrange(len(ready))
                ready.pop(index).run_ready()
                continue
            if not due or due[0][0] > until_s:
                self.now_s = max(self.now_s, until_s)
                return False
            due_s, _, handle = heappop(due)
            if handle.dropped:
                continue
            self.now_s = max(self.now_s, due_s)
            self.steps += 1
            if self.steps > self._most_steps:
                raise SpinningError("the run never ends")
            if handle.loop is None:
                handle()
            else:
                handle.loop.take(handle)
        return True


class ProcessLoop:
    """The event loop of one process. A dead one runs nothing more, a paused one nothing for now."""

    def __init__(self, scheduler: Scheduler, name: str = "") -> None:
        self.scheduler, self.name = scheduler, name
        self.is_awake = self.is_dead = self.is_paused = False
        self._ready: deque[_Handle] = deque()

    def run_ready(self) -> None:
        """Run all that is ready, and what that makes ready."""
        self.is_awake = False
        ready, steps = self._ready, 0
        if not ready or self.is_dead or self.is_paused:
            return
        me: Any = self
        events._set_running_loop(me)  # noqa: SLF001 -- what a loop does
        try:
            while ready:
                handle = ready.popleft()
                if not handle.dropped:
                    handle()
                    steps += 1
                    if steps > _MOST_STEPS:
                        raise SpinningError(f"{self.name} never waits")
        finally:
            events._set_running_loop(None)  # noqa: SLF001 -- as above
            self.scheduler.steps += steps

    def take(self, handle: _Handle) -> None:
        """Take what is due now."""
        if not self.is_dead:
            self._ready.append(handle)
            self.scheduler.wake(self)

    def kill(self) -> None:
        """Run nothing more: not even what would clean up."""
        self.is_dead = True
        self._ready.clear()

    def pause(self) -> None:
        """Run nothing until `resume`; time goes on."""
        self.is_paused = True

    def resume(self) -> None:
        """Go on: timers that became due meanwhile are due now."""
        self.is_paused = False
        if self._ready:
            self.scheduler.wake(self)

    # What asyncio asks of a loop

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:  # noqa: ARG002 -- one context serves all
        handle = _Handle(callback, *args)
        if not self.is_dead:  # as `take`; most of all callbacks come this way
            self._ready.append(handle)
            if not self.is_awake:
                self.scheduler.wake(self)
        return handle

    call_soon_threadsafe = call_soon

    def call_at(
        self,
        when: float,
        callback: Callable[..., Any],
        *args: Any,
        context: Any = None,  # noqa: ARG002 -- as above
    ) -> Any:
        handle = _Handle(callback, *args)
        handle.loop, handle.due_s = self, when
        return self.scheduler.push(handle, when)

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> Any:
        return self.call_at(self.scheduler.now_s + delay, callback, *args, context=context)

    def time(self) -> float:
        return self.scheduler.now_s

    def create_future(self) -> asyncio.Future[Any]:
        loop: Any = self
        return asyncio.Future(loop=loop)

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> Any:  # noqa: ARG002 -- as above
        self.scheduler.tasks += 1
        return Task(coro, self, self.scheduler.tasks)

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> Any:  # noqa: ARG002 -- the loop's
        """Run at once what is to run in a thread: threads have a time of their own."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 -- as a thread's
            done.set_exception(error)
        return done

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: Any) -> None:
        """Say nothing: what a run must show is checked at its end."""


class VirtualClock:
    """The clock of the process that runs; `ahead_ms` is how wrong it is."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return START_MS + int(self.monotonic_s() * 1_000) + self.ahead_ms

    def monotonic_s(self) -> float:
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


_LAST_S = 60.0
"""So long what is left after a run may take to end."""


def run_virtually(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time, as the only process; cancel what is left then."""
    scheduler = Scheduler(random.Random(0), _MOST_STEPS_ALONE)
    loop = ProcessLoop(scheduler, "only")
    task = loop.create_task(work)
    task.add_done_callback(lambda _done: scheduler.stop())
    if not scheduler.run(float("inf")):
        raise AssertionError("nothing will ever happen again")
    as_loop: Any = loop
    for each in asyncio.all_tasks(as_loop):
        each.cancel()
    scheduler.run(scheduler.now_s + _LAST_S)
    result: T = task.result()
    return result
