"""docs/OTEL.md lists every name that leaves, with its unit, and no others."""

import re
from pathlib import Path

from streams.codec.otel_events import ATTRIBUTES
from streams.codec.otel_figures import INSTRUMENTS

TEXT = (Path(__file__).parents[2] / "docs" / "OTEL.md").read_text(encoding="utf-8")


def rows(title: str) -> list[list[str]]:
    """Return the cells of a section's tables, without their heads."""
    section = TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    cells = [row.strip("|").split("|") for row in re.findall(r"^\|.*\|$", section, re.MULTILINE)]
    return [row for row in cells if not row[0].startswith(("---", " attribute ", " metric "))]


def test_all_attributes_are_listed() -> None:
    listed = [name for row in rows("Events") for name in re.findall(r"`([a-z_.]+)`", row[0])]
    assert sorted(listed) == sorted(ATTRIBUTES)


def test_all_metrics_are_listed_with_instrument_unit_and_attributes() -> None:
    listed = {
        name.strip(" `"): (kind.strip(), unit.strip(" `"), tuple(re.findall(r"`(.+?)`", more)))
        for name, kind, unit, more in rows("Metrics")
    }
    assert listed == {
        name: (each.kind, each.unit, each.attributes) for name, each in INSTRUMENTS.items()
    }
