"""`with Publisher(...)`: the same publisher for a program that has no event loop."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from types import TracebackType
from typing import Protocol, TypeVar

from contextgauge.delivery.delivery import Fate, PublisherStats
from contextgauge.errors import ClosedError

Result = TypeVar("Result")


class AsyncPublisher(Protocol):
    """What a `BlockingPublisher` runs in its thread: a `Publisher`."""

    @property
    def stats(self) -> PublisherStats:
        """See `Publisher.stats`."""

    async def __aenter__(self) -> object:
        """See `Publisher.__aenter__`."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """See `Publisher.__aexit__`."""

    async def publish(
        self,
        message: object,
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        task_id: str | None = None,
    ) -> Fate:
        """See `Publisher.publish`."""


class BlockingPublisher:
    """What `with Publisher(...) as publisher` gives; its event loop has a thread of its own.

    Any thread may publish. A process that was forked needs a publisher of its own.
    """

    def __init__(self, publisher: AsyncPublisher) -> None:
        self._publisher = publisher
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="contextgauge-publisher", daemon=True
        )
        self._guard = threading.Lock()
        """Nothing is handed to the loop once its end was: it would never be answered."""
        self._is_open = False
        self._process = os.getpid()

    def open(self) -> None:
        """Begin to connect, in the background. Raises what `Publisher.__aenter__` raises."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            self._loop.close()
            raise ClosedError("there is an event loop here: use `async with Publisher(...)`")
        self._thread.start()
        self._is_open = True
        try:
            self._run(self._publisher.__aenter__())
        except BaseException:
            self._end()
            raise

    def publish(
        self,
        message: object,
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        task_id: str | None = None,
    ) -> Fate:
        """Publish one message; see `Publisher.publish`."""
        return self._run(
            self._publisher.publish(
                message, session_id=session_id, agent_id=agent_id, task_id=task_id
            )
        )

    @property
    def stats(self) -> PublisherStats:
        """What became of the messages so far; still there after the end."""
        return self._publisher.stats

    def close(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Send what waits and end the thread. Raises what `Publisher.__aexit__` raises.

        Does nothing in a process that was forked: what waits is its parent's to send.
        """
        if self._process != os.getpid():
            return
        try:
            self._run(self._publisher.__aexit__(kind, error, traceback))
        finally:
            self._end()

    def _run(self, work: Coroutine[object, object, Result]) -> Result:
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
        if self._process != os.getpid():
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

    def _end(self) -> None:
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
