"""The comparison finds what differs, and tells it; it finds nothing where nothing does."""

from bench.compare import SHOWN, Written, compare


def written(number: int, **data: object) -> Written:
    headers = {
        "ce_type": "contextgauge.context_reading.v1",
        "ce_sequence": str(number),
        "ce_subject": "main",
    }
    return Written(headers, {"used_tokens": 100, **data})


def test_equal_records_have_no_difference() -> None:
    ours = {"a": [written(1), written(2)], "b": [written(1)]}

    outcome = compare(ours, {"b": [written(1)], "a": [written(1), written(2)]})

    assert outcome.compared == 3
    assert not outcome.differences
    assert outcome.summary("ours", "theirs") == "theirs: 3 records, each equal to that of ours"


def test_the_order_of_fields_is_ignored() -> None:
    ours = Written({"x": "1"}, {"a": 1, "b": 2.0})

    assert not compare({"s": [ours]}, {"s": [Written({"x": "1"}, {"b": 2, "a": 1})]}).differences


def test_a_differing_field_is_reported_with_both_values() -> None:
    outcome = compare({"s": [written(1)]}, {"s": [written(1, used_tokens=101)]})

    assert outcome.differences[0].details == ("data.used_tokens: ours 100, theirs 101",)
    assert "session s, record 1" in outcome.summary("ours", "theirs")


def test_a_field_that_is_null_differs_from_one_that_is_absent() -> None:
    outcome = compare({"s": [written(1, model=None)]}, {"s": [written(1)]})

    assert outcome.differences[0].details == ("data.model: ours None, theirs '(absent)'",)


def test_a_differing_header_is_reported() -> None:
    outcome = compare({"s": [written(1)]}, {"s": [written(2)]})

    assert outcome.differences[0].details == ("ce_sequence: ours '1', theirs '2'",)


def test_extra_and_missing_records_are_reported() -> None:
    more = compare({"s": [written(1)]}, {"s": [written(1), written(2)]})
    fewer = compare({"s": [written(1)]}, {})

    assert more.differences[0].details == ("only theirs: context_reading.v1 #2 of main",)
    assert fewer.differences[0].details == ("only ours: context_reading.v1 #1 of main",)


def test_only_the_first_difference_of_a_session_is_reported() -> None:
    ours = {"s": [written(1), written(2), written(3)]}

    outcome = compare(ours, {"s": [written(1), written(3), written(4)]})

    assert [each.place for each in outcome.differences] == [1]


def test_all_differences_are_counted_and_some_are_shown() -> None:
    ours = {f"session-{number:03}": [written(1)] for number in range(50)}

    summary = compare(ours, {}).summary("ours", "theirs")

    assert "differs from ours in 50 sessions" in summary
    assert summary.count("only ours") == SHOWN


def test_long_values_are_cut() -> None:
    outcome = compare({"s": [written(1, summary="x" * 9_999)]}, {"s": [written(1, summary="y")]})

    assert len(outcome.differences[0].details[0]) < 300
