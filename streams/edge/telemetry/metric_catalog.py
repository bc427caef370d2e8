"""The catalog of metrics: name, help text, labels and use of each.

The list is closed: no other names are reported, a test compares it with the code that reports
them, and `docs/METRICS.md` is generated from it. All names are exported with the
prefix `contextgauge_`, counters with the suffix `_total`. `partition` is a number; no label ever
contains a session, a file or message text.
"""

from typing import NamedTuple

NAMESPACE = "contextgauge"

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""From one round trip to the broker up to delays that need an operator."""
_RESTORES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0)
"""From an empty partition to one with hundreds of thousands of sessions."""
_AGES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0, 600.0, 3_600.0, 86_400.0)
"""From live (tenths of a second) to catching up with a day's backlog."""
_SIZES = (1, 5, 20, 100, 500, 1_000, 2_000, 5_000, 10_000)
"""From one message to more than a poll returns."""

_ANSWERS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""From a cached response to the time limit of Redis."""

_PARTITION = ("partition",)


class Metric(NamedTuple):
    """One metric: its help text, its labels, what else it shows, and a histogram's buckets."""

    help: str
    labels: tuple[str, ...]
    why: str
    buckets: tuple[float, ...] = ()


COUNTERS: dict[str, Metric] = {
    "derive_messages": Metric(
        "Messages read from agent.messages and committed",
        _PARTITION,
        "",
    ),
    "derive_records": Metric(
        "Records written to context.events",
        ("kind",),
        "A kind that stops appearing indicates a changed runtime.",
    ),
    "derive_dead_letters": Metric(
        "Messages written to agent.messages.dead",
        ("reason",),
        "The reason shows what to fix in a publisher.",
    ),
    "derive_evictions": Metric(
        "Idle sessions removed from the state",
        _PARTITION,
        "",
    ),
    "derive_restores": Metric(
        "Partitions taken over",
        ("outcome",),
        "Rebalances and restarts; `kept`: the changelog did not have to be read.",
    ),
    "derive_restored_entries": Metric(
        "Changelog entries read while restoring",
        _PARTITION,
        "Compaction of context.state keeps it low.",
    ),
    "conversations_messages": Metric(
        "Messages added to conversations that are kept",
        _PARTITION,
        "",
    ),
    "conversations_writes": Metric(
        "Scripts run in Redis", _PARTITION, "One for each batch, so far fewer than messages."
    ),
    "conversations_rereads": Metric(
        "Batches whose position did not match the position in Redis",
        _PARTITION,
        "Another worker wrote, or Redis lost writes. Should be rare.",
    ),
    "conversations_losses": Metric(
        "Detections of lines missing from Redis",
        _PARTITION,
        "Each reads the partition's log again: Redis evicts keys, or they are deleted.",
    ),
    "conversations_deletions": Metric(
        "Requests to delete a session's text that were followed", _PARTITION, ""
    ),
    "conversations_expired": Metric(
        "Sessions whose text was dropped for idleness, or as they no longer fit the patterns",
        _PARTITION,
        "",
    ),
    "project_records": Metric("Records folded into views", _PARTITION, ""),
    "project_writes": Metric(
        "Scripts run in Redis", _PARTITION, "Far fewer than records if batches are full."
    ),
    "project_documents": Metric(
        "Documents written to Redis",
        _PARTITION,
        "",
    ),
    "project_mismatches": Metric(
        "Batches whose position did not match the position in Redis",
        _PARTITION,
        "Another project worker wrote, or Redis lost writes. Should be rare.",
    ),
    "project_losses": Metric(
        "Detections of documents missing from Redis",
        _PARTITION,
        "Each starts a rebuild: Redis evicts keys, or they are deleted.",
    ),
    "serve_requests": Metric(
        "Requests answered by the API",
        ("route", "status"),
        "401: no token; 429: rate limit exceeded; 5xx: the server's errors.",
    ),
    "serve_stream_events": Metric(
        "Events read for the live feed, once for all its readers",
        (),
        "Each goes to every reader.",
    ),
    "serve_stream_resets": Metric(
        "Live feed readers that received a `reset`",
        (),
        "They were away for longer than the feed reaches back, or sent a position of other views.",
    ),
    "serve_stream_cut_off": Metric(
        "Live feed readers that were disconnected",
        ("reason",),
        "`slow`: fell behind; `stuck`: accepted no data; `full`: reader limit reached; `token`: "
        "token revoked.",
    ),
    "ingest_requests": Metric(
        "Requests answered by `contextgauge ingest`, by route and status",
        ("route", "status"),
        "Load by route. 401: no token; 422: wrong messages; 429: too much waits; 503: Kafka is "
        "away.",
    ),
    "ingest_messages": Metric(
        "Messages of these requests, by what became of them",
        ("outcome",),
        "`accepted`: Kafka has them; `ignored`: they mean nothing; `refused`: the publisher is "
        "wrong.",
    ),
    "control_records": Metric(
        "Records evaluated by the control worker",
        _PARTITION,
        "",
    ),
    "control_alerts": Metric(
        "Alerts raised by rules and queued for sending",
        ("kind",),
        "",
    ),
    "control_skipped": Metric(
        "Alerts raised but not sent",
        ("reason",),
        "`old`, `no_time`: a backfill, or a runtime without timestamps; `other_agent`: excluded by "
        "the rule's `agents`; `sent_before`: re-read after a restart; `compacted_since`: "
        "the worker started late, and the window is not full any more.",
    ),
    "control_commands": Metric(
        "Finished commands",
        ("outcome",),
        "`failed` leaves the conversation as it was; `contextgauge why` shows the reason.",
    ),
    "control_decisions": Metric(
        "Decisions on compacting a session",
        ("reason",),
        "Why sessions were compacted automatically, or not.",
    ),
    "control_deliveries": Metric(
        "Webhook requests",
        ("target", "outcome"),
        "`delivered`; `failed` (retried); `given_up`: the target never received the alert.",
    ),
    "otel_events": Metric(
        "Events sent to the collector, by what became of them",
        ("outcome",),
        "`accepted`; `failed` (sent again); `rejected` by the collector for good.",
    ),
    "worker_transactions": Metric(
        "Transactions of the derive worker",
        ("outcome",),
        "`committed`, `failed` (repeated from the log) or `fenced`.",
    ),
    "worker_retries": Metric(
        "Back-offs because a service was unreachable",
        ("service",),
        "Grows while `kafka`, `redis` or `the collector` is unreachable.",
    ),
    "worker_unreadable_batches": Metric(
        "Batches of records that were passed over, as they cannot be read",
        ("topic",),
        "Messages become dead letters; records of other topics are missing.",
    ),
    "worker_fenced": Metric(
        "Partitions lost to another worker's producer",
        _PARTITION,
        "The worker exceeded the session timeout, or a duplicate deployment runs.",
    ),
    "worker_rebalances": Metric(
        "Partition assignments received from the group",
        ("worker",),
        "Many: a worker restarts repeatedly.",
    ),
}

GAUGES: dict[str, Metric] = {
    "derive_sessions": Metric(
        "Open sessions",
        _PARTITION,
        "Those without a message for two hours are in a temporary file, with a kilobyte each in "
        "memory.",
    ),
    "derive_position": Metric(
        "Next offset of agent.messages",
        _PARTITION,
        "It also advances over ignored messages.",
    ),
    "derive_restore_ratio": Metric(
        "Share of the changelog that has been read, 0 to 1, while a partition is restored",
        _PARTITION,
        "If it does not grow, the broker does not respond.",
    ),
    "derive_lag_messages": Metric(
        "Offsets of agent.messages that are not derived yet",
        _PARTITION,
        "Grows while producers are faster or the partition is stalled.",
    ),
    "derive_lag_seconds": Metric(
        "Age of the last derived message, or time since the last catch-up, while messages wait",
        _PARTITION,
        "",
    ),
    "conversations_sessions": Metric(
        "Sessions of which something is kept", _PARTITION, "Drives the memory of worker and Redis."
    ),
    "conversations_lag_messages": Metric(
        "Offsets of agent.messages that are not in the conversations yet",
        _PARTITION,
        "0 when idle.",
    ),
    "conversations_lag_seconds": Metric(
        "Age of the last kept message, or time since the last catch-up, while messages wait",
        _PARTITION,
        "",
    ),
    "project_position": Metric(
        "Next offset of context.events",
        _PARTITION,
        "It also advances over transaction markers.",
    ),
    "project_lag_records": Metric(
        "Offsets of context.events that are not in the views yet",
        _PARTITION,
        "Includes records behind an open transaction.",
    ),
    "project_lag_seconds": Metric(
        "Age of the last projected record, or time since the last catch-up, while records wait",
        _PARTITION,
        "",
    ),
    "project_unsettled_records": Metric(
        "Offsets of context.events that are invisible: an open transaction and what follows it",
        _PARTITION,
        "Above 0 for longer than the transaction timeout means that a transaction hangs.",
    ),
    "project_sessions": Metric(
        "Sessions with a record in the last hour, by how full their leading chain is",
        ("partition", "band"),
        "Bands, in percent used: `unknown`, `below_50`, "
        "`50_to_80`, `80_to_90`, `90_to_100`, `over_100`.",
    ),
    "project_open_attempts": Metric(
        "Compactions running in these sessions",
        _PARTITION,
        "",
    ),
    "project_silent_attempt_seconds": Metric(
        "Longest time since an open attempt's last heartbeat; 0 if none is open",
        _PARTITION,
        "After minutes (runtimes send one every 30 s), a compaction is stalled.",
    ),
    "project_thrashing_sessions": Metric(
        "Sessions with a chain that was compacted three or more times in the last 15 minutes",
        _PARTITION,
        "Their compactions free too little space.",
    ),
    "project_generation_active": Metric(
        "The generation that readers use", (), "0: there is none, and nothing can be read."
    ),
    "project_generation_next": Metric("The generation being built", (), "0 unless a rebuild runs."),
    "serve_stream_readers": Metric(
        "Connected readers of the live feed", (), "Each needs a connection."
    ),
    "ingest_waiting_bytes": Metric(
        "What was taken over HTTP and waits for Kafka",
        (),
        "Near CONTEXTGAUGE_INGEST_WAITING_BYTES, publishers get 429.",
    ),
    "control_queued_alerts": Metric(
        "Alerts waiting to be sent",
        ("target",),
        "Above 0 for long means that the target is unreachable.",
    ),
    "control_lag_records": Metric(
        "Offsets of context.events that the control worker has not evaluated yet",
        _PARTITION,
        "0 when idle.",
    ),
    "control_lag_seconds": Metric(
        "Age of the last evaluated record, or time since the last catch-up, while records wait",
        _PARTITION,
        "",
    ),
    "otel_lag_records": Metric(
        "Offsets of context.events that the collector has not accepted yet",
        _PARTITION,
        "Grows while the collector is away.",
    ),
    "otel_lag_seconds": Metric(
        "Age of the last exported record, or time since the last catch-up, while records wait",
        _PARTITION,
        "How late events are at the collector.",
    ),
    "worker_refused": Metric(
        "1 where the group's leader has another file and gives this member no partitions",
        ("worker",),
        "Two control workers with different files: give all of them the same one.",
    ),
    "worker_partitions": Metric(
        "Partitions assigned to this worker",
        ("worker",),
        "0 on a standby worker; the sum over all workers is the number of partitions.",
    ),
    "worker_build": Metric(
        "Always 1; the label is the version", ("version",), "Which versions are running."
    ),
}

HISTOGRAMS: dict[str, Metric] = {
    "derive_commit_seconds": Metric(
        "Duration of a transaction", (), "The broker's share of the delay.", _SECONDS
    ),
    "derive_batch_messages": Metric(
        "Messages in a batch", (), "Full batches mean that the worker is behind.", _SIZES
    ),
    "derive_restore_seconds": Metric(
        "From assignment to the first poll",
        (),
        "",
        _RESTORES,
    ),
    "derive_delay_seconds": Metric(
        "Age of a batch's last message at commit, by its Kafka timestamp",
        (),
        "From publishing to the committed record.",
        _AGES,
    ),
    "project_write_seconds": Metric(
        "Duration of a batch's writes to Redis", (), "Redis's share of the delay.", _SECONDS
    ),
    "project_batch_records": Metric(
        "Records in a batch", (), "Full batches mean that the worker is behind.", _SIZES
    ),
    "project_delay_seconds": Metric(
        "Age of a batch's last record when written to Redis, by its Kafka timestamp",
        (),
        "From the derived record to the view that shows it.",
        _AGES,
    ),
    "project_age_seconds": Metric(
        "Age of the message of a batch's first record when written, by its Kafka timestamp",
        (),
        "End-to-end delay from message to Redis, for the oldest message of each batch. "
        "Background builds are not included.",
        _AGES,
    ),
    "serve_request_seconds": Metric(
        "Duration of a request, by route; without the live feed",
        ("route",),
        "Mostly Redis.",
        _ANSWERS,
    ),
    "ingest_request_seconds": Metric(
        "Duration of a request to `contextgauge ingest`, by route",
        ("route",),
        "What a publisher waits until Kafka has its messages.",
        _ANSWERS,
    ),
    "control_delivery_seconds": Metric(
        "From the first request for an alert until the target accepted it",
        (),
        "The receivers' share of an alert's delay.",
        _AGES,
    ),
}
