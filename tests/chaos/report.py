"""The table of a run: faults with rounds, violations, times to recover, and what was logged."""

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.faults import FAULTS
from tests.chaos.world import Outcome

_MOST_WARNINGS = 4


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a table in Markdown."""
    by_fault = defaultdict[str, list[Outcome]](list)
    for outcome in outcomes:
        by_fault[outcome.fault].append(outcome)
    lines = [
        "| fault | rounds | violations | recovery p50 | max | the logs warn of | expected |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [_line(name, by_fault[name]) for name in FAULTS if name in by_fault]
    wrong = sum(bool(outcome.violations) for outcome in outcomes)
    messages = sum(outcome.messages for outcome in outcomes)
    kinds = f"{len(by_fault)} kinds of fault, {len(outcomes)} rounds, {messages:,} messages"
    return "\n".join([*lines, "", f"{kinds}; rounds with violations: {wrong}."])


def _line(name: str, outcomes: Sequence[Outcome]) -> str:
    recoveries = [outcome.recovery_s for outcome in outcomes if not outcome.violations]
    p50 = f"{statistics.median(recoveries):.1f} s" if recoveries else ""
    most = f"{max(recoveries):.1f} s" if recoveries else ""
    warnings = Counter[str]()
    for outcome in outcomes:
        warnings += outcome.warnings
    logged = "; ".join(f"{text}" for text, _ in warnings.most_common(_MOST_WARNINGS))
    wrong = sum(bool(outcome.violations) for outcome in outcomes)
    wanted = FAULTS[name].outcome or "nothing is lost"
    cells = (name, len(outcomes), wrong, p50, most, logged.replace("|", "/"), wanted)
    return f"| {' | '.join(map(str, cells))} |"


def write(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the table, and everything as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".md").write_text(table(outcomes) + "\n")
    document = [vars(outcome) for outcome in outcomes]
    path.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
