"""The doctor's engine: evaluates checks over the facts.

A check lists the items that it examines (the one Redis server, each topic, each partition), each
as named values. A rule applies to an item where the value that it names is true, not zero and not
empty. The rules of a check are tried in order, and the first that applies to an item gives its
finding; rules under `also` give findings in addition. Where no rule applies to any item, the check
is `ok`. Where facts are unknown (`UnknownFactError`), it is skipped, and no other check is.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from contextgauge.documents import document
from streams.flow.doctor.facts import Expected, Facts, UnknownFactError
from streams.flow.doctor.words import fill, listed

Severity: TypeAlias = Literal["error", "warning", "note", "skipped", "ok"]
"""`error`: something does not work, or data is lost; `warning`: it works, but will cause trouble;
`note`: good to know; `skipped`: it could not be examined."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note", "skipped", "ok")
"""The worst first."""

Values: TypeAlias = Mapping[str, Any]
"""Of one item. `subject`, if any, is the topic, address or partition that its findings are about;
`unknown`, if any, is why the item could not be examined."""

Items: TypeAlias = Callable[[Facts, Expected], Iterable[Values]]

Figures: TypeAlias = Mapping[str, float | str | None]
"""Values for programs: counts, milliseconds, bytes, names."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a check."""

    check: str
    why: str
    severity: Severity
    message: str
    subject: str = ""
    remedy: str = ""
    figures: Figures = field(default_factory=lambda: MappingProxyType({}))


class CheckRule(NamedTuple):
    """What to report and recommend where a value is true; `words.fill` completes the texts."""

    value: str
    severity: Severity
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `figures` are names of values; of a mapping, each entry is a figure."""

    name: str
    why: str
    items: Items
    ok: str
    figures: tuple[str, ...]
    also: tuple[CheckRule, ...]
    rules: tuple[CheckRule, ...]

    def examine(self, facts: Facts, expected: Expected) -> list[Finding]:
        """Return the findings, at least one, the worst first."""
        unknown: dict[str, list[str]] = {}
        try:
            items = list(self.items(facts, expected))
        except UnknownFactError as error:
            items, unknown = [], {str(error): []}
        for item in items:
            if "unknown" in item:
                unknown.setdefault(item["unknown"], []).append(item["subject"])
        findings = [
            Finding(self.name, self.why, "skipped", reason, listed(subjects))
            for reason, subjects in unknown.items()
        ]
        for item in items:
            if "unknown" not in item:
                findings += [self._finding(rule, item) for rule in self.applying(item)]
        if not findings:
            figures = [set(self._values(item).items()) for item in items]
            common = dict(set.intersection(*figures)) if figures else {}
            message = fill(self.ok, {"total": len(items), **(items[0] if items else {})})
            findings = [Finding(self.name, self.why, "ok", message, figures=common)]
        return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))

    def applying(self, item: Values) -> list[CheckRule]:
        """Return the rules that apply to an item; rules below the first one are not tried."""
        first = next((rule for rule in self.rules if item[rule.value]), None)
        return [*filter(None, [first]), *[rule for rule in self.also if item[rule.value]]]

    def _finding(self, rule: CheckRule, item: Values) -> Finding:
        return Finding(
            self.name,
            self.why,
            rule.severity,
            fill(rule.message, item),
            item.get("subject", ""),
            fill(rule.remedy, {"docs": document(""), **item}),
            self._values(item),
        )

    def _values(self, item: Values) -> Figures:
        figures: dict[str, float | str | None] = {}
        for name in self.figures:
            value = item[name]
            figures |= value if isinstance(value, Mapping) else {name: value}
        return figures


def load(table: str, items: Mapping[str, Items]) -> Iterator[Check]:
    """Yield the checks of a table in `checks/`; `items` are the functions that it names."""
    text = (files("streams.flow.doctor.checks") / f"{table}.toml").read_text(encoding="utf-8")
    for area, checks in tomllib.loads(text).items():
        for name, row in checks.items():
            yield Check(
                name=f"{area}.{name}",
                why=row.pop("why"),
                items=items[row.pop("items")],
                ok=row.pop("ok"),
                figures=tuple(row.pop("figures", ())),
                also=_rules(row.pop("also", {})),
                rules=_rules(row),
            )


def _rules(rows: Mapping[str, Any]) -> tuple[CheckRule, ...]:
    return tuple(CheckRule(value, *texts) for value, texts in rows.items())
