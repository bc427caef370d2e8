"""`with Publisher(...)`: the same publisher for a program that has no event loop."""

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from streams.core.errors import ClosedError
from streams.flow.delivery import Fate, PublisherStats

if TYPE_CHECKING:
    from contextgauge.publisher import Publisher

Result = TypeVar("Result")


class BlockingPublisher:
    """What `with Publisher(...) as publisher` gives; its event loop has a thread of its own.

    Any thread may publish. A process that was forked needs a publisher of its own.
    """

    def __init__(self, publisher: "Publisher") -> None:
        self._publisher = publisher
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="contextgauge-publisher", daemon=True
        )
        self._is_open = False

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
        """Send what waits and end the thread. Raises what `Publisher.__aexit__` raises."""
        try:
            self._run(self._publisher.__aexit__(kind, error, traceback))
        finally:
            self._end()

    def _run(self, work: Coroutine[object, object, Result]) -> Result:
        if not self._is_open:
            work.close()
            raise ClosedError("the publisher is not open: publish inside its `with`")
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result()
        except BaseException:
            running.cancel()
            raise

    def _end(self) -> None:
        self._run(self._loop.shutdown_default_executor())
        self._is_open = False
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
