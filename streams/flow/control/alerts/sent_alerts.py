"""Which alerts were handled, in a store that may be away for a while.

A late alert would be worse than a duplicate, so nothing waits for the store: meanwhile this
process remembers, and stores the rest when the store is back.
"""

from collections import OrderedDict
from typing import Final

import structlog

from contextgauge.errors import RetryError, WrongServerError
from streams.flow.common.ports import WorkerPorts
from streams.ports import AlertMemory

_MOST_RECENT: Final = 10_000
"""Held in memory: more than queues hold, and a megabyte or two."""

REST_S: Final = 5.0
"""After a failed request: a store that hangs takes seconds for each."""

logger = structlog.get_logger()


class SentAlerts:
    """The memory as the queues use it: it never fails."""

    def __init__(self, store: AlertMemory, ports: WorkerPorts) -> None:
        self._store, self._telemetry, self._health = store, ports.telemetry, ports.health
        self._clock, self._not_before_s = ports.clock, ports.clock.monotonic_s()
        self._recent: OrderedDict[str, bool] = OrderedDict()
        """Keys, and whether each is stored."""
        self._is_away = False

    async def knows(self, key: str) -> bool:
        """Return whether a key was handled, as far as is known now."""
        if key in self._recent:
            return True
        if self._rests():
            return False
        try:
            is_known = await self._store.knows(key)
        except RetryError as error:
            self._away(error)
            return False
        self._back()
        return is_known

    async def remember(self, key: str) -> None:
        """Remember a key; where the store is away, `store_rest` stores it later."""
        self._recent[key] = False
        self._recent.move_to_end(key)
        while len(self._recent) > _MOST_RECENT:
            self._recent.popitem(last=False)
        if not self._rests():
            await self._stored(key)

    async def store_rest(self, *, is_last_chance: bool = False) -> None:
        """Store what is not stored yet, unless the store was away a moment ago."""
        for key in [key for key, stored in self._recent.items() if not stored]:
            if (self._rests() and not is_last_chance) or not await self._stored(key):
                return

    async def _stored(self, key: str) -> bool:
        try:
            await self._store.remember(key)
        except RetryError as error:
            self._away(error)
            return False
        self._back()
        if key in self._recent:
            self._recent[key] = True
        return True

    def _rests(self) -> bool:
        return self._clock.monotonic_s() < self._not_before_s

    def _away(self, error: RetryError) -> None:
        self._not_before_s = self._clock.monotonic_s() + REST_S
        self._telemetry.count("worker_retries", service="redis")
        is_wrong = isinstance(error, WrongServerError)
        self._health.away(self, "redis", str(error), is_wrong_server=is_wrong)
        if not self._is_away:
            logger.warning("sent alerts are not remembered for now", error=str(error))
        self._is_away = True

    def _back(self) -> None:
        if self._is_away:
            self._health.back(self)
            logger.info("sent alerts are remembered again")
        self._is_away = False
