"""The rule guard on conversations as runtimes publish them."""

from contextgauge.compaction.engine.plan import plan_of
from contextgauge.records import Json
from streams.core.control.pins import around_boundary, check_pins
from streams.core.conversation.fold import ConversationFold
from tests.core.control.test_pins import PUSH, summary
from tests.core.conversation.fold_kit import RECEIPT, boundary, fold_of, said, service_boundary

CLEAR = "<command-name>/clear</command-name>"


def lost(*lines: dict[str, Json]) -> tuple[str, ...] | None:
    """Return the turns that are lost after lines; None where that cannot be judged."""
    return _lost(fold_of(*lines))


def _lost(fold: ConversationFold) -> tuple[str, ...] | None:
    around = around_boundary(fold.result.history)
    return None if around is None else check_pins(around).lost


def summarised(text: str, **more: Json) -> dict[str, Json]:
    return said("user", text, isCompactSummary=True, **more)


def item(role: str, text: str) -> dict[str, Json]:
    content: list[Json] = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": role, "content": content}


def rollout(kind: str, **payload: Json) -> dict[str, Json]:
    return {"type": kind, "payload": payload}


START = (said("user", PUSH, uuid="u1"), said("assistant", "Ok.", uuid="a1"))


def test_claude_codes_boundary_with_its_summary() -> None:
    assert lost(*START, boundary(), summarised("The importer was fixed.")) == (PUSH,)
    assert lost(*START, boundary(), summarised("The user forbids pushing to main.")) == ()
    assert lost(*START, boundary()) is None, "its summary has not come yet"


def test_a_message_that_claude_code_preserved_is_there() -> None:
    segment: Json = {"head_uuid": "u1", "anchor_uuid": "x", "tail_uuid": "a1"}
    ended = boundary(preserved_segment=segment)
    assert lost(*START, ended, summarised("The importer was fixed.", uuid="x")) == ()


def test_rules_of_before_a_reset_are_no_rules_any_more() -> None:
    later = said("user", "Fix the importer.", uuid="u2")
    after = (later, said("assistant", "Ok."), boundary(), summarised("The importer was fixed."))
    assert lost(*START, said("user", CLEAR), *after) == ()
    assert lost(*START, said("user", CLEAR), later) is None


def test_each_boundary_is_judged_by_what_was_just_before_it() -> None:
    first = (*START, boundary(), summarised("The importer was fixed."))
    again = boundary() | {"uuid": "b2"}
    more = (said("user", "Never change the price table."), said("assistant", "Ok."))
    assert lost(*first, *more, again, summarised("Prices stay.")) == (
        "Never change the price table.",
    )


def test_codexs_boundary_with_its_history() -> None:
    start = (rollout("response_item", **item("user", PUSH)),)
    history: Json = [item("user", "The importer was fixed.")]
    short = rollout("compacted", message="The importer was fixed.", replacement_history=history)
    assert lost(*start, short) == (PUSH,)
    kept: Json = [item("user", PUSH), item("user", "The importer was fixed.")]
    whole = rollout("compacted", message="The importer was fixed.", replacement_history=kept)
    assert lost(*start, whole) == ()
    hidden: Json = [{"type": "compaction", "encrypted_content": "x"}]
    assert lost(*start, rollout("compacted", message="", replacement_history=hidden)) is None


def test_the_services_boundary() -> None:
    fold = fold_of(*START)
    covered = fold.result.history.active
    plan = plan_of(covered, [summary("The importer was fixed.")], RECEIPT)
    fold.add(service_boundary(plan, fold.result), 9, strict=True)
    assert _lost(fold) == (PUSH,)


def test_what_was_cut_away_is_not_judged() -> None:
    history = fold_of(*START, boundary(), summarised("The importer was fixed.")).result.history
    fold = ConversationFold()
    fold.result.history.replace_active(history.active)
    fold.add(said("user", "Go on."), 9)
    assert _lost(fold) is None
