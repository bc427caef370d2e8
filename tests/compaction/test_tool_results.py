"""The rungs before a summary: results and arguments made short, in place."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.cutting import middle_cut
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.engine.tool_arguments import Edited, shorten_arguments
from contextgauge.compaction.engine.tool_results import (
    clear_results,
    deduplicate,
    fitting,
    shorten_message,
)
from contextgauge.compaction.formats import read_messages, write_messages
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import (
    Content,
    FormatName,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
)
from contextgauge.compaction.profiles import DEFAULT, Profile
from contextgauge.records import Json
from tests.compaction.conversations import call, conversations, orphans, result, said

LONG = "some line of a file\n" * 200


def uses(count: int, *, name: str = "read", text: str = LONG) -> list[Message]:
    return [
        Message(each.role, each.blocks, id=f"m{2 * number + offset}")
        for number in range(count)
        for offset, each in enumerate(
            (call(f"c{number}", name, f'{{"path":"src/f{number}.py"}}'), result(f"c{number}", text))
        )
    ]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ((Image(900, "image/png"),), "image/png"),
        ((Text(LONG), Image(9), Image(9)), "4,000 characters and 2 image"),
        (
            (Text("a"), Image(900, "image/png"), Image(9, "image/gif")),
            "1 characters and image/png, image/gif",
        ),
    ],
)
def test_the_notice_names_the_images_of_a_result(content: tuple[Content, ...], what: str) -> None:
    messages = uses(5)
    messages[1] = Message("tool", (ToolResult("c0", content, "read"),), id="m1")
    edited = clear_results(messages, DEFAULT, ESTIMATE, 900)
    assert edited.messages[1].results[0].text == (
        f"[Result of read cleared to save context: {what}.]"
    )


def test_old_results_are_cleared_and_the_last_three_stay() -> None:
    edited = clear_results(uses(5), DEFAULT, ESTIMATE, 1_000_000)
    assert edited.changed == ("m1", "m3")
    assert edited.messages[1].results[0].text == (
        "[Result of read cleared to save context: 4,000 characters.]"
    )
    assert [each.results[0].text for each in edited.messages[5::2]] == [LONG] * 3


def test_a_notice_names_the_message_where_the_model_can_recall_it() -> None:
    edited = clear_results(uses(5), DEFAULT, ESTIMATE, 1_000_000, offers_recall=True)
    assert edited.messages[1].results[0].text == (
        "[Result of read cleared to save context: 4,000 characters. To see it again: recall m1.]"
    )


def test_what_failed_stays_above_the_notice() -> None:
    messages = uses(5)
    trace = f"Traceback:\n{LONG}\nImportError: no module lxml"
    messages[1] = Message("tool", (ToolResult("c0", (Text(trace),), "bash"),), id="m1")
    edited = clear_results(messages, DEFAULT, ESTIMATE, 900)
    first, notice = edited.messages[1].results[0].text.split("\n")
    assert first == "ImportError: no module lxml"
    assert notice.startswith("[Result of read cleared to save context: 4,")


def test_of_a_long_failure_beginning_and_end_stay_above_the_notice() -> None:
    messages = uses(5)
    log = f"Exit code 1\n{LONG}\nE118: no such relation\nmake: *** [test] Error 2"
    messages[1] = Message("tool", (ToolResult("c0", (Text(log),), "bash"),), id="m1")
    text = clear_results(messages, DEFAULT, ESTIMATE, 900).messages[1].results[0].text
    assert text.startswith("Exit code 1\n")
    assert "E118: no such relation\nmake: *** [test] Error 2\n[Result of read" in text
    assert len(text) < 300


def test_arguments_of_the_latest_call_give_way_as_far_as_results_do() -> None:
    arguments = {"path": "a.py", "old": "o" * 4_000, "new": "n" * 4_000}
    latest = [call("c", "edit", json.dumps(arguments)), result("c", "done " * 800)]
    shorter = fitting(latest, 300, DEFAULT, ESTIMATE)
    assert sum(map(ESTIMATE.message, shorter)) <= 300
    assert json.loads(shorter[0].calls[0].arguments).keys() == arguments.keys()


def test_no_more_is_cleared_than_is_needed() -> None:
    edited = clear_results(uses(8), DEFAULT, ESTIMATE, 900)
    assert edited.changed == ("m1",)


def test_excluded_tools_are_left_alone() -> None:
    assert clear_results(uses(5, name="memory"), DEFAULT, ESTIMATE, 10_000).changed == ()
    assert deduplicate(uses(5, name="memory"), DEFAULT).changed == ()


def test_what_later_messages_mention_is_cleared_last() -> None:
    messages = [*uses(6), said("user", "Now fix src/f0.py please")]
    edited = clear_results(messages, DEFAULT, ESTIMATE, 900)
    assert edited.changed == ("m3",)


def test_a_result_that_stands_again_later_becomes_a_reference() -> None:
    messages = uses(2)
    edited = deduplicate(messages, DEFAULT)
    assert edited.changed == ("m1",)
    assert (
        edited.messages[1].results[0].text
        == "[A later call of this tool has the same result, below.]"
    )
    assert edited.messages[3] == messages[3]


def test_long_texts_in_old_arguments_are_cut_and_stay_json() -> None:
    arguments = json.dumps({"path": "a.py", "file_text": "x" * 5_000, "deep": ["y" * 2_000, 1]})
    messages = [call("a", "write", arguments), result("a"), call("b", "write", arguments)]
    edited = shorten_arguments([*messages, result("b")], DEFAULT, range(2), ESTIMATE, 10**9)
    value = json.loads(edited.messages[0].calls[0].arguments)
    assert value["path"] == "a.py"
    assert value["file_text"] == "x" * 200 + "\n[4,800 characters left out]"
    assert value["deep"][1] == 1
    assert edited.messages[2] == messages[2]


def writes(count: int, characters: int) -> list[Message]:
    """Calls that write one file each, with their results."""
    messages: list[Message] = []
    for number in range(count):
        arguments = json.dumps({"path": f"{number}.py", "text": "x = 1\n" * (characters // 6)})
        messages += [call(f"w{number}", "write", arguments), result(f"w{number}")]
    return messages


def test_arguments_are_shortened_oldest_first_until_enough_is_saved() -> None:
    messages = writes(4, 6_000)
    edited = shorten_arguments(messages, DEFAULT, range(8), ESTIMATE, 2_000)
    assert [new is old for new, old in zip(edited.messages, messages, strict=True)] == [
        *(False, True, False, True),
        *(True,) * 4,
    ]


def test_calls_that_are_too_large_together_lose_what_does_not_fit_and_no_more() -> None:
    messages = writes(5, 30_000)
    room = sum(map(ESTIMATE.message, messages)) - 300
    fitted = fitting(messages, room, DEFAULT, ESTIMATE)
    assert room - 100 <= sum(map(ESTIMATE.message, fitted)) <= room
    assert fitted[1:] == messages[1:]
    assert json.loads(fitted[0].calls[0].arguments)["path"] == "0.py"


def test_arguments_that_are_no_object_are_wrapped_in_one() -> None:
    edited = shorten_arguments(
        [call("a", "run", "z" * 5_000), result("a")], DEFAULT, range(2), ESTIMATE, 10**9
    )
    assert list(json.loads(edited.messages[0].calls[0].arguments)) == ["shortened"]


def test_arguments_of_an_open_call_are_left_alone() -> None:
    assert (
        shorten_arguments(
            [call("a", "run", "z" * 5_000)], DEFAULT, range(1), ESTIMATE, 10**9
        ).changed
        == ()
    )


def test_a_message_that_is_too_large_alone_is_cut_in_its_middle() -> None:
    message = Message("tool", (ToolResult("a", (Text("HEAD" + "x" * 40_000 + "TAIL"),)),))
    shorter = shorten_message(message, 500, ESTIMATE)
    text = shorter.results[0].text
    assert ESTIMATE.message(shorter) <= 500
    assert text.startswith("HEAD")
    assert text.endswith("TAIL")
    assert "characters left out" in text


def test_calls_in_a_message_are_never_cut() -> None:
    message = Message("assistant", (Text("x" * 8_000), ToolCall("a", "write", "y" * 4_000)))
    shorter = shorten_message(message, 1_200, ESTIMATE)
    assert shorter.calls == message.calls
    assert len(shorter.text) < 1_000


def test_a_cut_says_how_much_is_missing() -> None:
    assert middle_cut("a" * 1_000, 400) == ("a" * 247 + "\n[629 characters left out]\n" + "a" * 124)


@settings(max_examples=30)  # many more in test_properties
@given(conversations())
def test_rungs_separate_no_call_from_its_result_and_do_nothing_twice(
    messages: list[Message],
) -> None:
    profile = Profile(clear_keep=1, argument_characters=200)
    messages = [
        Message(each.role, each.blocks, id=f"m{index}") for index, each in enumerate(messages)
    ]
    rungs: tuple[Callable[[list[Message]], Edited], ...] = (
        lambda each: deduplicate(each, profile),
        lambda each: clear_results(each, profile, ESTIMATE, 10**9),
        lambda each: shorten_arguments(each, profile, range(len(each)), ESTIMATE, 10**9),
    )
    for rung in rungs:
        once = rung(messages)
        assert orphans(once.messages) == orphans(messages)
        assert sum(map(ESTIMATE.message, once.messages)) <= sum(map(ESTIMATE.message, messages))
        assert rung(once.messages).changed == ()


@pytest.mark.parametrize(
    ("name", "items"),
    [
        (
            "openai-responses",
            [
                {
                    "type": "custom_tool_call",
                    "call_id": "a",
                    "name": "apply_patch",
                    "input": "*** Begin Patch\n" + "+line\n" * 900,
                }
            ],
        ),
        (
            "openai-chat",
            [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "a",
                            "type": "custom",
                            "custom": {
                                "name": "apply_patch",
                                "input": "*** Begin Patch\n" + "+line\n" * 900,
                            },
                        }
                    ],
                }
            ],
        ),
    ],
)
def test_the_free_text_of_a_custom_tool_stays_text(name: FormatName, items: list[Json]) -> None:
    edited = shorten_arguments(
        [*read_messages(items, name), result("a")], DEFAULT, range(1), ESTIMATE, 10**9
    )
    shortened = edited.messages[0].calls[0].arguments
    assert shortened.startswith("*** Begin Patch\n+line")
    assert len(shortened) < 1_000
    assert json.dumps(shortened) in json.dumps(write_messages(edited.messages[:1], name))


def grown(name: str, message_id: str, arguments: str) -> list[Message]:
    messages = [said("user", "go")]
    for number in range(8):
        text = ("x" if number % 2 else f"{number} ") * 210
        messages += [
            Message("assistant", (ToolCall(f"c{number}", name, arguments),)),
            Message(
                "tool",
                (ToolResult(f"c{number}", (Text(text[:210]),), name),),
                f"{number}{message_id}",
            ),
        ]
    return [*messages, said("assistant", "ok")]


@pytest.mark.parametrize(
    "messages",
    [
        grown("t" * 400, "m", "{}"),
        grown("read", "m" * 600, "{}"),
        grown("read", "m", '{"a":"' + "y" * 1_001 + '","n":[' + "1e15," * 900 + "1]}"),
        grown("read", "m", "\x01" * 1_001),
    ],
    ids=["tool's name", "message's id", "numbers", "controls"],
)
def test_no_rung_makes_a_conversation_longer(messages: list[Message]) -> None:
    profile = replace(DEFAULT, clear_keep=0)
    before = sum(map(ESTIMATE.message, messages))
    for edited in (
        clear_results(messages, profile, ESTIMATE, 10**6),
        deduplicate(messages, profile),
        shorten_arguments(messages, profile, range(len(messages)), ESTIMATE, 10**9),
    ):
        assert sum(map(ESTIMATE.message, edited.messages)) <= before


@pytest.mark.parametrize(("offered", "recallable"), [(True, True), (None, False)])
async def test_a_compaction_speaks_of_recall_only_where_the_call_offers_it(
    offered: bool | None, recallable: bool
) -> None:
    history = History([said("user", "Read them."), *uses(8), said("assistant", "Done.")])
    call = ModelCall(window_tokens=12_000, recall=offered)
    compactor = Compactor(profile=replace(DEFAULT, rungs=("clear-results",)))
    prepared = await compactor.before_call(history, call)
    texts = [each.text for message in prepared.messages for each in message.results]
    cleared = [each for each in texts if "cleared to save context" in each]
    assert [recallable] * len(cleared) == [": recall " in each for each in cleared] != []
