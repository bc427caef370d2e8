"""Prometheus metrics of the workers: the whole catalogue, what each means and its labels.

The names are closed: `ports.Telemetry` takes no others, and a test holds both lists against each
other. All are exported with the prefix `contextgauge_`; `partition` is a number, and no label
ever holds a session, a file or text of a message.
"""

from contextlib import suppress
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import start_http_server

from streams.ports import CounterName, GaugeName, HistogramName

NAMESPACE = "contextgauge"

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""From one round trip to the broker to what an operator must hear of."""
_SIZES = (1, 5, 20, 100, 500, 1_000, 2_000, 5_000, 10_000)
"""From one message to more than a poll takes."""


class Metric(NamedTuple):
    """One metric: its help text and its labels."""

    help: str
    labels: tuple[str, ...] = ()


COUNTERS: dict[CounterName, Metric] = {
    # Their rate is the deriver's throughput; against the producers' own it shows a lag growing.
    "derive_messages": Metric("Messages read from agent.messages and committed", ("partition",)),
    # How much is derived from the messages, by kind.
    "derive_records": Metric("Records written to context.events", ("kind",)),
    # Above zero someone publishes what cannot be read; the reason names what to mend.
    "derive_dead_letters": Metric("Messages written to agent.messages.dead", ("reason",)),
    # Sessions that left the state after long idleness.
    "derive_evictions": Metric("Sessions whose state was dropped for idleness", ("partition",)),
    # Rebalances and restarts; `kept` are those that needed no reading of the changelog.
    "derive_restores": Metric("Partitions taken over", ("outcome",)),
    # The work of restoring; compaction of context.state keeps it small.
    "derive_restored_entries": Metric("Changelog entries read while restoring", ("partition",)),
    # The projector's throughput.
    "project_records": Metric("Records folded into views", ("partition",)),
    # Scripts run in Redis; far fewer than records while batches are full.
    "project_writes": Metric("Batches written to Redis", ("partition",)),
    # Another projector wrote, or Redis went back in time: seldom, and mended by re-reading.
    "project_mismatches": Metric("Batches whose position did not match Redis's", ("partition",)),
    # Committed, failed and fenced transactions of the deriver.
    "worker_transactions": Metric("Transactions, by how they ended", ("outcome",)),
    # Above zero the broker or Redis is, or was, away.
    "worker_retries": Metric("Back-offs because a service was away", ("worker",)),
    # Another worker took a partition over before this one had let it go.
    "worker_fenced": Metric("Partitions lost to another worker's producer", ("partition",)),
}

GAUGES: dict[GaugeName, Metric] = {
    # What the worker's memory is spent on.
    "derive_sessions": Metric("Sessions held in memory", ("partition",)),
    # Beside the topic's end it gives the lag; it moves also over messages that change nothing.
    "derive_position": Metric("Next offset of agent.messages", ("partition",)),
    "project_position": Metric("Next offset of context.events", ("partition",)),
    # 0 on a worker that stands by; the sum over all workers is the number of partitions.
    "worker_partitions": Metric("Partitions that this worker has", ("worker",)),
}

HISTOGRAMS: dict[HistogramName, tuple[Metric, tuple[float, ...]]] = {
    # The broker's share of the delay.
    "derive_commit_seconds": (Metric("Duration of a transaction"), _SECONDS),
    # Full batches mean that the worker is behind.
    "derive_batch_messages": (Metric("Messages in a batch"), _SIZES),
    # How long a partition stands still when it moves.
    "derive_restore_seconds": (Metric("From assignment to the first poll"), _SECONDS),
    # What a user feels: from publishing to the committed record.
    "derive_delay_seconds": (
        Metric("Age of a batch's last message, by its Kafka timestamp, when committed"),
        _SECONDS,
    ),
    # Redis's share of the delay.
    "project_write_seconds": (Metric("Duration of a write to Redis"), _SECONDS),
    "project_batch_records": (Metric("Records in a batch"), _SIZES),
    # From the derived record to the view that shows it.
    "project_delay_seconds": (
        Metric("Age of a batch's last record, by its Kafka timestamp, when written"),
        _SECONDS,
    ),
}


class PrometheusTelemetry:
    """Telemetry that keeps the figures for Prometheus to fetch."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._counters = {
            name: Counter(
                name, metric.help, metric.labels, namespace=NAMESPACE, registry=self.registry
            )
            for name, metric in COUNTERS.items()
        }
        self._gauges = {
            name: Gauge(
                name, metric.help, metric.labels, namespace=NAMESPACE, registry=self.registry
            )
            for name, metric in GAUGES.items()
        }
        self._histograms = {
            name: Histogram(
                name,
                metric.help,
                metric.labels,
                namespace=NAMESPACE,
                registry=self.registry,
                buckets=buckets,
            )
            for name, (metric, buckets) in HISTOGRAMS.items()
        }

    def count(self, name: CounterName, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        counter = self._counters[name]
        (counter.labels(**labels) if labels else counter).inc(amount)

    def gauge(self, name: GaugeName, value: float, **labels: str) -> None:
        """Set a gauge."""
        gauge = self._gauges[name]
        (gauge.labels(**labels) if labels else gauge).set(value)

    def forget(self, name: GaugeName, **labels: str) -> None:
        """Drop a gauge's value for these labels."""
        with suppress(KeyError):
            self._gauges[name].remove(*[labels[label] for label in GAUGES[name].labels])

    def observe(self, name: HistogramName, value: float, **labels: str) -> None:
        """Add one observation to a histogram."""
        histogram = self._histograms[name]
        (histogram.labels(**labels) if labels else histogram).observe(value)


class NoTelemetry:
    """Telemetry that keeps nothing, for one-shot commands and tests."""

    def count(self, name: CounterName, amount: float = 1, **labels: str) -> None:
        """Keep nothing."""

    def gauge(self, name: GaugeName, value: float, **labels: str) -> None:
        """Keep nothing."""

    def forget(self, name: GaugeName, **labels: str) -> None:
        """Keep nothing."""

    def observe(self, name: HistogramName, value: float, **labels: str) -> None:
        """Keep nothing."""


def start_metrics_server(telemetry: PrometheusTelemetry, port: int, host: str = "127.0.0.1") -> int:
    """Serve the figures at `/metrics` from a thread of its own; return the port (0: a free one).

    Raises OSError where the port is taken.
    """
    server, _thread = start_http_server(port, host, telemetry.registry)
    return int(server.server_port)
