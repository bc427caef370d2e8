"""Sessions for the golden properties: every kind of message, in any order, in any spelling.

A session is a list of small actions; `Writer` turns them into lines. Actions shrink well, and a
line's uuid follows from its place, so a failing example stays readable.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

BASE_S = 1_793_534_400
"""2026-11-01T12:00:00Z, the time of a session's first line."""

MODELS = ("claude-sonnet-5", "claude-haiku-4-5", "gpt-4", "gemini-1.5-pro", "unheard-of-1")
AGENTS = ("a1b2", "c3d4", "acompact-e5")
TIMES = st.sampled_from([0, 1, 30, -5, 90, 7 * 3600, None, "1970", "9999", 12])
TOKENS = st.one_of(st.integers(0, 400), st.integers(0, 250_000))


@dataclass(frozen=True)
class Chained:
    """Which chain a line names, by any of the fields that can."""

    parent: str | None = None
    agent: str | None = None
    side: bool = False


CHAINS = st.one_of(
    st.just(Chained()),
    st.builds(
        Chained,
        parent=st.sampled_from([None, "toolu_1", "toolu_2"]),
        agent=st.sampled_from([None, *AGENTS]),
        side=st.booleans(),
    ),
)


@dataclass
class Writer:
    """Turns actions into lines of one session."""

    session: str
    transcript: bool = False
    clock_s: int = BASE_S
    lines: list[bytes] = field(default_factory=list)

    def line(self, body: dict[str, Any], step: Any, chained: Chained, *, uuid: bool = True) -> None:
        """Add a line, dressed as a stream's frame or a transcript's line."""
        if isinstance(step, int):
            self.clock_s += step
            body["timestamp"] = _iso(self.clock_s)
        elif step is not None:
            body["timestamp"] = f"{step}-01-01T00:00:00.000Z"
        if uuid:
            body["uuid"] = f"{self.session}-{len(self.lines):05d}"
        else:
            body["nonce"] = len(self.lines)
        if self.transcript:
            body |= {"sessionId": self.session, "isSidechain": chained.side, "version": "2.1.0"}
            body |= {"agentId": chained.agent, "cwd": "/repo"}
        else:
            body |= {"session_id": self.session, "parent_tool_use_id": chained.parent}
            body |= {"agent_id": chained.agent}
        self.lines.append(json.dumps(body).encode())


def _iso(seconds: int) -> str:
    days, rest = divmod(seconds - BASE_S, 86_400)
    hours, rest = divmod(rest + 12 * 3600, 3600)
    days, hours = days + hours // 24, hours % 24
    month, day = (11, 1 + days) if days < 30 else (12, 1 + (days - 30) % 31)
    day = max(day, 1)
    return f"2026-{month:02d}-{day:02d}T{hours:02d}:{rest // 60:02d}:{rest % 60:02d}.000Z"


def usage(shape: str, prompt: int, cached: int, created: int) -> dict[str, Any]:
    """Return a usage object in one provider's shape."""
    if shape == "openai":
        details = {"cached_tokens": min(cached, prompt)}
        return {"prompt_tokens": prompt, "prompt_tokens_details": details}
    if shape == "responses":
        details = {"cached_tokens": min(cached, prompt)}
        return {"input_tokens": prompt, "input_tokens_details": details}
    if shape == "gemini":
        return {"promptTokenCount": prompt, "cachedContentTokenCount": min(cached, prompt)}
    counts = {
        "input_tokens": prompt,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": created,
        "output_tokens": 7,
    }
    if shape == "iterations":
        return counts | {"iterations": [{"type": "message", **counts}, {"type": "compaction"}]}
    return counts


Action = tuple[Any, ...]

RESPONSES = st.tuples(
    st.just("response"),
    st.integers(0, 5),
    st.sampled_from(MODELS),
    st.sampled_from(["anthropic", "iterations", "openai", "responses", "gemini"]),
    TOKENS,
    TOKENS,
    CHAINS,
    TIMES,
    st.booleans(),
)
STATUSES = st.tuples(
    st.just("status"),
    st.sampled_from(["compacting", "success", "failed", "blocked", "bare", "requesting"]),
    TIMES,
)
BOUNDARIES = st.tuples(
    st.just("boundary"),
    st.sampled_from(["auto", "manual", None]),
    st.one_of(st.none(), TOKENS),
    st.one_of(st.none(), st.integers(0, 60_000)),
    CHAINS,
    TIMES,
)
USERS = st.tuples(
    st.just("user"),
    st.sampled_from(["text", "tool", "summary", "meta", "clear", "compact", "stdout", "replay"]),
    CHAINS,
    TIMES,
    st.booleans(),
)
OTHERS = st.tuples(
    st.just("other"),
    st.sampled_from(
        ["init", "init1m", "result", "helper", "exhausted", "reset", "hook", "usage", "state",
         "fallback", "edit", "micro", "delta", "block", "rate"]
    ),
    TIMES,
)  # fmt: skip
PROGRESS = st.tuples(st.just("progress"), st.integers(1, 30))
JUNK = st.tuples(
    st.just("junk"),
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from(
            [b"", b"  ", b"[]", b"null", b"\xff{}", b"\xef\xbb\xbf{}", b'{"type":"user"', b"{}"]
        ),
        st.dictionaries(st.sampled_from(["type", "message", "uuid", "subtype", "usage"]),
                        st.one_of(st.none(), st.integers(), st.text(max_size=5),
                                  st.lists(st.integers(), max_size=2)), max_size=4)
        .map(lambda body: json.dumps(body | {"session_id": "junk"}).encode()),
    ),
)  # fmt: skip

ACTIONS: st.SearchStrategy[Action] = st.one_of(
    RESPONSES, RESPONSES, STATUSES, BOUNDARIES, USERS, USERS, OTHERS, PROGRESS, JUNK
)


def write(session: str, actions: list[Action], *, transcript: bool) -> list[bytes]:
    """Return the lines of one session."""
    writer = Writer(session, transcript)
    for action in actions:
        _WRITERS[action[0]](writer, *action[1:])
    return writer.lines


def _response(  # noqa: PLR0913, PLR0917 -- an action's parts, in their order
    w: Writer, number: int, model: str, shape: str, prompt: int, cached: int,
    chained: Chained, step: Any, uuid: bool,
) -> None:  # fmt: skip
    message = {
        "id": f"msg_{number}" if number else None,
        "model": model,
        "usage": usage(shape, prompt, cached, 3),
        "content": [{"type": "text", "text": "x"}],
    }
    w.line({"type": "assistant", "message": message}, step, chained, uuid=uuid)


def _status(w: Writer, kind: str, step: Any) -> None:
    body: dict[str, Any] = {"type": "system", "subtype": "status", "status": None}
    if kind in ("compacting", "requesting"):
        body["status"] = kind
    elif kind == "success":
        body["compact_result"] = "success"
    elif kind != "bare":
        error = "a hook blocked it" if kind == "blocked" else "too_few_groups"
        body |= {"compact_result": "failed", "compact_error": error}
    w.line(body, step, Chained())


def _boundary(
    w: Writer, trigger: str | None, pre: int | None, took: int | None, chained: Chained, step: Any
) -> None:
    names = ("preTokens", "durationMs") if w.transcript else ("pre_tokens", "duration_ms")
    reported = {"trigger": trigger, names[0]: pre, names[1]: took}
    metadata = {name: value for name, value in reported.items() if value is not None}
    key = "compactMetadata" if w.transcript else "compact_metadata"
    w.line({"type": "system", "subtype": "compact_boundary", key: metadata}, step, chained)


def _user(w: Writer, kind: str, chained: Chained, step: Any, uuid: bool) -> None:
    texts = {
        "clear": "<command-name>/clear</command-name>",
        "compact": "<command-name>/compact</command-name>",
        "stdout": "<local-command-stdout>ok</local-command-stdout>",
        "summary": "This is what happened: \ud83d\ude00",
    }
    content: Any = texts.get(kind, "go on")
    if kind == "tool":
        content = [{"type": "tool_result", "tool_use_id": "t", "content": "out"}]
    body: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": content}}
    if kind == "summary":
        body["isCompactSummary" if w.transcript else "isSynthetic"] = True
    body |= {"isMeta": True} if kind == "meta" else {}
    body |= {"isReplay": True} if kind == "replay" else {}
    w.line(body, step, chained, uuid=uuid)


def _other(w: Writer, kind: str, step: Any) -> None:
    w.line(dict(_OTHERS[kind]), step, Chained())


def _progress(w: Writer, how_many: int) -> None:
    for number in range(how_many):
        w.line({"type": "progress", "data": {"tokens": number}}, 1, Chained())


def _junk(w: Writer, raw: bytes) -> None:
    w.lines.append(raw)


_COUNTS = {"input_tokens": 9, "cache_read_input_tokens": 900}
_OTHERS: dict[str, dict[str, Any]] = {
    "init": {"type": "system", "subtype": "init", "model": MODELS[0], "cwd": "/a"},
    "init1m": {"type": "system", "subtype": "init", "model": f"{MODELS[0]}[1m]", "cwd": "/b"},
    "result": {"type": "result", "modelUsage": {MODELS[0]: {"contextWindow": 200_000}}},
    "helper": {
        "type": "result",
        "modelUsage": {
            f"{MODELS[0]}[1m]": {"contextWindow": 1_000_000},
            MODELS[0]: {"contextWindow": 200_000},
            MODELS[1]: {"contextWindow": 100_000, "canonicalModel": "haiku"},
        },
    },
    "exhausted": {"type": "result", "terminal_reason": "prompt_too_long"},
    "reset": {"type": "conversation_reset", "trigger": "clear"},
    "hook": {"type": "system", "subtype": "hook_started", "hook_event": "PreCompact",
             "hook_name": "PreCompact:manual"},
    "usage": {"type": "control_response", "response": {"response": {
        "categories": [{"id": "messages", "tokens": 5}], "totalTokens": 9, "rawMaxTokens": 90_000,
        "autoCompactThreshold": 80_000, "isAutoCompactEnabled": True, "model": MODELS[0]}}},
    "state": {"type": "autocompact_state", "enabled": False, "threshold": 150_000},
    "fallback": {"type": "system", "subtype": "model_refusal_fallback", "fallback_model": "gpt-4"},
    "edit": {"type": "assistant", "message": {"id": "msg_9", "context_management": {
        "applied_edits": [{"type": "clear_tool_uses", "cleared_input_tokens": 50}]},
        "usage": _COUNTS, "stop_reason": "model_context_window_exceeded"}},
    "micro": {"type": "system", "subtype": "microcompact_boundary",
              "microcompactMetadata": {"tokensSaved": 18}},
    "delta": {"type": "stream_event", "event": {"type": "message_delta",
                                                "usage": {"output_tokens": 77}}},
    "block": {"type": "assistant", "message": {"id": "msg_8", "usage": _COUNTS, "content": [
        {"type": "compaction", "content": "so far"}]}},
    "rate": {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed"}},
}  # fmt: skip

_WRITERS: dict[str, Callable[..., None]] = {
    "response": _response,
    "status": _status,
    "boundary": _boundary,
    "user": _user,
    "other": _other,
    "progress": _progress,
    "junk": _junk,
}

SESSIONS = st.builds(
    lambda actions, transcript: (actions, transcript),
    st.lists(ACTIONS, min_size=1, max_size=40),
    st.booleans(),
)
"""What one session does, and whether it is written as a transcript."""
