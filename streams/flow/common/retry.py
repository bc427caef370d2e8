"""Retrying one operation until it succeeds, while the service that it needs is away."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from contextgauge.backoff import Backoff
from contextgauge.errors import RetryError
from streams.ports import Clock, Health, Service, Telemetry

_Result = TypeVar("_Result")

logger = structlog.get_logger()


class RetryLoop:
    """Retries with a back-off while a service is away, and reports it; gives up once stopped."""

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

    async def run(self, attempt: Callable[[], Awaitable[_Result]]) -> _Result:
        """Return the first result without a RetryError. Raises RetryError once stopped."""
        backoff, failed = Backoff(self._clock, self._stop), False
        try:
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
        finally:
            self._health.back(backoff)
