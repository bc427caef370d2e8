"""How workers run: time limits, batches, metrics, logs."""

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings

from contextgauge.settings.forms import KAFKA_NAME

MOST_PROCESSES = 256
"""Of one command: beyond all machines' cores that anybody was seen to give it, below a typing
error that would fill the memory."""


class WorkerSettings(BaseSettings):
    """How workers run: time limits, batches, metrics, logs."""

    session_idle_days: int = Field(
        default=90,
        ge=1,
        le=36_500,
        description="A session that was idle for so many days of its partition's time leaves the "
        "deriver's state and the views.",
    )
    session_timeout_ms: int = Field(
        default=10_000,
        ge=1_000,
        le=1_800_000,
        description="A worker silent for so long loses its partitions to others, 1 000 to "
        "1 800 000; brokers allow 6 000 and more by default.",
    )
    transaction_timeout_ms: int = Field(
        default=10_000,
        ge=1_000,
        le=900_000,
        description="The broker aborts a deriver's transaction that is open for so long, 1 000 to "
        "900 000. Until then readers wait behind a dead worker's transaction.",
    )
    batch_messages: int = Field(
        default=5_000,
        ge=1,
        le=100_000,
        description="Most messages that are derived in one transaction, and most records that are "
        "folded into the views at once, 1 to 100 000. Only a backlog reaches it: more take less "
        "work each, and wait longer for each other.",
    )
    derive_commit_pause_ms: int = Field(
        default=5,
        ge=0,
        le=5_000,
        description="Milliseconds after a deriver's transaction before its partition's next one "
        "begins, 0 to 5 000. Longer makes fewer and larger transactions, so less work for "
        "deriver and broker, and records that much later.",
    )
    derive_processes: int = Field(
        default=1,
        ge=1,
        le=MOST_PROCESSES,
        description="Workers that `contextgauge derive` runs as processes of its own, 1 to 256, "
        "where --processes does not say it: to use more than one CPU. More than partitions are "
        "idle.",
    )
    instance_id: str = Field(
        default="",
        pattern=KAFKA_NAME,
        max_length=200,
        description="A name of this worker's own, which makes it a static member of its group: "
        "restarted within the session timeout it gets its partitions back without a rebalance. "
        "No two workers may share one; several processes of a command add their numbers. Empty: "
        "none.",
    )
    metrics_host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address that a worker's metrics and health are served on; 0.0.0.0 for all.",
    )
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65_535,
        description="Port that a worker's /metrics, /healthz and /readyz are served on; 0: any "
        "free one, which the log tells. Two workers on one machine need two.",
    )
    stop_timeout_s: int = Field(
        default=20,
        ge=1,
        le=3_600,
        description="A worker that is told to stop has so many seconds to finish what it has in "
        "hand and to leave its group, 1 to 3 600; then it is ended by force. Keep it below the "
        "patience of what stops it, 30 s in Kubernetes.",
    )
    stuck_after_s: int = Field(
        default=60,
        ge=5,
        le=3_600,
        description="A worker whose event loop stands still for so many seconds, or whose poll, "
        "commit or write takes so much longer than its own time limit, is no longer live, 5 to "
        "3 600.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe log lines shown: debug, info, warning or error."
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto",
        description="console: for people; json: one object a line; auto: console on a terminal, "
        "else json.",
    )
