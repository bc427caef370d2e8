"""How long the derive workers have been behind, for readers of the views.

Views that have every record of `context.events` are old where its records are late. The derive
workers' position is their group's committed offset, which they commit for lag tools
(docs/adr/0005). Where there is none, or this user may not see it, nothing is known.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from contextgauge.errors import ConfigError, RetryError
from streams.flow.project.polling import ProjectPorts
from streams.ports import PartitionReader, started

_LOOK_S: Final = 5.0
"""Some small requests each time."""

_MOST_LOOKS: Final = 1_000
"""Kept for a partition: more than an hour. A partition that is further behind is stale as well."""

logger = structlog.get_logger()


class DerivationLag:
    """Looks at intervals; `partitions` returns those whose lag is wanted."""

    def __init__(self, ports: ProjectPorts, partitions: Callable[[], Sequence[int]]) -> None:
        self._ports, self._partitions = ports, partitions
        self._ends: defaultdict[int, deque[tuple[float, int]]] = defaultdict(
            lambda: deque(maxlen=_MOST_LOOKS)
        )
        """By partition: when it was seen to have grown to which end, where that is not derived."""

    def ms(self, partition: int) -> int:
        """Return for how long a message of the partition has waited at least; 0 where none has."""
        waiting = self._ends.get(partition)
        if not waiting:
            return 0
        return round((self._ports.clock.monotonic_s() - waiting[0][0]) * 1_000)

    async def run(self) -> None:
        """Look until cancelled, or until that is not allowed."""
        log, config = self._ports.log, self._ports.config
        while True:
            await self._ports.clock.sleep(_LOOK_S)
            try:
                # Only asked for bounds: assigned to nothing, it fetches nothing.
                async with started(log.reader(config.messages_topic, ())) as reader:
                    while True:
                        await self._look(reader)
                        await self._ports.clock.sleep(_LOOK_S)
            except RetryError:
                continue  # the worker waits for Kafka, and reports that
            except ConfigError as error:
                logger.warning("how late derive workers are is not known", error=str(error))
                return

    async def _look(self, reader: PartitionReader) -> None:
        config = self._ports.config
        derived = await self._ports.log.committed(config.derive_group, config.messages_topic)
        for partition in self._partitions():
            if partition in derived:
                _, end = await reader.bounds(partition)
                self._note(partition, derived[partition], end)

    def _note(self, partition: int, derived: int, end: int) -> None:
        waiting, now_s = self._ends[partition], self._ports.clock.monotonic_s()
        while waiting and waiting[0][1] <= derived:
            waiting.popleft()
        if end > derived and (not waiting or end > waiting[-1][1]):
            waiting.append((now_s, end))
