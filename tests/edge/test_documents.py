"""Files that are JSON documents, and lines with several objects: each object is read once."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextgauge.containers import Line
from contextgauge.errors import ConfigError
from streams.edge.files import documents, reading, tail
from streams.edge.files.documents import Document, document_of, may_be_document, objects_in
from streams.edge.files.formats import UnsupportedFormatError, refusal_of
from streams.edge.files.torn import whole_objects
from tests.edge.follower_kit import Bench

SESSION = "5b1f0c2e-0000-4000-8000-0000000000aa"
FRAMES = [
    {"type": "system", "subtype": "init", "session_id": SESSION, "claude_code_version": "2.1.9"},
    {"type": "assistant", "session_id": SESSION, "message": {"content": 'a } { " \\ in it'}},
    {"type": "user", "session_id": SESSION, "message": {"content": "é€"}},
]
CHAT = {"sessionId": SESSION, "projectHash": "f00"}
MESSAGES = [{"id": "u1", "type": "user", "content": "go"}, {"id": "g1", "type": "gemini"}]
CURSOR_CLI = {"type": "tool_call", "call_id": "c", "tool_call": {}, "session_id": "s"}


def compact(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def lines_of(path: Path) -> list[Line]:
    return [line for block in reading.read(reading.expand([str(path)])) for line in block]


def piped(content: bytes, monkeypatch: pytest.MonkeyPatch) -> list[Line]:
    given, taken = os.pipe()
    os.write(taken, content)
    os.close(taken)
    monkeypatch.setattr("sys.stdin", os.fdopen(given))
    return [line for block in reading.read(reading.expand(["-"])) for line in block]


def written(tmp_path: Path, content: bytes, name: str = "a.json") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


FORMS = [
    json.dumps(FRAMES).encode(),
    json.dumps(FRAMES, indent=2).encode() + b"\n",
    b"\n ".join(json.dumps(each, indent=1).encode() for each in FRAMES),
]


@pytest.mark.parametrize("content", FORMS)
def test_the_objects_of_a_document_are_its_lines(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [compact(each) for each in FRAMES]
    lines = lines_of(written(tmp_path, content))
    assert [line.value for line in lines] == wanted
    assert [line.number for line in lines] == [1, 2, 3]
    assert {line.session_hint for line in lines[1:]} == {SESSION}
    assert [line.value for line in piped(content, monkeypatch)] == wanted


@pytest.mark.parametrize("indent", [None, 2])
def test_a_chat_that_lists_its_messages_is_read_with_its_header_first(
    indent: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = {**CHAT, "messages": MESSAGES, "summary": "what { it is"}
    content = json.dumps(chat, indent=indent).encode()
    wanted = [compact(each) for each in (CHAT, *MESSAGES)]
    lines = lines_of(written(tmp_path, content))
    assert [line.value for line in lines] == wanted
    assert {line.session_hint for line in lines} == {SESSION}
    assert [line.value for line in piped(content, monkeypatch)] == wanted


def test_a_document_is_read_in_parts_that_end_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "_BLOCK_BYTES", 40)
    monkeypatch.setattr(reading, "_BLOCK_BYTES", 7)
    wanted = [compact(each) for each in FRAMES]
    for content in FORMS[:2]:
        assert [line.value for line in lines_of(written(tmp_path, content))] == wanted
        assert [line.value for line in piped(content, monkeypatch)] == wanted


def test_an_object_without_its_end_is_given_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = json.dumps(FRAMES, indent=2).encode()[:-30]
    for lines in (lines_of(written(tmp_path, content)), piped(content, monkeypatch)):
        assert [line.value for line in lines[:2]] == [compact(each) for each in FRAMES[:2]]
        assert lines[2].value.startswith(b"{")
        assert len(lines) == 3


def test_a_gigantic_object_of_a_pipe_is_given_as_it_begins() -> None:
    blocks: Iterator[bytes] = iter([b'[{"a":"' + b"x" * 50, b"y" * 50])
    parts = [part for lines in documents.split_objects(Document(1), blocks, 20) for part in lines]
    assert [(len(value), size) for value, size in parts] == [(20, 106)]


def test_numbers_that_would_lose_digits_stay_as_they_are_written() -> None:
    value = b'{"a": 12345678901234567890123}'
    assert documents.compact(value) == value
    assert documents.compact(b"{a}") == b"{a}"


@pytest.mark.parametrize(
    "head",
    [
        b'{"type":"user","messages":[{}]}\n{}',
        b'{"a":{"messages":[]}}\n',
        b'{"messages":1,"a":[]}',
        b"[1, 2]\n",
        b"",
        b'"messages"',
        b'{x "messages": [{}]}',
    ],
)
def test_a_file_of_lines_is_no_document(head: bytes) -> None:
    assert document_of(head) is None


def test_more_is_read_until_a_beginning_shows_what_it_is() -> None:
    assert all(map(may_be_document, (b"", b" [", b"{\n")))
    assert not any(map(may_be_document, (b'{"a":1}\n', b"[{", b"x")))
    assert objects_in(b'] , {"a":"').is_open


TORN = b'{"type":"assis'
WHOLE = [compact(each) for each in FRAMES]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (WHOLE[0], [WHOLE[0]]),
        (WHOLE[0] + WHOLE[1], WHOLE[:2]),
        (WHOLE[0] + b" " + WHOLE[1] + b" " + WHOLE[2], WHOLE),
        (TORN + WHOLE[1], [TORN, WHOLE[1]]),
        (TORN + TORN, [TORN + TORN]),
        (b'{"a":"} {\\"b"} ', [b'{"a":"} {\\"b"} ']),
        (b'{"a":"} {"}', [b'{"a":"} {"}']),
    ],
)
def test_the_objects_of_a_line_are_given_one_by_one(line: bytes, parts: list[bytes]) -> None:
    assert whole_objects(line) == parts


def test_lines_behind_a_torn_one_keep_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"\n".join([WHOLE[0], TORN + WHOLE[1], WHOLE[2]]) + b"\n"
    wanted = [(1, WHOLE[0]), (2, TORN), (2, WHOLE[1]), (3, WHOLE[2])]
    path = written(tmp_path, content, "a.jsonl")
    assert [(line.number, line.value) for line in lines_of(path)] == wanted
    assert [(line.number, line.value) for line in piped(content, monkeypatch)] == wanted


def test_a_file_of_another_runtime_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, compact(CURSOR_CLI) + b"\n", "a.jsonl")
    with pytest.raises(
        ConfigError, match=r"this is a Cursor CLI session, which .* does not read yet"
    ):
        lines_of(path)
    with pytest.raises(ConfigError, match=r"<stdin>: this is a Cursor CLI session"):
        piped(compact(CURSOR_CLI) + b"\n", monkeypatch)


UNREAD: dict[str, list[dict[str, object]]] = {
    "Kimi CLI context": [{"role": "_usage", "token_count": 1}],
    "Cursor CLI": [
        {
            **dict.fromkeys(("apiKeySource", "cwd", "session_id", "model"), "a"),
            "type": "system",
            "subtype": "init",
            "permissionMode": "default",
        }
    ],
    "Gemini CLI stream": [
        {"type": "init", "timestamp": "2026-09-01", "session_id": "s", "model": "gemini-3-pro"}
    ],
}


@pytest.mark.parametrize("label", UNREAD)
@pytest.mark.parametrize("is_document", [False, True])
def test_each_runtime_that_is_not_read_is_known_by_what_it_writes(
    label: str, tmp_path: Path, *, is_document: bool
) -> None:
    bodies = UNREAD[label]
    content = json.dumps(bodies).encode() if is_document else compact(bodies[0]) + b"\n{}\n"
    error = refusal_of(str(written(tmp_path, b"not JSON\n" * (not is_document) + content)))
    assert isinstance(error, UnsupportedFormatError)
    assert error.format.label == label


def test_a_chat_of_warnings_alone_is_known_by_its_header(tmp_path: Path) -> None:
    warned = {"id": "w", "timestamp": "2026-02-03", "type": "warning", "content": "A hook failed."}
    chat = {**CHAT, "messages": [warned]}
    assert refusal_of(str(written(tmp_path, json.dumps(chat, indent=1).encode()))) is None


def test_files_that_are_read_have_no_other_format(tmp_path: Path) -> None:
    for body in (FRAMES[0], CHAT, {"type": "session_meta", "payload": {"id": "s"}}):
        assert refusal_of(str(written(tmp_path, compact(body)))) is None


@pytest.mark.parametrize(
    "body",
    [
        {"type": "thinking", "subtype": "delta", "session_id": "s", "timestamp_ms": 1},
        {"type": "tool_call", "subtype": "started", "call_id": "c", "tool_call": {},
         "session_id": "s"},
    ],
)  # fmt: skip
def test_a_stream_that_began_before_is_known_by_its_later_messages(
    body: dict[str, object], tmp_path: Path
) -> None:
    error = refusal_of(str(written(tmp_path, compact(body) + b"\n")))
    assert isinstance(error, UnsupportedFormatError)
    assert error.format.session_label == "a Cursor CLI session"


def test_documents_of_messages_are_found_in_a_folder_by_their_content(tmp_path: Path) -> None:
    array = b"[" + b",".join(map(compact, FRAMES)) + b"]"
    written(tmp_path, array, "execution.json")
    written(tmp_path, json.dumps([CURSOR_CLI]).encode(), "cursor.json")
    written(tmp_path, json.dumps({**CHAT, "messages": []}).encode(), "chat.json")
    for name, content in {
        "empty.json": b"",
        "settings.json": b'{"model": "opus", "version": "1"}',
        "rows.json": b'[{"session_id": "s"}, {"session_id": "t"}]',
        "torn.json": b'[{"type": "sys',
        "lines.json": compact(FRAMES[0]) + b"\n",
    }.items():
        written(tmp_path, content, name)
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    counter: Counter[str] = Counter()
    sources = reading.expand([str(tmp_path)], unsupported=counter)
    names = [source.path.name for source in sources if source.path is not None]
    assert names == ["chat.json", "execution.json"]
    assert counter == {"Cursor CLI": 1}
    # What became one is found once the folder is listed again.
    written(tmp_path, array, "torn.json")
    assert len(reading.find([str(tmp_path)])) == 4


def test_a_folder_counts_the_files_of_other_runtimes(tmp_path: Path) -> None:
    written(tmp_path, compact(CURSOR_CLI), "a.jsonl")
    written(tmp_path, compact(FRAMES[0]), "b.jsonl")
    counter: Counter[str] = Counter()
    sources = reading.expand([str(tmp_path)], unsupported=counter)
    assert [source.path.name for source in sources if source.path is not None] == ["b.jsonl"]
    assert counter == {"Cursor CLI": 1}


def test_chats_that_are_documents_are_found_in_a_folder(tmp_path: Path) -> None:
    chats = tmp_path / "f00" / "chats"
    chats.mkdir(parents=True)
    (chats / "session-2026-09-01.json").write_bytes(json.dumps({**CHAT, "messages": []}).encode())
    (chats.parent / "logs.json").write_text("[]")
    assert len(reading.find([str(tmp_path)])) == 1


def test_a_chat_that_is_rewritten_with_more_messages_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "chats" / "session-1.json"
    path.parent.mkdir()

    def write(count: int, *, is_new: bool = False) -> None:
        messages = [{"id": f"m{number}", "type": "user"} for number in range(count)]
        chat = {**CHAT, "lastUpdated": f"2026-11-01T11:{count:02d}:00Z", "messages": messages}
        target = path.with_suffix(".tmp") if is_new else path
        target.write_text(json.dumps(chat, indent=2))
        target.replace(path)

    write(1)
    bench = Bench([str(path)])
    assert len(bench.lines()) == 2
    for count in range(2, 6):
        write(count, is_new=count % 2 == 0)
        assert [json.loads(line)["id"] for line in bench.lines()] == [f"m{count - 1}"]
    bench.restart()
    write(6)
    assert [json.loads(line)["id"] for line in bench.lines()] == ["m5"]
    assert bench.events == []
    write(2)
    assert len(bench.lines()) == 3
    assert bench.events == []
