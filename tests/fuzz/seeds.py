"""What the generator begins with: stories of the tests and of the product's simulator."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from tests.codec.fast_path_kit import BROKEN, UNUSUAL, USUAL
from tests.core import given
from tests.flow.derive_kit import samples

_MOST_BYTES: Final = 6_000
"""Longer messages of the simulator are left out: mutating them takes long, and shows no more."""

BOUNDARY: Final = b"the-last-boundary"
"""What stands for the id of the episode's last boundary, which follows from the messages."""

_SAMPLES: Final = 3
_STORY: Final = 24


def _responses() -> list[Any]:
    counts = {"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 800}}
    gemini = {"promptTokenCount": 900, "cachedContentTokenCount": 800}
    edits = {"applied_edits": [{"type": "clear_tool_uses", "cleared_input_tokens": 40}] * 3}
    frame = {"type": "assistant", "session_id": given.SESSION}
    return [
        given.plain(counts, model="gpt-4"),
        given.plain(gemini, response="msg_7"),
        given.assistant("msg_2", read=90_000, inside={"context_management": edits}),
        given.assistant(
            "msg_3", read=1, inside={"content": [{"type": "compaction", "content": "so"}]}
        ),
        given.assistant("msg_4", read=1, inside={"stop_reason": "model_context_window_exceeded"}),
        {**frame, "message": {"id": "r", "usage": {"iterations": [given.usage(1, 2, 3)] * 3}}},
        {"type": "response.completed", "response": {"id": "r", "model": "gpt-5", "usage": counts}},
        {"id": "resp_1", "object": "response", "model": "gpt-5", "usage": counts, "output": []},
        {
            "object": "response.compaction",
            "id": "c",
            "usage": counts,
            "output": [{"type": "compaction"}],
        },
        {"method": "thread/compacted", "params": {"threadId": "t", "turnId": "u"}},
        {
            "method": "thread/tokenUsage/updated",
            "params": {
                "threadId": "t",
                "tokenUsage": {
                    "last": {"inputTokens": 5, "cachedInputTokens": 2},
                    "modelContextWindow": 9_000,
                },
            },
        },
        {
            "hook_event_name": "PreCompact",
            "session_id": given.SESSION,
            "trigger": "auto",
            "transcript_path": "/t",
            "cwd": "/repo",
            "custom_instructions": "",
        },
        {
            "hook_event_name": "PostCompact",
            "session_id": given.SESSION,
            "trigger": "manual",
            "compact_summary": "so far",
        },
        {"hook_event_name": "SessionStart", "session_id": given.SESSION, "source": "compact"},
    ]


def _compactions() -> list[Any]:
    rules = [f"rule {number}" for number in range(3)]
    return [
        given.init(),
        given.assistant("msg_1", read=160_000, at=1),
        given.user("/compact", at=2),
        given.compacting(at=3),
        given.compacting(at=33),
        given.boundary(given.AUTO, at=40),
        given.summary(at=41),
        given.succeeded(at=42),
        given.assistant("msg_2", read=9_000, at=43),
        given.boundary(
            {**given.AUTO, "trigger": "manual", "preserved_segment": {"head_uuid": "h"}}, at=50
        ),
        given.system(
            "microcompact_boundary", microcompactMetadata={"tokensSaved": 5, "preTokens": 9}
        ),
        given.system("pins_checked", kept=2, lost=rules, boundary_id=BOUNDARY.decode()),
        given.system("model_refusal_fallback", original_model="a", fallback_model="b"),
        given.system(
            "autocompact_state", enabled=True, threshold=150_000, effective_window=160_000
        ),
        given.system(
            "hook_started", hook_event="PreCompact", hook_id="h", hook_name="PreCompact:auto"
        ),
        given.system("hook_response", hook_event="PreCompact", hook_id="h", outcome="error"),
        given.failed(at=51),
        given.result({given.MODEL: given.model_window(200_000, given.LARGE), "other": {}}),
        given.usage_answer(**given.ANSWER),
        given.reset(at=60),
        given.clear(at=61),
        given.user("a", isCompactSummary=True, at=62),
        given.any_message(
            "control_request",
            request={
                "subtype": "hook_callback",
                "input": {
                    "hook_event_name": "PreCompact",
                    "trigger": "auto",
                    "session_id": given.SESSION,
                },
            },
        ),
    ]


def _rollout() -> list[Any]:
    last = {"input_tokens": 900, "cached_input_tokens": 800, "output_tokens": 5}
    meta = {"id": given.SESSION, "cwd": "/repo", "cli_version": "1", "model_provider": "openai"}
    return [
        given.rollout("session_meta", meta),
        given.rollout("turn_context", {"model": "gpt-5", "cwd": "/repo"}, 1),
        given.token_count(last, 900, at=2),
        given.rollout("response_item", {"type": "message", "role": "user", "content": []}, 3),
        given.rollout("compacted", {"message": "so far", "replacement_history": [{}, {}]}, 4),
        given.rollout("event_msg", {"type": "context_compacted"}, 5),
        given.rollout("event_msg", {"type": "task_started", "model_context_window": 272_000}, 6),
        given.rollout("event_msg", {"type": "error", "message": "context window exceeded"}, 7),
        given.token_count(None, 0, at=8),
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.completed", "thread_id": "t", "usage": last},
    ]


def _app_server() -> list[Any]:
    item = {"type": "contextCompaction", "id": "i"}
    times = {"startedAtMs": 1_793_534_400_000, "completedAtMs": 1_793_534_403_000}
    usage = {
        "last": {"inputTokens": 5_000, "cachedInputTokens": 2_000, "outputTokens": 5},
        "total": {"inputTokens": 9_000, "totalTokens": 9_000},
        "modelContextWindow": 9_000,
    }
    thread = {"id": "t", "cliVersion": "1", "cwd": "/repo", "forkedFromId": "f"}
    notifications: list[tuple[str, dict[str, Any]]] = [
        ("thread/started", {"thread": thread}),
        ("thread/tokenUsage/updated", {"tokenUsage": usage}),
        ("item/started", {"item": item, "startedAtMs": 1_793_534_400_000}),
        ("item/completed", {"item": item, **times}),
        ("thread/compacted", {"turnId": "u"}),
        ("thread/tokenUsage/updated", {"tokenUsage": usage}),
        ("turn/completed", {"turn": {"id": "u"}}),
    ]
    bodies: list[Any] = [
        {"method": method, "params": {"threadId": "t", **params}}
        for method, params in notifications
    ]
    snake = {"started_at_ms": 1_793_534_400_000, "completed_at_ms": 1_793_534_403_000}
    latest = {"response_id": "c", "usage": {"input_tokens": 900, "output_tokens": 5}}
    payload = {"message": "so far", "compaction_response_id": "c"}
    return [
        *bodies,
        given.rollout("compacted", payload | {"latest_token_usage_record": latest}, 4),
        given.rollout("event_msg", {"type": "item_completed", "item": item, **snake}, 5),
        given.rollout("event_msg", {"type": "token_count", "info": None}, 6),
    ]


def _transcript(bodies: Iterable[Any]) -> list[Any]:
    lines = [given.line(body, number) for number, body in enumerate(bodies) if "session_id" in body]
    return [line for body in lines for line in (body, given.side(body | {"session_id": "s"}))]


def _lines(bodies: Iterable[Any]) -> list[bytes]:
    return [json.dumps(body, separators=(",", ":")).encode() for body in bodies]


WRITTEN: Final = 6
"""The first stories are written to have every kind of message."""


@cache
def stories() -> tuple[tuple[bytes, ...], ...]:
    """Return sequences of messages, each of one session or a few."""
    usual = [body for body in (*USUAL, *UNUSUAL) if isinstance(body, dict)]
    written = [
        _compactions(),
        _responses(),
        _rollout(),
        _app_server(),
        usual,
        _transcript(_compactions()),
    ]
    sequences = [tuple(_lines(bodies)) for bodies in written]
    sequences.append(tuple(BROKEN))
    for number in range(_SAMPLES):
        sessions: dict[str, list[bytes]] = {}
        for sent in samples(number + 1):
            if len(sent.value) <= _MOST_BYTES:
                sessions.setdefault(sent.session_id, []).append(sent.value)
        for lines in sessions.values():
            sequences += [tuple(lines[begin : begin + _STORY]) for begin in (0, len(lines) // 2)]
    return tuple(sequences)
