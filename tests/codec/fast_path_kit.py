"""Messages that are read in short, messages that are not, and what both readings say of them."""

import json
from typing import Any

from contextgauge.normalise import normalise, normalise_usual
from contextgauge.normalise.signals import InputMessage, Normal
from contextgauge.normalise.usual import NOTHING, UsualMessage
from schemas.messages import DeadLetter
from streams import codec, compiled
from tests.core.given import (
    any_message,
    assistant,
    line,
    message_delta,
    message_start,
    plain,
    result,
    side,
    stream_event,
    usage,
    user,
)

BY_AGE = {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 7}
HINT = "the-key's-session"
SEEN_MS = 1_790_000_000_000


def short(value: bytes) -> UsualMessage | None:
    return compiled.messages().read(value)


def in_full(value: bytes) -> Normal | DeadLetter | None:
    body = codec.decode(value)
    if isinstance(body, DeadLetter):
        return body
    return normalise(body, InputMessage(value, HINT, SEEN_MS, "task-9", "agent-9"))


def same(value: bytes) -> bool:
    """Check that what is said of a message is so; return whether anything is."""
    said = short(value)
    if said is None:
        return False
    wanted = in_full(value)
    if said is not NOTHING:
        message = InputMessage(value, HINT, SEEN_MS, "task-9", "agent-9")
        assert normalise_usual(said, message) == wanted
    else:
        assert wanted is None
    return True


def changed(message: dict[str, Any], **fields: object) -> dict[str, Any]:
    """Return a message whose inner message says something else."""
    return {**message, "message": {**message["message"], **fields}}


def dump(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


TOOL_RESULT = [
    {"type": "tool_result", "tool_use_id": "toolu_1", "content": 'a\tb \\ "c" 1€ 😀\x7f'},
    {"type": "text", "text": "<command-name>/clear</command-name>"},
]
ITERATIONS = [
    {"type": "message", "input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 1},
    {"type": "server_tool", "input_tokens": 7},
]
LINE = line(user("go on"), requestId="req_1")
RESPONSE = assistant("msg_1", read=1_234, creation=5, fresh=6, at=1)

USUAL: list[dict[str, Any]] = [
    user("go on", at=1),
    user("né à Fik\n" * 40, at=2, parent_tool_use_id="toolu_1"),
    user(TOOL_RESULT, tool_use_result={"stdout": "x" * 99, "n": [1, 2.5e3, True, None, {}]}),
    RESPONSE,
    {**RESPONSE, "agent_id": "a1", "subagent_type": "Explore", "request_id": "req_1"},
    {**RESPONSE, "message": {**RESPONSE["message"], "id": None}, "request_id": "req_1"},
    {
        **RESPONSE,
        "message": {
            **RESPONSE["message"],
            "usage": {**usage(1, 2, 3), "iterations": ITERATIONS},
            "context_management": {"applied_edits": []},
            "stop_reason": "tool_use",
            "content": [{"type": "thinking", "thinking": "…", "signature": "sig"}],
        },
    },
    {
        **RESPONSE,
        "message": {
            **RESPONSE["message"],
            "usage": {
                **usage(1, 2, 3),
                "iterations": [*ITERATIONS, {"type": "fallback_message", "input_tokens": 9}],
            },
        },
    },
    message_start("msg_2", read=70),
    changed(RESPONSE, usage={**usage(1, 9, 3), "cache_creation": BY_AGE}),
    changed(RESPONSE, usage={**usage(1, 9, 3), "service_tier": "priority", "speed": None}),
    changed(RESPONSE, usage={**usage(1, 9, 3), "service_tier": "standard", "speed": "fast"}),
    changed(RESPONSE, usage={**usage(1, 9, 3), "cache_creation": None}),
    changed(
        RESPONSE,
        usage={
            **usage(1, 9, 3),
            "cache_creation": BY_AGE,
            "iterations": [{"type": "message", **usage(4, 5, 6), "cache_creation": {}}],
        },
    ),
    message_delta(85),
    {name: value for name, value in LINE.items() if name not in ("isSidechain", "parentUuid")},
    {name: value for name, value in LINE.items() if name not in ("sessionId", "parentUuid")},
    {name: value for name, value in LINE.items() if name not in ("sessionId", "isSidechain")},
    line(user(TOOL_RESULT), toolUseResult={"stdout": "x"}, gitBranch="main", slug="a-b"),
    line({**RESPONSE, "requestId": "req_1"}, version=None),
    line(RESPONSE, session_id="of-the-process"),
    {"session_id": "of-the-process", **line(user("go on"))},
    line(user("go on"), session_id=None),
    line(RESPONSE, cwd=None, version=None),
    side(RESPONSE),
    line(any_message("progress"), data={"type": "agent_progress"}, toolUseID="toolu_1"),
    line(any_message("progress"), cwd=None, version=None),
    side(any_message("progress")),
    stream_event({"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}),
    stream_event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "so"}}),
    stream_event({"type": "message_stop"}),
]
"""What is read in short."""


COUNTS = usage(1, 2, 3)
START = message_start("msg_2", read=70)
OF_OTHERS: list[dict[str, Any]] = [
    {**LINE, "type": "progress", "message": None},
    {"type": "progress", "sessionId": "s", "version": "2.1.329"},
    {**LINE, "message": {"role": "user"}},
]
"""Lines with a transcript's fields that Claude Code does not write so."""

UNUSUAL: list[object] = [
    changed(RESPONSE, usage={**usage(1, 9, 3), "cache_creation": []}),
    changed(
        RESPONSE, usage={**usage(1, 9, 3), "cache_creation": {"ephemeral_1h_input_tokens": -1}}
    ),
    {},
    [],
    "text",
    line(user("a transcript's"), agentId="a", agent_id="a"),
    side(user("go on"), agent="acompact-e5"),
    side(RESPONSE, agent="acompact-e5", parent_tool_use_id="toolu_1"),
    line(user("a transcript's"), isSidechain=None),
    line(user("a transcript's"), cwd="C:\\\\repo"),
    line(user("a transcript's"), isMeta=True),
    line(user("a transcript's"), forkedFrom="another"),
    line(message_delta(85)),
    line(any_message("summary")),
    any_message("progress"),
    result(),
    plain({"role": "x"}),
    user("/compact"),
    user("<command-name>/compact</command-name>"),
    user("a summary", isCompactSummary=True),
    user("synthetic", isSynthetic=True),
    user([{"type": "text", "text": "/compact"}]),
    user("with a task", task_id="t1"),
    user(TOOL_RESULT, toolUseResult={"stdout": "x", "resolvedModel": "claude-opus-4-6[1m]"}),
    user(TOOL_RESULT, tool_use_result={"resolved_model": "claude-opus-4-6[1m]"}),
    user(TOOL_RESULT, toolUseResult={"agentId": "a1", "agentType": "explorer"}),
    user(TOOL_RESULT, tool_use_result={"agent_id": "a1", "agent_type": "explorer"}),
    {**RESPONSE, "isApiErrorMessage": True},
    {**RESPONSE, "is_sidechain": True},
    {**RESPONSE, "parentToolUseId": "toolu_1"},
    {**RESPONSE, "event": {"type": "message_stop"}},
    {**RESPONSE, "uuid": "u" * 1_025},
    {**RESPONSE, "uuid": 'with "quotes"'},
    {**RESPONSE, "session_id": ""},
    {**RESPONSE, "session_id": 7},
    {**RESPONSE, "type": "result"},
    {**RESPONSE, "usage": COUNTS},
    changed(RESPONSE, model="<synthetic>"),
    changed(RESPONSE, stop_reason="model_context_window_exceeded"),
    changed(RESPONSE, context_management={"applied_edits": [{"type": "clear"}]}),
    changed(RESPONSE, content=[{"type": "compaction", "content": "so far"}]),
    changed(RESPONSE, output=[{"type": "compaction"}]),
    changed(RESPONSE, object="response.compaction"),
    changed(RESPONSE, usage=None),
    changed(RESPONSE, usage={}),
    changed(RESPONSE, usage={"input_tokens": None}),
    changed(RESPONSE, usage={**COUNTS, "input_tokens": -1}),
    changed(RESPONSE, usage={**COUNTS, "input_tokens": 1.0}),
    changed(RESPONSE, usage={**COUNTS, "input_tokens": True}),
    changed(RESPONSE, usage={**COUNTS, "input_tokens": 2**53}),
    changed(RESPONSE, usage={**COUNTS, "input_tokens": "1"}),
    changed(RESPONSE, usage={**COUNTS, "input_tokens_details": {"cached_tokens": 1}}),
    changed(RESPONSE, usage={**COUNTS, "prompt_tokens": 1}),
    message_delta(None),
    message_delta(None, usage={"input_tokens": 1}),
    message_delta(1, context_management={"applied_edits": [{"type": "clear"}]}),
    message_delta(1, delta={"stop_reason": "model_context_window_exceeded"}),
    stream_event({**START["event"], "usage": usage(9, 9, 9, 9)}),
    stream_event({"usage": usage(9, 9, 9, 9), **START["event"]}),
    stream_event({"type": None}),
    stream_event({"type": "an_event_of_the_future"}),
    stream_event({"type": "message_start", "usage": usage(9, 9, 9, 9)}),
    stream_event({**START["event"], "type": "message_delta"}),
    stream_event({}),
    {"type": "stream_event", "session_id": "s"},
]
"""What is not: a full reading sees more in it, or nothing."""


TEXT = dump(RESPONSE)
WORDS = dump(user("go on"))
END = dump(message_delta(85))
BROKEN = [
    b"",
    b" ",
    b"{",
    b"\xef\xbb\xbf" + TEXT,
    TEXT + b"x",
    TEXT + b"\x00",
    TEXT + TEXT,
    TEXT.replace(b'"msg_1"', b'"msg\x1f1"'),
    TEXT.replace(b'"msg_1"', b'"msg_\xff"'),
    TEXT.replace(b'"msg_1"', b'"msg_\xed\xa0\x80"'),
    TEXT.replace(b'"msg_1"', b'"msg_\xc0\xaf"'),
    TEXT.replace(b'"type":"assistant"', b'"type":"assistant","type":"assistant"'),
    TEXT.replace(b'"type":"assistant"', b'"t\\u0079pe":"user","type":"assistant"'),
    TEXT.replace(b'"type":"text"', b'"t\\u0079pe":"compaction"'),
    TEXT.replace(b'"type":"text"', b'"type":"comp\\u0061ction"'),
    END.replace(b'"stop_reason":"end_turn"', b'"stop\\u005freason":"end_turn"'),
    WORDS.replace(b'"go on"', b'"\\u003ccommand-name>/clear"'),
    WORDS.replace(b'"go on"', b'"\\/compact"'),
    WORDS.replace(b'"go on"', b'[{"text":"\\/compact"}]'),
    WORDS.replace(b'"go on"', b'[{"te\\u0078t":"/compact"}]'),
    TEXT.replace(b'"type":"assistant"', b'"type":"user","tool_use_result":01,"type":"assistant"'),
]
