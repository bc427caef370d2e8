"""One stream for several handlers: a record is acknowledged when all of them have done so."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence

from streams.flow.common.together import together
from streams.ports import LogRecord, ReceivedRecord, RecordHandler, RecordStream


class _Shared:
    """A record, and how many handlers still need its bytes."""

    def __init__(self, arrival: ReceivedRecord, handlers: int) -> None:
        self.arrival, self._held = arrival, handlers

    def release(self) -> None:
        self._held -= 1
        if not self._held:
            self.arrival.release()


class _Copy:
    """A record as one handler receives it."""

    def __init__(self, shared: _Shared, number: int, fan_out: "FanOut") -> None:
        self._shared, self._number, self._fan_out = shared, number, fan_out
        self._is_released = False

    @property
    def partition(self) -> int:
        return self._shared.arrival.partition

    @property
    def record(self) -> LogRecord:
        return self._shared.arrival.record

    def is_current(self) -> bool:
        return self._shared.arrival.is_current()

    def release(self) -> None:
        if not self._is_released:
            self._is_released = True
            self._shared.release()

    def acknowledge(self) -> None:
        self.release()
        self._fan_out.acknowledge(self._number, self.partition, self.record.offset)


class FanOut:
    """A handler of records that passes them on to others."""

    def __init__(self, handlers: Sequence[RecordHandler]) -> None:
        self._handlers = tuple(handlers)
        self._waiting: dict[int, deque[ReceivedRecord]] = {}
        self._done: dict[int, list[int]] = {}
        """By partition: the last offset that each handler acknowledged."""

    def assigned(self, positions: Mapping[int, int]) -> None:
        """Start on these partitions and no others."""
        self._waiting = {partition: deque() for partition in positions}
        self._done = {partition: [-1] * len(self._handlers) for partition in positions}
        for handler in self._handlers:
            handler.assigned(positions)

    def revoked(self) -> None:
        """Release all partitions."""
        self._waiting, self._done = {}, {}
        for handler in self._handlers:
            handler.revoked()

    async def handle(self, arrivals: Sequence[ReceivedRecord]) -> None:
        """Pass records on to all handlers; the first error of any is raised."""
        shared = [_Shared(arrival, len(self._handlers)) for arrival in arrivals]
        for arrival in arrivals:
            if arrival.partition in self._waiting and arrival.is_current():
                self._waiting[arrival.partition].append(arrival)
        await together(
            handler.handle([_Copy(each, number, self) for each in shared])
            for number, handler in enumerate(self._handlers)
        )

    def acknowledge(self, number: int, partition: int, offset: int) -> None:
        """Note that a handler is done with a record and all before it."""
        done = self._done.get(partition)
        if done is None:
            return
        done[number] = max(done[number], offset)
        waiting, upto, last = self._waiting[partition], min(done), None
        while waiting and waiting[0].record.offset <= upto:
            last = waiting.popleft()
        if last is not None:
            last.acknowledge()


class SharedStream:
    """A stream whose records the given handlers get, besides the one that runs it."""

    def __init__(self, stream: RecordStream, others: Sequence[RecordHandler]) -> None:
        self._stream, self._others = stream, others

    async def run(self, handler: RecordHandler, stop: asyncio.Event) -> None:
        """Hand records over until `stop` is set; see the port."""
        await self._stream.run(FanOut([handler, *self._others]), stop)

    def behind(self, partition: int) -> int | None:
        """Return how many offsets are not handed over yet; None while that is not known."""
        return self._stream.behind(partition)
