"""What a request of an API may have, of conversations as transcripts have them."""

from typing import Any

import pytest

from contextgauge.compaction.formats import read_messages, write_sendable
from contextgauge.compaction.formats.sendable import NO_CALL, NO_RESULT
from contextgauge.compaction.messages import FormatName
from tests.core.given import Body

ASKED = {"role": "user", "content": "Look."}
LATER = {"role": "user", "content": "Go on."}


def part(answer: str, *blocks: Body) -> Body:
    """Return the line's message of a part of an answer."""
    reported = {"type": "message", "model": "m", "stop_reason": None, "usage": {"input_tokens": 1}}
    return {"role": "assistant", "id": answer, "content": list(blocks), **reported}


def text(words: str) -> Body:
    return {"type": "text", "text": words, "index": 0}


def thought(signature: str = "s") -> Body:
    return {"type": "thinking", "thinking": "Hm.", "signature": signature}


def call(name: str) -> Body:
    return {"type": "tool_use", "id": name, "name": "Read", "input": {}, "caller": {"type": "d"}}


def result(name: str, content: Any = "ok") -> Body:
    return {"type": "tool_result", "tool_use_id": name, "content": content}


def given(*blocks: Body) -> Body:
    return {"role": "user", "content": list(blocks)}


def sent(messages: list[Body], format_name: FormatName = "anthropic", **more: bool) -> list[Any]:
    return list(write_sendable(read_messages(messages, "anthropic"), format_name, **more))


TRANSCRIPT = [
    ASKED,
    part("1", thought()),
    part("1", text("\n")),
    part("1", call("a")),
    given(result("a")),
    given({"type": "text", "text": "Hurry."}),
    part("1", call("b")),
    given(
        {"type": "text", "text": "Now."},
        result("b", [{"type": "text", "text": ""}, {"type": "text", "text": "b"}]),
    ),
    part("2", text("Done."), thought(), thought("")),
]


def test_parts_of_an_answer_are_joined_and_its_results_follow_it() -> None:
    asked, first, results, hurry, now, second = sent(TRANSCRIPT)
    assert asked == ASKED
    assert first == {"role": "assistant", "content": [thought(), call("a"), call("b")]}
    parts = [{"type": "text", "text": "b"}]
    assert results == {"role": "user", "content": [result("a"), result("b", parts)]}
    assert hurry == given({"type": "text", "text": "Hurry."})
    assert now == given({"type": "text", "text": "Now."})
    assert second["content"] == [{"type": "text", "text": "Done."}]


def test_in_openais_chat_an_answer_has_all_its_calls_and_right_after_it_their_results() -> None:
    _, first, *results, hurry, _, second = sent(TRANSCRIPT, "openai-chat")
    assert [each["id"] for each in first["tool_calls"]] == ["a", "b"]
    assert [each["tool_call_id"] for each in results] == ["a", "b"]
    assert (hurry["role"], second["content"]) == ("user", "Done.")


@pytest.mark.parametrize("format_name", ["gemini", "plain"])
def test_in_other_formats_results_are_one_message(format_name: FormatName) -> None:
    messages = sent(TRANSCRIPT, format_name)
    assert len(messages) == 6
    assert len(messages[2]["parts" if format_name == "gemini" else "content"]) == 2


def test_what_is_right_already_stays_as_it_is() -> None:
    answers: list[Body] = [
        {"role": "assistant", "content": [text_, call(name)]}
        for text_, name in (
            ({"type": "text", "text": "One."}, "a"),
            ({"type": "text", "text": "Two."}, "a"),
        )
    ]
    own = {"type": "text", "text": "And this."}
    turns = [ASKED, answers[0], given(result("a"), own), answers[1], given(result("a", "other"))]
    assert sent([*turns, answers[0]], leaves_last_open=True) == [*turns, answers[0]]
    chat: list[Any] = [
        ASKED,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}}
                for name in "ab"
            ],
        },
        *({"role": "tool", "tool_call_id": name, "content": ""} for name in "ab"),
        {"role": "assistant", "content": "One."},
        {"role": "assistant", "content": "Two."},
    ]
    written = write_sendable(read_messages(chat, "openai-chat"), "openai-chat")
    assert all(each is same for each, same in zip(written, chat, strict=True))


def test_a_call_without_a_result_is_answered_and_a_result_without_a_call_is_a_text() -> None:
    lost = given(result("x", "of before"))
    messages = [
        ASKED,
        lost,
        part("1", call("a"), call("b")),
        given(result("a"), result("a")),
        LATER,
    ]
    _, before, _, results, later = sent(messages)
    assert [each["text"] for each in before["content"]] == [NO_CALL, "of before"]
    missing = {**result("b", NO_RESULT), "is_error": True}
    assert results["content"] == [result("a"), missing]
    assert later == LATER
    assert sent([ASKED, part("1", call("a"))])[-1]["content"][0]["content"] == NO_RESULT


def test_who_goes_on_with_the_last_calls_gives_their_results() -> None:
    messages = [ASKED, part("1", call("a")), given(result("a")), part("1", call("b"), call("c"))]
    *_, answer, results = sent([*messages, given(result("b"))], leaves_last_open=True)
    assert len(answer["content"]) == 3
    assert results["content"] == [result("a"), result("b")]


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "function_call_output"),
        ({"type": "custom_tool_call", "name": "f", "input": ""}, "custom_tool_call_output"),
        ({"type": "local_shell_call", "action": {}}, "function_call_output"),
    ],
)
def test_a_call_of_the_responses_api_is_answered_by_its_kind(item: Body, kind: str) -> None:
    own = read_messages([{**item, "call_id": "a"}], "openai-responses")
    *_, answer = write_sendable(own, "openai-responses")
    assert answer == {"type": kind, "call_id": "a", "output": NO_RESULT}


def test_answers_of_another_format_that_follow_each_other_are_joined() -> None:
    messages = [ASKED, part("1", text("One.")), part("2", text("Two."), call("a"))]
    _, answer, _ = sent(messages, "openai-chat")
    assert [each["text"] for each in answer["content"]] == ["One.", "Two."]
