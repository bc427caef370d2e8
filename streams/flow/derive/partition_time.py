"""A partition's Kafka time, which wrong clocks neither stop nor hurry."""

from typing import Final, NamedTuple

from schemas.topics import DAY_MS

STEP_MS: Final = DAY_MS
"""Clocks that are right, and those in a wrong time zone, agree within a day."""

CLAIMS: Final = 100
"""A run of so many wrong timestamps, with no right one among them, is no accident of one clock.
More would keep idle sessions for longer: after a pause, so many messages is what they stay."""


class Claim(NamedTuple):
    """Records all more than a step ahead: the first one's offset, their number, the least time."""

    begin: int
    records: int
    time_ms: int


class PartitionTime:
    """A partition's Kafka time: the greatest timestamp so far, if other records confirm it.

    A producer sets its records' timestamps by its own clock. One record from the year 9999 must
    not make every session idle and stop the time from then on; a partition that was quiet for a
    month must still go on. So a step of more than a day is a claim, and it is accepted once so
    many records claim one, by as much as the least of them; an ordinary step, of a day at most,
    shows that the time was right and ends the claim. Records that are not ahead of the time, as of
    a clock that stands in 1970, do not matter. It follows from the records alone.
    """

    def __init__(self, time_ms: int = 0, claim: Claim | None = None) -> None:
        self.time_ms = time_ms
        self.claim = claim

    def take(self, offset: int, time_ms: int) -> Claim | None:
        """Take a record that is ahead of the time; return the claim that it confirmed, if any."""
        claim = self.claim
        if time_ms - self.time_ms <= STEP_MS:
            self.time_ms, self.claim = time_ms, None
            return None
        if claim is None:
            claim = Claim(offset, 0, time_ms)
        claim = Claim(claim.begin, claim.records + 1, min(claim.time_ms, time_ms))
        if claim.records < CLAIMS:
            self.claim = claim
            return None
        self.time_ms, self.claim = claim.time_ms, None
        return claim
