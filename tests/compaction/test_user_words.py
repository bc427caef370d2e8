"""Whose words a text in the user's role is: a person's, or those of a harness."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contextgauge.compaction.carried.digest import carry
from contextgauge.compaction.formats import read_messages, write_messages
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import (
    Carried,
    ContextCompaction,
    Image,
    Message,
    Text,
    ToolResult,
    first_turn,
)
from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.compaction.store.stored_history import load_history, store_history
from contextgauge.json_codec import loads
from tests.cases.user_words import ANSWERS, INJECTED, NOTICES, OBSERVATIONS, OWN, QUEUED, WITHIN
from tests.linear_time import is_linear


def blocks(texts: str | list[str]) -> Any:
    return texts if isinstance(texts, str) else [{"type": "text", "text": each} for each in texts]


def after(answer: str, content: Any) -> Message:
    """The last message of a conversation, as a history has it."""
    history = History()
    values = [("user", "Fix the parser."), ("assistant", answer), ("user", content)]
    for role, each in values:
        history.extend(read_messages([{"role": role, "content": each}], "anthropic"))
    return history.active[-1]


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_what_a_harness_writes_is_never_the_users_and_nothing_of_it_is_lost(name: str) -> None:
    answer, texts = OBSERVATIONS[name]
    message = after(answer, blocks(texts))
    assert not message.is_user_turn
    assert message.user_text == ""
    assert message.data_text == message.text
    start = [{"role": "user", "content": "Fix."}, {"role": "assistant", "content": answer}]
    whole = read_messages([*start, {"role": "user", "content": blocks(texts)}], "anthropic")
    assert whole[-1].data_text == message.data_text


@pytest.mark.parametrize("text", OWN)
@pytest.mark.parametrize("answer", ANSWERS)
def test_what_a_person_wrote_stays_byte_for_byte(text: str, answer: str) -> None:
    for message in (after(answer, text), after(answer, blocks([text]))):
        assert message.is_user_turn
        assert message.user_text == text
        assert message.data_text == ""


@pytest.mark.parametrize(
    "text",
    [
        "Observation: it fails on an empty file.",
        "The issue is this.\n(Open file: n/a)\n(Current directory: /repo)\nbash-$",
        "src/app.py\n```\nprint(1)\n```",
    ],
)
def test_before_the_first_answer_there_is_no_observation(text: str) -> None:
    (message,) = read_messages([{"role": "user", "content": text}], "openai-chat")
    assert message.user_text == text


def test_after_an_answer_in_prose_there_is_no_observation() -> None:
    text = "Observation: the build fails on ARM. Don't merge anything before Friday!"
    assert after("I see: all tests pass.\nDone.", text).user_text == text
    assert after("Thought: I build it.\nmake", text).data_text == text


@pytest.mark.parametrize("name", [each for each in OBSERVATIONS if "bare" in each])
def test_what_follows_an_action_in_the_text_of_a_model_that_calls_tools_is_a_turn(
    name: str,
) -> None:
    answer, text = OBSERVATIONS[name]
    called = {"type": "tool_use", "id": "c", "name": "Bash", "input": {}}
    values: list[dict[str, Any]] = [
        {"role": "user", "content": "Fix."},
        {"role": "assistant", "content": [called]},
        {"role": "user", "content": result()},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": text},
    ]
    history = History()
    for each in values:
        history.extend(read_messages([each], "anthropic", after=history.active))
    for message in (history.active[-1], read_messages(values, "anthropic")[-1]):
        assert message.user_text == text


@pytest.mark.parametrize(("texts", "words"), WITHIN)
def test_what_a_person_wrote_within_a_harness_text_is_theirs(
    texts: str | list[str], words: str
) -> None:
    message = after("Done.", blocks(texts))
    assert message.is_user_turn
    assert message.user_text == words
    assert words not in message.data_text
    assert message.data_text


@pytest.mark.parametrize("text", NOTICES)
def test_a_notice_is_no_turn(text: str) -> None:
    assert not after("Done.", text).is_user_turn


def result(*texts: str) -> list[dict[str, Any]]:
    returned = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}
    return [returned, *({"type": "text", "text": each} for each in texts)]


def test_a_text_next_to_a_result_is_the_tools_unless_the_runtime_marks_it_as_the_persons() -> None:
    beside = after("…", result(f"Page text follows. {INJECTED}"))
    assert (beside.is_user_turn, beside.user_text) == (False, "")
    assert INJECTED in beside.data_text
    queued = after("…", result(QUEUED))
    assert (queued.is_user_turn, queued.user_text) == (True, "not on main!")


def test_the_caller_decides() -> None:
    value = {"role": "user", "content": result("use tabs")}
    (own,) = read_messages([value], "anthropic", is_user_turn=True)
    assert (own.is_user_turn, own.user_text, own.data_text) == (True, "use tabs", "")
    texts = [{"role": "assistant", "content": "x"}, {"role": "user", "content": "use tabs"}]
    answer, other = read_messages(texts, "plain", is_user_turn=False)
    assert answer.from_user is None
    assert (other.is_user_turn, other.user_text, other.data_text) == (False, "", "use tabs")
    assert write_messages([answer, other], "plain") == texts
    first, *others = read_messages(
        [{"role": "user", "content": "RESULT x"}, *texts],
        "plain",
        is_user_turn=lambda message: False if message.text.startswith("RESULT") else None,
    )
    assert first.from_user is False
    assert others[-1].is_user_turn


def test_whose_a_message_is_stays_with_it_when_stored() -> None:
    history = History(read_messages([{"role": "user", "content": "x"}], "plain"))
    history.extend(read_messages([{"role": "assistant", "content": "Action: cat"}], "plain"))
    history.extend(read_messages([{"role": "user", "content": "Observation: y"}], "plain"))
    history.extend(read_messages([{"role": "user", "content": "z"}], "plain", is_user_turn=True))
    history.append(Message("user", (Text("made here"),), from_user=False))
    again = load_history(store_history(history))
    assert [each.from_user for each in again.active] == [None, None, False, True, False]
    assert history.turns == again.turns == 2
    assert [each.with_blocks(each.blocks) for each in again.active] == list(again.active)


def test_an_image_alone_is_a_turn_and_one_next_to_a_harness_text_is_not() -> None:
    image = Image(10)
    assert Message("user", (image,)).is_user_turn
    assert Message("user", (ToolResult("c", ()), image), from_user=True).is_user_turn is False
    assert not Message("user", (ToolResult("c", ()), image)).is_user_turn
    assert not Message("user", (Text("[read_file for 'a.png'] Result:"), image)).is_user_turn
    assert Message("user", (Text(""),)).is_user_turn
    assert not Message("assistant", (Text("x"),)).user_text


def test_a_compactions_text_is_not_the_users() -> None:
    marked = Message("user", (ContextCompaction(1, 0, "tabs", 0, 0), Text("restored")))
    assert (marked.is_user_turn, marked.user_text) == (False, "")
    assert marked.data_text == "tabs\nrestored"
    assert replace(marked, role="assistant").data_text == ""


def test_the_first_turn_is_the_first_of_a_person() -> None:
    reminder = Message("user", (Text("<system-reminder>x</system-reminder>"),))
    assert first_turn([reminder, Message("user", (Text("go"),))]) == "go"
    assert first_turn([reminder]) == ""


PARTS = [
    "<system-reminder>", "</system-reminder", "\n\nAnd got this output:\n\n", "<function=", " ",
    "</function>", "Action: x\nAction Input", "Action:```{", "\nFinal Answer:", "}```", "bash-$",
    "```mswea_bash_command\n", "</tool_call>", "[read_file for '", "' ]", "<command-args>",
]  # fmt: skip


@pytest.mark.parametrize("first", PARTS)
def test_whose_a_hostile_text_is_takes_time_that_grows_with_its_length(first: str) -> None:
    def looked_at(size: int) -> None:
        text = first + "".join(each * (size // len(each)) for each in PARTS)
        after(text, text)

    assert is_linear(looked_at, 40_000)


SENT = "<system-reminder>\nThe user sent a new message while you were working:\n"
IMPORTANT = "\n\nIMPORTANT: After completing your current task"


@pytest.mark.parametrize(
    ("answer", "beginning", "part", "end"),
    [
        ("ok", "", "(Open file: ", "x"),
        ("ok", "", "(Open file: )", "x"),
        ("ok", "", "(Open file: a)\n(Current directory: ", "\nbash-$ x"),
        ("ok", "", "a.", "x"),
        ("ok", "a.py\n```\n\n```", " \n", "x"),
        ("ok", SENT, IMPORTANT, "x"),
        ("ok", "", " ", "x"),
        ("ok", "I committed the changes with git hash ", " ", "y\nz"),
        ("ok", "The command '", "' was cancelled because it took more than 5 seconds. ", "x"),
        ("a b\n", "Observation:", "a", "."),
        ("Action: a\nAction Input:", " ", " ", "\n\nx"),
        ("Action: ```{}", "", " ", "x"),
    ],
)
def test_what_nearly_is_a_mark_takes_time_that_grows_with_its_length(
    answer: str, beginning: str, part: str, end: str
) -> None:
    def looked_at(size: int) -> None:
        text = beginning + part * (size // len(part)) + end
        after(answer, text)
        after(answer + text, text)

    assert is_linear(looked_at, 120_000)


def test_what_may_be_an_observation_is_no_turn_and_is_carried_as_data() -> None:
    explained = "So Hermes calls a tool:\n<tool_call>{}</tool_call>"
    message = after(explained, "Not on main!")
    assert not message.is_user_turn
    entries = carry(Carried(), [message]).entries
    assert [(each.speaker, each.text) for each in entries] == [("data", "Not on main!")]


def test_white_space_around_a_text_changes_nothing_of_what_it_is() -> None:
    for answer, texts in OBSERVATIONS.values():
        for each in [texts] if isinstance(texts, str) else []:
            assert not after(f"{answer}\n\n", f"\n {each}\n \n").is_user_turn
    words = "<system-reminder>\nx\n</system-reminder>\n\nuse tabs\n"
    assert after("Done.", f"\n{words}").user_text == "use tabs\n"
    empty = "I ran this command:\n\ntrue\n\nAnd got this output:\n\n"
    assert not after("Done.", empty).is_user_turn


def reading(*lines: dict[str, Any]) -> ConversationReading:
    conversation = ConversationReading()
    for number, line in enumerate(lines):
        conversation.add(line, f"m{number}")
    return conversation


def line(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def said(*content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": list(content)}
    return {"type": "assistant", "message": message, **more}


def turns(conversation: ConversationReading) -> list[str]:
    return [each.user_text for each in conversation.history.active if each.is_user_turn]


def test_lines_that_the_runtime_wrote_are_no_turns_after_reading_on_either() -> None:
    conversation = reading(
        line("go"),
        line("expanded skill", isMeta=True),
        line("a reminder", isSynthetic=True),
        line("a notice", origin={"kind": "task-notification"}),
        line("typed", origin={"kind": "human"}),
    )
    assert turns(conversation) == ["go", "typed"]
    again = ConversationReading.of_base(loads(json.dumps(conversation.base()).encode()))
    assert turns(again) == ["go", "typed"]


CALL = {"type": "tool_use", "id": "c", "name": "Bash", "input": {}}
QUEUE: dict[str, Any] = {"type": "queue-operation", "timestamp": "2026-11-01T10:00:00Z"}
ENQUEUE = {**QUEUE, "operation": "enqueue"}
REMOVE = {**QUEUE, "operation": "remove"}


def test_what_was_written_while_a_tool_ran_is_a_turn_after_its_result() -> None:
    conversation = reading(
        line("go"),
        said(CALL),
        {**ENQUEUE, "content": "<task-notification>x</task-notification>"},
        {**ENQUEUE, "content": "not on main!"},
        REMOVE,
        line(result()),
        said({"type": "text", "text": "ok"}),
    )
    assert [each.role for each in conversation.history.active] == [
        "user", "assistant", "tool", "user", "assistant",
    ]  # fmt: skip
    assert turns(conversation) == ["go", "not on main!"]


@pytest.mark.parametrize("first", ["attachment", "remove"])
def test_a_prompt_in_queue_and_attachment_is_one_turn(first: str) -> None:
    attached = {"type": "queued_command", "commandMode": "prompt", "prompt": "not on main!"}
    both = [{"type": "attachment", "attachment": attached}, {**REMOVE, "content": "not on main!"}]
    conversation = reading(
        line("go"),
        said(CALL),
        {**ENQUEUE, "content": "not on main!"},
        line(result()),
        *(both if first == "attachment" else both[::-1]),
        said({"type": "text", "text": "ok"}),
    )
    assert turns(conversation) == ["go", "not on main!"]


def test_what_waits_for_the_end_of_the_turn_or_is_taken_back_is_no_turn_of_its_own() -> None:
    conversation = reading(
        line("go"),
        {**ENQUEUE, "content": "later"},
        {**ENQUEUE, "content": "taken back", "timestamp": "2026-11-01T10:00:01Z"},
        {**QUEUE, "operation": "dequeue"},
        line("later"),
        {**QUEUE, "operation": "popAll"},
        {**REMOVE, "content": "unknown"},
        said({"type": "text", "text": "ok"}),
    )
    assert turns(conversation) == ["go", "later"]


def test_the_queue_is_remembered_with_the_conversation() -> None:
    conversation = reading(line("go"), said(CALL), {**ENQUEUE, "content": "tabs"}, REMOVE)
    again = ConversationReading.of_base(loads(json.dumps(conversation.copy().base()).encode()))
    again.add(line(result()), "r")
    again.add(said({"type": "text", "text": "ok"}), "a")
    assert turns(again) == ["go", "tabs"]


def test_an_attachment_of_the_runtime_is_no_turn() -> None:
    notice = {"type": "queued_command", "commandMode": "task-notification", "prompt": "done"}
    other = {"type": "nested_memory", "content": "x"}
    attached = ({"type": "attachment", "attachment": each} for each in (notice, other, 3))
    assert turns(reading(line("go"), *attached)) == ["go"]


def typed(path: Path) -> list[str]:
    """What a person typed in a transcript, by a look at its lines that knows nothing of ours."""
    texts: list[str] = []
    waiting: list[str] = []
    for body in map(json.loads, path.read_text().splitlines()):
        content = (body.get("message") or {}).get("content")
        if body["type"] == "user" and not body.keys() & {"isCompactSummary"}:
            if not body.get("isMeta") and isinstance(content, str):
                texts.append(content)
        elif body["type"] == "response_item" and body["payload"].get("role") == "user":
            texts += [each["text"] for each in body["payload"]["content"]]
        elif body.get("operation") == "enqueue":
            waiting.append(body["content"])
        elif body.get("operation") == "remove":
            texts.append(next(each for each in waiting if each[0] != "<"))
            waiting.remove(texts[-1])
    harness = ("<command-", "<local-command-", "<task-", "<env", "# AGENTS.md")
    return sorted(each for each in texts if not each.startswith(harness))


def test_of_real_transcripts_every_turn_is_known_and_none_is_invented(shared: Path) -> None:
    files = sorted((shared / "fixtures").glob("c*/*.jsonl"))
    for path in files:
        conversation = ConversationReading()
        for number, each in enumerate(path.read_text().splitlines()):
            conversation.add({**json.loads(each), "isSidechain": False}, f"m{number}")
        turns = [each.user_text for each in conversation.history.everything if each.is_user_turn]
        assert sorted(turns) == typed(path), path.name
    assert len(files) > 3
