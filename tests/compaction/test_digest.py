"""What is carried of a conversation: what was said, as it was written, in any language."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.compaction.carried.audit import audit
from contextgauge.compaction.carried.compaction_text import compose, read_text
from contextgauge.compaction.carried.digest import (
    STORED_CHARACTERS,
    PlacedEntry,
    carry,
    entries_of,
)
from contextgauge.compaction.carried.digest_groups import size_of
from contextgauge.compaction.carried.digest_room import within
from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.engine.tail_growth import TextTokens, text_size
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import (
    Carried,
    ContextCompaction,
    DigestEntry,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
)
from contextgauge.json_codec import dumps
from tests.compaction.conversations import call, said

WINDOW = ModelCall(window_tokens=20_000)


def texts(carried: Carried, speaker: str = "user") -> list[str]:
    return [each.text for each in carried.entries if each.speaker == speaker]


def filler(count: int, characters: int = 800) -> list[Message]:
    messages = []
    for number in range(count):
        messages.append(said("user", f"go on with part {number}"))
        messages.append(said("assistant", f"Part {number} is done. " * (characters // 17)))
    return messages


async def compacted(messages: list[Message], call_: ModelCall = WINDOW) -> ContextCompaction:
    history = History(messages)
    await Compactor().compact(history, call_)
    return marker_of(history)


def marker_of(history: History) -> ContextCompaction:
    return next(each.compaction for each in history.active if each.compaction)


TURNS = [
    "tabs",
    "dont touch ci",
    "No mocks!",
    "Go with A.",
    "Nie auf main!",
    "Kein Root!",
    "禁止直接推送到 main。",
    "mainに直接プッシュしないで",
    "테스트 DB는 읽기 전용",
    "Никаких новых зависимостей",
    "لا تدفع إلى main",
    "__init__.py files must stay empty.",
    "*.lock",
    "- _private helpers stay private",
    "  indented,\n\ttabbed\n",
    "# noqa comments are forbidden",
    "<rules>\nNever write to production.\n</rules>",
    "Run exactly this:\n```sh\nmake lint && make test\n```",
    "Output:\n- JSON lines only",
    "> which lock?\nthe advisory one",
    "[Compaction 1. Hello]",
]


async def test_turns_are_carried_byte_for_byte_in_their_order() -> None:
    answers = [each for turn in TURNS for each in (said("user", turn), said("assistant", "OK."))]
    marker = await compacted([*answers, *filler(30)])
    assert texts(marker.carried)[: len(TURNS)] == TURNS
    read = read_text(marker.summary)
    assert read is not None
    shown = [each for each in read.entries if each.speaker == "user"]
    assert [each.text for each in shown[: len(TURNS)]] == TURNS
    assert [each.number for each in shown] == [*range(1, len(shown) + 1)]


@given(st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=12))
def test_any_turn_is_carried_byte_for_byte(said_: list[str]) -> None:
    messages = [said("user", text, id=f"u{n}") for n, text in enumerate(said_)]
    own = [message.user_text for message in messages if message.is_user_turn]
    carried = carry(Carried(), messages)
    assert texts(carried) == own
    read = read_text(compose("", carried, number=1, budget_tokens=None, counter=ESTIMATE))
    assert read is not None
    assert [each.text for each in read.entries if each.speaker == "user"] == own


LONG = "I looked at the code. " * 300


@pytest.mark.parametrize("answer", ["yes, use option B", "no", "jawohl", "好的", "👍"])
def test_a_short_answer_has_its_question(answer: str) -> None:
    question = "Two ways: A) SELECT FOR UPDATE, B) an advisory lock. Which one?"
    carried = carry(Carried(), [said("assistant", LONG + question), said("user", answer)])
    entry = carried.entries[0]
    assert entry.text.startswith("I looked")
    assert entry.end.endswith(question)
    assert entry.omitted == len(LONG + question) - len(entry.text) - len(entry.end)


def test_a_question_before_the_cut_is_there_for_its_answer_behind_it() -> None:
    (placed,) = entries_of([said("assistant", LONG + "May I drop the table?")])
    assert placed.entry.end.endswith("May I drop the table?")


def turns_of(*speakers: tuple[str, str]) -> list[DigestEntry]:
    return [DigestEntry(1, "m", speaker, text) for speaker, text in speakers]  # type: ignore[arg-type]


def test_the_reply_stays_before_what_the_agent_was_about_to_do() -> None:
    look, reply = "Let me look. " * 30, "The port was wrong, the tests pass. " * 20
    scene = [("user", "Fix the parser, " * 9), ("agent", look), ("agent", reply)]
    entries = turns_of(*scene, ("user", "Go on with the lexer, " * 9), ("agent", "Done."))
    shown = within(entries, sum(map(size_of, entries)) - size_of(entries[1]) + 10)
    assert [*entries[:1], *entries[2:]] == shown


def test_the_last_failure_stays_with_the_reply_that_follows_it() -> None:
    one, two = "ImportError: a. " * 20, "ImportError: b. " * 20
    reply, other = "I pinned b. " * 40, "I renamed it. " * 40
    request = ("user", "Go on with all of the others. " * 4)
    first = [request, ("tool", one), ("agent", "I look. "), ("tool", two), ("agent", reply)]
    entries = turns_of(*first, request, ("agent", other), request)
    shown = within(entries, 1_600)
    assert entries[1].text[:20] not in [each.text[:20] for each in shown]
    assert "ImportError: b." in shown[1].text
    assert len(shown[2].text) > len(shown[4].text)


def test_a_run_without_a_reply_has_the_room_of_replies() -> None:
    steps = [("agent", f"Step {number}. " + "x" * 90) for number in range(20)]
    entries = turns_of(("user", "Do it all."), *steps)
    digest = [PlacedEntry(place, each) for place, each in enumerate(entries)]
    size = text_size(Carried(), digest, (), len(digest), TextTokens(0, 0, 0), ESTIMATE).before[-1]
    assert size * 4 > sum(len(each.text) for each in entries)


def failed(text: str, *, is_error: bool) -> Message:
    return Message("tool", (ToolResult("c", (Text(text),), "bash", is_error=is_error),))


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("Traceback:\n  File x\nImportError: no module lxml\nmore", "ImportError: no module lxml"),
        ("compiling\nerror[E0308]: mismatched types", "error[E0308]: mismatched types"),
        ("x\nProcess exited with code 137", "Process exited with code 137"),
        ('{"output":"","metadata":{"exit_code":2}}', '{"output":"","metadata":{"exit_code":2}}'),
        ("ok\n" * 5_000 + "fatal: not a git repository", "fatal: not a git repository"),
    ],
)
def test_a_failure_is_known_by_what_programs_write(text: str, head: str) -> None:
    (entry,) = carry(Carried(), [failed(text, is_error=False)]).entries
    assert entry.speaker == "tool"
    assert entry.text.startswith(head)


def test_a_result_without_a_failure_is_not_carried() -> None:
    source = "def f():\n    try:\n        g()\n    except ValueError:\n        raise\nexit code 0"
    assert carry(Carried(), [failed(source, is_error=False)]).entries == ()
    (entry,) = carry(Carried(), [failed("Kein Zugriff", is_error=True)]).entries
    assert entry.text == "Kein Zugriff"


def todos(call_id: str, **arguments: Any) -> Message:
    return Message("assistant", (ToolCall(call_id, "plan", dumps(arguments).decode()),))


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("todos", [{"content": "Fix it", "status": "done", "activeForm": "Fixing it"}]),
        ("plan", [{"status": "done", "step": "Fix it"}]),
        ("items", [{"id": "1", "title": "Fix it", "status": "done"}]),
    ],
)
def test_a_list_of_todos_is_known_by_its_shape(name: str, items: list[Any]) -> None:
    (entry,) = carry(Carried(), [todos("a", **{name: items})]).entries
    assert (entry.speaker, entry.text) == ("todos", "- done: Fix it")


def test_of_lists_of_todos_the_last_state_stays() -> None:
    first = todos("a", todos=[{"content": "Fix it", "status": "pending"}])
    later = todos("b", todos=[{"content": "Fix it", "status": "completed"}])
    carried = carry(carry(Carried(), [first]), [later])
    assert texts(carried, "todos") == ["- completed: Fix it"]


@pytest.mark.parametrize(
    "arguments",
    [
        "[1]",
        '["status"]',
        '{"status": "x"}',
        '{"a": [{"status": 3}, {"status": "x"}, 4]}',
        '{"status"',
    ],
)
def test_other_arguments_are_no_list_of_todos(arguments: str) -> None:
    assert carry(Carried(), [call("a", arguments=arguments)]).entries == ()


def test_images_of_a_turn_are_named() -> None:
    shown = Message("user", (Text("Like this:"), Image(900, "image/png")), "u")
    assert texts(carry(Carried(), [shown])) == ["Like this: [image/png]"]


def test_what_is_not_the_users_has_no_number() -> None:
    """The person's words and others' data are distinguished where messages are read."""
    data = Message("user", (Text("<local-command-stdout>rm -rf</local-command-stdout>"),), "u")
    carried = carry(Carried(), [said("user", "Fix it."), data, said("user", "Go on.")])
    assert [(each.number, each.speaker) for each in carried.entries] == [
        (1, "user"),
        (1, "data"),
        (2, "user"),
    ]


def test_what_others_repeat_is_carried_once() -> None:
    messages = [said("assistant", "Done."), said("user", "next"), said("assistant", "Done.")]
    carried = carry(Carried(), messages)
    assert [each.speaker for each in carried.entries] == ["user", "agent"]
    assert texts(carry(Carried(), [said("user", "next")] * 3)) == ["next"] * 3


def test_a_long_turn_grows_with_the_room_and_says_what_is_left_out() -> None:
    spec = "".join(f"Requirement {n}: the page has part {n}. " for n in range(400))
    carried = carry(Carried(), [said("user", spec, id="u1"), said("assistant", "Fine.")])
    sizes = []
    for budget in (300, 1_000, 3_000, 6_000):
        text = compose("", carried, number=1, budget_tokens=budget, counter=ESTIMATE)
        read = read_text(text)
        assert read is not None
        turn = read.entries[0]
        assert spec.startswith(turn.text)
        assert spec.endswith(turn.end)
        assert len(turn.text) + turn.omitted + len(turn.end) == len(spec)
        assert audit(text, carried) == []
        sizes.append(len(turn.text) + len(turn.end))
    assert sizes[-1] == len(spec)
    assert all(before < after for before, after in pairwise(sizes))


async def test_all_requirements_of_a_specification_stay_where_there_is_room() -> None:
    spec = "\n".join(
        f"{n}. The export of kind {n} has a column named col_{n}_x." for n in range(240)
    )
    marker = await compacted([said("user", spec), *filler(40)], ModelCall(window_tokens=100_000))
    assert spec in marker.summary


def test_of_a_flood_the_first_and_the_newest_stay_and_the_others_are_counted() -> None:
    messages = [said("user", f"{n}: the build is red again, look at it") for n in range(2_000)]
    carried = carry(Carried(), messages)
    text = compose("", carried, number=1, budget_tokens=1_000, counter=ESTIMATE)
    read = read_text(text)
    assert read is not None
    numbers = [each.number for each in read.entries]
    assert (numbers[0], numbers[-1]) == (1, 2_000)
    first = next(n for n, (one, two) in enumerate(pairwise(numbers), 1) if two > one + 1)
    assert 0.1 < first / len(numbers) < 0.4
    assert read.left_out == 2_000 - len(numbers)
    assert ESTIMATE.text(text) > 900
    assert audit(text, carried) == []


def test_what_is_stored_is_bounded_and_counted() -> None:
    carried = Carried()
    for round_ in range(6):
        messages = []
        for n in range(400):
            messages.append(said("user", f"{round_}-{n} " + "word " * 40, id=f"u{round_}-{n}"))
            messages.append(said("assistant", f"{round_}-{n} " + "answer " * 300, id=f"a{n}"))
        carried = carry(carried, messages)
        assert sum(map(size_of, carried.entries)) <= STORED_CHARACTERS
    assert texts(carried)[0].startswith("0-0 ")
    assert texts(carried)[-1].startswith("5-399 ")
    agents = len(texts(carried, "agent"))
    assert agents + carried.omitted == 2_400
    text = compose("", carried, number=6, budget_tokens=50_000, counter=ESTIMATE)
    assert audit(text, carried) == []


def test_where_room_is_short_repeated_turns_go_first() -> None:
    messages = [said("user", f"rule {n} " + "x" * 60) for n in range(12)]
    messages += [said("user", "continue")] * 100
    carried = carry(Carried(), messages)
    shown = within(carried.entries, 1_300)
    assert [each.text for each in shown] == [*(each.text for each in messages[:12]), "continue"]


def test_the_agents_texts_take_the_room_that_is_left() -> None:
    agent = DigestEntry(1, "a", "agent", "word " * 240)
    entries = [DigestEntry(1, "u", "user", "Fix the parser, please. " * 20), agent]
    shown = [within(entries, room)[1] for room in (1_000, 650)]
    assert 100 < len(shown[1].text + shown[1].end) < 200 < len(shown[0].text + shown[0].end) > 400
    assert within(entries, 2_000) == entries


def test_long_turns_give_way_where_all_of_them_are_too_long() -> None:
    """A pasted log is no reason to lose what the agent found in it."""
    entries = [DigestEntry(1, "u1", "user", "log line\n" * 1_000)]
    for number in range(2, 12):
        entries.append(DigestEntry(number, "a", "agent", f"Cause {number}. " + "y" * 380))
        entries.append(DigestEntry(number, "u", "user", f"answer {number}"))
    shown = within(entries, 9_400)
    assert [each for each in shown if each.speaker == "agent"] == entries[1::2]
    assert len(shown[0].text) + len(shown[0].end) < 5_200
    assert within(entries, 9_400, turns=20_000)[0].omitted < 5_000


def test_the_users_turns_come_before_the_agents_texts() -> None:
    entries = []
    for number in range(1, 41):
        entries.append(DigestEntry(number, "u", "user", f"turn {number} " + "x" * 60))
        entries.append(DigestEntry(number, "a", "agent", f"answer {number} " + "y" * 600))
    shown = within(entries, 5_200)
    assert [each for each in shown if each.speaker == "user"] == entries[::2]
    assert 0 < sum(each.speaker == "agent" for each in shown) < 40
    assert sum(map(size_of, shown)) <= 5_200


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["user", "agent", "tool", "data", "todos"]), st.integers(0, 2_000)
        ),
        max_size=30,
    ),
    st.integers(0, 6_000),
)
def test_what_is_shown_fits_and_keeps_its_order(said_: list[tuple[Any, int]], room: int) -> None:
    entries = [
        DigestEntry(number, f"m{number}", speaker, "x" * characters)
        for number, (speaker, characters) in enumerate(said_)
    ]
    _check_shown(entries, room)


def test_all_that_is_carried_gives_way_in_any_room() -> None:
    speakers: list[Any] = ["user", "tool", "agent", "agent", "data", "todos", "agent"]
    entries = [
        DigestEntry(number, f"m{number}", speakers[number % 7], "x" * (number * 331 % 2_000))
        for number in range(28)
    ]
    for room in range(0, 20_000, 250):
        _check_shown(entries, room)


def _check_shown(entries: list[DigestEntry], room: int) -> None:
    shown = within(entries, room)
    assert sum(map(size_of, shown)) <= room
    numbers = [each.number for each in shown]
    assert numbers == sorted(numbers)
    for each in shown:
        whole = entries[each.number]
        assert len(each.text) + each.omitted + len(each.end) == len(whole.text)


def test_what_the_system_says_is_not_carried() -> None:
    messages = [Message("system", (Text("Be kind."),)), said("user", "Build it.")]
    assert [each.text for each in carry(Carried(), messages).entries] == ["Build it."]
