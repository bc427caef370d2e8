"""An event loop whose time jumps to the next thing that is due: nothing is ever waited for."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_START_MS = 1_800_000_000_000

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    now_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found:
            if timeout is None:
                raise AssertionError("nothing will ever happen again")
            self.now_s += max(timeout, 0.0)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time. What it is to run in threads is run at once."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now_s

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> Any:  # type: ignore[override]  # noqa: ARG002 -- the loop's
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 -- as a thread's
            done.set_exception(error)
        return done


class VirtualClock:
    """The clock of such a loop."""

    def now_ms(self) -> int:
        return _START_MS + int(self.monotonic_s() * 1_000)

    def monotonic_s(self) -> float:
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run_virtually(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in virtual time."""
    loop = VirtualLoop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(work)
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        asyncio.set_event_loop(None)
        loop.close()
