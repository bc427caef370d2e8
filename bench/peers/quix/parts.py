"""What the derivation is made of: names, the attempt machine, record ids, what is relevant."""

from hashlib import sha1
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import NAMESPACE_URL, uuid5

from orjson import dumps

Json: TypeAlias = Any
Doc: TypeAlias = dict[str, Json]

SEEN: Final = 64 * 8
"""Bytes of the remembered hashes: a resumed session sends its last 40 messages again."""

DEFAULT_WINDOW: Final = 200_000
CATALOG: Final = {"claude-sonnet-4-5": 200_000, "claude-opus-4-5": 200_000}
"""Windows of the workload's models, by the name before its date."""
DATE: Final = len("-20250929")
THRESHOLDS: Final = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
GAP_MS: Final = 6 * 3_600_000
EXHAUSTED: Final = ("prompt_too_long", "blocking_limit", "rapid_refill_breaker")

_NAMESPACE: Final = sha1(
    uuid5(NAMESPACE_URL, "urn:contextgauge:records").bytes, usedforsecurity=False
)
_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}

NEW_CHAIN: Final[Doc] = {
    "model": None, "kind": None, "key": None, "counts": None, "before": None, "edited": False,
    "output": None, "used": None, "percent": None, "messages": 0, "since": 0, "total": 0,
    "level": 0, "number": 0, "awaited": None, "unmeasured": None, "reported": None,
}  # fmt: skip
NEW_SESSION: Final[Doc] = {
    "sequence": 0, "last": None, "phase": "idle", "start": None, "hint": None, "reset": None,
    "facts": None, "windows": {}, "raw": {}, "exceeded": [], "suffix": None, "suffixed": {},
    "aliases": {}, "compact": [None, None, None], "usage": None,
}  # fmt: skip

# The order of the records of one message.
(
    INFO, FAILED, START, PROGRESS, RESET, FORCED, BOUNDARY, SUMMARY, LIMITS, EDIT,
    READING, COMPLETE, WARNING, EXHAUSTION,
) = range(14)  # fmt: skip

# The attempt machine: phase and event give the next phase and what is emitted.
MOVES: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "idle": {"compacting": ("open", "s"), "failed": ("idle", "f")},
    "open": {
        "compacting": ("open", "h"), "success": ("succeeded", ""), "cleared": ("ended", ""),
        "failed": ("idle", "f"), "boundary": ("idle", ""), "result": ("idle", "u"),
        "reset": ("idle", "u"), "response": ("idle", "u"), "gap": ("idle", "u"),
    },
    "succeeded": {
        "compacting": ("open", "us"), "failed": ("idle", "f"), "boundary": ("idle", ""),
        "reset": ("idle", "u"), "gap": ("idle", "u"),
    },
    "ended": {
        "compacting": ("open", "us"), "success": ("succeeded", ""), "failed": ("idle", "f"),
        "boundary": ("idle", ""), "result": ("idle", "u"), "reset": ("idle", "u"),
        "response": ("idle", "u"), "gap": ("idle", "u"),
    },
}  # fmt: skip


class Out(NamedTuple):
    """One record: its place among those of the message, its id, and what it says."""

    rank: int
    record_id: str
    kind: str
    subject: str
    data: Doc


def record_id(*name: str | int | None) -> str:
    """Return the UUIDv5 of a record's name."""
    digest = _NAMESPACE.copy()
    digest.update(dumps(name))
    code = digest.hexdigest()
    return f"{code[:8]}-{code[8:12]}-5{code[13:16]}-{_VARIANT[code[16]]}{code[17:20]}-{code[20:32]}"


def base_name(model: str) -> tuple[str, int | None]:
    """Split a `[1m]` off a model's name."""
    if not model.endswith("]"):
        return model, None
    name, _, suffix = model[:-1].rpartition("[")
    return name, int(suffix[:-1]) * (1_000_000 if suffix[-1] in "mM" else 1_000)


def relevant(body: Doc) -> bool:
    """Return whether a message can change any record."""
    kind = body.get("type")
    if kind in ("assistant", "result", "conversation_reset", "control_response"):
        return True
    if kind == "stream_event":
        return body["event"]["type"] in ("message_start", "message_delta")
    if kind == "user":
        content = body["message"]["content"]
        text = content if isinstance(content, str) else content[0].get("text", "")
        if body.get("isReplay") or text.startswith(("<command-", "<local-command-")):
            return text.startswith("<command-name>/c")
        return True
    if kind != "system":
        return False
    subtype = body.get("subtype")
    if subtype == "status":
        return body.get("status", "") in ("compacting", None)
    if subtype in ("hook_started", "hook_response"):
        return body.get("hook_event") == "PreCompact"
    return subtype in ("init", "compact_boundary")
