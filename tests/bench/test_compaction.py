"""The benchmark of compactions: its sessions, its measures, and the rules that it re-implements."""

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest

from bench.compaction import planning
from bench.compaction.__main__ import all_contenders, budget_of, compare, main
from bench.compaction.calls import argument, files_of
from bench.compaction.contenders import Contender, text_message, tokens_of
from bench.compaction.conversations import Conversation, generate
from bench.compaction.measures import Result, is_stale, orphans, play
from bench.compaction.others import controls, other_contenders
from bench.compaction.rules.openhands import KEEP_FIRST
from bench.compaction.summaries import STAND_INS, STYLES, Style
from contextgauge.compaction.messages import Message, ToolCall, ToolResult

WINDOW = 12_000
BUDGET = budget_of(30, WINDOW)


@pytest.fixture(scope="module")
def conversation() -> Conversation:
    return generate(7, rounds=3, round_tokens=WINDOW * 3 // 4)


def _results(contenders: Sequence[Contender], conversation: Conversation) -> dict[str, Result]:
    results = compare(contenders, [conversation], BUDGET)
    return {each.contender: each for each in results if each.style == "even"}


def test_a_session_is_the_same_for_the_same_seed(conversation: Conversation) -> None:
    assert generate(7, rounds=3, round_tokens=WINDOW * 3 // 4) == conversation
    assert generate(8, rounds=3, round_tokens=WINDOW * 3 // 4) != conversation


def test_each_value_comes_once_and_from_the_user(conversation: Conversation) -> None:
    messages = [message for each in conversation.rounds for message in each]
    values = [each.value for each in conversation.constraints]
    values += [each.value for topic in conversation.topics for each in topic.values]
    assert len(set(values)) == len(values)
    for value in values:
        places = [m for m in messages if any(value in str(block) for block in m.blocks)]
        assert [each.role for each in places] == ["user"], value


def test_values_are_replaced_in_order(conversation: Conversation) -> None:
    assert all(len(topic.values) > 1 for topic in conversation.topics)
    for topic in conversation.topics:
        assert all(older.round <= newer.round for older, newer in pairwise(topic.values))


def test_the_measures_tell_the_two_ends_apart(conversation: Conversation) -> None:
    results = _results(controls(), conversation)
    most, least = results["keep everything"], results["keep nothing"]
    assert (most.constraints, most.resolved, most.stale, most.files) == (1, 1, 0, 1)
    assert most.over_budget == 1
    assert most.tokens_share > 2
    assert (least.constraints, least.resolved, least.files, least.over_budget) == (0, 0, 0, 0)


def test_an_old_value_is_stale_unless_a_newer_one_follows() -> None:
    assert is_stale(["17 rows", "25 rows"], "The page size is 17 rows.")
    assert is_stale(["17 rows", "25 rows"], "Make it 25 rows. The page size is 17 rows.")
    assert not is_stale(["17 rows", "25 rows"], "The page size is 17 rows. Make it 25 rows.")
    assert not is_stale(["17 rows", "25 rows"], "Nothing.")


def test_orphans_are_calls_and_results_without_each_other() -> None:
    call = Message("assistant", (ToolCall("a", "read", "{}"),))
    result = Message("tool", (ToolResult("a", ()),))
    assert orphans([call, result]) == 0
    assert orphans([result, call]) == 2
    assert orphans([call]) == orphans([result]) == 1


@pytest.mark.parametrize("contender", all_contenders(), ids=lambda each: each.name)
def test_every_contender_keeps_calls_and_results_together(
    contender: Contender, conversation: Conversation
) -> None:
    readings = play(contender, conversation, BUDGET, "careful")
    assert [each.orphans for each in readings] == [0, 0, 0]


@pytest.mark.parametrize("contender", other_contenders(), ids=lambda each: each.name)
def test_a_rule_makes_a_session_smaller_and_keeps_its_end(
    contender: Contender, conversation: Conversation
) -> None:
    session = contender.begin(BUDGET, "even")
    for messages in conversation.rounds:
        session.extend(messages)
        before = tokens_of(session.active)
        session.compact()
        assert tokens_of(session.active) < before
        assert session.active[0].role == "system"
    last_turn = next(each for each in reversed(conversation.rounds[-1]) if each.is_user_turn)
    context = str(session.active)
    assert last_turn.text[:40] in context or "- User: " in context


def test_pi_lists_files_over_all_rounds(conversation: Conversation) -> None:
    assert _results(other_contenders(), conversation)["pi"].files == 1


def test_cline_keeps_all_prompts(conversation: Conversation) -> None:
    cline = _results(other_contenders(), conversation)["cline (basic)"]
    assert (cline.constraints, cline.stale) == (1, 0)


def test_openhands_keeps_the_first_messages(conversation: Conversation) -> None:
    openhands = next(each for each in other_contenders() if each.name == "OpenHands")
    session = openhands.begin(BUDGET, "even")
    session.extend(conversation.rounds[0])
    session.compact()
    assert tuple(session.active[: KEEP_FIRST + 1]) == conversation.rounds[0][: KEEP_FIRST + 1]


@pytest.mark.parametrize("style", STYLES)
def test_a_stand_in_obeys_its_limit(style: Style, conversation: Conversation) -> None:
    write = STAND_INS[style]
    messages = conversation.rounds[0]
    text = write(messages, "", 300)
    assert 0 < len(text) <= 1_200
    assert write(messages, text, 0) == ""


def test_the_careful_stand_in_keeps_rules_first() -> None:
    talk = [text_message("user", f"This is remark {'x' * number}.") for number in range(40)]
    rule = text_message("user", "Never edit the vendor folder.")
    text = STAND_INS["careful"]([rule, *talk], "", 40)
    assert "Never edit the vendor folder." in text
    again = STAND_INS["careful"](talk, text, 40)
    assert "Never edit the vendor folder." in again


def test_files_are_read_from_the_calls() -> None:
    calls = [
        ToolCall("a", "read", '{"path":"a.py"}'),
        ToolCall("b", "edit", '{"path":"b.py"}'),
        ToolCall("c", "bash", '{"command":"pytest"}'),
    ]
    assert files_of([Message("assistant", tuple(calls))]) == {"a.py": False, "b.py": True}
    assert argument(calls[2], "path") == ""


def test_results_are_printed_as_text_json_and_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--sessions", "1", "--window", str(WINDOW), "--budgets", "20"]
    main(few)
    assert "keep everything" in capsys.readouterr().out
    main([*few, "--markdown"])
    assert "| keep nothing | 0 | 0 | 0 |" in capsys.readouterr().out
    main([*few, "--json"])
    results = json.loads(capsys.readouterr().out)
    assert len(results) == 2 * len(all_contenders())
    assert {each["budget_share"] for each in results} == {0.2}


def test_the_cost_of_planning_has_a_line_for_each_length(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(planning, "MESSAGES", (40, 400))
    main(["--planning"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" messages ")[0].strip() for line in lines] == ["40", "400"]
    assert all(line.endswith(" s") for line in lines)
