"""Receipts in the views of the control plane are bounded by bytes, and keep their figures."""

from contextgauge.records import Json
from streams.core.control.short_receipts import RECEIPT_BYTES, short_receipt

IDS: list[Json] = [f"message-{number:06}" for number in range(3_000)]
STEP: dict[str, Json] = {"rung": "summarise", "tokens_after": 5, "message_ids": IDS}
LONG: dict[str, Json] = {
    "trigger": "auto",
    "tokens_before": 170_000,
    "tokens_after": 40_000,
    "messages_archived": 3_000,
    "archived_ids": IDS,
    "steps": [STEP, "of a later build"],
    "summariser": None,
}


def test_a_short_receipt_stays_as_it_is() -> None:
    short: dict[str, Json] = {"tokens_before": 5, "archived_ids": ["a"]}
    assert short_receipt(short) is short


def test_a_long_one_loses_its_ids() -> None:
    step: dict[str, Json] = {**STEP, "message_ids": []}
    expected: dict[str, Json] = {**LONG, "archived_ids": [], "steps": [step, "of a later build"]}
    assert short_receipt(LONG) == expected
    assert short_receipt({**LONG, "steps": None}) == {**expected, "steps": None}


def test_what_is_long_without_its_ids_keeps_its_figures() -> None:
    failed: dict[str, Json] = {**LONG, "failures": ["x" * RECEIPT_BYTES]}
    assert short_receipt(failed) == {
        "tokens_before": 170_000,
        "tokens_after": 40_000,
        "messages_archived": 3_000,
        "summariser": None,
    }
