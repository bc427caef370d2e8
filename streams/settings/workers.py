"""Settings of workers: time limits, batches, metrics, alerts, logs."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from contextgauge.settings.forms import KAFKA_NAME, SettingsPart

MOST_PROCESSES = 256
"""More than any machine has cores, few enough that a mistyped number does not exhaust memory."""


class WorkerSettings(SettingsPart):
    """Settings of workers: time limits, batches, metrics, alerts, logs."""

    session_idle_days: int = Field(
        default=90,
        ge=1,
        le=36_500,
        description="Days after which an idle session leaves the derive worker's state and the "
        "views, by its partition's Kafka time.",
    )
    session_timeout_ms: int = Field(
        default=10_000,
        ge=1_000,
        le=1_800_000,
        description="A worker that is silent for this long loses its partitions, 1 000 to "
        "1 800 000; by default, brokers allow 6 000 or more.",
    )
    transaction_timeout_ms: int = Field(
        default=10_000,
        ge=1_000,
        le=900_000,
        description="The broker aborts a transaction that is open for this long, 1 000 to 900 000. "
        "Until then, readers wait behind a dead derive worker's transaction.",
    )
    batch_messages: int = Field(
        default=5_000,
        ge=1,
        le=100_000,
        description="Maximum number of messages derived in one transaction, and of records folded "
        "into the views at once, 1 to 100 000. Only a backlog reaches it. Derive workers begin "
        "with 500, take more while commits are fast, and 20 000 over all partitions at most.",
    )
    derive_commit_pause_ms: int = Field(
        default=5,
        ge=0,
        le=5_000,
        description="Pause in milliseconds between two transactions of a partition, 0 to 5 000. A "
        "longer pause costs less CPU time, and delays records by as much.",
    )
    derive_processes: int = Field(
        default=1,
        ge=1,
        le=MOST_PROCESSES,
        description="Worker processes of `contextgauge derive`, 1 to 256, unless --processes is "
        "given. Those beyond the number of partitions are idle.",
    )
    instance_id: str = Field(
        default="",
        pattern=KAFKA_NAME,
        max_length=200,
        description="Unique name of this worker, which makes it a static member of its group: if "
        "it restarts within the session timeout, it gets its partitions back without a rebalance. "
        "Processes of one command append their numbers. Empty: none.",
    )
    metrics_host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address of a worker's metrics and health endpoints; 0.0.0.0 for all "
        "interfaces.",
    )
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65_535,
        description="Port of a worker's /metrics, /healthz and /readyz; 0: any free port, shown in "
        "the log. Each worker on a machine needs its own.",
    )
    stop_timeout_s: int = Field(
        default=20,
        ge=1,
        le=3_600,
        description="Seconds that a worker has to finish its batches and leave its group when it "
        "is stopped, 1 to 3 600; then it is terminated. Keep it below the supervisor's own limit, "
        "30 s in Kubernetes.",
    )
    stuck_after_s: int = Field(
        default=60,
        ge=5,
        le=3_600,
        description="A worker is no longer live if its event loop is blocked for this many "
        "seconds, or a poll, commit or write exceeds its own time limit by as much, or a wrong "
        "Redis (a replica, or one that loads) answers for as long, 5 to 3 600.",
    )
    alerts_file: Path | None = Field(
        default=None,
        description="TOML file with the alert rules and targets of `contextgauge control`, unless "
        "`--rules` is given.",
    )
    compaction_file: Path | None = Field(
        default=None,
        description="TOML file of the compaction service: which sessions are compacted, when, and "
        "by what; if unset, `contextgauge control` compacts none. Its section `[conversations]` "
        "says whose text `contextgauge conversations` keeps.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Minimum severity of log lines: debug, info, warning or error."
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto",
        description="console: for people; json: one object per line; auto: console on a terminal, "
        "else json.",
    )
