"""R32: threads of Amp, each a document that is written again with each message."""

import json
from pathlib import Path
from typing import Any

from contextgauge.compaction.reading.transcripts import read_conversation
from contextgauge.normalise.runtimes import line_of
from schemas.records import CompactionSummary, ContextLimits, SessionInfo
from streams.edge.files.opening import read_whole
from streams.edge.files.session_files import first_prompt
from tests.core.given import every, limits, one
from tests.library.privacy_kit import check_no_text, check_same_records
from tests.runtimes.documents_kit import Body, Publishing, records_of, write
from tests.runtimes.runtimes_kit import boundaries, sizes

THREAD = "T-01a00ae5-0000-7000-8000-000000000001"
FILE = f".local/share/amp/threads/{THREAD}.json"
BEGIN_MS = 1_793_534_400_000
WORDS = "a S3cret of mine"


def asked(number: int, text: str, **own: Any) -> Body:
    content = [{"type": "text", "text": text}]
    meta = {"sentAt": BEGIN_MS + number * 60_000}
    return {"role": "user", "messageId": number, "content": content, "meta": meta, **own}


def answered(number: int, fresh: int, read: int = 0, write: int = 0, **own: Any) -> Body:
    usage = {
        "model": "claude-sonnet-5",
        "maxInputTokens": 168_000,
        "inputTokens": fresh,
        "outputTokens": 40,
        "cacheCreationInputTokens": write,
        "cacheReadInputTokens": read,
        "totalInputTokens": fresh + read + write,
        "timestamp": f"2026-11-01T12:{number:02}:00.000Z",
    }
    call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {}}
    state = {"type": "complete", "stopReason": "end_turn"}
    return {"role": "assistant", "messageId": number, "content": [call], "state": state,
            "usage": usage, **own}  # fmt: skip


def result(number: int, of: int, status: str = "done") -> Body:
    run = {"status": status, "result": "a.py"}
    block = {"type": "tool_result", "toolUseID": f"t{of}", "run": run}
    return {"role": "user", "messageId": number, "content": [block]}


def summary(number: int, text: str = "What was done.") -> Body:
    own = {"type": "message", "summary": text}
    block = {"type": "summary", "summary": own}
    return {"role": "info", "messageId": number, "content": [block]}


def thread(*messages: Body, changes: int = 9) -> Body:
    trees = [{"displayName": "repo", "uri": "file:///srv/my%20repo"}]
    env = {"initial": {"trees": trees, "platform": {"os": "linux"}}}
    return {"v": changes, "id": THREAD, "created": BEGIN_MS, "messages": list(messages),
            "agentMode": "smart", "title": "Mend", "env": env}  # fmt: skip


LISTED = (
    asked(0, "mend the parser"),
    answered(1, 12, 100_000, 3_000),
    result(2, 1),
    answered(3, 10, 103_000),
    summary(4),
    asked(5, "go on"),
    answered(6, 9, 0, 20_000),
)


def test_a_thread_has_sizes_its_window_folder_and_boundary(tmp_path: Path) -> None:
    records = records_of(tmp_path, {FILE: thread(*LISTED)})
    assert {each.data.session_id for each in records} == {THREAD}
    assert sizes(records) == [(103_012, 168_000), (103_010, 168_000), (20_009, 168_000)]
    info = every(records, SessionInfo)[-1]
    assert (info.runtime, info.cwd) == ("amp", "/srv/my repo")
    (boundary,) = boundaries(records)
    assert (boundary.pre_tokens, boundary.messages_total) == (103_010, 4)
    assert one(records, CompactionSummary).summary == "What was done."
    assert first_prompt(tmp_path / FILE) == "mend the parser"
    assert records[0].time_ms == BEGIN_MS


def test_a_window_that_is_not_reported_is_unknown(tmp_path: Path) -> None:
    answer = answered(1, 12)
    del answer["usage"]["maxInputTokens"]
    records = records_of(tmp_path, {FILE: thread(asked(0, "go"), answer)})
    assert limits(one(records, ContextLimits)) == (None, "unknown")


def test_of_a_thread_that_is_written_again_only_what_is_new_is_sent(tmp_path: Path) -> None:
    unfinished = answered(1, 0, state={"type": "streaming"}, usage=None)
    write(tmp_path, {FILE: thread(LISTED[0], unfinished)})
    publishing = Publishing(tmp_path)
    assert [each.get("messageId") for each in publishing.sent()] == [None, 0, 1]
    write(tmp_path, {FILE: thread(*LISTED[:3], changes=10)})
    assert [each["messageId"] for each in publishing.sent()] == [1, 2]
    assert publishing.sent() == []


def test_the_conversation_is_what_the_model_sees(tmp_path: Path) -> None:
    write(tmp_path, {FILE: thread(*LISTED[:4], result(4, 3, "error"))})
    read = read_conversation(read_whole(str(tmp_path / FILE)))
    assert [each.role for each in read.request.messages] == [
        *("user", "assistant", "tool", "assistant", "tool")
    ]
    going_on = (answered(3, 0, usage=None), result(2, 1, "in-progress"))
    write(tmp_path, {FILE: thread(*LISTED[:2], *going_on)})
    read = read_conversation(read_whole(str(tmp_path / FILE)))
    assert [each.role for each in read.request.messages] == ["user", "assistant"]
    write(tmp_path, {FILE: thread(*LISTED)})
    read = read_conversation(read_whole(str(tmp_path / FILE)))
    assert [each.text for each in read.request.messages] == ["What was done.", "go on", ""]


def test_without_texts_the_records_are_the_same() -> None:
    spoken = (
        {"v": 1, "id": THREAD, "created": BEGIN_MS},
        asked(0, WORDS),
        answered(1, 12, content=[{"type": "text", "text": WORDS}]),
        summary(2, WORDS),
        {"role": "info", "messageId": 3, "content": [{"type": "manual_bash_invocation"}]},
        asked(4, WORDS),
        answered(5, 13),
    )

    lines = [json.dumps(each).encode() for each in spoken]
    assert check_same_records(lines) > 5
    check_no_text(lines)


def test_a_folder_of_another_machine_is_none(tmp_path: Path) -> None:
    elsewhere = {"initial": {"trees": [{"uri": "vscode-remote://host/repo"}]}}
    records = records_of(tmp_path, {FILE: {**thread(*LISTED), "env": elsewhere}})
    assert every(records, SessionInfo)[-1].cwd is None


def test_a_message_may_be_a_text() -> None:
    body = asked(1, "go") | {"content": "go"}
    reduce = line_of(body).conversation
    assert reduce is not None
    reduced = reduce(body)
    assert reduced is not None
    assert reduced["message"] == {"role": "user", "content": "go"}
    assert reduce(body | {"role": "info"}) is None
