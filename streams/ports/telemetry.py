"""What a running worker reports: metrics under names of a closed catalogue, and its health."""

from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeAlias

CounterName: TypeAlias = Literal[
    "derive_messages",
    "derive_records",
    "derive_dead_letters",
    "derive_evictions",
    "derive_restores",
    "derive_restored_entries",
    "project_records",
    "project_writes",
    "project_documents",
    "project_mismatches",
    "project_losses",
    "serve_requests",
    "serve_stream_events",
    "serve_stream_resets",
    "serve_stream_cut_off",
    "control_records",
    "control_alerts",
    "control_skipped",
    "control_deliveries",
    "worker_transactions",
    "worker_retries",
    "worker_fenced",
    "worker_rebalances",
]
GaugeName: TypeAlias = Literal[
    "derive_sessions",
    "derive_position",
    "derive_restore_ratio",
    "derive_lag_messages",
    "derive_lag_seconds",
    "project_position",
    "project_lag_records",
    "project_lag_seconds",
    "project_unsettled_records",
    "project_sessions",
    "project_open_attempts",
    "project_silent_attempt_seconds",
    "project_thrashing_sessions",
    "project_generation_active",
    "project_generation_next",
    "serve_stream_readers",
    "control_queued_alerts",
    "control_lag_records",
    "control_lag_seconds",
    "worker_partitions",
    "worker_build",
]
HistogramName: TypeAlias = Literal[
    "derive_commit_seconds",
    "derive_batch_messages",
    "derive_restore_seconds",
    "derive_delay_seconds",
    "project_write_seconds",
    "project_batch_records",
    "project_delay_seconds",
    "project_age_seconds",
    "serve_request_seconds",
    "control_delivery_seconds",
]

Service: TypeAlias = Literal["kafka", "redis"]
"""What a worker may have to wait for."""


class Telemetry(Protocol):
    """Figures of a running worker, under names of a closed catalogue.

    `edge/telemetry/catalogue.py` defines each name's meaning and labels.
    """

    def count(self, name: CounterName, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""

    def gauge(self, name: GaugeName, value: float, **labels: str) -> None:
        """Set a gauge."""

    def forget(self, name: GaugeName, **labels: str) -> None:
        """Drop a gauge that is no longer this worker's, as of a revoked partition."""

    def observe(self, name: HistogramName, value: float, **labels: str) -> None:
        """Add one observation to a histogram."""


WorkerPhase: TypeAlias = Literal["starting", "joining", "member", "waiting", "stopping"]
"""A worker's phase: it is a member of its group once its partitions are assigned, even if none."""

PartitionPhase: TypeAlias = Literal["restoring", "running", "building", "waiting"]
"""A partition's phase: only a `running` one is followed as messages come."""


class StepTimer(Protocol):
    """The time limit of a step that is under way."""

    def restart(self) -> None:
        """Note that it made progress: its time limit starts over."""


class Health(Protocol):
    """The health of a running worker: its partitions, its steps, and what it waits for.

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
    ) -> AbstractContextManager[StepTimer]:
        """Note a step for as long as the context lasts.

        One that takes longer than `own_limit_s`, by which it should end by itself, and the
        worker's patience beyond that, is stuck. The time in which a service is away does not
        count.
        """
