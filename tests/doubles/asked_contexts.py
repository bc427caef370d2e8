"""Which agents ask for their context, in memory: as `streams.edge.redis.asked_contexts` has it."""

from contextgauge.ports import Clock
from streams.ports.conversations import ASKED_MS, Asked


class MemoryAskedContexts:
    """An `AskedContexts`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._given: dict[str, tuple[int, str, int, float]] = {}
        """By session: compactions and last message, how often in a row, and when last, seconds."""

    async def stop(self) -> None:
        """Do nothing: there is no connection."""

    async def note(self, session_id: str, last_id: str, compactions: int) -> None:
        """Note what an agent was given; see the port."""
        before = self._given.get(session_id)
        is_same = before is not None and before[:2] == (compactions, last_id)
        times = before[2] + 1 if before is not None and is_same else 1
        self._given[session_id] = (compactions, last_id, times, self._clock.monotonic_s())

    async def asked(self, session_id: str) -> Asked | None:
        """Return the last request; see the port."""
        given = self._given.get(session_id)
        if given is None:
            return None
        age_ms = round((self._clock.monotonic_s() - given[3]) * 1_000)
        return Asked(given[1], given[2], age_ms) if age_ms <= ASKED_MS else None
