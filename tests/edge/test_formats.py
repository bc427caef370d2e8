"""A file of no known runtime is refused by what it looks like, before it is read."""

import json
import os
import sys
from pathlib import Path

import pytest

from contextgauge.errors import ConfigError
from streams.edge.files import reading as files
from streams.edge.files.formats import UnknownFormatError, reason_of, refusal_of
from tests.core.given import SESSION, assistant
from tests.edge.follower_kit import entry

STRANGE = {"type": "step", "kind": "note", "payload": {}, "a": 1, "b": 2, "c": 3, "d": 4}


def written(tmp_path: Path, *lines: str, name: str = "a.jsonl") -> str:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{each}\n" for each in lines))
    return str(path)


def test_what_a_strange_file_looks_like_is_shown(tmp_path: Path) -> None:
    refusal = refusal_of(written(tmp_path, "log: started", "{}", json.dumps(STRANGE)))
    assert isinstance(refusal, UnknownFormatError)
    reason = reason_of(refusal)
    shape = (
        "its first JSON object has the fields type, kind, payload, a, b, c and 1 more (type step)"
    )
    assert reason.startswith(f"the runtime that wrote this is not known: {shape}. contextgauge")
    assert "Claude Code" in reason


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("no JSON",),
        ("{}", "[1]"),
        (json.dumps(STRANGE), entry(1)),
        (json.dumps(STRANGE), json.dumps(assistant())),
        (json.dumps({"type": "user", "message": "hello"}),),
        (json.dumps({"anything": 1, "session_id": SESSION}),),
        (json.dumps({"object": "chat.completion", "usage": {}}),),
    ],
)
def test_a_file_with_a_line_that_may_be_read_is_not_refused(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    assert refusal_of(written(tmp_path, *lines)) is None


@pytest.mark.parametrize("body", [{"type": "assistant", "text": "Hello"}, {"type": "result"}])
def test_a_type_that_others_borrowed_is_not_enough(tmp_path: Path, body: object) -> None:
    assert isinstance(refusal_of(written(tmp_path, json.dumps(body))), UnknownFormatError)


def test_a_file_that_is_called_as_a_runtimes_is_that_runtimes(tmp_path: Path) -> None:
    name = f"{SESSION}.jsonl"
    assert refusal_of(written(tmp_path, '{"type": "summary", "summary": "a"}', name=name)) is None


def test_a_document_of_strange_objects_is_refused_too(tmp_path: Path) -> None:
    assert isinstance(
        refusal_of(written(tmp_path, json.dumps([STRANGE]), name="a.json")), UnknownFormatError
    )


def test_a_line_far_down_shows_what_a_file_is(tmp_path: Path) -> None:
    strange = [json.dumps(STRANGE | {"text": "a" * 1_000})] * 100
    assert refusal_of(written(tmp_path, *strange, entry(1))) is None
    assert refusal_of(written(tmp_path, *strange)) is not None


def test_in_a_folder_it_is_counted_and_by_its_name_it_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(STRANGE))
    written(tmp_path, entry(1), name="b.jsonl")
    with pytest.raises(ConfigError, match="is not known"):
        files.expand([path])
    with pytest.raises(ConfigError, match=r"a\.jsonl: the runtime .* is not known"):
        files.refuse_unknown([str(tmp_path / "b.jsonl"), path, str(tmp_path / "none.jsonl")])
    files.refuse_unknown([str(tmp_path)])


def piped(monkeypatch: pytest.MonkeyPatch, *lines: str) -> list[bytes]:
    """Read lines that come through a pipe."""
    receiver, sender = os.pipe()
    with os.fdopen(sender, "wb") as pipe:
        pipe.write("".join(f"{each}\n" for each in lines).encode())
    with os.fdopen(receiver, "rb") as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        return [line.value for block in files.read(files.expand(["-"])) for line in block]


@pytest.mark.parametrize("most", [2, 1_000])
def test_a_pipe_of_strange_lines_is_refused_too(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(files, "LOOK_AHEAD_LINES", most)
    with pytest.raises(ConfigError, match="the runtime that wrote this is not known: its first"):
        piped(monkeypatch, *[json.dumps(STRANGE)] * 3)
    # What is no JSON is reported line by line, and one line that is read is enough.
    assert len(piped(monkeypatch, "no JSON", "")) == 2
    assert len(piped(monkeypatch, json.dumps(STRANGE), entry(1))) == 2
