"""Verdicts against labels made by hand."""

import pytest

from tests.core.autopsy.labels_kit import Labelled, labelled

AGREEMENT = 0.9


@pytest.fixture(scope="module")
def items() -> list[Labelled]:
    return list(labelled())


def test_there_are_enough_labels(items: list[Labelled]) -> None:
    assert len(items) >= 100
    assert {each.label for each in items} == {"PRESERVED", "DEGRADED", "LOST"}


@pytest.mark.parametrize("of_set", ["first", "second"])
def test_verdicts_agree_with_labels(items: list[Labelled], of_set: str) -> None:
    own = [each for each in items if each.set == of_set]
    other = [each for each in own if each.verdict != each.label]
    share = 1 - len(other) / len(own)
    print(f"{of_set} set: {share:.1%} of {len(own)} items")  # noqa: T201 -- the figure, with -s
    assert share >= AGREEMENT, other


def test_no_verdict_is_unknown_where_all_can_be_read(items: list[Labelled]) -> None:
    assert {each.verdict for each in items} == {"PRESERVED", "DEGRADED", "LOST"}
