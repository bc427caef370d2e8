"""Write `docs/METRICS.md`, the table of all metrics, from the code.

    python tools/list_metrics.py

A test fails when the document is stale.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from streams.edge.telemetry.catalogue import COUNTERS, GAUGES, HISTOGRAMS, NAMESPACE, Metric

DOCUMENT = Path(__file__).parents[1] / "docs" / "METRICS.md"

_HEAD = """# Metrics

Each worker serves its metrics for Prometheus at `/metrics`, on `CONTEXTGAUGE_METRICS_PORT`; its log
tells the address when it starts. These are all of them; no other name and no other label is ever
reported, and no label holds a session or text of a message. What to raise an alarm on, and what
to do then: [RUNBOOK.md](RUNBOOK.md). Made from the code by `python tools/list_metrics.py`.

Ages and lags are by Kafka's timestamps and this machine's clock: where the clocks differ, they do
([clock skew](RUNBOOK.md#clocks-differ)). The usual metrics of a process come beside them:
`process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_open_fds` and
`process_start_time_seconds`. Where a command runs
[several processes](RUNBOOK.md#several-processes), all have one label more: `process`, its number.
"""


def document() -> str:
    """Return the document's text."""
    histograms = {name: metric for name, (metric, _) in HISTOGRAMS.items()}
    parts = [
        _HEAD,
        *_section("Counters", "Since the worker started; look at their rate.", COUNTERS, "_total"),
        *_section("Gauges", "As it is now. What a partition tells ends with it.", GAUGES, ""),
        *_section(
            "Histograms",
            "Each has `_bucket`, `_sum` and `_count`; `histogram_quantile` gives percentiles.",
            histograms,
            "",
        ),
    ]
    return "".join(parts)


def _section(title: str, what: str, metrics: Mapping[str, Metric], ending: str) -> Iterator[str]:
    yield f"\n## {title}\n\n{what}\n\n| name | labels | what | what for |\n|---|---|---|---|\n"
    for name, metric in metrics.items():
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "none"
        yield f"| `{NAMESPACE}_{name}{ending}` | {labels} | {metric.help} | {metric.why} |\n"


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
