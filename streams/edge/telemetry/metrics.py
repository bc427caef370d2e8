"""Figures kept for Prometheus to fetch; `metric_catalog` has the names."""

from contextlib import suppress
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from contextgauge import __version__
from streams.edge.telemetry.metric_catalog import COUNTERS, GAUGES, HISTOGRAMS, NAMESPACE

# Else each series has a second one with its creation time; process_start_time_seconds is enough.
disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no annotations


class PrometheusTelemetry:
    """Telemetry that keeps the figures for Prometheus to fetch.

    `families` are the beginnings of the names that this process reports, all where none is given: a
    gauge that it never sets would else be 0, which may mean something.
    """

    def __init__(self, *families: str) -> None:
        def wanted(name: str) -> bool:
            return not families or name.partition("_")[0] in families

        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"namespace": NAMESPACE, "registry": self.registry}
        self._counters = {
            name: Counter(name, metric.help, metric.labels, **own)
            for name, metric in COUNTERS.items()
            if wanted(name)
        }
        self._gauges = {
            name: Gauge(name, metric.help, metric.labels, **own)
            for name, metric in GAUGES.items()
            if wanted(name)
        }
        self._histograms = {
            name: Histogram(name, metric.help, metric.labels, buckets=metric.buckets, **own)
            for name, metric in HISTOGRAMS.items()
            if wanted(name)
        }
        # CPU, memory and file descriptors, under the names that all processes' have.
        ProcessCollector(registry=self.registry)
        self.gauge("worker_build", 1, version=__version__)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        counter = self._counters[name]
        (counter.labels(**labels) if labels else counter).inc(amount)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        gauge = self._gauges[name]
        (gauge.labels(**labels) if labels else gauge).set(value)

    def forget(self, name: str, **labels: str) -> None:
        with suppress(KeyError):
            self._gauges[name].remove(*[labels[label] for label in GAUGES[name].labels])

    def observe(self, name: str, value: float, **labels: str) -> None:
        histogram = self._histograms[name]
        (histogram.labels(**labels) if labels else histogram).observe(value)
