"""An event loop in a thread of its own, for a program that has none."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import TypeVar

from contextgauge.errors import ClosedError

Result = TypeVar("Result")


class LoopThread:
    """A publisher's loop. Any thread may run work in it, but none of a process that was forked."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="contextgauge-publisher", daemon=True
        )
        self._guard = threading.Lock()
        """Nothing is handed to the loop once its end was: it would never be answered."""
        self._is_open = False
        self._process = os.getpid()

    @property
    def is_forked(self) -> bool:
        """Whether the thread is another process's, which this one was forked from."""
        return self._process != os.getpid()

    def start(self) -> None:
        """Start the thread. Raises ClosedError where a loop runs already."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            self._loop.close()
            raise ClosedError("there is an event loop here: use `async with Publisher(...)`")
        self._thread.start()
        self._is_open = True

    def run(self, work: Coroutine[object, object, Result]) -> Result:
        """Return the result of work that the thread does. Raises what it raises, or ClosedError."""
        running = self._hand_over(work)
        try:
            return running.result()
        except CancelledError:
            raise ClosedError("the publisher closed meanwhile") from None
        except BaseException:
            running.cancel()
            raise

    def _hand_over(self, work: Coroutine[object, object, Result]) -> Future[Result]:
        """Let the loop's thread do the work. Raises ClosedError where it could never be done."""
        if self.is_forked:
            why = "the publisher is another process's, which this one was forked from"
        elif threading.current_thread() is self._thread:
            why = "the publisher's own thread, which calls on_problem, cannot wait for itself"
        else:
            with self._guard:
                if self._is_open:
                    return asyncio.run_coroutine_threadsafe(work, self._loop)
            why = "the publisher is not open: publish inside its `with`"
        work.close()
        raise ClosedError(why)

    def end(self) -> None:
        """End the thread and all that still runs in it."""
        with self._guard:
            self._is_open = False
            last = asyncio.run_coroutine_threadsafe(_finish(), self._loop)
        try:
            last.result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _finish() -> None:
    """Cancel what still runs in the loop, so that every waiting caller gets an answer."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others)
    await asyncio.get_running_loop().shutdown_default_executor()
