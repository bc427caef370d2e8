"""The receipt of a compaction: what is unknown stays null, and each record adds its figures."""

from dataclasses import replace

from schemas.records import CompactBoundary, Record, ReportedReceipt
from schemas.views import Compaction, CompactionReceipt, SessionView
from streams.core.projection.documents import (
    changeable_compactions,
    compaction,
    touched_compaction,
)
from tests.core.history import History, view_of

COST = ReportedReceipt(
    command_id="c-1",
    command_attempt=1,
    reason="above_threshold",
    cause_id="r-9",
    summary_input_tokens=90_000,
    summary_cache_read_tokens=80_000,
    summary_output_tokens=2_100,
    messages_archived=48,
    pins_carried=14,
)


def _folded(*records: Record) -> Compaction:
    document: Compaction | None = None
    for record in records:
        document = compaction(document, record)
    assert document is not None
    return document


def test_a_receipt_has_the_boundarys_id_and_is_unknown_where_nothing_is_reported() -> None:
    boundary = History().boundary(None, pre=None, duration_ms=None)
    receipt = _folded(boundary).receipt
    assert receipt.id == boundary.id
    known = {name for name in CompactionReceipt.__slots__ if getattr(receipt, name) is not None}
    assert known == {"id"}


def test_a_receipt_grows_with_each_record_of_its_boundary() -> None:
    history = History()
    bare = history.boundary("auto", duration_ms=None)
    assert isinstance(bare.data, CompactBoundary)
    boundary = replace(bare, data=replace(bare.data, receipt=COST))
    receipt = _folded(
        boundary,
        history.timing(boundary),
        history.complete(boundary, cache_rewrite=28_000),
        history.pins_checked(boundary, 13, ("Never push to main.",)),
    ).receipt
    assert receipt == CompactionReceipt(
        id=boundary.id,
        trigger="auto",
        reason="above_threshold",
        command_id="c-1",
        command_attempt=1,
        cause_id="r-9",
        tokens_before=160_000,
        tokens_before_source="reported",
        tokens_after=30_000,
        tokens_after_source="next_reading",
        tokens_saved=130_000,
        summary_input_tokens=90_000,
        summary_cache_read_tokens=80_000,
        summary_output_tokens=2_100,
        cache_rewrite_tokens=28_000,
        duration_ms=3_069,
        duration_source="reported",
        messages_archived=48,
        pins_carried=14,
        pins_kept=13,
        pins_lost=1,
        lost_pins=("Never push to main.",),
    )


def test_an_unmeasured_compaction_has_no_size_after_and_no_source_of_it() -> None:
    history = History()
    boundary = history.boundary()
    receipt = _folded(boundary, history.complete(boundary, None)).receipt
    assert (receipt.tokens_after, receipt.tokens_after_source) == (None, None)


def test_a_check_may_come_long_after_the_measurement() -> None:
    history = History()
    boundary = history.boundary(number=4)
    view = view_of(
        boundary, history.reading(30_000), history.complete(boundary), history.reading(31_000)
    )
    assert touched_compaction(view, history.pins_checked(boundary)) == "4"
    assert changeable_compactions(view.chains["main"]) == {"4"}


def test_a_check_of_an_earlier_boundary_changes_nothing() -> None:
    history = History()
    first, second = history.boundary(number=1), history.boundary(number=2)
    views: list[SessionView | None] = [view_of(first, second), view_of(history.reading(5)), None]
    for view in views:
        assert touched_compaction(view, history.pins_checked(first)) is None
    assert compaction(None, history.pins_checked(first)) is None
