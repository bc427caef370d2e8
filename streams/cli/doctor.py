"""`contextgauge doctor`: examines Kafka and Redis, read only, and says how to fix what is wrong.

Findings are shown by area: one line for what is fine, more for what is not.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import groupby
from typing import Annotated, Any

import typer
from pydantic import SecretStr
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from contextgauge.clock import SystemClock
from contextgauge.settings.forms import PREFIX
from streams import wiring
from streams.cli.exits import Exit
from streams.cli.screen.figures import safe
from streams.cli.screen.output import out, write_json
from streams.flow import doctor as flow
from streams.flow.doctor import SEVERITIES, Finding, Severity
from streams.settings import Settings
from streams.wiring.doctor import doctor_expected, doctor_services

DOCUMENT_FORMAT = 1
"""Of the JSON document: raised where a reader of the former one would be misled."""

_HIDDEN = "(set, not shown)"

_STYLES: Mapping[Severity, tuple[str, str, str]] = {
    "ok": ("ok", "green", "ok"),
    "skipped": ("skip", "dim", "skipped"),
    "note": ("note", "cyan", "note"),
    "warning": ("WARN", "yellow", "warning"),
    "error": ("ERROR", "bold red", "error"),
}
"""The label, its style, and the noun of the count."""

_AREAS = {
    "kafka": "Kafka",
    "topics": "Topics",
    "publishers": "Publishers",
    "ingest": "Messages over HTTP",
    "transcripts": "Transcripts on this machine",
    "derive": "Derive workers",
    "project": "Project workers",
    "views": "Views",
    "conversations": "Conversations",
    "control": "Compaction service",
    "readers": "Other readers of records",
    "redis": "Redis",
    "clock": "Clocks",
    "activity": "Activity",
}
_LABEL_WIDTH = 5
_NAME_WIDTH = 19
"""The longest name of a check without its area."""

_NARROW = 60
"""Below this the text is under the name."""


def doctor(
    *,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 1 for warnings as well.")
    ] = False,
    problems: Annotated[
        bool, typer.Option("--problems", help="Show only errors, warnings and notes.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document for programs.")
    ] = False,
) -> None:
    """Examine Kafka, topics, publishers, workers and Redis.

    Shows how to fix problems. Writes nothing anywhere. Exits with code 1 if there is an error.
    """
    settings = wiring.settings()
    clock = SystemClock()
    expected = doctor_expected(settings)
    facts = asyncio.run(flow.gather(doctor_services(settings, clock), expected))
    findings = flow.judge(facts, expected)
    shown = [item for item in findings if not problems or item.severity not in {"ok", "skipped"}]
    counts = Counter(item.severity for item in findings)
    changed = _changed_settings(settings)
    if as_json:
        write_json(_document(shown, counts, changed, facts.now_ms))
    else:
        show(out, shown, counts, changed)
    failed = counts["error"] or (strict and counts["warning"])
    raise typer.Exit(Exit.STOPPED if failed else Exit.DONE)


def _changed_settings(settings: Settings) -> dict[str, str]:
    """Return the settings that are not the defaults, by variable; secrets are not shown."""
    changed: dict[str, str] = {}
    for name in sorted(settings.model_fields_set):
        value = getattr(settings, name)
        if name == "redis_url" and value is not None:
            value = wiring.redis_address(settings)
        elif isinstance(value, SecretStr):
            value = _HIDDEN
        if value is not None:
            changed[PREFIX + name.upper()] = str(value)
    return changed


def _document(
    shown: Sequence[Finding], counts: Counter[Severity], changed: dict[str, str], now_ms: int
) -> dict[str, Any]:
    return {
        "format": DOCUMENT_FORMAT,
        "contextgauge": version("contextgauge"),
        "at_ms": now_ms,
        "counts": {name: counts[name] for name in SEVERITIES},
        "settings": changed,
        "checks": [
            {
                "id": item.check,
                "severity": item.severity,
                "subject": item.subject or None,
                "found": item.message,
                "why": item.why,
                "remedy": item.remedy or None,
                "figures": dict(item.figures),
            }
            for item in shown
        ],
    }


def show(
    console: Console,
    shown: Sequence[Finding],
    counts: Counter[Severity],
    settings: Mapping[str, str],
) -> None:
    """Print findings, and a last line with the counts of all."""
    if settings:
        console.print(Text("Settings that are not the defaults", style="bold"))
        for name, value in settings.items():
            console.print(Padding(Text(f"{name}={safe(value)}"), (0, 0, 0, 2), expand=False))
        console.print()
    for area, findings in groupby(shown, key=lambda item: item.check.partition(".")[0]):
        console.print(Text.assemble((_AREAS[area], "bold"), (f"  {area}.*", "dim")))
        console.print(_table(list(findings), narrow=console.width < _NARROW))
        console.print()
    console.print(_totals(counts))


def _table(findings: Sequence[Finding], *, narrow: bool) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=_LABEL_WIDTH, justify="right", no_wrap=True)
    if not narrow:
        table.add_column(width=_NAME_WIDTH, no_wrap=True)
    table.add_column(overflow="fold")
    for group in _grouped(findings):
        label, style, _ = _STYLES[group[0].severity]
        names = list(dict.fromkeys(item.check.partition(".")[2] for item in group))
        name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        if len(name) > _NAME_WIDTH:
            name = f"{len(names)} checks"
        text = _text(group)
        columns = [Text(f"{name}\n").append_text(text)] if narrow else [Text(name), text]
        table.add_row(Text(label, style=style), *columns)
    return table


def _grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Group the same finding about several things, and all that is skipped for one reason."""
    rows: dict[tuple[str, ...], list[Finding]] = {}
    for item in findings:
        same: tuple[str, ...] = (item.check, item.severity, item.message, item.remedy)
        rows.setdefault((item.message,) if item.severity == "skipped" else same, []).append(item)
    return list(rows.values())


def _text(group: Sequence[Finding]) -> Text:
    text, finding = Text(), group[0]
    subjects = ", ".join(dict.fromkeys(item.subject for item in group if item.subject))
    if subjects:
        text.append(f"{safe(subjects)}: ", style="bold")
    text.append(safe(finding.message))
    if finding.severity in {"warning", "error"}:
        text.append(f"\n{finding.why}", style="dim")
    if finding.remedy:
        text.append("\n> ", style="bold")
        text.append(safe(finding.remedy))
    return text


def _totals(counts: Counter[Severity]) -> Text:
    text = Text()
    for severity in SEVERITIES:
        count = counts[severity]
        if count or severity == "error":
            _, style, noun = _STYLES[severity]
            plural = "s" if count != 1 and severity in {"error", "warning", "note"} else ""
            text.append(", " if text else "")
            text.append(f"{count or 'no'} {noun}{plural}", style=style if count else "")
    return text
