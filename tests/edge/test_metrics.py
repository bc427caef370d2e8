"""The catalogue of metrics is closed and served."""

import re
import socket
import urllib.request
from pathlib import Path
from typing import get_args

import pytest

from streams.edge import metrics
from streams.edge.metrics import COUNTERS, GAUGES, HISTOGRAMS, PrometheusTelemetry
from streams.ports import CounterName, GaugeName, HistogramName


def test_the_catalogue_is_that_of_the_port() -> None:
    assert list(COUNTERS) == list(get_args(CounterName))
    assert list(GAUGES) == list(get_args(GaugeName))
    assert list(HISTOGRAMS) == list(get_args(HistogramName))


def test_every_metric_is_reported_by_a_flow() -> None:
    flows = Path(metrics.__file__).parents[1] / "flow"
    used = {
        name
        for path in flows.rglob("*.py")
        for name in re.findall(r'"((?:derive|project|worker)_[a-z_]+)"', path.read_text())
    }
    assert set(COUNTERS) | set(GAUGES) | set(HISTOGRAMS) <= used


def test_figures_are_served_over_http() -> None:
    telemetry = PrometheusTelemetry()
    telemetry.count("derive_messages", 3, partition="1")
    telemetry.gauge("derive_position", 7, partition="1")
    telemetry.gauge("derive_position", 8, partition="2")
    telemetry.forget("derive_position", partition="2")
    telemetry.forget("derive_position", partition="2")
    telemetry.observe("derive_commit_seconds", 0.004)
    telemetry.gauge("worker_partitions", 4, worker="derive")
    port = metrics.start_metrics_server(telemetry, 0)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    assert 'contextgauge_derive_messages_total{partition="1"} 3.0' in lines
    assert 'contextgauge_derive_position{partition="1"} 7.0' in lines
    assert not [line for line in lines if "derive_position" in line and 'partition="2"' in line]
    assert 'contextgauge_derive_commit_seconds_bucket{le="0.005"} 1.0' in lines
    assert 'contextgauge_worker_partitions{worker="derive"} 4.0' in lines


def test_a_taken_port_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            metrics.start_metrics_server(PrometheusTelemetry(), taken.getsockname()[1])


def test_an_unknown_label_is_an_error() -> None:
    with pytest.raises(ValueError, match="label"):
        PrometheusTelemetry().count("derive_messages", 1, session="s")
