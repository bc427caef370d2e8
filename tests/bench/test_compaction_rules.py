"""The re-implemented selection rules, each by the message at which it divides a conversation."""

from collections.abc import Sequence

from bench.compaction.contenders import Budget, Rule
from bench.compaction.rules.cline import Cline
from bench.compaction.rules.deepagents import deepagents
from bench.compaction.rules.gemini_cli import gemini_cli
from bench.compaction.rules.opencode import opencode
from bench.compaction.rules.openhands import openhands
from bench.compaction.rules.pi import pi
from bench.compaction.summaries import careful
from contextgauge.compaction.messages import Message, Text, ToolCall, ToolResult

TOKENS = 100
"""Of each message below, without its role."""


def _message(role: str, name: str) -> Message:
    text = (Text(f"{name} ".ljust(4 * TOKENS, "x")),)
    if role == "tool":
        return Message("tool", (ToolResult(name, text, "read"),), id=f"result-{name}")
    if role == "call":
        call = ToolCall(name, "read", f'{{"path":"{name}.py"}}')
        return Message("assistant", (*text, call), id=f"call-{name}")
    return Message("user" if role == "user" else "assistant", text, id=name)


def _turn(number: int) -> list[Message]:
    """A turn of six messages: the user's, two calls with their results, the answer."""
    return [
        _message("user", f"u{number}"),
        _message("call", f"{number}a"),
        _message("tool", f"{number}a"),
        _message("call", f"{number}b"),
        _message("tool", f"{number}b"),
        _message("answer", f"answer{number}"),
    ]


CONVERSATION = [message for number in range(5) for message in _turn(number)]


def _kept(rule: Rule, recent_tokens: int, messages: Sequence[Message] = CONVERSATION) -> list[str]:
    budget = Budget(10_000, recent_tokens + 1_000, 1_000)
    known = {each.id for each in messages}
    return [each.id for each in rule(messages, budget, careful) if each.id in known]


def test_opencode_keeps_two_turns_that_fit() -> None:
    assert _kept(opencode, 3_000) == [each.id for each in CONVERSATION[-12:]]


def test_opencode_splits_the_turn_that_does_not_fit() -> None:
    assert _kept(opencode, 950) == [each.id for each in CONVERSATION[-9:]]
    assert _kept(opencode, 320) == ["call-4b", "result-4b", "answer4"]


def test_gemini_cli_divides_at_a_turn_of_the_user() -> None:
    assert _kept(gemini_cli, 1_000) == [each.id for each in CONVERSATION[-6:]]
    unfinished = [*CONVERSATION, _message("user", "u5"), *_turn(6)[1:3]]
    assert _kept(gemini_cli, 100, unfinished) == ["u5", "call-6a", "result-6a"]


def test_gemini_cli_compresses_all_where_no_turn_begins_late_enough() -> None:
    assert _kept(gemini_cli, 300) == []


def test_pi_cuts_at_the_message_that_reaches_the_tokens_but_not_at_a_result() -> None:
    assert _kept(pi, 150) == ["answer4"]
    assert _kept(pi, 300) == ["call-4b", "result-4b", "answer4"]


def test_pi_summarises_the_beginning_of_a_turn_that_it_splits() -> None:
    first = pi(CONVERSATION, Budget(10_000, 1_300, 1_000), careful)[0]
    assert first.compaction is not None
    assert "Turn Context (split turn)" in first.compaction.summary
    assert "<read-files>\n0a.py\n0b.py\n" in first.compaction.summary


def test_deepagents_takes_a_result_with_its_call() -> None:
    assert _kept(deepagents, 250) == ["call-4b", "result-4b", "answer4"]
    assert _kept(deepagents, 450) == ["call-4a", "result-4a", "call-4b", "result-4b", "answer4"]


def test_openhands_keeps_both_ends() -> None:
    kept = _kept(openhands, 420)
    assert kept[:3] == ["u0", "call-0a", "result-0a"]
    assert kept[3:] == ["answer4"]


def test_cline_keeps_prompts_conclusions_and_the_end_that_fits() -> None:
    rule = Cline()
    messages = rule(CONVERSATION, Budget(10_000, 1_150, 0), careful)
    work = ["call-4a", "result-4a", "call-4b", "result-4b", "answer4"]
    assert [each.id for each in messages] == ["u0", "answer3", "u4", *work]
    text = messages[0].text
    assert [f"u{number} " in text for number in range(5)] == [True, True, True, True, False]
    assert text.count("Files read:\n") == 4
    assert "Files read:\n0a.py\n0b.py" in text


def test_cline_never_folds_again_what_it_kept() -> None:
    rule = Cline()
    first = rule(CONVERSATION, Budget(10_000, 1_150, 0), careful)
    second = rule([*first, *_turn(5)], Budget(10_000, 600, 0), careful)
    assert [each.id for each in second] == [*(each.id for each in first), "u5"]
    assert "Files read:\n5a.py\n5b.py" in second[-1].text
