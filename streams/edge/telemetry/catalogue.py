"""The catalogue of metrics: every name, what it means, its labels, and what one looks at it for.

The names are closed: `ports.Telemetry` takes no others, a test holds both lists against each other
and against the code that reports them, and `docs/METRICS.md` is made from here. All are exported
with the prefix `contextgauge_`, counters with the ending `_total`. `partition` is a number, and no
label ever holds a session, a file or text of a message.
"""

from typing import NamedTuple

from streams.ports import CounterName, GaugeName, HistogramName

NAMESPACE = "contextgauge"

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""From one round trip to the broker to what an operator must hear of."""
_RESTORES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0)
"""From a partition without state to one with hundreds of thousands of sessions."""
_AGES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0, 600.0, 3_600.0, 86_400.0)
"""From live, which takes tenths of a second, to a day's lag that is being caught up with."""
_SIZES = (1, 5, 20, 100, 500, 1_000, 2_000, 5_000, 10_000)
"""From one message to more than a poll takes."""

_ANSWERS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""From an answer that nothing has to be read for, to Redis's time limit."""

_PARTITION = ("partition",)


class Metric(NamedTuple):
    """One metric: its help text, its labels, and why one would look at it."""

    help: str
    labels: tuple[str, ...]
    why: str


COUNTERS: dict[CounterName, Metric] = {
    "derive_messages": Metric(
        "Messages read from agent.messages and committed",
        _PARTITION,
        "Its rate is the deriver's throughput.",
    ),
    "derive_records": Metric(
        "Records written to context.events",
        ("kind",),
        "What is derived, by kind of record. A kind that stops coming tells of a changed runtime.",
    ),
    "derive_dead_letters": Metric(
        "Messages written to agent.messages.dead",
        ("reason",),
        "It grows while someone publishes what cannot be read; the reason names what to mend.",
    ),
    "derive_evictions": Metric(
        "Sessions whose state was dropped for idleness",
        _PARTITION,
        "What keeps the state bounded.",
    ),
    "derive_restores": Metric(
        "Partitions taken over",
        ("outcome",),
        "Rebalances and restarts; `kept` are those that needed no reading of the changelog.",
    ),
    "derive_restored_entries": Metric(
        "Changelog entries read while restoring",
        _PARTITION,
        "The work of restoring; compaction of context.state keeps it small.",
    ),
    "project_records": Metric(
        "Records folded into views", _PARTITION, "Its rate is the projector's throughput."
    ),
    "project_writes": Metric(
        "Scripts run in Redis",
        _PARTITION,
        "Far fewer than records while batches are full.",
    ),
    "project_documents": Metric(
        "Documents of views that were written",
        _PARTITION,
        "What Redis is given to write; its rate goes with Redis's load and append-only file.",
    ),
    "project_mismatches": Metric(
        "Batches whose position did not match that of Redis",
        _PARTITION,
        "Another projector wrote, or Redis went back in time: seldom, and mended by re-reading.",
    ),
    "project_losses": Metric(
        "Times that documents were found to be gone from Redis",
        _PARTITION,
        "Each begins a rebuild: Redis evicts, was emptied in part, or someone deletes keys.",
    ),
    "serve_requests": Metric(
        "Requests answered by the API, by route and status",
        ("route", "status"),
        "Who polls how much; 401 and 429 tell of readers without a token or measure, 5xx of us.",
    ),
    "serve_stream_events": Metric(
        "Events read for the live feed, once for all its readers",
        (),
        "Its rate is that of the records; each goes to every reader of the feed.",
    ),
    "serve_stream_resets": Metric(
        "Readers of the live feed that were told to read anew",
        (),
        "They were away for longer than the feed keeps, or came with a place of other views.",
    ),
    "serve_stream_cut_off": Metric(
        "Readers of the live feed that were sent away",
        ("reason",),
        "`slow`: behind the feed; `stuck`: took nothing; `full`: as many as are let in listen; "
        "`token`: it was taken back.",
    ),
    "control_records": Metric(
        "Records that the control worker looked at",
        _PARTITION,
        "Its rate is the control worker's throughput.",
    ),
    "control_alerts": Metric(
        "Alerts that a rule raised and that were to be sent",
        ("kind",),
        "How often anybody is told of anything.",
    ),
    "control_skipped": Metric(
        "Alerts that were raised and not sent",
        ("reason",),
        "`old`, `no_time`: a backfill, or a runtime that tells no time; `other_agent`: not of the "
        "rule's agents; `sent_before`: read again after a restart.",
    ),
    "control_deliveries": Metric(
        "Calls of webhooks by how they ended",
        ("target", "outcome"),
        "`delivered`; `failed` (tried again); `given_up`: an alert that this target never got.",
    ),
    "worker_transactions": Metric(
        "Transactions of the deriver, by how they ended",
        ("outcome",),
        "`committed`, `failed` (tried again from the log) or `fenced`.",
    ),
    "worker_retries": Metric(
        "Back-offs because a service was away",
        ("service",),
        "It grows while `kafka` or `redis` is away.",
    ),
    "worker_fenced": Metric(
        "Partitions lost to another worker's producer",
        _PARTITION,
        "This worker was silent for longer than the session time-out, or its twin runs elsewhere.",
    ),
    "worker_rebalances": Metric(
        "Assignments that the group gave this worker",
        ("worker",),
        "A few at each start and stop of a worker. Many tell of one that comes and goes.",
    ),
}

GAUGES: dict[GaugeName, Metric] = {
    "derive_sessions": Metric(
        "Sessions held in memory", _PARTITION, "What the worker's memory is spent on."
    ),
    "derive_position": Metric(
        "Next offset of agent.messages",
        _PARTITION,
        "It moves also over messages that change nothing.",
    ),
    "derive_restore_ratio": Metric(
        "How much of the changelog has been read, 0 to 1, while a partition is restored",
        _PARTITION,
        "It is told only meanwhile; one that does not grow is a broker that does not answer.",
    ),
    "derive_lag_messages": Metric(
        "Offsets of agent.messages that are not derived yet",
        _PARTITION,
        "0 when idle. It grows while producers are faster, or while the partition stands still.",
    ),
    "derive_lag_seconds": Metric(
        "Age of the message derived last, or time since all were, while there are more",
        _PARTITION,
        "How far behind the records are; 0 when there is no lag.",
    ),
    "project_position": Metric(
        "Next offset of context.events",
        _PARTITION,
        "It moves over transaction markers too.",
    ),
    "project_lag_records": Metric(
        "Offsets of context.events that are not in the views yet",
        _PARTITION,
        "0 when idle. Those behind an open transaction count too.",
    ),
    "project_lag_seconds": Metric(
        "Age of the record projected last, or time since all were, while there are more",
        _PARTITION,
        "How far behind the views are; 0 when there is no lag.",
    ),
    "project_unsettled_records": Metric(
        "Offsets of context.events that no reader sees: an open transaction and what follows it",
        _PARTITION,
        "Above 0 for longer than the transaction time-out, a transaction hangs.",
    ),
    "project_sessions": Metric(
        "Sessions with a record of the last hour, by how full their leading chain is",
        ("partition", "band"),
        "`unknown`, `below_50`, `50_to_80`, `80_to_90`, `90_to_100`, `over_100` percent used: how "
        "many are near their limit.",
    ),
    "project_open_attempts": Metric(
        "Compactions that are under way in these sessions",
        _PARTITION,
        "How many wait for one.",
    ),
    "project_silent_attempt_seconds": Metric(
        "Time since the last sign of that attempt which was silent for longest; 0 without any",
        _PARTITION,
        "A runtime sends a heartbeat every 30 s: beyond some minutes a compaction has stalled.",
    ),
    "project_thrashing_sessions": Metric(
        "Sessions of which a chain was compacted three times or more in the last 15 minutes",
        _PARTITION,
        "Their compactions free less than their work takes.",
    ),
    "project_generation_active": Metric(
        "The generation that readers use", (), "0 while there is none: nothing can be read."
    ),
    "project_generation_next": Metric(
        "The generation that is being built", (), "0 unless a rebuild runs."
    ),
    "serve_stream_readers": Metric(
        "Readers of the live feed now", (), "Each takes a connection, and a share of each event."
    ),
    "control_queued_alerts": Metric(
        "Alerts that are not sent yet",
        ("target",),
        "Above 0 for long, the target is away.",
    ),
    "control_lag_records": Metric(
        "Offsets of context.events that the control worker has not looked at yet",
        _PARTITION,
        "0 when idle.",
    ),
    "control_lag_seconds": Metric(
        "Age of the record looked at last, or time since all were, while there are more",
        _PARTITION,
        "How late alerts are; 0 when there is no lag.",
    ),
    "worker_partitions": Metric(
        "Partitions that this worker has",
        ("worker",),
        "0 on a worker that stands by; the sum over all workers is the number of partitions.",
    ),
    "worker_build": Metric(
        "Always 1; the label tells the version", ("version",), "Which versions run."
    ),
}

HISTOGRAMS: dict[HistogramName, tuple[Metric, tuple[float, ...]]] = {
    "derive_commit_seconds": (
        Metric("Duration of a transaction", (), "The broker's share of the delay."),
        _SECONDS,
    ),
    "derive_batch_messages": (
        Metric("Messages in a batch", (), "Full batches mean that the worker is behind."),
        _SIZES,
    ),
    "derive_restore_seconds": (
        Metric(
            "From assignment to the first poll", (), "How long a partition stands still when moved."
        ),
        _RESTORES,
    ),
    "derive_delay_seconds": (
        Metric(
            "Age of a batch's last message, by its Kafka timestamp, when committed",
            (),
            "From publishing to the committed record.",
        ),
        _AGES,
    ),
    "project_write_seconds": (
        Metric("Duration of a batch's writes to Redis", (), "Redis's share of the delay."),
        _SECONDS,
    ),
    "project_batch_records": (
        Metric("Records in a batch", (), "Full batches mean that the worker is behind."),
        _SIZES,
    ),
    "project_delay_seconds": (
        Metric(
            "Age of a batch's last record, by its Kafka timestamp, when written",
            (),
            "From the derived record to the view that shows it.",
        ),
        _AGES,
    ),
    "project_age_seconds": (
        Metric(
            "Age of the message behind a batch's first record, by Kafka's clock, when written",
            (),
            "End to end, what a user feels: from message to Redis, of the oldest of each batch. A "
            "generation that is built beside the active one does not count.",
        ),
        _AGES,
    ),
    "serve_request_seconds": (
        Metric(
            "From a request to the end of its answer, by route; not of the live feed",
            ("route",),
            "What readers wait for; Redis's share is most of it.",
        ),
        _ANSWERS,
    ),
    "control_delivery_seconds": (
        Metric(
            "From the first call of a target for an alert until it took it",
            (),
            "The receivers' share of an alert's delay.",
        ),
        _AGES,
    ),
}
