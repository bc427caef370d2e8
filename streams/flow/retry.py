"""Doing one thing until it is done, while the service that it needs is away."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from streams.core.errors import RetryError
from streams.flow.backoff import Backoff
from streams.ports import Clock, Telemetry

_Result = TypeVar("_Result")

logger = structlog.get_logger()


class Patience:
    """Tries again with a back-off and says so; gives up only when told to stop."""

    def __init__(
        self, clock: Clock, telemetry: Telemetry, stop: asyncio.Event, worker: str
    ) -> None:
        self._clock, self._telemetry, self._stop = clock, telemetry, stop
        self._worker = worker

    async def until_done(self, attempt: Callable[[], Awaitable[_Result]]) -> _Result:
        """Return what the attempt gives at last. Raises RetryError once stopped."""
        backoff = Backoff(self._clock, self._stop)
        failed = False
        while True:
            try:
                result = await attempt()
            except RetryError as error:
                if self._stop.is_set():
                    raise
                failed = True
                self._telemetry.count("worker_retries", worker=self._worker)
                logger.warning("trying again", error=str(error), pause_s=backoff.next_s)
                await backoff.wait()
            else:
                if failed:
                    logger.info("it works again")
                return result
