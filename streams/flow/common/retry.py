"""Retrying one operation until it succeeds, while the service that it needs is away."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import structlog

from contextgauge.backoff import Backoff
from contextgauge.errors import RetryError
from streams.ports import Clock, Health, Service, Telemetry

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

logger = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class WorkerTools:
    """What every part of a worker uses. `stop` is set when the worker is to end."""

    telemetry: Telemetry
    health: Health
    clock: Clock
    stop: asyncio.Event


class RetryLoop:
    """Retries with a back-off while a service is away, and reports it; gives up once stopped."""

    def __init__(self, tools: WorkerTools, service: Service) -> None:
        self._tools, self._service = tools, service

    async def run(
        self,
        attempt: Callable[_Given, Awaitable[_Result]],
        *args: _Given.args,
        **kwargs: _Given.kwargs,
    ) -> _Result:
        """Return the first result without a RetryError. Raises RetryError once stopped."""
        tools = self._tools
        backoff, failed = Backoff(tools.clock, tools.stop), False
        try:
            while True:
                try:
                    result = await attempt(*args, **kwargs)
                except RetryError as error:
                    if tools.stop.is_set():
                        raise
                    failed = True
                    tools.health.away(backoff, self._service, str(error))
                    tools.telemetry.count("worker_retries", service=self._service)
                    logger.warning("trying again", error=str(error), pause_s=backoff.next_s)
                    await backoff.wait()
                else:
                    if failed:
                        logger.info("it works again")
                    return result
        finally:
            tools.health.back(backoff)
