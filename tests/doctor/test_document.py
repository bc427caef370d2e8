"""`docs/DOCTOR.md` says what the catalogue says."""

import re
from pathlib import Path

from streams.flow.doctor import CHECKS, SEVERITIES

_TEXT = (Path(__file__).parents[2] / "docs" / "DOCTOR.md").read_text(encoding="utf-8")


def test_the_table_is_the_catalogue() -> None:
    rows = re.findall(r"^\| `([a-z]+\.[a-z_]+)` \| (.*) \|$", _TEXT, re.MULTILINE)
    assert rows == list(CHECKS.items())


def test_all_severities_are_explained() -> None:
    assert tuple(re.findall(r"^\| `([a-z]+)` \|", _TEXT, re.MULTILINE)) == SEVERITIES
