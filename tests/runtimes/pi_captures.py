"""Constructed sessions in pi's format: a tree of entries, of which each names the one before it."""

import json
from typing import Any

from contextgauge.compaction.reading.transcripts import read_conversation
from schemas.records import ContextReading, Record
from tests.core.given import Given, every

Entry = dict[str, Any]

SESSION = "01a01ae5-0000-7000-8000-000000000001"
ORIGIN = "01a01ae5-0000-7000-8000-000000000000"


def moment(minute: int) -> str:
    return f"2026-08-19T16:{minute:02}:00.000Z"


def head(**fields: object) -> Entry:
    own = {"type": "session", "version": 3, "id": SESSION, "timestamp": moment(10)}
    return {**own, "cwd": "/repo", **fields}


def entry(kind: str, key: str, parent: str | None, minute: int, **fields: object) -> Entry:
    own = {"type": kind, "id": key, "parentId": parent, "timestamp": moment(minute)}
    return {**own, **fields}


def message(key: str, parent: str | None, minute: int, **own: object) -> Entry:
    return entry("message", key, parent, minute, message=own)


def asked(key: str, parent: str | None, minute: int, text: str) -> Entry:
    return message(key, parent, minute, role="user", content=[{"type": "text", "text": text}])


def usage(sent: int, read: int = 0, write: int = 0, output: int = 20, **fields: object) -> Entry:
    counts = {"input": sent, "output": output, "cacheRead": read, "cacheWrite": write}
    return {**counts, "totalTokens": sent + read + write + output, **fields}


def answered(
    key: str, parent: str | None, minute: int, counts: Entry, *blocks: Entry, **own: object
) -> Entry:
    content = blocks or ({"type": "text", "text": f"Answer {key}."},)
    known = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-opus-5"}
    made = {"role": "assistant", "content": list(content), "usage": counts}
    return message(key, parent, minute, **made, **known | own)


def compaction(key: str, parent: str | None, minute: int, **fields: object) -> Entry:
    own = {"summary": "What was done.", "tokensBefore": 175_024, **fields}
    return entry("compaction", key, parent, minute, **own)


LOOK = {"type": "text", "text": "I look."}
CALL = {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "make"}}
THOUGHT = {"type": "thinking", "thinking": "Look first.", "thinkingSignature": "sig"}
PICTURE = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
SESSION_ENTRIES = (
    head(),
    entry("model_change", "m1", None, 10, provider="anthropic", modelId="claude-opus-5"),
    asked("a1", "m1", 11, "make the tests pass"),
    answered("a2", "a1", 12, usage(3, 170_000, 5_001), THOUGHT, LOOK, CALL, responseId="msg_1"),
    message("a3", "a2", 13, role="toolResult", toolCallId="t1", toolName="bash", isError=True,
            content=[{"type": "text", "text": "1 failed"}, PICTURE]),
    compaction("c1", "a3", 14, firstKeptEntryId="a2", fromHook=False,
               usage=usage(900, 170_000, 0, output=700)),
    answered("a4", "c1", 15, usage(3, 0, 31_000)),
)  # fmt: skip
"""As a person's first session is: a turn, a compaction, and what came after it."""


def taken(*entries: Entry) -> list[Record]:
    given = Given()
    given.take(*entries, hint=SESSION)
    return given.records


def sizes(records: list[Record]) -> list[int]:
    return [each.used_tokens for each in every(records, ContextReading)]


def values(*entries: Entry) -> list[bytes]:
    return [json.dumps(each).encode() for each in entries]


def conversation(*entries: Entry) -> list[str]:
    read = read_conversation(b"\n".join(values(*entries)))
    return [f"{each.role}: {each.text}" for each in read.request.messages]


TITLE: Entry = {
    "type": "title",
    "v": 1,
    "title": "Tests",
    "updatedAt": "2026-08-19T16:10:00Z",
    "pad": "",
}


def streamed(kind: str, minute: int, role: str, **own: object) -> Entry:
    time_ms = 1_793_534_400_000 + minute * 60_000
    return {"type": kind, "message": {"role": role, "content": [], "timestamp": time_ms, **own}}


def ended(kind: str, **fields: object) -> Entry:
    return {"type": kind, "aborted": False, "willRetry": False, **fields}


def stream(begin: Entry, *ends: Entry) -> tuple[Entry, ...]:
    """What `pi --mode json` prints of a turn, a compaction, and another turn."""
    answer = {"model": "claude-opus-5", "provider": "anthropic", "api": "anthropic-messages"}
    return (
        head(),
        {"type": "agent_start"},
        streamed("message_start", 1, "user"),
        streamed("message_end", 1, "user"),
        streamed("message_start", 2, "assistant", **answer, usage=usage(3)),
        streamed("message_end", 2, "assistant", **answer, usage=usage(3, 170_000, 5_001)),
        {"type": "turn_end", "message": {"role": "assistant", "usage": usage(9)}},
        begin,
        *ends,
        streamed("message_end", 4, "assistant", **answer, usage=usage(3, 0, 31_000)),
    )


RESULT = {"summary": "What was done.", "firstKeptEntryId": "a2", "tokensBefore": 175_024,
          "estimatedTokensAfter": 9_000}  # fmt: skip
