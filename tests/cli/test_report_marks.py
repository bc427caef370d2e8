"""What the report shows as an estimate, or as unknown, of records by hand."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.records import Record
from streams.cli.report.answers import Answers
from streams.cli.report.page import ReportOrigin, page
from tests.core.given import RULES, Given, assistant, user
from tests.edge.tables_kit import Session, changed, engine_of

MARKED = {
    *("sessions_at_80", "average_pre_tokens", "tokens_saved", "average_left_percent"),
}
"""The key figures that assumed windows and sizes of the last reading make estimates."""


def text_of(records: Iterable[Record], folder: Path) -> str:
    return page(Answers(engine_of(records, folder)), ReportOrigin("transcripts", 0)).decode()


def card(text: str, question: str) -> str:
    """Return what a figure shows, with all of its values, without its query."""
    return text.partition(f'<article id="{question}"')[2].partition('class="query"')[0]


def compacted(source: str, window_source: str, threshold: int | None) -> list[Record]:
    """Return a session that is compacted at 90% and has no room afterwards."""
    session = Session()
    full = changed(session.response(180_000, "a"), window_source=window_source)
    boundary = changed(session.boundary(pre=180_000), pre_tokens_source=source)
    after = changed(session.response(170_000, "b"), window_source=window_source)
    limits = session.limits(threshold=threshold)
    return [full, boundary, after, session.complete(boundary, 170_000), limits]


def marked(text: str) -> set[str]:
    """Return the key figures that are marked as estimates."""
    keys = re.findall(r'data-key="(\w+)".*?<strong[^>]*>(.*?)</strong>', text)
    assert len(keys) == 8
    return {column for column, value in keys if "~" in value}


@pytest.mark.extended
def test_what_nothing_reports_is_shown_as_an_estimate(tmp_path: Path) -> None:
    text = text_of(compacted("last_reading", "default", None), tmp_path)
    assert marked(text) == MARKED
    floors = card(text, "unreachable-floors")
    for value in ("~180K", "~94.4%", "~no", ">170K"):
        assert value in floors, value
    for question, value in (
        ("pre-tokens", "~180K"),
        ("compactions-by-trigger", "~180K"),
        ("compression", "~94.4%"),
        ("saved-by-day", "~10K"),
    ):
        assert value in card(text, question), question


@pytest.mark.extended
def test_what_is_reported_is_shown_as_it_is(tmp_path: Path) -> None:
    text = text_of(compacted("reported", "runtime", 180_000), tmp_path)
    assert marked(text) == set()
    for question in ("unreachable-floors", "pre-tokens", "compression", "saved-by-day"):
        assert not re.search(r"~\w", card(text, question)), question


@pytest.mark.extended
def test_calls_of_which_there_are_no_records_are_unknown(tmp_path: Path) -> None:
    without = text_of([Session().response(9_000, "a")], tmp_path / "without")
    given = Given(replace(RULES, content=True))
    given.take(user("Hello."), assistant("a", read=9_000))
    measured = text_of(given.records, tmp_path / "with")
    for question, words in (
        ("tool-tokens", "No calls of tools."),
        ("repeated-calls", "No calls of tools with a known input that change no file."),
    ):
        assert words in card(measured, question)
        assert words not in card(without, question)
        assert "Unknown: no record is of the content of messages." in card(without, question)
