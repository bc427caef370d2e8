"""How the doctor's findings look: by area, one line for what is well, more for what is not."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from streams.cli.screen.output import safe
from streams.flow.doctor import SEVERITIES, Finding, Severity

_WORDS: dict[Severity, tuple[str, str]] = {
    "ok": ("ok", "green"),
    "skipped": ("skip", "dim"),
    "note": ("note", "cyan"),
    "warning": ("WARN", "yellow"),
    "error": ("ERROR", "bold red"),
}
_AREAS = {
    "kafka": "Kafka",
    "topics": "Topics",
    "publishers": "Publishers",
    "derive": "Derive workers",
    "project": "Project workers",
    "views": "Views",
    "redis": "Redis",
    "clock": "Clocks",
    "activity": "Activity",
}
_STATUS_WIDTH = 5
_NAME_WIDTH = 19
"""The longest name of a check without its area."""

_NARROW = 60
"""Below it the text stands under the name."""


def show(
    console: Console,
    shown: Sequence[Finding],
    all_found: Sequence[Finding],
    settings: dict[str, str],
) -> None:
    """Print findings, and a closing line with the counts of all."""
    if settings:
        console.print(Text("Settings that are not the defaults", style="bold"))
        for name, value in settings.items():
            console.print(Padding(Text(f"{name}={safe(value)}"), (0, 0, 0, 2)))
        console.print()
    for area, found in groupby(shown, key=_area):
        console.print(Text.assemble((_AREAS[area], "bold"), (f"  {area}.*", "dim")))
        console.print(_table(list(found), narrow=console.width < _NARROW))
        console.print()
    console.print(_closing(all_found))


def _area(finding: Finding) -> str:
    return finding.check.partition(".")[0]


def _table(found: Sequence[Finding], *, narrow: bool) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=_STATUS_WIDTH, justify="right", no_wrap=True)
    if not narrow:
        table.add_column(width=_NAME_WIDTH, no_wrap=True)
    table.add_column(overflow="fold")
    for names, finding in _merged(found):
        word, style = _WORDS[finding.severity]
        text = _text(finding)
        if narrow:
            table.add_row(Text(word, style=style), Text(f"{names}\n").append_text(text))
        else:
            table.add_row(Text(word, style=style), Text(names), text)
    return table


def _merged(found: Sequence[Finding]) -> list[tuple[str, Finding]]:
    """Put what was found of several things into one row, and what was skipped for one reason."""
    rows: dict[tuple[str, ...], list[Finding]] = {}
    for item in found:
        skipped = item.severity == "skipped"
        same = (item.found,) if skipped else (item.check, item.severity, item.found, item.mend)
        rows.setdefault(same, []).append(item)
    told: list[tuple[str, Finding]] = []
    for items in rows.values():
        first, names = items[0], list(dict.fromkeys(_name(item) for item in items))
        name = names[0] if len(names) == 1 else f"{names[0]} +{len(names) - 1}"
        subjects = ", ".join(item.subject for item in items if item.subject)
        told.append(
            (
                name if len(name) <= _NAME_WIDTH else f"{len(names)} checks",
                replace(first, subject=subjects),
            )
        )
    return told


def _name(finding: Finding) -> str:
    return finding.check.partition(".")[2]


def _text(finding: Finding) -> Text:
    text = Text()
    if finding.subject:
        text.append(f"{safe(finding.subject)}: ", style="bold")
    text.append(safe(finding.found))
    if finding.severity in {"warning", "error"}:
        text.append(f"\n{finding.why}", style="dim")
    if finding.mend:
        text.append("\n> ", style="bold")
        text.append(safe(finding.mend))
    return text


def _closing(findings: Sequence[Finding]) -> Text:
    counts = Counter(finding.severity for finding in findings)
    names: dict[Severity, tuple[str, str]] = {
        "error": ("error", "errors"),
        "warning": ("warning", "warnings"),
        "note": ("note", "notes"),
        "skipped": ("not looked at", "not looked at"),
        "ok": ("ok", "ok"),
    }
    text = Text()
    for severity in SEVERITIES:
        count = counts[severity]
        if not count and severity != "error":
            continue
        style = _WORDS[severity][1] if count else ""
        text.append(", " if text else "")
        text.append(f"{count or 'no'} {names[severity][count != 1]}", style=style)
    return text
