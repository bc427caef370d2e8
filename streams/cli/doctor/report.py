"""How the doctor's findings look: by area, one line for what is fine, more for what is not."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from streams.cli.screen.figures import safe
from streams.flow.doctor import SEVERITIES, Finding, Severity

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
    "derive": "Derive workers",
    "project": "Project workers",
    "views": "Views",
    "redis": "Redis",
    "clock": "Clocks",
    "activity": "Activity",
}
_LABEL_WIDTH = 5
_NAME_WIDTH = 19
"""The longest name of a check without its area."""

_NARROW = 60
"""Below this the text is under the name."""


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
            console.print(Padding(Text(f"{name}={safe(value)}"), (0, 0, 0, 2)))
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
        name = names[0] if len(names) == 1 else f"{names[0]} +{len(names) - 1}"
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
