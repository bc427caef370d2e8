"""What the seeds say: examples answer so, named tests are collected, the page is current."""

import logging
import re
from collections import defaultdict

import pytest

from tests.compaction.test_compactor import talk
from tests.docs.test_docs import ROOT
from tests.seeds.cases import Example, answer, sections
from tests.seeds.engine_probes import Run
from tests.seeds.probes import PROBES
from tools.list_seeds import DOCUMENT, document

ROWS = [row for section in sections() for row in section.rows]


@pytest.mark.parametrize(
    ("behaviour", "example"),
    [(row.behaviour, example) for row in ROWS for example in row.examples],
)
def test_example_answers_as_the_seed_says(behaviour: str, example: Example) -> None:
    assert answer(example) == example.answer, behaviour


def test_each_behaviour_has_an_example_a_test_or_a_reason() -> None:
    assert [row.behaviour for row in ROWS if not (row.examples or row.tests or row.declined)] == []
    probes = {example.probe for row in ROWS for example in row.examples}
    assert sorted(PROBES) == sorted(probes)
    edge_cases = [each for each in ROWS if re.match(r"\d+\. ", each.behaviour)]
    assert [each.behaviour.split(".")[0] for each in edge_cases] == [*map(str, range(1, 15))]


@pytest.mark.extended
def test_named_tests_are_collected(request: pytest.FixtureRequest) -> None:
    """They exist, pytest finds them, and nothing skips them."""
    names = defaultdict(set)
    for row in ROWS:
        for test in row.tests:
            path, _, name = test.partition("::")
            names[path].add(name)
    missing = []
    for path, wanted in names.items():
        items = _collected(request.session, path)
        missing += [f"{path}::{each}" for each in wanted - items]
    assert missing == []
    assert "test_named_tests_are_collected" in _collected(
        request.session, "tests/seeds/test_seeds.py"
    )
    assert _collected(request.session, "tests/no_such_file.py") == set()


def _collected(session: pytest.Session, path: str) -> set[str]:
    if not (ROOT / path).is_file():
        return set()
    module = pytest.Module.from_parent(session, path=ROOT / path)
    functions = [each for each in module.collect() if isinstance(each, pytest.Function)]
    return {each.originalname for each in functions if each.get_closest_marker("skip") is None}


def test_the_page_is_current() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run `python -m tools.list_seeds`"


async def test_compactions_and_failures_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "contextgauge.compaction")
    for summary in ("The summary.", "error: the server is away"):
        run = Run("seed-002", model="gpt-4o", answers=[summary])
        run.history.extend(talk(60, 8_000))
        await run.do(["before_call"])
    logged = [(each.levelname, each.getMessage()) for each in caplog.records]
    assert [level for level, _ in logged] == ["INFO", "WARNING"]
    assert logged[0][1].startswith("[Compaction] Round 1: ")
    assert logged[1][1] == "not compacted: the server is away"
