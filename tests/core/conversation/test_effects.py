"""A compaction of the service that no one followed is undone in the conversation."""

from dataclasses import replace

import pytest

from contextgauge.compaction.reading.compaction_effect import CompactionEffect
from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.errors import ConfigError
from contextgauge.records import Json
from streams.core.conversation.fold import ConversationFold
from tests.core.conversation.fold_kit import (
    RECEIPT,
    a_plan,
    boundary,
    fold_of,
    said,
    service_boundary,
    state_of,
    texts,
)

BOUNDARY = "b"
REPORTED = replace(RECEIPT, tokens_before=150_000, tokens_after=115_000, basis="reported")


def answer(text: str, used: int, *, model: str = "m", **more: Json) -> dict[str, Json]:
    message: dict[str, Json] = {
        "id": text,
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": used, "output_tokens": 10},
    }
    return {"type": "assistant", "session_id": "s", "message": message, **more}


def compacted(*last: dict[str, Json], receipt: object = REPORTED) -> ConversationFold:
    """Return a conversation right after the service compacted its first two messages."""
    lines = (said("user", "go"), answer("one", 150_000), *(last or (said("user", "on"),)))
    fold = fold_of(*lines)
    plan = a_plan(fold.result, 2, receipt)  # type: ignore[arg-type]  # a receipt
    fold.add(service_boundary(plan, fold.result), len(lines), strict=True)
    return fold


def state(fold: ConversationFold) -> str:
    reading = fold.result.reading
    assert reading is not None
    return reading.effects[BOUNDARY].state


def read_on(fold: ConversationFold, *lines: dict[str, Json], start: int = 10) -> None:
    for offset, line in enumerate(lines):
        fold.add(line, start + offset)


QUIET = (said("user", "on"), answer("two", 150_000))
"""The model has answered: no call is under way."""


def test_a_compaction_that_the_next_answer_contradicts_is_undone() -> None:
    fold = compacted(*QUIET)
    assert texts(fold) == ["[1] So far.", "on", "two"]
    read_on(fold, said("user", "more"))
    assert state(fold) == "awaited"
    read_on(fold, answer("three", 158_000), start=20)
    assert state(fold) == "none"
    assert texts(fold) == ["go", "one", "on", "two", "more", "three"]
    assert state_of(fold) == "whole"
    result = fold.result
    assert result.reading is not None
    assert (result.reading.compactions, result.reading.effects[BOUNDARY].used) == (1, 158_000)
    # The answer is of the conversation as it is now, so its size counts.
    assert result.history.active[-1].usage is not None
    assert result.history.fresh_from == len(result.history.active) - 1
    read_on(fold, said("user", "again"), answer("four", 160_000), start=30)
    assert texts(fold)[-2:] == ["again", "four"]
    assert [each.text for each in result.history.archived] == []


def test_a_compaction_that_the_next_answer_confirms_stays() -> None:
    fold = compacted(*QUIET)
    read_on(fold, said("user", "more"), answer("three", 116_000))
    assert state(fold) == "seen"
    read_on(fold, said("user", "again"), answer("four", 190_000), start=20)
    assert texts(fold)[0] == "[1] So far."


def test_what_came_since_is_not_held_against_it() -> None:
    fold = compacted(*QUIET)
    result = "x" * 4 * 40_000  # 40 000 tokens
    read_on(fold, said("user", result), answer("three", 158_000))
    assert state(fold) == "awaited"  # it may be either
    assert texts(fold)[0] == "[1] So far."
    fold = compacted(*QUIET)
    read_on(fold, said("user", result), answer("three", 150_000))
    assert state(fold) == "seen"


def test_an_answer_to_what_may_have_been_sent_before_is_not_held_against_it() -> None:
    fold = compacted()  # the user's turn is the last: the model may have been called with it
    read_on(fold, said("user", "typed meanwhile"), answer("two", 150_000))
    assert state(fold) == "awaited"
    read_on(fold, said("user", "more"), answer("three", 116_000), start=20)
    assert state(fold) == "seen"
    fold = compacted()
    read_on(fold, answer("two", 150_000), said("user", "more"), answer("three", 158_000))
    assert state(fold) == "none"
    assert texts(fold) == ["go", "one", "on", "two", "more", "three"]


@pytest.mark.parametrize(
    "receipt",
    [
        replace(REPORTED, basis="estimated"),  # its size is not known well enough
        replace(REPORTED, tokens_after=140_000),  # too little to be seen
        None,
    ],
)
def test_what_does_not_stand_out_is_not_judged(receipt: object) -> None:
    fold = compacted(*QUIET, receipt=receipt)
    read_on(fold, said("user", "more"), answer("three", 158_000))
    assert state(fold) == "unknown"
    assert texts(fold)[0] == "[1] So far."


def test_another_model_counts_its_own_tokens() -> None:
    fold = compacted(*QUIET)
    read_on(fold, said("user", "more"), answer("three", 158_000, model="other"))
    assert state(fold) == "unknown"


def test_where_far_more_came_since_the_estimates_hide_it() -> None:
    effect = CompactionEffect("awaited", 150_000, 115_000, "m", since=200_000, is_sent=True)
    assert effect.judged(400_000, "m").state == "unknown"
    near = replace(effect, since=30_000)  # between both
    assert near.judged(160_000, "m") == near


@pytest.mark.parametrize("line", [boundary(), {"type": "conversation_reset", "uuid": "r"}])
def test_what_something_else_archived_is_not_judged(line: dict[str, Json]) -> None:
    fold = compacted(*QUIET)
    read_on(fold, {**line, "uuid": "other"}, said("user", "more"), answer("three", 158_000))
    assert state(fold) == "unknown"


def test_a_second_compaction_is_judged_for_itself() -> None:
    fold = compacted(*QUIET)
    plan = a_plan(fold.result, 1, REPORTED)
    fold.add({**service_boundary(plan, fold.result), "uuid": "second"}, 9, strict=True)
    assert state(fold) == "unknown"
    read_on(fold, said("user", "more"), answer("three", 158_000))
    reading = fold.result.reading
    assert reading is not None
    assert [each.state for each in reading.effects.values()] == ["unknown", "none"]
    assert texts(fold) == ["[1] So far.", "on", "two", "more", "three"]


def test_turns_that_were_taken_back_are_not_judged() -> None:
    lines = [
        {**said("user", "go"), "uuid": "1", "parentUuid": None},
        {**answer("one", 150_000), "uuid": "2", "parentUuid": "1"},
    ]
    fold = fold_of(*lines)
    fold.add(service_boundary(a_plan(fold.result, 2, REPORTED), fold.result), 2, strict=True)
    read_on(fold, {**said("user", "more"), "uuid": "3", "parentUuid": "2"})
    read_on(fold, {**said("user", "else"), "uuid": "4", "parentUuid": "1"}, start=20)
    assert state(fold) == "unknown"


def test_what_is_no_longer_kept_makes_the_conversation_incomplete() -> None:
    fold = compacted(*QUIET)
    stored = ConversationFold()
    stored.begin_with(fold.base(), 9)
    read_on(stored, said("user", "more"), answer("three", 158_000))
    assert state(stored) == "none"
    assert state_of(stored) == "incomplete"


def test_a_copy_is_judged_for_itself() -> None:
    before: SessionConversation = compacted(*QUIET).result
    fold = ConversationFold(before)
    read_on(fold, said("user", "more"), answer("three", 158_000))
    assert state(fold) == "none"
    assert before.reading is not None
    assert before.reading.effects[BOUNDARY].state == "awaited"


@pytest.mark.parametrize(
    "changed", [{"state": "gone"}, {"before": "many"}, {"model": 7}, {"used": -1}]
)
def test_what_is_damaged_is_an_error(changed: dict[str, Json]) -> None:
    base = compacted(*QUIET).base()
    effects = base["effects"]
    assert isinstance(effects, dict)
    effect = effects[BOUNDARY]
    assert isinstance(effect, dict)
    wrong: tuple[Json, ...] = ({BOUNDARY: {**effect, **changed}}, {BOUNDARY: 7}, 7)
    for damaged in wrong:
        with pytest.raises(ConfigError, match=r"base\.effects"):
            ConversationFold().begin_with({**base, "effects": damaged}, 9)


def test_the_latest_are_remembered() -> None:
    fold = compacted(*QUIET)
    for number in range(30):
        plan = a_plan(fold.result, 1, REPORTED)
        line = {**service_boundary(plan, fold.result), "uuid": f"b{number}"}
        fold.add(line, 100 + number, strict=True)
    reading = fold.result.reading
    assert reading is not None
    assert list(reading.effects) == [f"b{number}" for number in range(10, 30)]
