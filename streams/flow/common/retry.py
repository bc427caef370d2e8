"""Doing one thing until it is done, while the service that it needs is away."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from contextgauge.backoff import Backoff
from contextgauge.errors import RetryError
from streams.ports import Clock, Health, Service, Telemetry

_Result = TypeVar("_Result")

logger = structlog.get_logger()


class Patience:
    """Tries again while a service is away, and says so; gives up only when told to stop."""

    def __init__(
        self,
        clock: Clock,
        telemetry: Telemetry,
        health: Health,
        stop: asyncio.Event,
        service: Service,
    ) -> None:
        self._clock, self._telemetry, self._stop = clock, telemetry, stop
        self._health = health
        self._service = service

    async def until_done(self, attempt: Callable[[], Awaitable[_Result]]) -> _Result:
        """Return what the attempt gives at last. Raises RetryError once stopped."""
        backoff = Backoff(self._clock, self._stop)
        try:
            return await self._until_done(attempt, backoff)
        finally:
            self._health.back(backoff)

    async def _until_done(
        self, attempt: Callable[[], Awaitable[_Result]], backoff: Backoff
    ) -> _Result:
        failed = False
        while True:
            try:
                result = await attempt()
            except RetryError as error:
                if self._stop.is_set():
                    raise
                failed = True
                self._health.away(backoff, self._service, str(error))
                self._telemetry.count("worker_retries", service=self._service)
                logger.warning("trying again", error=str(error), pause_s=backoff.next_s)
                await backoff.wait()
            else:
                if failed:
                    logger.info("it works again")
                return result
