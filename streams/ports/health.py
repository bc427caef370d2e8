"""What a worker tells of its health, for those who look at it from outside."""

from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeAlias

from streams.ports.telemetry import Service

WorkerPhase: TypeAlias = Literal["starting", "joining", "member", "waiting", "stopping"]
"""Where a worker is: it is a member of its group once it was given its partitions, or none."""

PartitionPhase: TypeAlias = Literal["restoring", "running", "building", "waiting"]
"""Where one of its partitions is: only a `running` one is followed as messages come."""


class Step(Protocol):
    """A step of the work that is under way."""

    def again(self) -> None:
        """Note that it got on: its time begins anew."""


class Health(Protocol):
    """Notes of a running worker: what it has, what it does, and what it waits for.

    No note holds the text of a message or the id of a session.
    """

    def worker(self, phase: WorkerPhase, reason: str = "") -> None:
        """Note where the worker is, and why it waits."""

    def partition(
        self,
        partition: int,
        phase: PartitionPhase,
        reason: str = "",
        *,
        done: int | None = None,
        total: int | None = None,
    ) -> None:
        """Note where a partition is: `done` of `total` while it is restored or built."""

    def released(self, partition: int | None = None) -> None:
        """Forget a partition, or all of them: they are another worker's."""

    def away(self, asker: object, service: Service, reason: str) -> None:
        """Note that someone waits for a service, until `back` of the same asker."""

    def back(self, asker: object) -> None:
        """Note that this one no longer waits."""

    def step(
        self, name: str, partition: int, own_limit_s: float = 0.0
    ) -> AbstractContextManager[Step]:
        """Note a step for as long as the context lasts.

        One that takes longer than `own_limit_s`, by which it should end by itself, and the
        worker's patience beyond that, is stuck. The time in which a service is away does not
        count.
        """
