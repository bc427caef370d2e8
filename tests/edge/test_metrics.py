"""The catalog of metrics is closed, all of it is reported, and the document is made from it."""

import ast
import re
from collections.abc import Collection
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from streams.edge.telemetry import metrics
from streams.edge.telemetry.metric_catalog import COUNTERS, GAUGES, HISTOGRAMS
from streams.edge.telemetry.metrics import PrometheusTelemetry
from tools.list_metrics import DOCUMENT, document

STREAMS = Path(metrics.__file__).parents[2]


def sources() -> list[Path]:
    paths = [
        path
        for part in ("flow", "serve", "ingest", "cli", "wiring")
        for path in (STREAMS / part).rglob("*.py")
    ]
    return [*paths, STREAMS / "edge" / "telemetry" / "metrics.py"]


def test_every_metric_is_reported_by_the_code() -> None:
    used = {
        name
        for path in sources()
        for name in re.findall(r'"([a-z]+_[a-z_]+)"', path.read_text(encoding="utf-8"))
    }
    assert [name for name in (*COUNTERS, *GAUGES, *HISTOGRAMS) if name not in used] == []


@pytest.mark.extended
def test_the_code_reports_no_other_metrics() -> None:
    known: dict[str, Collection[str]] = {
        "count": COUNTERS,
        "gauge": GAUGES,
        "forget": GAUGES,
        "observe": HISTOGRAMS,
    }
    reported = [
        (node.func.attr, node.args[0].value)
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in known
        and ast.unparse(node.func.value).endswith("telemetry")
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ]
    assert len(reported) > 40
    assert [(how, name) for how, name in reported if name not in known[how]] == []


def test_every_metric_has_help() -> None:
    buckets = [metric.buckets for metric in HISTOGRAMS.values()]
    assert all(edges and list(edges) == sorted(set(edges)) for edges in buckets)
    described = [*COUNTERS.values(), *GAUGES.values(), *HISTOGRAMS.values()]
    assert not [metric for metric in described if not metric.help or metric.help.endswith(".")]
    assert not [metric for metric in described if metric.why and not metric.why.endswith(".")]
    labels = {label for metric in described for label in metric.labels}
    assert labels == {
        *("band", "kind", "outcome", "partition", "reason", "route", "service", "status", "target"),
        "topic",
        "version",
        "worker",
    }


def test_the_document_of_metrics_is_current() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == document(), "run `python -m tools.list_metrics`"


def test_the_figures_are_as_prometheus_reads_them() -> None:
    telemetry = PrometheusTelemetry()
    telemetry.count("derive_messages", 3, partition="1")
    telemetry.gauge("derive_position", 7, partition="1")
    telemetry.gauge("derive_position", 8, partition="2")
    telemetry.forget("derive_position", partition="2")
    telemetry.forget("derive_position", partition="2")
    telemetry.observe("derive_commit_seconds", 0.004)
    telemetry.gauge("worker_partitions", 4, worker="derive")
    lines = generate_latest(telemetry.registry).decode().splitlines()
    assert 'contextgauge_derive_messages_total{partition="1"} 3.0' in lines
    assert 'contextgauge_derive_position{partition="1"} 7.0' in lines
    assert not [line for line in lines if "derive_position" in line and 'partition="2"' in line]
    assert 'contextgauge_derive_commit_seconds_bucket{le="0.005"} 1.0' in lines
    assert 'contextgauge_worker_partitions{worker="derive"} 4.0' in lines
    assert any(line.startswith("contextgauge_worker_build{version=") for line in lines)
    assert [line for line in lines if "_created" in line] == []
    assert any(line.startswith("process_cpu_seconds_total ") for line in lines)


def test_a_worker_exports_no_metrics_of_other_workers() -> None:
    lines = generate_latest(PrometheusTelemetry("derive", "worker").registry).decode()
    assert "contextgauge_derive_commit_seconds" in lines
    assert "contextgauge_worker_build" in lines
    assert "contextgauge_project" not in lines


def test_an_unknown_label_is_an_error() -> None:
    with pytest.raises(ValueError, match="label"):
        PrometheusTelemetry().count("derive_messages", 1, session="s")
