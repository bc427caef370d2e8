"""R32: a runtime is recognised by what it writes about itself, never by a line's shape alone."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from contextgauge.normalise.runtimes import RUNTIMES, lines_by_type
from contextgauge.record_words import Runtime
from schemas.records import (
    CompactBoundary,
    CompactionSummary,
    ContextLimits,
    ContextReading,
    ContextReset,
    SessionInfo,
)
from tests.core.given import (
    MODEL,
    SESSION,
    Body,
    Given,
    assistant,
    every,
    init,
    limits,
    line,
    one,
    plain,
    session,
    side,
    user,
)

QWEN: Body = {"sessionId": SESSION, "cwd": "/repo", "version": "0.22.0", "parentUuid": None}
GEMINI: Body = {"sessionId": SESSION, "projectHash": "f00"}


def qwen(uuid: str, kind: str, **fields: object) -> Body:
    return {**QWEN, "uuid": uuid, "type": kind, **fields}


def answered(uuid: str, prompt: int, *, window: int = 1_000_000, **fields: object) -> Body:
    return qwen(
        uuid,
        "assistant",
        model="qwen3.8",
        message={"role": "model", "parts": [{"text": "I look."}]},
        usageMetadata={"promptTokenCount": prompt, "candidatesTokenCount": 42},
        contextWindowSize=window,
        **fields,
    )


def compressed(status: object, **payload: object) -> Body:
    info = {"originalTokenCount": 210_042, "newTokenCount": 31_024, "compressionStatus": status}
    return qwen("c1", "system", subtype="chat_compression", systemPayload={"info": info, **payload})


def message(key: str, **fields: object) -> Body:
    return {"id": key, "timestamp": "2026-11-01T12:00:00Z", "type": "gemini", **fields}


def runtime_of(*bodies: Body, hint: str | None = None) -> str | None:
    given = Given()
    given.take(*bodies, hint=hint)
    return every(given.records, SessionInfo)[-1].runtime


def test_every_row_of_the_table_has_a_known_runtime_and_a_label() -> None:
    assert {row.runtime for row in RUNTIMES} <= set(get_args(Runtime))
    assert len({row.label for row in RUNTIMES}) == len(RUNTIMES)
    labels = {row.session_label for row in RUNTIMES if row.label in ("pi", "opencode")}
    assert labels == {"a pi session", "an opencode session"}


def test_every_runtime_that_is_read_has_a_source_for_each_figure() -> None:
    declared = [row.tells for row in RUNTIMES if row.is_read and row.tells is not None]
    assert len(declared) == sum(row.is_read for row in RUNTIMES)
    assert all(len(tells.sources()) == 11 and tells.version for tells in declared)


def test_a_type_that_is_passed_over_is_none_that_is_read() -> None:
    read = {kind for row in RUNTIMES for kind in row.types}
    assert read.isdisjoint(kind for row in RUNTIMES for kind in row.ignored)


def test_two_adapters_with_one_type_of_line_are_refused() -> None:
    with pytest.raises(ValueError, match="Codex: others have 'session_meta' too"):
        lines_by_type([row for row in RUNTIMES if row.label == "Codex"] * 2)


@pytest.mark.parametrize(
    ("extra", "runtime"),
    [
        ({"claude_code_version": "2.1.329"}, "claude-code"),
        ({"tools": [], "mcp_servers": [], "apiKeySource": "none"}, "claude-code"),
        ({"apiKeySource": "login", "permissionMode": "default"}, "other"),
        ({"tools": [], "mcp_servers": []}, "other"),
        ({"qwen_code_version": "0.22.0", "tools": []}, "qwen-code"),
        ({"runtime": "openai"}, "openai"),
        ({"runtime": "nobody"}, "other"),
    ],
)
def test_r32_an_init_is_claude_codes_by_what_it_reports(extra: Body, runtime: str) -> None:
    body = {"type": "system", "subtype": "init", "session_id": SESSION, "model": MODEL}
    assert runtime_of(body | extra) == runtime


def test_r32_the_version_of_qwen_code_is_that_of_its_init() -> None:
    body = {"type": "system", "subtype": "init", "session_id": SESSION, "qwen_code_version": "0.22"}
    assert one(session(body).records, SessionInfo).runtime_version == "0.22"


def test_r32_no_window_is_assumed_for_a_runtime_that_is_not_known_to_have_it() -> None:
    cursor = {"type": "system", "subtype": "init", "session_id": SESSION, "model": "Composer 2.5"}
    records = session(cursor | {"apiKeySource": "login"}).records
    assert limits(one(records, ContextLimits)) == (None, "unknown")


def test_r32_a_model_of_the_catalog_has_its_window_under_any_runtime() -> None:
    body = {"type": "system", "subtype": "init", "session_id": SESSION, "model": MODEL}
    assert limits(one(session(body).records, ContextLimits)) == (200_000, "catalog")


def test_r32_a_runtime_that_shows_later_withdraws_an_assumed_window() -> None:
    given = session(assistant(read=10, model="Composer 2.5"))
    assert limits(one(given.records, ContextLimits)) == (200_000, "default")
    other = {"type": "system", "subtype": "init", "session_id": SESSION}
    assert limits(one(given.take(other), ContextLimits)) == (None, "unknown")


def test_r32_a_transcripts_line_is_claude_codes_by_version_and_message() -> None:
    assert runtime_of(line(user())) == "claude-code"


@pytest.mark.parametrize("missing", [("version",), ("isSidechain", "message")])
def test_r32_a_line_without_what_claude_code_writes_names_no_runtime(missing: list[str]) -> None:
    body = {name: value for name, value in line(user()).items() if name not in missing}
    facts = one(session(body).records, SessionInfo)
    assert (facts.runtime, facts.runtime_version, facts.cwd) == (None, None, "/repo")


def test_r32_a_line_whose_message_is_no_anthropic_one_names_no_runtime() -> None:
    assert runtime_of({**line(user()), "message": {"role": "user"}}) is None


def test_r32_a_qwen_chat_has_its_own_model_window_and_sizes() -> None:
    given = session(
        qwen("a1", "user", message={"role": "user", "parts": [{"text": "go on"}]}),
        answered("a2", 35_575),
        qwen("a3", "tool_result", message={"role": "user", "parts": []}),
        answered("a4", 210_000),
    )
    facts = one(given.records, SessionInfo)
    assert (facts.runtime, facts.runtime_version, facts.cwd) == ("qwen-code", "0.22.0", "/repo")
    readings = every(given.records, ContextReading)
    assert [(each.used_tokens, each.messages) for each in readings] == [(35_575, 2), (210_000, 4)]
    assert {each.model for each in readings} == {"qwen3.8"}
    assert {(each.window, each.window_source) for each in readings} == {(1_000_000, "runtime")}
    assert readings[1].previous_output_tokens == 42


def test_r32_a_chat_compression_is_a_boundary_with_its_summary() -> None:
    given = session(answered("a2", 210_000))
    history = [{"role": "user", "parts": [{"inlineData": {}}]}]
    history.append({"role": "user", "parts": [{"text": "What was done."}]})
    records = given.take(compressed(1, compressedHistory=history))
    boundary = one(records, CompactBoundary)
    assert (boundary.pre_tokens, boundary.pre_tokens_source) == (210_042, "reported")
    assert (boundary.post_tokens, boundary.trigger) == (31_024, None)
    assert boundary.metadata["newTokenCount"] == 31_024
    assert one(records, CompactionSummary).summary == "What was done."


@pytest.mark.parametrize(
    "body",
    [
        compressed(2),
        qwen("c1", "system", subtype="ui_telemetry", systemPayload={"info": {}}),
        qwen("c1", "system", subtype="chat_compression", systemPayload={}),
    ],
)
def test_r32_what_compressed_nothing_is_no_boundary(body: Body) -> None:
    assert not every(session(answered("a2", 10), body).records, CompactBoundary)


def test_r32_a_compression_without_a_readable_history_has_no_summary() -> None:
    records = session(answered("a2", 10), compressed(1)).records
    assert every(records, CompactBoundary)
    assert not every(records, CompactionSummary)


def test_r32_a_subagents_window_is_that_of_its_model() -> None:
    given = session(answered("a2", 10))
    given.take(answered("a3", 10, window=128_000, isSidechain=True, agentId="a1"))
    assert every(given.records, ContextReading)[-1].window == 128_000


def test_r32_a_window_that_a_usage_names_comes_before_catalog_and_default() -> None:
    figures = {"input_tokens": 1_000, "max_tokens": 272_000}
    records = session(plain(figures)).records
    assert limits(one(records, ContextLimits)) == (272_000, "runtime")


def test_r32_a_window_without_a_model_is_the_main_chains() -> None:
    frame = plain({"input_tokens": 1_000, "max_tokens": 272_000})
    del frame["message"]["model"]
    records = session(frame).records
    assert limits(one(records, ContextLimits)) == (272_000, "runtime")


def test_r32_a_limit_below_the_size_is_no_window() -> None:
    records = session(plain({"input_tokens": 90_000, "max_tokens": 32_000})).records
    assert limits(one(records, ContextLimits)) == (200_000, "catalog")


def test_r32_a_claude_subagents_line_keeps_its_runtime() -> None:
    assert runtime_of(side(assistant(read=10))) == "claude-code"


def test_r32_a_gemini_chat_has_sizes_models_and_messages() -> None:
    given = Given()
    asked = {"id": "u1", "timestamp": "2026-11-01T12:00:00Z", "type": "user", "content": "go on"}
    tokens = {"input": 90_000, "cached": 60_000, "output": 12, "total": 90_012}
    begun = message("g1", content="", model="gemini-3-pro")
    given.take(GEMINI, asked, begun, {**begun, "tokens": tokens}, hint=SESSION)
    assert one(given.records, SessionInfo).runtime == "gemini"
    reading = one(given.records, ContextReading)
    assert (reading.used_tokens, reading.input_tokens) == (90_000, 30_000)
    assert (reading.cache_read_tokens, reading.response_id) == (60_000, "g1")
    assert (reading.model, reading.messages) == ("gemini-3-pro", 2)


def test_r32_messages_that_a_gemini_chat_removes_leave_the_size_unknown() -> None:
    given = Given()
    body = message("g1", model="gemini-3-pro", tokens={"input": 90_000})
    given.take(GEMINI, body, hint=SESSION)
    assert one(given.take({"$rewindTo": "g1"}, hint=SESSION), ContextReset).reason == "rollback"
    assert given.chain().used is None
    assert given.chain().messages == 1


def test_r32_the_field_cases_of_lookalikes(shared: Path) -> None:
    given = Given()
    for name in ("qwen_chat", "cursor_stream"):
        for value in (shared / "field" / f"{name}.jsonl").read_text().splitlines():
            body: dict[str, Any] = json.loads(value)
            given.take(body)
    readings = every(given.records, ContextReading)
    assert [each.used_tokens for each in readings] == [35_575, 210_000, 33_000]
    assert {each.runtime for each in every(given.records, SessionInfo)} == {"qwen-code", "other"}


def test_r32_an_init_without_a_model_assumes_nothing_either() -> None:
    records = session(init(model=None)).records
    assert not every(records, ContextLimits)
