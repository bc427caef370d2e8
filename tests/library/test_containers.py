"""R1: what a line's container says of its session."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from contextgauge.containers import Container, Scout
from contextgauge.normalise import session_of

Body = dict[str, Any]


def hints(
    lines: Sequence[Body], name: str | None = "file", fallback: str | None = None
) -> list[str | None]:
    scout = Scout()
    for body in lines:
        if scout.look(body):
            break
    container = scout.container(name, fallback)
    labels = []
    for body in lines:
        labels.append(container.hint)
        container.pass_over(body)
    return labels


def test_r01_a_transcript_belongs_to_its_first_session() -> None:
    lines: list[Body] = [
        {"type": "summary"},
        {"parentUuid": None},
        {"sessionId": "one"},
        {"sessionId": "two"},
    ]
    assert hints(lines) == ["one"] * 4


@pytest.mark.parametrize("sign", ["parentUuid", "isSidechain", "sessionId"])
def test_r01_a_transcript_without_a_session_is_named_after_its_file(sign: str) -> None:
    assert hints([{"type": "user"}, {sign: None}]) == ["file", "file"]
    assert hints([{sign: 5}], name=None, fallback="given") == ["given"]
    assert hints([{sign: 5}], name=None) == [None]


def test_r01_a_rollout_belongs_to_its_first_head() -> None:
    lines: list[Body] = [
        {"type": "event_msg"},
        {"type": "session_meta", "payload": {"id": "one"}},
        {"type": "session_meta", "payload": {"id": "two"}},
    ]
    assert hints(lines) == ["one"] * 3


def test_r01_a_head_without_an_id_is_none() -> None:
    meta: Body = {"type": "session_meta", "payload": None}
    body: Body = {"type": "session_meta", "payload": {"id": "one"}}
    assert hints([meta]) == [None]
    assert hints([meta, {"type": "x"}, body]) == ["one"] * 3
    assert hints([meta], fallback="given") == ["given"]


def test_r01_a_stream_belongs_to_the_last_id_seen() -> None:
    lines: list[Body] = [
        {"type": "control_response"},
        {"session_id": "one"},
        {"type": "control_response"},
        {"session_id": "two"},
        {"session_id": ""},
        {"session_id": 5},
    ]
    assert hints(lines) == [None, None, "one", "one", "two", "two"]
    assert hints(lines, fallback="given")[:3] == ["given", "given", "one"]


def test_r01_the_first_sign_counts() -> None:
    head: Body = {"type": "session_meta", "payload": {}}
    assert hints([{"isSidechain": False}, head, {"sessionId": "one"}]) == ["one"] * 3
    assert hints([head, {"sessionId": "one"}]) == [None, None]


def test_a_stream_is_known_by_its_spelling_before_its_end() -> None:
    scout = Scout()
    assert not scout.look({"type": "user"})
    assert not scout.in_stream
    assert not scout.look({"session_id": "one"})
    assert scout.in_stream


@pytest.mark.parametrize(
    ("body", "hint", "session"),
    [
        ({"session_id": "own"}, "hint", "own"),
        ({"sessionId": "own"}, None, "own"),
        ({"session_id": 5}, "hint", "hint"),
        ({}, "", None),
        ({"request": {"input": {"session_id": "inner"}}}, None, "inner"),
        ({"request": {"input": {"session_id": "inner"}}}, "hint", "hint"),
        ({"request": {"input": 5}}, None, None),
        ({"type": "session_meta", "payload": {"id": "head"}}, None, "head"),
        ({"type": "session_meta", "payload": {"id": "head"}}, "hint", "hint"),
    ],
)
def test_r01_the_messages_own_session_comes_first(
    body: Body, hint: str | None, session: str | None
) -> None:
    assert session_of(body, hint) == session


def test_r01_a_stream_of_codex_names_its_thread() -> None:
    lines: list[Body] = [
        {"type": "thread.started", "thread_id": "one"},
        {"type": "turn.completed"},
        {"method": "turn/started", "params": {"threadId": "two"}},
        {"method": "account/updated", "params": {}},
    ]
    assert hints(lines) == [None, "one", "one", "two"]
    assert [session_of(line, hint) for line, hint in zip(lines, hints(lines), strict=True)] == [
        "one", "one", "two", "two"
    ]  # fmt: skip


@pytest.mark.parametrize("hint", [None, "one", 'a "quoted" é'])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
@pytest.mark.parametrize(
    "line",
    [
        {"session_id": "one"},
        {"session_id": "two"},
        {"session_id": ""},
        {"session_id": 'a "quoted" é'},
        {"sessionId": "one", "session_id": 5},
        {"session_id": "one", "tool": {"session_id": "two"}},
        {"session_id": "two", "tool": {"session_id": "one"}},
        {"text": '"session_id":"two"'},
        {"type": "thread.started", "thread_id": "two"},
        {"method": "turn/started", "params": {"threadId": "two"}},
        {"method": "thread/started", "params": {"thread": {"id": "two"}}},
        {"type": "result"},
    ],
)
def test_r01_a_line_that_may_not_change_the_hint_does_not(
    line: Body, separators: tuple[str, str], hint: str | None
) -> None:
    container = Container("stream", hint)
    may_change = container.may_change(json.dumps(line, separators=separators).encode())
    container.pass_over(line)
    assert may_change or container.hint == hint


def test_r01_a_line_that_repeats_the_hint_is_not_parsed() -> None:
    container = Container("stream", "one")
    for line in (b'{"session_id":"one"}', b'{"session_id": "one"}', b"{}", b"no JSON"):
        assert not container.may_change(line)
    container.hint = "two"
    assert container.may_change(b'{"session_id":"one"}')
    assert not container.may_change(b'{"session_id":"two"}')
    assert not Container("transcript", "one").may_change(b'{"session_id":"two"}')
