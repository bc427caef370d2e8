"""SEEDS.md is true: each row names tests that exist, or a reason for declining."""

import ast
import re
from functools import cache

import pytest

from tests.docs.test_docs import DOCS, ROOT, _rows, _section

TEXT = (DOCS / "SEEDS.md").read_text(encoding="utf-8")
TITLES = re.findall(r"^## (00\d: .+)$", TEXT, re.MULTILINE)

_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)(?:\[[^`]*\])?`")
_DECLINED = re.compile(r"\*Declined\*[^:]*: \S+")


@cache
def _tests_of(path: str) -> frozenset[str]:
    """Return the names of a file's test functions; none of a file that does not exist."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(each.name for each in tree.body if isinstance(each, functions))


def faults(text: str) -> list[str]:
    """Return what is wrong with the rows of a document."""
    wrong = []
    for behaviour, shown in _rows(text):
        tests = _TEST.findall(shown)
        if not tests and not _DECLINED.match(shown):
            wrong.append(f"{behaviour}: neither a test nor a reason")
        if shown.count("::") != len(tests):
            wrong.append(f"{behaviour}: a test that is not written as path::name")
        wrong += [
            f"{behaviour}: no test {name} in {path}"
            for path, name in tests
            if not name.startswith("test_") or name not in _tests_of(path)
        ]
    return wrong


@pytest.mark.parametrize("title", TITLES)
def test_each_row_names_tests_that_exist_or_a_reason(title: str) -> None:
    rows = _section(TEXT, title)
    assert faults(rows) == []
    assert len(_rows(rows)) > 20


def test_all_five_documents_are_listed() -> None:
    assert [each[:3] for each in TITLES] == ["000", "001", "002", "003", "004"]
    assert [row[0] for row in _rows(TEXT[: TEXT.index("\n## ")])] == [each[:3] for each in TITLES]


def test_edge_cases_of_001_are_listed_one_by_one() -> None:
    rows = _rows(_section(TEXT, "The fourteen edge cases"))
    assert [row[0].split(".")[0] for row in rows] == [str(each) for each in range(1, 15)]


@pytest.mark.parametrize(
    ("shown", "fault"),
    [
        ("", "neither a test nor a reason"),
        ("*Declined*", "neither a test nor a reason"),
        ("it works", "neither a test nor a reason"),
        ("`tests/docs/test_seeds.py::test_that_is_missing`", "no test test_that_is_missing"),
        ("`tests/docs/test_nothing.py::test_a`", "no test test_a in tests/docs/test_nothing.py"),
        ("`tests/docs/test_seeds.py::faults`", "no test faults"),
        ("*Declined*: no: test_seeds.py::test_a", "not written as path::name"),
    ],
)
def test_a_row_without_test_or_reason_is_detected(shown: str, fault: str) -> None:
    (found,) = faults(f"| behaviour | test |\n|---|---|\n| It compacts | {shown} |\n")
    assert fault in found


def test_a_parametrised_case_may_be_named() -> None:
    name = "`tests/docs/test_seeds.py::test_each_row_names_tests_that_exist_or_a_reason[001]`"
    assert faults(f"| behaviour | test |\n|---|---|\n| It compacts | {name} |\n") == []
