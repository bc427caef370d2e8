"""`replay`: from paths to records, without a broker; and the reading of files that it rests on."""

import base64
import json
import os
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from contextgauge.containers import Line
from contextgauge.window_catalog import bundled
from schemas.records import Record
from schemas.topics import MESSAGE_LIMIT_BYTES
from streams import codec
from streams.core.derivation.rules_config import Rules
from streams.edge.files import reading as files
from streams.edge.files import tail
from streams.flow.derive.deriver import Deriver
from streams.flow.replay.replay import replay
from tests import captures
from tests.commands import Command
from tests.patience import PATIENCE_S

SESSION = "5b1f0c2e-0000-4000-8000-000000000001"


def body(uuid: str, used: int = 40_000, **more: object) -> dict[str, Any]:
    """Return a transcript's response; lines without `sessionId` go by their container."""
    usage = {"input_tokens": 3, "cache_read_input_tokens": used - 3, "output_tokens": 1}
    message = {"id": f"m-{uuid}", "model": "claude-opus-4-1", "content": [], "usage": usage}
    return {"type": "assistant", "parentUuid": None, "uuid": uuid, "message": message, **more}


def write(path: Path, *lines: dict[str, Any] | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = [line if isinstance(line, bytes) else codec.dumps(line) for line in lines]
    path.write_bytes(b"".join(line + b"\n" for line in raw))
    return path


def lines_of(*paths: Path | str, fallback: str | None = None) -> list[Line]:
    sources = files.expand(map(str, paths))
    return [line for block in files.read(sources, fallback) for line in block]


def records_of(blocks: Iterable[Sequence[Line]]) -> list[Record]:
    return [
        record
        for derived in replay(Deriver(Rules(bundled())), blocks)
        for record in derived.records
    ]


def readings(result: CompletedProcess[str]) -> list[tuple[str, str, int]]:
    events = [json.loads(line) for line in result.stdout.splitlines()]
    return [
        (event["data"]["session_id"], event["subject"], event["data"]["used_tokens"])
        for event in events
        if event["type"] == "contextgauge.context_reading.v1"
    ]


@pytest.mark.parametrize("name", captures.TRANSCRIPTS)
def test_a_transcripts_file_gives_the_records_of_its_lines(name: str, tmp_path: Path) -> None:
    lines = captures.TRANSCRIPTS[name]()
    path = write(tmp_path / f"{captures.SESSION}.jsonl", *lines)
    keyed = [
        Line(str(path), number, line, len(line), captures.SESSION)
        for number, line in enumerate(lines)
    ]
    records = records_of(files.read(files.expand([str(path)])))
    assert records == records_of([keyed])
    assert Counter(record.kind for record in records)["context_reading"] > 0


def check_folder(folder: Path, session_id: str) -> None:
    """A session's folder has its subagents, but not its compaction's own call."""
    records = records_of(files.read(files.expand([str(folder)])))
    agents = {path.stem.removeprefix("agent-") for path in folder.rglob("agent-*.jsonl")}
    own = {agent for agent in agents if agent.startswith("acompact")}
    assert len(own) == 1
    assert {record.subject for record in records} == {"main", *agents} - own
    assert {record.data.session_id for record in records} == {session_id}


def test_a_folder_has_its_subagents_but_not_its_compactions_own_call(tmp_path: Path) -> None:
    for name, lines in captures.auto_compaction().items():
        write(tmp_path / name, *lines)
    check_folder(tmp_path, captures.SESSION)


@pytest.mark.shared
def test_a_real_folder_has_its_subagents_but_not_its_compactions_own_call(shared: Path) -> None:
    folder = shared / "fixtures" / "claude-code" / "258c7280-ae70-4798-800f-63464d01a85d"
    check_folder(folder, folder.name)


def test_records_come_as_cloudevents_in_input_order(command: Command, tmp_path: Path) -> None:
    path = write(tmp_path / f"{SESSION}.jsonl", *(body(f"u{n}", 10_000 * n) for n in range(1, 6)))
    result = command("replay", str(path))
    assert result.returncode == 0
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["sequence"] for event in events] == [str(n + 1) for n in range(len(events))]
    assert {event["specversion"] for event in events} == {"1.0"}
    assert {event["source"] for event in events} == {f"/sessions/{SESSION}"}
    assert [used for *_, used in readings(result)] == [10_000, 20_000, 30_000, 40_000, 50_000]


def test_malformed_lines_are_reported_and_kept_and_do_not_stop_it(
    command: Command, tmp_path: Path
) -> None:
    path = write(
        tmp_path / f"{SESSION}.jsonl",
        body("u1", 10_000),
        b'{"type": "assistant", ',
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b"[1]",
        b"",
        b"[" * 1_100 + b"]" * 1_100,
        body("u2", 20_000),
    )
    dead = tmp_path / "dead.jsonl"
    result = command("replay", str(path), "--dead", str(dead))
    assert result.returncode == 0
    assert [used for *_, used in readings(result)] == [10_000, 20_000]
    *lines, summary = result.stderr.splitlines()
    assert summary == "5 could not be derived: see above"
    rows = [line.split(": ")[:2] for line in lines]
    reasons = ["not_json", "not_utf8", "byte_order_mark", "not_object", "too_deep"]
    assert rows == [
        [f"{path}:{number}", reason.replace("not_json", "not JSON")]
        for number, reason in zip((2, 3, 4, 5, 7), reasons, strict=True)
    ]
    entries = [json.loads(line) for line in dead.read_text().splitlines()]
    assert [entry["reason"] for entry in entries] == reasons
    assert [entry["line"] for entry in entries] == [2, 3, 4, 5, 7]
    assert entries[0]["text"] == '{"type": "assistant", '
    assert base64.b64decode(entries[1]["base64"]) == b"\xff\xfe"
    assert {entry["file"] for entry in entries} == {str(path)}
    assert command("replay", str(path), "--strict").returncode == 1


def test_strict_mode_accepts_valid_lines(command: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", body("u1"), {"type": "summary"})
    assert command("replay", str(path), "--strict").returncode == 0


def test_lines_without_a_session_are_malformed_unless_one_is_given(
    command: Command, tmp_path: Path
) -> None:
    line = {"object": "chat.completion", "id": "c1", "usage": {"prompt_tokens": 50}}
    path = write(tmp_path / "chat.jsonl", line)
    result = command("replay", str(path))
    assert "no_session" in result.stderr
    assert readings(result) == []
    assert readings(command("replay", str(path), "--session", "mine")) == [("mine", "main", 50)]


def test_a_view_is_the_fold_of_the_records(command: Command, tmp_path: Path) -> None:
    path = write(tmp_path / f"{SESSION}.jsonl", body("u1", 10_000), body("u2", 50_000))
    result = command("replay", str(path), "--view")
    (view,) = [json.loads(line) for line in result.stdout.splitlines()]
    assert view["session_id"] == SESSION
    assert view["chains"]["main"]["used_tokens"] == 50_000
    assert view["chains"]["main"]["used_percent"] == 25.0


def test_settings_are_in_force(command: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", body("u1", 90_000))
    result = command(
        "replay", str(path), WARNING_THRESHOLDS="80,90", WINDOWS='{"claude-opus-4-1": 100000}'
    )
    warnings = [json.loads(line)["data"] for line in result.stdout.splitlines() if "warn" in line]
    assert [warning["thresholds_crossed"] for warning in warnings] == [[80, 90]]


@pytest.mark.parametrize("name", ["nowhere.jsonl", "empty"])
def test_a_path_that_gives_nothing_is_a_clear_error(
    command: Command, tmp_path: Path, name: str
) -> None:
    (tmp_path / "empty").mkdir()
    result = command("replay", str(tmp_path / name))
    assert result.returncode == 2
    assert name in result.stderr
    assert result.stdout == ""


def test_a_missing_folder_for_dead_letters_is_reported(command: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", body("u1"))
    result = command("replay", str(path), "--dead", str(tmp_path / "nowhere" / "dead"))
    assert result.returncode == 2
    assert "--dead" in result.stderr


def test_standard_input_is_read_as_a_container(command: Command) -> None:
    lines = [{"type": "summary"}, body("u1", 10_000), body("u2", 20_000, sessionId=SESSION)]
    stdin = "".join(codec.dumps(line).decode() + "\n" for line in lines)
    result = command("replay", "-", stdin=stdin)
    assert result.returncode == 0
    assert readings(result) == [(SESSION, "main", 10_000), (SESSION, "main", 20_000)]


@pytest.mark.extended
def test_a_closed_output_pipe_is_not_an_error(command: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *(body(f"u{n}", 10_000 + n) for n in range(30_000)))
    process = command.start("replay", str(path))
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=PATIENCE_S) == 0


def test_a_long_line_gives_its_records_without_its_content(tmp_path: Path) -> None:
    long = body("u1", 70_000, content="x")
    long["message"]["content"] = [{"type": "text", "text": "y" * (MESSAGE_LIMIT_BYTES + 1)}]
    short = body("u1", 70_000, content="x")
    shortened, expected = (
        records_of(files.read(files.expand([str(write(tmp_path / name / "a.jsonl", line))])))
        for name, line in (("long", long), ("short", short))
    )
    assert shortened == expected
    assert len(shortened) > 1


@pytest.mark.parametrize("held", [256 * 1024 * 1024, 1024 * 1024])
def test_a_gigantic_line_of_garbage_is_reported_by_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr(tail, "HELD_LINE_BYTES", held)
    garbage = b"g" * (MESSAGE_LIMIT_BYTES + 5)
    path = write(tmp_path / "a.jsonl", body("u1", 10_000), garbage, body("u2", 20_000))
    blocks = files.read(files.expand([str(path)]))
    derived = list(replay(Deriver(Rules(bundled())), blocks))
    dead = [entry for block in derived for entry in block.dead]
    assert [(line.number, line.size, letter.reason) for line, letter in dead] == [
        (2, len(garbage), "too_large")
    ]
    assert str(len(garbage)) in dead[0][1].detail
    assert len(dead[0][0].value) <= held
    kinds = [record.kind for block in derived for record in block.records]
    assert kinds.count("context_reading") == 2


def test_the_size_limit_is_set_by_the_caller(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"[" * 200)
    (derived,) = replay(Deriver(Rules(bundled())), files.read(files.expand([str(path)])), 100)
    assert [letter.reason for _, letter in derived.dead] == ["too_large"]


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1 << 20])
def test_block_boundaries_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(tail, "_BLOCK_BYTES", block_bytes)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}\r\n\n{"b":2}\n\r\n{"sessionId":"s"}')
    assert [(line.number, line.value, line.size) for line in lines_of(path)] == [
        (1, b'{"a":1}', 7),
        (2, b"", 0),
        (3, b'{"b":2}', 7),
        (4, b"", 0),
        (5, b'{"sessionId":"s"}', 17),
    ]
    assert {line.session_hint for line in lines_of(path)} == {"s"}


def test_a_file_is_read_alone_and_a_folder_as_the_whole_session(tmp_path: Path) -> None:
    main = write(tmp_path / "p" / "one.jsonl", body("u1"))
    for name in ("agent-b", "agent-a", "deep/agent-c"):
        write(tmp_path / "p" / "one" / "subagents" / f"{name}.jsonl", body(name))
    assert [line.file for line in lines_of(main)] == [str(main)]
    lines = lines_of(tmp_path / "p" / "one")
    assert [Path(line.file).stem for line in lines] == ["one", "agent-a", "agent-b", "agent-c"]
    assert {line.session_hint for line in lines} == {"one"}


def test_a_session_without_subagents_is_named_by_its_folder_too(tmp_path: Path) -> None:
    write(tmp_path / "one.jsonl", body("u1"))
    (tmp_path / "one" / "tool-results").mkdir(parents=True)
    assert [Path(line.file).name for line in lines_of(tmp_path / "one")] == ["one.jsonl"]
    assert [Path(line.file).name for line in lines_of(tmp_path)] == ["one.jsonl"]


@pytest.mark.parametrize("name", [".", "..", "../one", "subagents/.."])
def test_a_folder_may_be_named_from_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write(tmp_path / "one.jsonl", body("u1"))
    write(tmp_path / "one" / "subagents" / "agent-a.jsonl", body("u2"))
    monkeypatch.chdir(tmp_path / "one" / "subagents" if name == ".." else tmp_path / "one")
    assert [line.session_hint for line in lines_of(name)] == ["one", "one"]


def test_a_projects_folder_is_every_session_each_with_its_subagents(tmp_path: Path) -> None:
    for name in (
        "q/two.jsonl",
        "p/one.jsonl",
        "p/one/subagents/agent-a.jsonl",
        "p/agent-loose.jsonl",
        "p/zero.jsonl",
        "p/gone/subagents/agent-g.jsonl",
        "r.jsonl",
        "r/three.jsonl",
    ):
        write(tmp_path / name, body(name))
    (tmp_path / "p" / "round").symlink_to(tmp_path / "p")
    (tmp_path / "p" / "notes.txt").write_text("no transcript")
    lines = lines_of(tmp_path)
    assert [str(Path(line.file).relative_to(tmp_path)) for line in lines] == [
        "p/gone/subagents/agent-g.jsonl",
        "p/one.jsonl",
        "p/one/subagents/agent-a.jsonl",
        "p/zero.jsonl",
        "p/agent-loose.jsonl",
        "q/two.jsonl",
        "r.jsonl",
        "r/three.jsonl",
    ]
    assert [line.session_hint for line in lines_of(tmp_path / "r")] == ["three"]
    assert [line.session_hint for line in lines] == [
        "gone", "one", "one", "zero", "agent-loose", "two", "r", "three",
    ]  # fmt: skip


def test_a_streams_lines_belong_to_the_last_id_seen(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"session_id": "s1"}, {}, b"{", {"session_id": "s2"}, {})
    assert [line.session_hint for line in lines_of(path)] == [None, "s1", "s1", "s1", "s2"]
    assert lines_of(path, fallback="given")[0].session_hint == "given"


def _through_a_pipe(tmp_path: Path, raw: bytes) -> list[Line]:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(raw,))
    writer.start()
    lines = lines_of(pipe)
    writer.join()
    return lines


def test_a_pipe_holds_lines_back_until_the_format_is_known(tmp_path: Path) -> None:
    raw = b'{"type":"summary"}\n{bad\n{"parentUuid":null}\n{"sessionId":"s"}\n{}\n'
    assert {line.session_hint for line in _through_a_pipe(tmp_path, raw)} == {"s"}


def test_a_pipe_with_field_names_of_a_stream_is_a_stream_at_once(tmp_path: Path) -> None:
    raw = b'{}\n{"session_id":"a"}\n{"sessionId":"b"}\n'
    assert [line.session_hint for line in _through_a_pipe(tmp_path, raw)] == [None, None, "a"]


@pytest.mark.parametrize(("name", "limit"), [("LOOK_AHEAD_LINES", 3), ("LOOK_AHEAD_BYTES", 8)])
def test_a_pipe_holds_back_a_limited_amount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int
) -> None:
    monkeypatch.setattr(files, name, limit)
    monkeypatch.setattr(files, "_BLOCK_BYTES", 6)
    raw = b'{}\n{}\n{}\n{}\n{}\n{"sessionId":"s"}\n{}\n'
    hints = [line.session_hint for line in _through_a_pipe(tmp_path, raw)]
    assert hints == [None] * 6 + ["s"]


def test_a_pipe_of_unknown_format_is_a_stream(tmp_path: Path) -> None:
    assert [line.session_hint for line in _through_a_pipe(tmp_path, b"{}\n{}")] == [None, None]
