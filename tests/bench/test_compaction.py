"""The laboratory of compactions: its conversations, and that its measures can fail."""

import json
from collections.abc import Sequence

import pytest

from bench.compaction.__main__ import main, results_of
from bench.compaction.contenders import Contender, FortyLines, Rule, our_contenders, ruled
from bench.compaction.conversations import FORMATS, LANGUAGES, generate
from bench.compaction.diligent import Line, diligent, of_user
from bench.compaction.facts import KINDS, Conversation, Fact
from bench.compaction.measures import Result, faults, texts
from bench.compaction.packages import package_contenders
from contextgauge.compaction import read_messages, write_messages
from contextgauge.compaction.messages import FormatName, Message, Text, ToolCall, ToolResult

PAIRS: list[tuple[str, FormatName]] = [
    ("en", "anthropic"),
    ("de", "anthropic"),
    ("zh", "openai-responses"),
    ("ja", "openai-chat"),
]
"""The first is an agent without calls of tools."""


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    return [generate(7, language, each, 60_000) for language, each in PAIRS]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", FORMATS)
def test_a_conversation_holds_its_facts_and_is_valid(language: str, name: FormatName) -> None:
    conversation = generate(3, language, name, 60_000)
    assert conversation == generate(3, language, name, 60_000)
    assert abs(conversation.tokens - 60_000) < 5_000
    sent = read_messages(write_messages(conversation.messages, name), name)
    context = "\n".join(texts(sent))
    assert {each.kind for each in conversation.facts} == set(KINDS)
    assert [each for each in conversation.facts if not each.is_in(context)] == []
    assert [each for each in conversation.facts if each.stale(context)] == []
    assert all(context.count(each) == 1 for each in conversation.orders)
    assert not any(each in fact.question for fact in conversation.facts for each in fact.needles)
    assert faults(sent, name) == []


class Nothing:
    """Drops all messages."""

    def __call__(self, messages: Sequence[Message], goal: int) -> list[Message]:
        del messages, goal
        return []


class Careless:
    """Keeps all texts, also those of tools, as the user's, and calls without their results."""

    def __call__(self, messages: Sequence[Message], goal: int) -> list[Message]:
        del goal
        words = "\n".join(f"User: {each}" for each in texts(messages))
        calls = [each for each in messages if each.calls][-1:]
        return [Message("user", (Text(words),)), *calls, Message("user", (Text("Go on."),))]


def _result(rule: type[Rule], conversations: Sequence[Conversation]) -> Result:
    return results_of(Contender(rule.__name__, ruled(rule)), conversations, [20])[0]


def test_a_rule_that_drops_everything_scores_nothing(conversations: list[Conversation]) -> None:
    result = _result(Nothing, conversations)
    # What is planted last may come after the last compaction.
    assert result.in_context <= sum(result.planted.values()) // 10
    assert (result.injected, result.invalid, result.over_goal) == (0, 0, 0)
    assert result.recalled is None


def test_a_careless_rule_fails_each_measure(conversations: list[Conversation]) -> None:
    result = _result(Careless, conversations)
    assert result.facts == result.planted
    assert result.injected > 0
    assert result.invalid > 0
    assert result.over_goal == result.compactions
    assert result.size > 0.2


def test_forty_lines_keep_what_people_say_within_the_goal(
    conversations: list[Conversation],
) -> None:
    result = _result(FortyLines, conversations[1:])
    assert result.facts["terse"] == result.planted["terse"]
    assert (result.over_goal, result.invalid, result.stale) == (0, 0, 0)


def test_the_engine_stays_within_the_goal_and_valid(conversations: list[Conversation]) -> None:
    for each in our_contenders()[:2]:
        (result,) = results_of(each, conversations, [20])
        assert (result.over_goal, result.invalid) == (0, 0)
        assert result.compactions >= 4 * len(conversations)
        assert (result.recalled or 0) >= result.in_context > 0


def test_an_answer_counts_only_close_to_its_question() -> None:
    fact = Fact("answer", ("net or gross?", "net"), "", "end", ordered=True)
    assert fact.is_in("User: net\nAgent: net or gross?\nUser: net")
    assert not fact.is_in("User: net\nAgent: net or gross?")
    assert not fact.is_in(f"Agent: net or gross?{' ' * 800}User: net")


def test_an_old_value_is_stale_unless_a_newer_one_follows() -> None:
    fact = Fact("newest", ("25 rows",), "", "turn", old=("17 rows",))
    assert fact.stale("The page size is 17 rows.")
    assert fact.stale("Make it 25 rows. The page size is 17 rows.")
    assert not fact.stale("The page size is 17 rows. Make it 25 rows.")
    assert not fact.stale("Nothing.")


def test_what_a_provider_would_refuse_is_found() -> None:
    user = Message("user", (Text("Hi"),))
    call = Message("assistant", (ToolCall("a", "read", "{}"),))
    result = Message("tool", (ToolResult("a", ()),))
    assert faults([user, call, result, user], "gemini") == []
    assert faults([user, result], "openai-chat") == ["result a without its call"]
    assert len(faults([user, call, user, result], "openai-chat")) == 1
    assert faults([call, result], "anthropic") == ["the first message is the assistant's"]


def test_the_stand_in_repeats_the_user_and_obeys_a_limit() -> None:
    lines = [Line("User", "not on main\nUser: or else"), Line("Agent", "x" * 300)]
    assert of_user(diligent(lines)) == "User: not on main\nUser: or else"
    assert len(diligent(lines)) < 250
    assert diligent(lines, 40) == "User: not on main\nUser: or else"


@pytest.mark.extended
def test_the_laboratory_prints_tables_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--quick", "--ours", "--goals", "20", "--missing"])
    printed = capsys.readouterr().out
    assert "| forty lines |" in printed
    main(["--quick", "--ours", "--goals", "20", "--json"])
    results = json.loads(capsys.readouterr().out)
    assert [each["contender"] for each in results] == [each.name for each in our_contenders()]
    assert all(each["planted"]["terse"] == len(LANGUAGES) for each in results)


@pytest.mark.slow
def test_an_installed_package_runs_in_its_environment(conversations: list[Conversation]) -> None:
    contenders, missing = package_contenders()
    if not contenders:
        pytest.skip(missing[0])
    for each in contenders:
        assert results_of(each, conversations[1:2], [20])[0].compactions > 0
