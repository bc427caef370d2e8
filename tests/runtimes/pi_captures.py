"""Constructed sessions in pi's format: a tree of entries, of which each names the one before it."""

from typing import Any

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
