"""The runbook has what the code has: exit codes, stop errors, log events, metrics."""

import inspect
import re
from pathlib import Path
from typing import get_args

import streams
from contextgauge import errors
from streams.cli.exits import Exit, code_of, runbook_title
from streams.edge.telemetry.metric_catalog import COUNTERS, GAUGES, HISTOGRAMS, NAMESPACE
from streams.flow.common.membership import Worker
from tests.docs.test_docs import DOCS, _rows, _section

RUNBOOK = (DOCS / "RUNBOOK.md").read_text(encoding="utf-8")


def test_the_exit_codes_match_the_table() -> None:
    section = _section(RUNBOOK, "Probes, stopping, exit codes")
    documented = {row[0]: row[1] for row in _rows(section) if row[0].isdigit()}
    assert documented == {str(int(code)): code.meaning for code in Exit}


def test_documented_metrics_exist() -> None:
    known = {f"{NAMESPACE}_{name}_total" for name in COUNTERS}
    known |= {f"{NAMESPACE}_{name}" for name in (*GAUGES, *HISTOGRAMS)}
    known |= {f"{NAMESPACE}_{name}_{part}" for name in HISTOGRAMS for part in ("bucket", "sum")}
    named = set(re.findall(rf"\b{NAMESPACE}_\w+", RUNBOOK))
    assert named - known == set()


def test_every_stop_error_has_an_entry() -> None:
    rows = {row[0].strip("`"): row[1] for row in _rows(_section(RUNBOOK, "Problems"))}
    stops = {
        name: str(int(code_of(kind("why"))))
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.StopError)
    }
    assert {name: rows.get(name) for name in stops} == stops


def test_sections_named_by_errors_exist() -> None:
    named = {
        name: runbook_title(kind("why"))
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.ContextgaugeError)
    }
    assert {name for name, title in named.items() if title} == {
        "VersionError",
        "FormerViewsError",
        "PositionError",
        "DeadLetterFlood",
    }
    alarms = _section(RUNBOOK, "Problems")
    rows = {line.split("`")[1]: line for line in alarms.splitlines() if line.startswith("| `")}
    for name, title in named.items():
        if title:
            assert f"\n### {title}\n" in alarms
            assert f"[{title}]" in rows[name]


def test_every_warning_and_error_of_a_worker_is_in_the_table() -> None:
    """Complaints are the log's warnings and errors, with the literal that names them."""
    complaint = re.compile(r"logger\.(?:warning|error)\(\s*\"([^\"]+)\"")
    folder = Path(streams.__file__ or "").parent
    text = {
        event
        for part in ("flow", "cli")
        for path in (folder / part).rglob("*.py")
        for event in complaint.findall(path.read_text(encoding="utf-8"))
    }
    assert len(text) >= 8
    glance = _section(RUNBOOK, "Symptoms")
    assert sorted(event for event in text if f"`{event}`" not in glance) == []


def test_partitions_without_a_worker_are_seen_without_any_figure() -> None:
    """Where nothing reports a figure its sum is nothing, not 0, and nothing is below no number."""
    rules = (DOCS.parent / "deploy" / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
    below = [line for line in re.findall(r"expr: (.*)", rules) if " < " in line]
    # Of the workers that every deployment has; those that are optional must have run.
    assert len(below) == len(set(get_args(Worker)) - {"conversations"})
    assert all(" or vector(0)) <" in expression for expression in below)
