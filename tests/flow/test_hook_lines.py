"""Messages of hooks between a transcript's lines: by time, each once."""

import json
from collections.abc import Sequence

from contextgauge.containers import Line
from streams.flow.replay.hook_lines import HookLines
from streams.ports import HookMessage


def line(second: int | None) -> Line:
    body = {} if second is None else {"timestamp": f"2026-05-01T10:00:{second:02d}Z"}
    value = json.dumps(body).encode()
    return Line("f.jsonl", 1, value, len(value), "s")


BASE_MS = 1_777_629_600_000


class Hooks:
    def __init__(self, *seconds: int) -> None:
        self.seconds = list(seconds)

    def __call__(self, path: str) -> Sequence[HookMessage]:
        assert path == "f.jsonl"
        return [
            HookMessage(BASE_MS + second * 1_000, b"hook %d" % second)
            for second in sorted(self.seconds)
        ]


def test_a_message_comes_before_the_first_line_that_was_written_later() -> None:
    hooks = HookLines(Hooks(5, 5, 7, 40))
    lines = [line(1), line(5), line(None), line(6), line(30)]
    merged = [each.value for each in hooks.between("f.jsonl", lines)]
    assert merged == [
        lines[0].value,
        b"hook 5",
        b"hook 5",
        *[each.value for each in lines[1:4]],
        b"hook 7",
        lines[4].value,
    ]
    assert [each.value for each in hooks.rest("f.jsonl")] == [b"hook 40"]
    assert hooks.rest("f.jsonl") == []


def test_each_is_given_once_also_where_an_earlier_one_comes_late() -> None:
    known = Hooks(5)
    hooks = HookLines(known)
    assert [each.value for each in hooks.rest("f.jsonl")] == [b"hook 5"]
    known.seconds += [4, 9]
    merged = [each.value for each in hooks.between("f.jsonl", [line(8)])]
    assert merged == [b"hook 4", line(8).value]
    assert [each.value for each in hooks.rest("f.jsonl")] == [b"hook 9"]


def test_what_an_earlier_reading_gave_is_not_given_again() -> None:
    hooks = HookLines(Hooks(5, 9))
    hooks.begin("f.jsonl", BASE_MS + 5_000)
    assert [each.value for each in hooks.rest("f.jsonl")] == [b"hook 9"]
    hooks.begin("f.jsonl", BASE_MS + 60_000)
    assert hooks.rest("f.jsonl") == []


def test_a_message_that_came_after_a_line_was_read_is_given_though_it_is_older() -> None:
    known = Hooks()
    hooks = HookLines(known)
    hooks.between("f.jsonl", [line(8)])
    known.seconds += [7]
    hooks.begin("f.jsonl", BASE_MS + 8_000)
    assert [each.value for each in hooks.rest("f.jsonl")] == [b"hook 7"]


def test_without_messages_lines_are_the_same() -> None:
    lines = [line(1)]
    assert HookLines(Hooks()).between("f.jsonl", lines) is lines
