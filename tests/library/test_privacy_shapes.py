"""Messages of seldom shapes without texts, and shortened: the records stay the same."""

import json
from typing import Any

import pytest

from contextgauge.containers import Line
from contextgauge.delivery.shorten import fit
from schemas.records import Record
from streams import codec
from tests.core.given import SESSION
from tests.library.privacy_kit import IDS, check_no_text, check_same_records, derived

_USAGE = {"input_tokens": 5, "cache_read_input_tokens": 90_000}
SHAPES: dict[str, list[dict[str, Any]]] = {
    "an enforced auto-compaction": [
        {"type": "system", "subtype": "init", "model": "claude-sonnet-5"},
        {"type": "autocompact_state", "value": {"enabled": True, "threshold": 48_000,
         "effective_window": 80_000, "enforced": True, "source": "settings"}},
        {"type": "control_response", "response": {"response": {
            "totalTokens": 9, "autoCompactThreshold": 67_000, "autocompactSource": "auto",
            "messageBreakdown": {"toolCallTokens": 3, "toolCallsByType": [
                {"name": "a S3cret of mine", "callTokens": 3}], "rows": [{"tokens": 3}]},
            "categories": [{"name": "Tools", "tokens": 3, "isDeferred": True}]}}},
    ],
    "Qwen Code's chat": [
        {"uuid": "a1", "sessionId": SESSION, "version": "0.22.0", "type": "user",
         "message": {"role": "user", "parts": [{"text": "a S3cret of mine"}]}},
        {"uuid": "a2", "sessionId": SESSION, "version": "0.22.0", "type": "assistant",
         "model": "qwen3.8", "message": {"role": "model", "parts": [{"text": "a S3cret"}]},
         "usageMetadata": {"promptTokenCount": 90_000}, "contextWindowSize": 1_000_000},
        {"uuid": "a3", "sessionId": SESSION, "version": "0.22.0", "type": "system",
         "subtype": "chat_compression", "systemPayload": {
             "info": {"originalTokenCount": 90_000, "compressionStatus": 1},
             "compressedHistory": [{"role": "user", "parts": [{"text": "a S3cret of mine"}]}]}},
    ],
    "Gemini CLI's chat": [
        {"sessionId": SESSION, "projectHash": "a S3cret of mine"},
        {"id": "g1", "type": "gemini", "timestamp": "2026-09-01T10:00:00Z", "model": "gemini-3-pro",
         "content": "a S3cret of mine", "tokens": {"input": 90_000, "cached": 5, "output": 9}},
        {"$rewindTo": "g1"},
    ],
    "answers of Codex' app server": [
        {"id": 2, "result": {"thread": {"id": SESSION, "cliVersion": "0.146.0", "cwd": "/repo",
                                        "preview": "a S3cret of mine"}, "model": "gpt-5.6"}},
        {"method": "thread/tokenUsage/updated", "emittedAtMs": 1_790_000_000_000, "params": {
            "threadId": SESSION, "tokenUsage": {"last": {
                "inputTokens": 90_000, "cacheWriteInputTokens": 400}}}},
        {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
    ],
    "a subagent's rollout": [
        {"timestamp": "2026-09-08T10:00:00Z", "type": "session_meta", "payload": {
            "id": "01992000-0000-7000-8000-00000000000c", "session_id": SESSION, "cwd": "/repo",
            "source": {"subagent": {"thread_spawn": {"parent_thread_id": SESSION,
                                                     "agent_role": "explorer"}}},
            "base_instructions": "a S3cret of mine"}},
        {"timestamp": "2026-09-08T10:00:00.001Z", "type": "turn_context", "payload": {
            "model": "gpt-5.6", "turn_id": "01991000-0000-7000-8000-000000000001"}},
        {"timestamp": "2026-09-08T10:00:09Z", "type": "event_msg", "payload": {
            "type": "token_count", "info": {"last_token_usage": {"input_tokens": 90_000}}}},
    ],
    "a gateway's sizes": [
        {"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 0}}},
        {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 9, "output_tokens": 4}},
    ],
    "a local refusal": [
        {"type": "system", "subtype": "model_refusal_fallback", "scope": "local",
         "fallback_model": "gpt-4", "content": "a S3cret of mine"},
    ],
    "a frame over the limit": [
        {"type": "assistant", "message": {"model": "<synthetic>"}, "context_usage": {
            "totalTokens": 9, "over_limit": {"tokens_over": 4, "kind": "hard_limit"}}},
    ],
    "bare answers": [
        {"type": "message", "role": "assistant", "id": "msg_1", "model": "claude-sonnet-5",
         "content": [{"type": "text", "text": "a S3cret of mine"}], "usage": _USAGE},
        {"type": "message_start", "message": {"id": "msg_2", "usage": {"input_tokens": 9}}},
        {"type": "message_delta", "delta": {"stop_reason": "model_context_window_exceeded"}},
        {"type": "response.completed", "response": {"id": "resp_1", "object": "response",
         "output": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "a S3cret"}],
         "usage": {"input_tokens": 70_000, "input_tokens_details": {"cached_tokens": 5}}}},
    ],
    "a LiteLLM answer": [
        {"id": "chatcmpl-1", "object": "chat.completion", "model": "claude-sonnet-5",
         "usage": {"prompt_tokens": 160_000, "cache_read_input_tokens": 50_000}},
    ],
    "Codex' rollout": [
        {"type": "event_msg", "payload": {"type": "task_started", "model_context_window": 258_400}},
        {"type": "turn_context", "payload": {"model": "gpt-5-codex", "summary": "a S3cret"}},
        {"type": "compacted", "payload": {"message": "a S3cret of mine"}},
        {"type": "event_msg", "payload": {"type": "item_completed", "started_at_ms": 1,
         "completed_at_ms": 9, "item": {"type": "ContextCompaction", "id": "i1"}}},
    ],
    "Codex' app server": [
        {"method": "thread/started", "params": {"thread": {
            "id": "t", "cwd": "/repo", "cliVersion": "0.157", "preview": "a S3cret of mine"}}},
        {"method": "thread/tokenUsage/updated", "params": {"threadId": "t", "tokenUsage": {
            "last": {"inputTokens": 90_000}, "total": {"inputTokens": 90_000},
            "modelContextWindow": 272_000}}},
        {"method": "item/started", "params": {"threadId": "t", "startedAtMs": 1_793_534_400_000,
         "item": {"type": "contextCompaction", "id": "i1"}}},
        {"method": "item/completed", "params": {"threadId": "t",
         "completedAtMs": 1_793_534_403_000, "item": {"type": "contextCompaction", "id": "i1"}}},
        {"method": "thread/compacted", "params": {"threadId": "t", "turnId": "turn"}},
    ],
    "codex exec": [{"type": "thread.started", "thread_id": "t"}],
    "a precomputed compaction": [
        {"type": "system", "subtype": "compact_boundary",
         "compact_metadata": {"pre_tokens": 9, "duration_ms": 5, "precomputed": True}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_other_shapes_give_the_same_records(shape: str) -> None:
    lines = [json.dumps(body).encode() for body in SHAPES[shape]]
    records = check_same_records(lines)
    assert records > 0 or shape == "a local refusal"
    check_no_text(lines)


@pytest.mark.parametrize("shape", SHAPES)
def test_other_shapes_give_the_same_records_when_shortened(shape: str) -> None:
    """A long text that a runtime may put into any of its objects is what is left out."""
    lines = [json.dumps(padded(body)).encode() for body in SHAPES[shape]]
    shortened = [fit(Line("f", 1, line, len(line), None), 2_000) for line in lines]
    values = [value for value in shortened if isinstance(value, bytes)]
    assert len(values) == len(lines)
    assert [figures(record) for record in derived(values)] == [
        figures(record) for record in derived(lines)
    ]


def padded(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with a long text in it and in the objects that hold what is read."""
    holders = ("message", "value", "params", "payload", "response", "item")
    inner = {name: padded(body[name]) for name in holders if isinstance(body.get(name), dict)}
    return body | inner | {"padding": "x" * 2_000}


def figures(record: Record) -> dict[str, Any]:
    """Return what of a record does not depend on texts and ids."""
    data = json.loads(codec.dumps(record.data))
    for name in (*IDS, "metadata", "summary", "message_breakdown"):
        data.pop(name, None)
    return {"kind": record.kind, "time": record.time_ms, **data}
