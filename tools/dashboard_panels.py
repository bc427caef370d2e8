"""The dashboard's panels: title, description, queries.

`python tools/make_dashboard.py` generates the dashboard from them.
"""

from typing import NamedTuple

_JOB = 'job=~"$job"'
_CPU = f"rate(process_cpu_seconds_total{{{_JOB}}}[$__rate_interval])"

_BAND_COLOURS = {
    "unknown": "#8e8e8e",
    "below_50": "#73bf69",
    "50_to_80": "#56a64b",
    "80_to_90": "#ff9830",
    "90_to_100": "#f2495c",
    "over_100": "#c4162a",
}


class Panel(NamedTuple):
    """One panel: `queries` are (legend, expression) pairs; values from `red` on are shown red."""

    title: str
    what: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    width: int = 8
    kind: str = "timeseries"
    stacked: bool = False
    red: float | None = None
    colours: dict[str, str] | None = None


def _series(metric: str, where: str = "") -> str:
    return f"contextgauge_{metric}{{{_JOB}{',' + where if where else ''}}}"


def _sum(metric: str, by: str = "", where: str = "") -> str:
    return f"sum{f' by ({by})' if by else ''} ({_series(metric, where)})"


def _rate(metric: str, by: str = "", where: str = "") -> str:
    return f"sum{f' by ({by})' if by else ''} (rate({_series(metric, where)}[$__rate_interval]))"


def _max(metric: str, by: str = "") -> str:
    return f"max{f' by ({by})' if by else ''} ({_series(metric)})"


def _quantiles(histogram: str, by: str = "") -> tuple[tuple[str, str], ...]:
    named = "{{" + by + "}} " if by else ""
    groups = f"le, {by}" if by else "le"
    return tuple(
        (
            f"{named}p{percent}",
            f"histogram_quantile({percent / 100}, {_rate(histogram + '_bucket', groups)})",
        )
        for percent in (50, 99)
    )


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Sessions",
        (
            Panel(
                "Active",
                "Sessions with a record in the last hour.",
                (("sessions", _sum("project_sessions")),),
                width=4,
                kind="stat",
            ),
            Panel(
                "At 90 % or more",
                "Active sessions whose leading chain is near its limit.",
                (("", _sum("project_sessions", where='band=~"90_to_100|over_100"')),),
                width=5,
                kind="stat",
                red=1,
            ),
            Panel(
                "Compacting now",
                "Open compaction attempts.",
                (("", _sum("project_open_attempts")),),
                width=5,
                kind="stat",
            ),
            Panel(
                "Longest time without heartbeat",
                "Heartbeats come every 30 s; after minutes without one, a compaction is stalled.",
                (("", _max("project_silent_attempt_seconds")),),
                unit="s",
                width=5,
                kind="stat",
                red=300,
            ),
            Panel(
                "Thrashing",
                "Sessions with a chain that was compacted three or more times within 15 minutes.",
                (("", _sum("project_thrashing_sessions")),),
                width=5,
                kind="stat",
                red=1,
            ),
            Panel(
                "Sessions by percent used",
                "By the leading chain, in percent of its window.",
                (("{{band}}", _sum("project_sessions", "band")),),
                width=12,
                stacked=True,
                colours=_BAND_COLOURS,
            ),
            Panel(
                "Compactions per hour",
                "Boundaries and failed attempts, by time of derivation.",
                (
                    (
                        "{{kind}}",
                        "3600 * "
                        + _rate(
                            "derive_records_total",
                            "kind",
                            where='kind=~"compact_boundary|compaction_failed"',
                        ),
                    ),
                ),
                width=12,
            ),
        ),
    ),
    (
        "Pipeline",
        (
            Panel(
                "End-to-end delay",
                "From message to view, for the oldest message of each batch.",
                _quantiles("project_age_seconds"),
                unit="s",
                red=60,
            ),
            Panel(
                "Derivation lag",
                "By partition; 0 when idle.",
                (("{{partition}}", _max("derive_lag_seconds", "partition")),),
                unit="s",
                red=60,
            ),
            Panel(
                "View lag",
                "By partition; 0 when idle.",
                (("{{partition}}", _max("project_lag_seconds", "partition")),),
                unit="s",
                red=60,
            ),
            Panel(
                "Messages derived",
                "Per second, by partition.",
                (("{{partition}}", _rate("derive_messages_total", "partition")),),
                unit="ops",
                stacked=True,
            ),
            Panel(
                "Records by kind",
                "Per second.",
                (("{{kind}}", _rate("derive_records_total", "kind")),),
                unit="ops",
                stacked=True,
            ),
            Panel(
                "Dead letters",
                "Per second, by reason; fix the publisher.",
                (("{{reason}}", _rate("derive_dead_letters_total", "reason")),),
                unit="ops",
                red=0.001,
            ),
            Panel(
                "Assigned partitions",
                "By worker; fewer than there are means that some are not processed.",
                (("{{worker}}", _sum("worker_partitions", "worker")),),
                width=6,
            ),
            Panel(
                "Waiting for a service",
                "Back-offs per second while Kafka or Redis is unreachable.",
                (("{{service}}", _rate("worker_retries_total", "service")),),
                unit="ops",
                width=6,
                red=0.001,
            ),
            Panel(
                "Transactions",
                "Per second, by outcome.",
                (("{{outcome}}", _rate("worker_transactions_total", "outcome")),),
                unit="ops",
                width=6,
            ),
            Panel(
                "Commits and writes",
                "The share of Kafka and Redis in the delay, 99th percentile.",
                (
                    ("Kafka", _quantiles("derive_commit_seconds")[1][1]),
                    ("Redis", _quantiles("project_write_seconds")[1][1]),
                ),
                unit="s",
                width=6,
            ),
        ),
    ),
    (
        "Alerts by webhook",
        (
            Panel(
                "Alerts raised per hour",
                "By kind of rule.",
                (("{{kind}}", "3600 * " + _rate("control_alerts_total", "kind")),),
                stacked=True,
            ),
            Panel(
                "Webhook requests",
                "Per second, by target and outcome.",
                (
                    (
                        "{{target}} {{outcome}}",
                        _rate("control_deliveries_total", "target, outcome"),
                    ),
                ),
                unit="ops",
            ),
            Panel(
                "Queued alerts",
                "By target; above 0 for long means that the target is unreachable.",
                (("{{target}}", _max("control_queued_alerts", "target")),),
                red=1,
            ),
        ),
    ),
    (
        "Readers",
        (
            Panel(
                "API requests",
                "Per second, by status.",
                (("{{status}}", _rate("serve_requests_total", "status")),),
                unit="ops",
                stacked=True,
            ),
            Panel(
                "API latency",
                "99th percentile by route.",
                (_quantiles("serve_request_seconds", "route")[1],),
                unit="s",
            ),
            Panel(
                "Live feed readers",
                "Open connections.",
                (("readers", _sum("serve_stream_readers")),),
            ),
        ),
    ),
    (
        "Messages over HTTP",
        (
            Panel(
                "Requests",
                "Per second, by status. 429: too much waits; 503: Kafka is away.",
                (("{{status}}", _rate("ingest_requests_total", "status")),),
                unit="ops",
                stacked=True,
            ),
            Panel(
                "Latency",
                "99th percentile by route: until Kafka has the messages.",
                (_quantiles("ingest_request_seconds", "route")[1],),
                unit="s",
            ),
            Panel(
                "Waiting for Kafka",
                "Bytes; near the limit, publishers get 429.",
                (("bytes", _sum("ingest_waiting_bytes")),),
                unit="bytes",
            ),
        ),
    ),
    (
        "Events for OpenTelemetry",
        (
            Panel(
                "Events",
                "Per second, by what became of them. Failed ones are sent again.",
                (("{{outcome}}", _rate("otel_events_total", "outcome")),),
                unit="ops",
                stacked=True,
            ),
            Panel(
                "Collector lag",
                "How late events are at the collector, by partition.",
                (("{{partition}}", _max("otel_lag_seconds", "partition")),),
                unit="s",
                red=300,
            ),
            Panel(
                "Records that wait for the collector",
                "Offsets that it has not accepted yet.",
                (("records", _sum("otel_lag_records")),),
            ),
        ),
    ),
    (
        "Processes",
        (
            Panel(
                "CPU",
                "Cores in use.",
                (
                    (
                        "{{job}} {{instance}}",
                        f"rate(process_cpu_seconds_total{{{_JOB}}}[$__rate_interval])",
                    ),
                ),
                width=12,
            ),
            Panel(
                "Memory",
                "Resident memory.",
                (("{{job}} {{instance}}", f"process_resident_memory_bytes{{{_JOB}}}"),),
                unit="bytes",
                width=12,
            ),
        ),
    ),
)
