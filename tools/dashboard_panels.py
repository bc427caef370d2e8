"""The panels of the dashboard: what each shows, and of which metrics.

`python tools/make_dashboard.py` makes the dashboard of them.
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
    """One panel: `queries` are legends and expressions, `red` is where a figure is a concern."""

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
                "At work",
                "Sessions with a record of the last hour.",
                (("sessions", _sum("project_sessions")),),
                width=4,
                kind="stat",
            ),
            Panel(
                "At 90 % and more",
                "Of these, those whose leading chain is near its limit.",
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
                "Longest silence of an attempt",
                "A heartbeat comes every 30 s; beyond minutes the compaction has stalled.",
                (("", _max("project_silent_attempt_seconds")),),
                unit="s",
                width=5,
                kind="stat",
                red=300,
            ),
            Panel(
                "Thrashing",
                "Sessions of which a chain was compacted three times or more in 15 minutes.",
                (("", _sum("project_thrashing_sessions")),),
                width=5,
                kind="stat",
                red=1,
            ),
            Panel(
                "Sessions by how full they are",
                "By the leading chain, in percent of its window.",
                (("{{band}}", _sum("project_sessions", "band")),),
                width=12,
                stacked=True,
                colours=_BAND_COLOURS,
            ),
            Panel(
                "Compactions per hour",
                "Boundaries, and attempts that failed, as they are derived.",
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
                "From message to view",
                "End to end, of the oldest message of each batch.",
                _quantiles("project_age_seconds"),
                unit="s",
                red=60,
            ),
            Panel(
                "Lag of the derivation",
                "How late each partition is; 0 when idle.",
                (("{{partition}}", _max("derive_lag_seconds", "partition")),),
                unit="s",
                red=60,
            ),
            Panel(
                "Lag of the views",
                "How old each partition's views are; 0 when idle.",
                (("{{partition}}", _max("project_lag_seconds", "partition")),),
                unit="s",
                red=60,
            ),
            Panel(
                "Messages derived",
                "A second, by partition.",
                (("{{partition}}", _rate("derive_messages_total", "partition")),),
                unit="ops",
                stacked=True,
            ),
            Panel(
                "Records by kind",
                "A second.",
                (("{{kind}}", _rate("derive_records_total", "kind")),),
                unit="ops",
                stacked=True,
            ),
            Panel(
                "Dead letters",
                "A second, by reason: each has to be mended at a publisher.",
                (("{{reason}}", _rate("derive_dead_letters_total", "reason")),),
                unit="ops",
                red=0.001,
            ),
            Panel(
                "Partitions that somebody has",
                "By worker; fewer than there are means that some stand still.",
                (("{{worker}}", _sum("worker_partitions", "worker")),),
                width=6,
            ),
            Panel(
                "Waiting for a service",
                "Back-offs a second, while Kafka or Redis is away.",
                (("{{service}}", _rate("worker_retries_total", "service")),),
                unit="ops",
                width=6,
                red=0.001,
            ),
            Panel(
                "Transactions",
                "A second, by how they ended.",
                (("{{outcome}}", _rate("worker_transactions_total", "outcome")),),
                unit="ops",
                width=6,
            ),
            Panel(
                "Commits and writes",
                "Kafka's and Redis's share of the delay, 99th percentile.",
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
                "Calls of webhooks",
                "A second, by target and outcome.",
                (
                    (
                        "{{target}} {{outcome}}",
                        _rate("control_deliveries_total", "target, outcome"),
                    ),
                ),
                unit="ops",
            ),
            Panel(
                "Alerts that wait",
                "By target: above 0 for long, it is away.",
                (("{{target}}", _max("control_queued_alerts", "target")),),
                red=1,
            ),
        ),
    ),
    (
        "Readers",
        (
            Panel(
                "Requests of the API",
                "A second, by status.",
                (("{{status}}", _rate("serve_requests_total", "status")),),
                unit="ops",
                stacked=True,
            ),
            Panel(
                "Answers of the API",
                "99th percentile by route.",
                (_quantiles("serve_request_seconds", "route")[1],),
                unit="s",
            ),
            Panel(
                "Readers of the live feed",
                "Open connections.",
                (("readers", _sum("serve_stream_readers")),),
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
                "Resident.",
                (("{{job}} {{instance}}", f"process_resident_memory_bytes{{{_JOB}}}"),),
                unit="bytes",
                width=12,
            ),
        ),
    ),
)
