"""Reading and writing loses nothing, whatever a conversation holds."""

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from contextgauge.compaction.formats import detect, read_messages, write_messages
from contextgauge.compaction.messages import FormatName, Message, Text, ToolCall, ToolResult
from contextgauge.errors import ConfigError
from tests.compaction.format_values import ANY_JSON, FORMATS

each_format = pytest.mark.parametrize("name", FORMATS)

AnyBlock = TypeVar("AnyBlock", Text, ToolCall, ToolResult)

QUICK = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))

CHANGED = "a text that no generated value has"


SIGNATURE = re.compile(r"\.thoughtSignature$")
"""Of what was changed: it goes."""

ARGUMENTS = re.compile(r"\.(?:input|args|arguments|action)\b")


def exact(value: Any) -> str:
    """Return a text that tells apart what Python takes for equal, such as 1, 1.0 and True."""
    return json.dumps(value)


@each_format
@QUICK
@given(data=st.data())
def test_what_was_read_is_written_as_it_came(name: FormatName, data: st.DataObject) -> None:
    value = data.draw(FORMATS[name])
    before = exact(value)
    messages = read_messages(value, name)
    assert exact(write_messages(messages, name)) == before
    assert exact(value) == before
    # Also where messages were stored and loaded since: their sources are other objects then.
    assert exact(write_messages(copy.deepcopy(messages), name)) == before


def differences(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            absent = object()
            yield from differences(before.get(key, absent), after.get(key, absent), f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif type(before) is not type(after) or before != after:
        yield path, before, after


def with_block(message: Message, index: int, block: Any) -> Message:
    blocks = (*message.blocks[:index], block, *message.blocks[index + 1 :])
    return replace(message, blocks=blocks)


def drawn_block(
    data: st.DataObject, messages: list[Message], kind: type[AnyBlock]
) -> tuple[int, int, AnyBlock]:
    """Draw a block of a kind: the positions of its message and of itself, and the block."""
    places = [
        (number, index, block)
        for number, message in enumerate(messages)
        for index, block in enumerate(message.blocks)
        if isinstance(block, kind)
    ]
    assume(places)
    return data.draw(st.sampled_from(places))


@each_format
@QUICK
@given(data=st.data())
def test_a_changed_text_changes_nothing_else(name: FormatName, data: st.DataObject) -> None:
    value = data.draw(FORMATS[name])
    messages = read_messages(value, name)
    number, index, block = drawn_block(data, messages, Text)
    messages[number] = with_block(messages[number], index, replace(block, text=CHANGED))
    written = write_messages(copy.deepcopy(messages), name)
    changes = [each for each in differences(value, written) if not SIGNATURE.search(each[0])]
    assert [after for _, _, after in changes] == [CHANGED]
    assert read_messages(written, name)[number].blocks[index] == Text(CHANGED)


@each_format
@QUICK
@given(data=st.data())
def test_changed_arguments_change_nothing_else(name: FormatName, data: st.DataObject) -> None:
    value = data.draw(FORMATS[name])
    messages = read_messages(value, name)
    number, index, block = drawn_block(data, messages, ToolCall)
    arguments = json.dumps({"shortened": CHANGED}, separators=(",", ":"))
    messages[number] = with_block(messages[number], index, replace(block, arguments=arguments))
    written = write_messages(messages, name)
    again = read_messages(written, name)[number].blocks[index]
    assert again == replace(block, arguments=arguments)
    untouched = [message for i, message in enumerate(messages) if i != number]
    assert [m for i, m in enumerate(read_messages(written, name)) if i != number] == untouched
    paths = [path for path, _, _ in differences(value, written)]
    other = [path for path in paths if not SIGNATURE.search(path)]
    assert [path for path in other if not ARGUMENTS.search(path)] == []


@each_format
@QUICK
@given(data=st.data())
def test_a_cleared_result_leaves_the_other_fields(name: FormatName, data: st.DataObject) -> None:
    value = data.draw(FORMATS[name])
    messages = read_messages(value, name)
    number, index, block = drawn_block(data, messages, ToolResult)
    messages[number] = with_block(messages[number], index, replace(block, content=(Text(CHANGED),)))
    written = write_messages(messages, name)
    again = read_messages(written, name)[number].blocks[index]
    assert isinstance(again, ToolResult)
    assert (again.text, again.call_id, again.name) == (CHANGED, block.call_id, block.name)
    assert len(read_messages(written, name)) == len(messages)


@each_format
@QUICK
@given(data=st.data())
def test_a_removed_block_leaves_the_others_as_they_came(
    name: FormatName, data: st.DataObject
) -> None:
    value = data.draw(FORMATS[name])
    messages = read_messages(value, name)
    places = [(number, i) for number, m in enumerate(messages) for i in range(len(m.blocks))]
    assume(places)
    number, index = data.draw(st.sampled_from(places))
    blocks = messages[number].blocks
    assume(name != "openai-chat" or messages[number].role != "tool")  # a message is one result
    left = blocks[:index] + blocks[index + 1 :]
    written = write_messages([replace(messages[number], blocks=left)], name)
    again = [block for message in read_messages(written, name) for block in message.blocks]
    assert len(again) == len(left)
    for block, original in zip(again, left, strict=True):
        if (source := getattr(original, "source", None)) is not None:
            assert exact(block.source.value) == exact(source.value)  # type: ignore[union-attr]


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    children: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        children += value.items()
    elif isinstance(value, list):
        children += enumerate(value)
    for key, child in children:
        yield from nodes(child, (*path, key))


@each_format
@QUICK
@given(data=st.data())
def test_a_wrong_value_is_kept_or_its_path_is_reported(
    name: FormatName, data: st.DataObject
) -> None:
    value = copy.deepcopy(data.draw(FORMATS[name].filter(bool)))
    path = data.draw(st.sampled_from([each for each in nodes(value) if each]))
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = data.draw(ANY_JSON)
    detect(value)
    try:
        messages = read_messages(value, name)
    except ConfigError as error:
        root = {"openai-responses": "input", "gemini": "contents"}.get(name, "messages")
        assert str(error).startswith(f"{root}[{path[0]}]")  # noqa: PT017 -- one of two outcomes
    else:
        assert exact(write_messages(messages, name)) == exact(value)


@given(value=ANY_JSON)
def test_the_format_of_any_value_is_detected_or_unknown(value: Any) -> None:
    assert detect(value) in {*FORMATS, None}


def calls_of(messages: list[Message]) -> list[tuple[str, str, Any]]:
    return [(c.id, c.name, json.loads(c.arguments)) for m in messages for c in m.calls]


def results_of(messages: list[Message]) -> list[tuple[str, str]]:
    return [(result.call_id, result.text) for m in messages for result in m.results]


@pytest.mark.parametrize("target", FORMATS)
@QUICK
@given(data=st.data())
def test_calls_and_results_survive_another_format(target: FormatName, data: st.DataObject) -> None:
    value = data.draw(FORMATS["anthropic"])
    messages = read_messages(value, "anthropic")
    translated = read_messages(write_messages(messages, target), target)
    assert calls_of(translated) == calls_of(messages)
    assert results_of(translated) == results_of(messages)
    back = read_messages(write_messages(translated, "anthropic"), "anthropic")
    assert calls_of(back) == calls_of(messages)
    assert results_of(back) == results_of(messages)
