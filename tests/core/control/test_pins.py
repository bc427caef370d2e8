"""The rule guard: which of the user's rules are still there after a boundary."""

import pytest

from contextgauge.compaction.carried.digest import carry
from contextgauge.compaction.engine.compaction_receipt import Receipt
from contextgauge.compaction.engine.plan import plan_of
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import (
    Carried,
    ContextCompaction,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolResult,
)
from contextgauge.compaction.profiles import Window
from streams.core.control import pins
from streams.core.control.pins import AroundBoundary, PinsCheck, around_boundary, check_pins

PUSH = "Never push to main."
BUDGET = "Never spend more than $500 on cloud."
SCHEMA = "Do not change db/schema.sql without my approval."


def turn(text: str, number: int = 1) -> Message:
    """Return a user's turn."""
    return Message("user", (Text(text),), f"u{number}")


def said(text: str, number: int = 1) -> Message:
    """Return what the model says."""
    return Message("assistant", (Text(text),), f"a{number}")


NOTHING = Carried()


def summary(text: str, carried: Carried = NOTHING, number: int = 1) -> Message:
    """Return the message that a compaction begins the conversation with."""
    marker = ContextCompaction(number, 0, text, 2, 100, carried=carried)
    return Message("user", (marker,), f"s{number}")


def checked(rule: str, after: str) -> PinsCheck:
    """Return the check of one rule against a summary."""
    return check_pins([turn(rule), said("Ok.")], [summary(after)])


@pytest.mark.parametrize(
    ("rule", "after"),
    [
        (PUSH, "The user's rules:\n- Never push to main."),
        (PUSH, "The user asked to avoid pushing to main; work goes to branches."),
        (PUSH, "Nothing may be pushed to `main`."),
        (BUDGET, "Cloud servers must not cost more than $500 (never spend more)."),
        (SCHEMA, "db/schema.sql: do not change it without approval."),
        ("Always run the linter before committing.", "Run the linter before each commit."),
    ],
)
def test_a_rule_that_is_there_in_any_words_is_kept(rule: str, after: str) -> None:
    assert checked(rule, after) == PinsCheck((rule,), ())


@pytest.mark.parametrize(
    ("rule", "after"),
    [
        (PUSH, "The importer was fixed. Its tests pass."),
        (PUSH, "The fix was pushed to main after review."),
        (BUDGET, "Never spend more than $800 on cloud."),
        (SCHEMA, "Nothing was changed without approval."),
        ("Always run the linter before committing.", "The tests were run twice."),
    ],
)
def test_a_rule_that_is_not_there_is_lost(rule: str, after: str) -> None:
    assert checked(rule, after) == PinsCheck((), (rule,))


def test_words_that_are_far_apart_say_nothing() -> None:
    after = "Never mind the weather.\nWe push data to the queue.\n" + "x.\n" * 9 + "main is fine."
    assert checked(PUSH, after).lost == (PUSH,)


def test_a_rule_that_the_user_repeats_or_that_was_preserved_is_kept() -> None:
    assert check_pins([turn(PUSH)], [summary("x"), turn(PUSH, 2)]).lost == ()
    assert check_pins([turn(PUSH)], [summary("x"), turn(PUSH)]).kept == (PUSH,)


def test_a_rule_that_a_file_says_is_kept() -> None:
    result = Message("tool", (ToolResult("c", (Text("# Rules\n- never push to main"),)),), "t1")
    assert check_pins([turn(PUSH)], [summary("x"), result]).kept == (PUSH,)


def test_what_a_model_or_a_tool_says_is_no_rule() -> None:
    before = [said(PUSH), Message("tool", (ToolResult("c", (Text(SCHEMA),)),), "t1")]
    assert check_pins(before, [summary("x")]) == PinsCheck((), ())


def test_rules_that_the_engine_carried_are_rules_of_the_next_boundary() -> None:
    carried = carry(Carried(), [turn(PUSH)])
    first = summary(f"Rules:\n- {PUSH}", carried)
    before = [first, turn(SCHEMA, 2)]
    result = check_pins(before, [summary(f"Rules:\n- {SCHEMA}", carried, 2)])
    assert result == PinsCheck((SCHEMA,), (PUSH,))


RECEIPT = Receipt(
    trigger="auto",
    tokens_before=100,
    tokens_after=10,
    basis="estimated",
    window=Window(200_000, "catalog"),
    target_tokens=50,
    steps=(),
    number=1,
)


def test_the_services_boundary_is_found_in_the_history() -> None:
    before = [turn(PUSH), said("Ok.")]
    history = History(before)
    history.apply(plan_of(before, [summary("x")], RECEIPT))
    history.append(said("On.", 2))
    boundary = around_boundary(history)
    assert boundary is not None
    assert boundary.before == tuple(before)
    assert [each.id for each in boundary.after] == ["s1", "a2"]
    assert check_pins(*boundary).lost == (PUSH,)


def test_a_runtimes_boundary_is_found_in_the_history() -> None:
    history = History([turn(PUSH), said("Ok.")])
    history.append(summary("x"))
    boundary = around_boundary(history)
    assert boundary is not None
    assert check_pins(*boundary).lost == (PUSH,)


def test_the_latest_boundary_counts() -> None:
    history = History([turn(PUSH), summary("x"), turn(SCHEMA, 2), summary("y", number=2)])
    boundary = around_boundary(history)
    assert boundary is not None
    assert check_pins(*boundary).lost == (SCHEMA,)


def test_without_a_boundary_or_with_an_encrypted_summary_nothing_is_judged() -> None:
    assert around_boundary(History([turn(PUSH)])) is None
    hidden = Message("assistant", (Opaque("compaction", 900),), "o1")
    assert around_boundary(History([turn(PUSH), summary("x"), hidden])) is None


def test_a_line_of_many_sentences_and_empty_lines_are_read_by_pairs() -> None:
    after = "\n\nIt began. It went on. Never push to main, said the user. Then it ended."
    assert checked(PUSH, after).kept == (PUSH,)


def test_what_the_model_thought_is_nothing_that_it_sees() -> None:
    thought = Message("assistant", (Thinking(PUSH, 5),), "a9")
    assert check_pins([turn(PUSH)], [summary("x"), thought]).lost == (PUSH,)


def test_a_rule_of_which_only_grammar_is_left_is_not_looked_for() -> None:
    assert not pins._Passages(["Never push to main."]).have("It is to be.")  # noqa: SLF001 -- no rule is such


def test_an_edit_after_a_boundary_leaves_what_was_before_it() -> None:
    history = History([turn(PUSH), said("Ok."), summary("x"), said("Then.", 2)])
    around = around_boundary(history)
    assert around is not None
    history.replace_active(history.active[:1])
    assert around_boundary(history) == AroundBoundary(around.before, tuple(history.active))
