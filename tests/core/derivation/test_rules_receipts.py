"""R31 and the receipts of R19: what a boundary, and what comes after it, report of a compaction."""

from typing import Any

import pytest

from contextgauge.delivery.privacy import without_text
from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    ContextReading,
    PinsChecked,
    ReportedReceipt,
)
from streams import codec
from tests.core.given import (
    AUTO,
    Body,
    Given,
    assistant,
    bound,
    boundary,
    every,
    line,
    one,
    plain,
    record_of,
    rollout,
    session,
    side,
    system,
)

ENGINE: Body = {
    "trigger": "auto",
    "tokens_before": 160_000,
    "tokens_after": 30_000,
    "number": 2,
    "messages_archived": 48,
    "summary_input_tokens": 90_000,
    "summary_cache_read_tokens": 80_000,
    "summary_output_tokens": 2_100,
    "pins": 14,
    "failures": ["anthropic: HTTP 529"],
}
OWN: Body = {
    "command_id": "c-1",
    "attempt": 2,
    "reason": "above_threshold",
    "cause_id": "r-9",
    "plan": {"covers": 48, "last_id": "m48", "prefix_hash": "ab"},
    "edit": {"replacement": [{"text": "what was said"}]},
    "receipt": ENGINE,
}


def test_r19_the_services_boundary_has_a_receipt() -> None:
    given = session(boundary(AUTO | {"contextgauge": OWN}))
    data = one(given.records, CompactBoundary)
    assert data.receipt == ReportedReceipt(
        command_id="c-1",
        command_attempt=2,
        reason="above_threshold",
        cause_id="r-9",
        summary_input_tokens=90_000,
        summary_cache_read_tokens=80_000,
        summary_output_tokens=2_100,
        messages_archived=48,
        pins_carried=14,
    )


def test_r19_the_conversations_text_is_not_in_the_services_record() -> None:
    given = session(boundary(AUTO | {"contextgauge": OWN}))
    record = record_of(given.records, CompactBoundary)
    assert b"what was said" not in codec.to_structured(record)
    assert isinstance(record.data, CompactBoundary)
    own = record.data.metadata["contextgauge"]
    assert own == {name: value for name, value in OWN.items() if name != "edit"}


def test_r19_what_the_service_does_not_report_is_unknown() -> None:
    wrong = {"command_id": 7, "attempt": "2", "receipt": {"pins": -1, "messages_archived": 1.5}}
    data = one(session(boundary({"contextgauge": wrong})).records, CompactBoundary)
    assert data.receipt == ReportedReceipt()


@pytest.mark.parametrize("metadata", [None, AUTO, {"contextgauge": "x"}])
def test_a_boundary_without_an_account_gives_the_bytes_of_before(metadata: Body | None) -> None:
    record = record_of(session(boundary(metadata)).records, CompactBoundary)
    assert b'"receipt"' not in codec.to_structured(record)


def test_a_completion_without_cache_figures_gives_the_bytes_of_before() -> None:
    given, _ = bound()
    records = given.take(plain({"prompt_tokens": 31_000}))
    assert b"cache_rewrite" not in codec.to_structured(record_of(records, CompactionComplete))


def test_r22_the_first_response_tells_what_was_written_to_the_cache_again() -> None:
    given, boundary_id = bound(assistant("a", read=160_000))
    records = given.take(assistant("b", 5, 31_000, 12_000), assistant("c", 5, 400, 43_000))
    complete = one(records, CompactionComplete)
    assert (complete.boundary_id, complete.cache_rewrite_tokens) == (boundary_id, 31_000)
    assert (complete.tokens_after, len(every(records, ContextReading))) == (43_005, 2)


def test_r22_an_unmeasured_compaction_has_no_cache_figure() -> None:
    given, _ = bound()
    complete = one(given.take(boundary(AUTO)), CompactionComplete)
    assert (complete.tokens_after, complete.cache_rewrite_tokens) == (None, None)


def test_r22_an_answer_to_what_was_sent_before_the_boundary_does_not_measure_it() -> None:
    during_call = {**AUTO, "contextgauge": {"during_call": True}}
    given = Given()
    given.take(assistant("a", read=160_000))
    records = given.take(boundary(during_call), assistant("b", read=160_100))
    complete = one(records, CompactionComplete)
    assert (complete.tokens_after, complete.tokens_saved) == (None, None)
    assert every(given.take(assistant("c", read=30_000)), CompactionComplete) == []


USAGE = {"input_tokens": 250_000, "cached_input_tokens": 240_000, "output_tokens": 900}


def _compacted(response: str | None, usage: object, of: str = "resp_c") -> CompactBoundary:
    latest = {"response_id": of, "usage": usage}
    payload: Body = {"message": "so far", "latest_token_usage_record": latest}
    if response is not None:
        payload["compaction_response_id"] = response
    given = Given()
    return one(given.take(rollout("compacted", payload), hint="r"), CompactBoundary)


def test_r29_codex_reports_the_cost_of_the_compacting_call() -> None:
    receipt = _compacted("resp_c", USAGE).receipt
    assert receipt == ReportedReceipt(
        summary_input_tokens=250_000,
        summary_cache_read_tokens=240_000,
        summary_output_tokens=900,
    )


@pytest.mark.parametrize(
    ("response", "usage", "of"),
    [
        (None, USAGE, "resp_c"),
        ("resp_c", USAGE, "resp_before"),
        ("resp_c", None, "resp_c"),
        ("resp_c", {}, "resp_c"),
    ],
)
def test_r29_another_calls_usage_is_no_cost_of_the_compaction(
    response: str | None, usage: object, of: str
) -> None:
    assert _compacted(response, usage, of).receipt is None


def test_r29_the_usage_of_openais_compaction_is_its_cost() -> None:
    answer = {
        "id": "resp_c1",
        "object": "response.compaction",
        "output": [{"id": "cmp_1", "type": "compaction", "encrypted_content": "x"}],
        "usage": {
            "input_tokens": 90_000,
            "input_tokens_details": {"cached_tokens": 1_000},
            "output_tokens": 900,
        },
    }
    records = Given().take(answer, hint="r")
    assert one(records, CompactBoundary).receipt == ReportedReceipt(
        summary_input_tokens=90_000,
        summary_cache_read_tokens=1_000,
        summary_output_tokens=900,
    )
    assert not every(records, ContextReading)


def test_r29_the_iterations_of_a_compaction_inside_a_response_are_its_cost() -> None:
    call: Body = {"type": "compaction", "input_tokens": 1_200, "output_tokens": 700}
    call |= {"cache_creation_input_tokens": 60, "cache_read_input_tokens": 120}
    call |= {"cache_creation": {"ephemeral_1h_input_tokens": 40}}
    usage: Body = {"input_tokens": 3_000, "cache_read_input_tokens": 20_000, "output_tokens": 90}
    usage |= {"iterations": [call, {"type": "message", **usage}]}
    inside = {"content": [{"type": "compaction", "content": "so far"}], "usage": usage}
    records = Given().take(assistant("msg_1", inside=inside))
    bound = one(records, CompactBoundary)
    assert bound.receipt == ReportedReceipt(
        summary_input_tokens=1_380,
        summary_cache_read_tokens=120,
        summary_output_tokens=700,
    )
    assert bound.summary_cache_creation_tokens == 60
    assert bound.summary_cache_creation_1h_tokens == 40
    assert one(records, ContextReading).used_tokens == 23_000


@pytest.mark.parametrize("iterations", [[], [{"type": "compaction"}], "x", None])
def test_r29_without_figures_the_cost_is_unknown(iterations: object) -> None:
    usage = {"input_tokens": 3_000, "output_tokens": 90, "iterations": iterations}
    inside = {"content": [{"type": "compaction", "content": "so far"}], "usage": usage}
    assert one(Given().take(assistant("m", inside=inside)), CompactBoundary).receipt is None


def checked(boundary_id: object, kept: object = 3, lost: object = (), **more: Any) -> Body:
    """Return the message that tells which rules are still there."""
    lost = list(lost) if isinstance(lost, tuple) else lost
    return system("pins_checked", boundary_id=boundary_id, kept=kept, lost=lost, **more)


def test_r31_a_check_belongs_to_the_latest_boundary() -> None:
    given, boundary_id = bound(assistant("a", read=160_000))
    given.take(assistant("b", read=30_000))
    data = one(given.take(checked(boundary_id, 3, ("Never push to main.",))), PinsChecked)
    assert (data.boundary_id, data.number) == (boundary_id, 1)
    assert (data.pins_kept, data.pins_lost) == (3, 1)
    assert data.lost_pins == ("Never push to main.",)


def test_r31_a_check_of_an_earlier_or_unknown_boundary_is_nothing() -> None:
    given, first = bound()
    given.take(boundary(AUTO))
    assert not given.take(checked(first), checked("other"))
    assert not Given().take(checked(first))


def test_r31_texts_may_be_withheld_and_are_bounded() -> None:
    given, boundary_id = bound()
    withheld = one(given.take(checked(boundary_id, 0, (), lost_count=7)), PinsChecked)
    assert (withheld.pins_lost, withheld.lost_pins) == (7, ())
    many = tuple(f"{number} " + "x" * 300 for number in range(30))
    data = one(given.take(checked(boundary_id, 0, many)), PinsChecked)
    assert (data.pins_lost, len(data.lost_pins)) == (30, 20)
    assert {len(text) for text in data.lost_pins} == {200}


@pytest.mark.parametrize(
    "wrong", [checked(7), checked("b", None), checked("b", 3, "x"), checked("b", -1)]
)
def test_r31_a_check_without_its_figures_is_ignored(wrong: Body) -> None:
    given, boundary_id = bound()
    if wrong["boundary_id"] == "b":
        wrong["boundary_id"] = boundary_id
    assert not given.take(wrong)


def test_r31_a_subagents_boundary_is_checked_in_its_chain() -> None:
    given = Given()
    agent: Body = {"isSidechain": True, "agentId": "a1"}
    records = given.take(line(boundary(AUTO), **agent))
    boundary_id = record_of(records, CompactBoundary).id
    assert not given.take(checked(boundary_id))
    assert one(given.take(line(checked(boundary_id), **agent)), PinsChecked).chain == "a1"


def test_r31_a_check_is_published_once() -> None:
    given, boundary_id = bound()
    message = checked(boundary_id)
    assert len(given.take(message, message)) == 1


def test_messages_without_their_texts_give_the_same_receipts() -> None:
    """As `publish --no-text` sends them."""

    def sent(body: Body) -> Body:
        return without_text(body, codec.dumps(body), b"k" * 32)

    latest = {"response_id": "resp_c", "usage": USAGE}
    payload: Body = {"compaction_response_id": "resp_c", "latest_token_usage_record": latest}
    given = Given()
    cost = one(given.take(sent(rollout("compacted", payload)), hint="r"), CompactBoundary).receipt
    assert cost is not None
    assert cost.summary_input_tokens == 250_000
    given, boundary_id = bound()
    data = one(given.take(sent(checked(boundary_id, 3, ("Never push.",)))), PinsChecked)
    assert (data.pins_kept, data.pins_lost) == (3, 1)
    assert "Never" not in data.lost_pins[0]


def test_r11_a_summarys_call_that_reports_no_cache_writes_gives_none() -> None:
    given = Given()
    answer = assistant("c", inside={"usage": {"input_tokens": 3}})
    given.take(side(answer, "acompact-1", 186))
    record = one(given.take(line(boundary({"trigger": "auto"}), 187)), CompactBoundary)
    assert record.receipt == ReportedReceipt(summary_input_tokens=3)
    assert record.summary_cache_creation_tokens is None
