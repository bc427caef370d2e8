"""R32: sessions of Cline's CLI and of its version 4: documents of messages and of compactions."""

import json
from pathlib import Path
from typing import Any

import pytest

from contextgauge.compaction.reading.transcripts import read_conversation
from contextgauge.normalise.cline.sessions import usage_of
from contextgauge.normalise.runtimes import line_of
from contextgauge.normalise.signals import Usage
from schemas.records import CompactBoundary, CompactionSummary, SessionInfo
from streams.edge.files.opening import read_whole
from streams.edge.files.session_files import first_prompt
from tests.core.given import every, one
from tests.library.privacy_kit import check_no_text, check_same_records
from tests.runtimes.documents_kit import Body, Publishing, records_of, write
from tests.runtimes.runtimes_kit import boundaries, sizes

WORDS = "a S3cret of mine"
SESSION = "1793534400000_abcde"
BEGIN_MS = 1_793_534_400_000
FOLDER = f".cline/data/sessions/{SESSION}"
OPUS = {"id": "claude-sonnet-5", "provider": "anthropic", "family": "claude-sonnet"}


def asked(minute: int, text: str, **own: Any) -> Body:
    words = f'<user_input mode="act">{text}</user_input>'
    return {"id": f"u{minute}", "role": "user", "content": [{"type": "text", "text": words}],
            "ts": BEGIN_MS + minute * 60_000, **own}  # fmt: skip


def answered(minute: int, sent: int, read: int = 0, write: int = 0, **own: Any) -> Body:
    call = {"type": "tool_use", "id": f"t{minute}", "name": "read_files", "input": {}}
    metrics = {"inputTokens": sent, "outputTokens": 40, "cost": 0.1}
    cached = {"cacheReadTokens": read, "cacheWriteTokens": write}
    return {"id": f"a{minute}", "role": "assistant", "content": [call], "modelInfo": OPUS,
            "metrics": metrics | cached, "ts": BEGIN_MS + minute * 60_000, **own}  # fmt: skip


def messages(*listed: Body, session: str = SESSION, agent: str = "lead") -> Body:
    head = {"version": 1, "updated_at": "2026-11-01T12:00:00.000Z", "agent": agent}
    return {**head, "sessionId": session, "messages": list(listed), "system_prompt": "You are."}


def compacted(covered: int, **metadata: Any) -> Body:
    own = {"kind": "compaction_summary", "summary": "What was done.", "tokensBefore": 9_000,
           "generatedAt": BEGIN_MS + 150_000, **metadata}  # fmt: skip
    summary = {"role": "user", "content": [{"type": "text", "text": "Context summary:"}]}
    kept = [summary | {"metadata": own}, answered(2, 1)]
    return {"version": 1, "updated_at": "2026-11-01T12:02:30.000Z",
            "source_message_count": covered, "messages": kept}  # fmt: skip


FOUND = [{"query": "a.py", "result": "x = 1", "success": True}, {"type": "text", "text": "x"}]
RESULT = {"type": "tool_result", "tool_use_id": "t1", "name": "read_files", "content": FOUND}
LISTED = (
    asked(0, "mend the parser"),
    answered(1, 100_000, 90_000, 5_000),
    {**asked(2, ""), "content": [RESULT]},
    answered(3, 20_000, 0, 20_000),
)
MANIFEST = {"version": 1, "session_id": SESSION, "cwd": "/repo", "model": "claude-sonnet-5"}
MAIN = f"{FOLDER}/{SESSION}.messages.json"
CAPTURE = {
    f"{FOLDER}/{SESSION}.json": MANIFEST,
    MAIN: messages(*LISTED),
    f"{FOLDER}/{SESSION}.compaction.json": compacted(3),
    f"{FOLDER}/a7.messages.json": messages(
        asked(2, "look"), answered(2, 7_000), session=f"{SESSION}__a7", agent="subagent"
    ),
}


def test_a_session_has_sizes_its_model_folder_and_subagents(tmp_path: Path) -> None:
    records = records_of(tmp_path, CAPTURE)
    assert {each.data.session_id for each in records} == {SESSION}
    assert sizes(records) == [(100_000, 200_000), (20_000, 200_000)]
    assert sizes(records, "a7") == [(7_000, 200_000)]
    info = every(records, SessionInfo)[-1]
    assert (info.runtime, info.cwd) == ("cline", "/repo")
    assert first_prompt(tmp_path / MAIN) == "mend the parser"


def test_the_last_compaction_is_where_it_took_place(tmp_path: Path) -> None:
    records = records_of(tmp_path, CAPTURE)
    (boundary,) = boundaries(records)
    # What Cline reports of sizes is an estimate of the messages.
    assert (boundary.pre_tokens, boundary.pre_tokens_source) == (100_000, "last_reading")
    assert one(records, CompactionSummary).summary == "What was done."
    kinds = [each.data.kind for each in records if each.data.chain in (None, "main")]
    assert kinds.index("compact_boundary") < kinds.index("compaction_complete")


@pytest.mark.parametrize(
    ("reason", "trigger"), [("manual_compaction", "manual"), ("auto_compaction", "auto")]
)
def test_a_compaction_without_a_summary_says_why(tmp_path: Path, reason: str, trigger: str) -> None:
    state = compacted(4, kind="compaction", reason=reason, messagesRemoved=2, summary=None)
    documents = {MAIN: messages(*LISTED), f"{FOLDER}/{SESSION}.compaction.json": state}
    boundary = one(records_of(tmp_path, documents), CompactBoundary)
    assert (boundary.trigger, boundary.metadata) == (
        trigger,
        {"kind": "compaction", "messagesRemoved": 2},
    )


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        ((100, 90, 5), Usage(5, 5, 90)),
        # As handlers of VS Code count.
        ((5, 90, 5), Usage(5, 5, 90)),
        ((0, 0, 0), None),
    ],
)
def test_r07_cached_tokens_count_once(counts: tuple[int, int, int], wanted: Usage | None) -> None:
    names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens")
    assert usage_of(dict(zip(names, counts, strict=True))) == wanted


def test_a_document_alone_is_read_wherever_it_lies(tmp_path: Path) -> None:
    records = records_of(tmp_path, {"copy.json": messages(*LISTED)})
    assert sizes(records) == [(100_000, 200_000), (20_000, 200_000)]
    assert {each.data.session_id for each in records} == {SESSION}


def test_of_a_session_that_is_written_again_only_what_is_new_is_sent(tmp_path: Path) -> None:
    write(tmp_path, {MAIN: messages(*LISTED[:2])})
    publishing = Publishing(tmp_path)
    assert [each.get("id") for each in publishing.sent()] == [None, "u0", "a1"]
    write(tmp_path, {MAIN: messages(*LISTED)})
    assert [each["id"] for each in publishing.sent()] == ["u2", "a3"]
    # The compaction stands between messages that were sent.
    write(tmp_path, {f"{FOLDER}/{SESSION}.compaction.json": compacted(3)})
    assert [each.get("source_message_count") for each in publishing.sent()] == [3]
    write(tmp_path, {MAIN: messages(*LISTED[:3], answered(3, 20_001), asked(4, "go on"))})
    assert [each["id"] for each in publishing.sent()] == ["a3", "u4"]
    assert publishing.reported == []


def test_a_document_that_is_being_written_is_read_later(tmp_path: Path) -> None:
    write(tmp_path, {MAIN: messages(*LISTED[:2])})
    publishing = Publishing(tmp_path)
    assert len(publishing.sent()) == 3
    whole = json.dumps(messages(*LISTED))
    (tmp_path / MAIN).write_text(whole[:-100])
    assert publishing.sent() == []
    (tmp_path / MAIN).write_text(whole)
    assert len(publishing.sent()) == 2
    assert publishing.reported == []


def test_the_conversation_is_what_the_model_sees(tmp_path: Path) -> None:
    write(tmp_path, {MAIN: messages(*LISTED)})
    read = read_conversation(read_whole(str(tmp_path / MAIN)))
    assert [each.role for each in read.request.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert read.request.model == "claude-sonnet-5"
    write(tmp_path, CAPTURE)
    after = read_conversation(read_whole(str(tmp_path / MAIN)))
    assert next(each.text for each in after.request.messages).startswith("Context summary:")


def test_without_texts_the_records_are_the_same() -> None:
    spoken = (
        {"version": 1, "agent": "lead", "sessionId": SESSION, "cwd": "/repo"},
        asked(0, WORDS),
        answered(1, 100_000, 90_000, content=[{"type": "text", "text": WORDS}]),
        compacted(2, summary=WORDS, details={"readFiles": [WORDS]}),
        asked(2, WORDS),
        answered(3, 20_000),
    )
    lines = [json.dumps(each | {"sessionId": SESSION}).encode() for each in spoken]
    assert check_same_records(lines) > 5
    check_no_text(lines)


def reduced(body: Body) -> Any:
    read = line_of(body).conversation
    assert read is not None
    return read(body)


def test_blocks_of_messages_are_read() -> None:
    parts = [
        {"type": "file", "path": "a.py", "content": "x = 1"},
        {"type": "image", "mediaType": "image/png", "data": "AA=="},
        {"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True},
    ]
    file, image, result = reduced(asked(1, "") | {"content": parts})["message"]["content"]
    assert file == {"type": "text", "text": "a.py\nx = 1"}
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "AA=="}
    assert (result["content"], result["is_error"]) == ("no", True)
    plain = asked(1, "") | {"content": "go", "metadata": {"kind": "mode_notice"}}
    assert reduced(plain)["message"]["content"] == "go"
    assert reduced(plain)["isMeta"]
    assert reduced(compacted(1, kind="other") | {"messages": []}) is None


def test_a_message_without_a_model_has_its_size() -> None:
    body = answered(1, 9)
    del body["modelInfo"]
    assert "model" not in reduced(body)["message"]
