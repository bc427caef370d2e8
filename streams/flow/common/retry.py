"""Retrying one operation until it succeeds, while the service that it needs is away."""

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

import structlog

from contextgauge.backoff import Backoff
from contextgauge.errors import RetryError, WrongServerError
from streams.flow.common.ports import WorkerPorts
from streams.ports import Service

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

logger = structlog.get_logger()


class RetryLoop:
    """Retries with a back-off while a service is away, and reports it; gives up once stopped."""

    def __init__(self, ports: WorkerPorts, service: Service) -> None:
        self._ports, self._service = ports, service

    async def run(
        self,
        attempt: Callable[_Given, Awaitable[_Result]],
        *args: _Given.args,
        **kwargs: _Given.kwargs,
    ) -> _Result:
        """Return the first result without a RetryError. Raises RetryError once stopped."""
        ports = self._ports
        backoff, failed = Backoff(ports.clock, ports.stop), False
        try:
            while True:
                try:
                    result = await attempt(*args, **kwargs)
                except RetryError as error:
                    if ports.stop.is_set():
                        raise
                    failed = True
                    is_wrong = isinstance(error, WrongServerError)
                    reason = str(error)
                    ports.health.away(backoff, self._service, reason, is_wrong_server=is_wrong)
                    ports.telemetry.count("worker_retries", service=self._service)
                    logger.warning("trying again", error=str(error), pause_s=backoff.next_s)
                    await backoff.wait()
                else:
                    if failed:
                        logger.info("it works again")
                    return result
        finally:
            ports.health.back(backoff)
