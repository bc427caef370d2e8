"""The runbook has what the code has: exit codes, stop errors, log events, metrics."""

import re

from streams.cli.exits import Exit
from streams.edge.metric_catalogue import COUNTERS, GAUGES, HISTOGRAMS, NAMESPACE
from tests.docs.test_docs import DOCS, _rows, _section

RUNBOOK = (DOCS / "RUNBOOK.md").read_text(encoding="utf-8")


def test_the_exit_codes_are_the_tables() -> None:
    section = _section(RUNBOOK, "Probes, stopping, exit codes")
    told = {row[0]: row[1] for row in _rows(section) if row[0].isdigit()}
    assert told == {str(int(code)): code.meaning for code in Exit}


def test_the_metrics_that_are_named_are_there() -> None:
    known = {f"{NAMESPACE}_{name}_total" for name in COUNTERS}
    known |= {f"{NAMESPACE}_{name}" for name in (*GAUGES, *HISTOGRAMS)}
    known |= {f"{NAMESPACE}_{name}_{part}" for name in HISTOGRAMS for part in ("bucket", "sum")}
    named = set(re.findall(rf"\b{NAMESPACE}_\w+", RUNBOOK))
    assert named - known == set()
