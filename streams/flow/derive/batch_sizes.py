"""How much of a backlog a partition's next batch may take.

What is in flight is bounded over all partitions of a worker, since its memory and its CPU are one.
A partition begins with small batches, and takes larger ones while commits are fast. A worker with
little CPU would else derive a batch of thousands of new sessions for longer than a transaction or a
membership of the group lasts, and start over with the same batch, for ever. The sizes change no
record: which messages share a transaction is not part of any.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final, NamedTuple

from schemas.topics import MIB

_FIRST: Final = 500
"""Messages of a partition's first batch. Ten times as many are reached after four commits."""

_LEAST: Final = 25
"""A batch of so few is never the reason of a failure."""

_IN_FLIGHT: Final = 20_000
"""Messages over all partitions, in batches that are derived: those of four partitions. As many may
be under way to the brokers."""

_IN_FLIGHT_BYTES: Final = 40 * MIB
"""Over all partitions: those of four, each with a batch of `BATCH_BYTES`."""

BATCH_BYTES: Final = 10 * MIB
"""A batch with so many bytes takes no more fetches, each of which is bounded alike."""

_FORGOTTEN_AFTER: Final = 100
"""Commits after which a size that failed is tried again: the machine may be idle by now."""

_FAST: Final = 1 / 8
_SLOW: Final = 1 / 2
"""Parts of a commit's time limit: below the one batches grow, above the other they shrink."""


class BatchSize(NamedTuple):
    """How many messages and bytes a batch takes before it is committed; one fetch may exceed it."""

    messages: int
    size: int


@dataclass(slots=True)
class _Size:
    """Of one partition: messages, the size that failed, and the commits since then."""

    messages: int
    failed: int | None = None
    commits: int = 0


class BatchSizes:
    """The sizes of all partitions of a worker, for its life. `most` messages is the setting's."""

    def __init__(self, most: int, commit_timeout_s: float) -> None:
        self._most, self._timeout_s = most, commit_timeout_s
        self._partitions = 1
        self._sizes: defaultdict[int, _Size] = defaultdict(lambda: _Size(min(_FIRST, most)))

    def share(self, partitions: int) -> None:
        """Divide what may be in flight by the worker's partitions."""
        self._partitions = max(partitions, 1)

    def next(self, partition: int) -> BatchSize:
        """Return what a partition's next batch may take."""
        share = max(_IN_FLIGHT // self._partitions, _LEAST)
        messages = min(self._sizes[partition].messages, share)
        return BatchSize(messages, min(BATCH_BYTES, _IN_FLIGHT_BYTES // self._partitions))

    def committed(self, partition: int, seconds: float) -> None:
        """Note how long a commit took: batches grow while it is a small part of its limit.

        Up to a size that failed only, until so many have succeeded that it is tried again.
        """
        size = self._sizes[partition]
        size.commits += 1
        if size.commits >= _FORGOTTEN_AFTER:
            size.failed = None
        if seconds > self._timeout_s * _SLOW:
            self._halve(size)
        elif seconds < self._timeout_s * _FAST:
            grown = min(size.messages * 2, self._most)
            if size.failed is None or grown < size.failed:
                size.messages = grown

    def failed(self, partition: int) -> None:
        """Note that a batch was not committed: it is derived again, in smaller ones."""
        size = self._sizes[partition]
        size.failed, size.commits = size.messages, 0
        self._halve(size)

    def _halve(self, size: _Size) -> None:
        size.messages = max(size.messages // 2, min(_LEAST, self._most))
