"""What the journal of a Kimi Code agent holds of its conversation, in Claude Code's form.

The model's answer is written as it comes: each part and each call of a tool is a record that names
its step. What else the model sees is written as messages.
"""

from contextgauge.normalise.fields import flag, mapping, name, text
from contextgauge.normalise.responses import text_of
from contextgauge.normalise.signals import Body
from contextgauge.records import Json


def message(body: Body) -> dict[str, Json] | None:
    """Reduce a message, as of a person or of what the runtime adds."""
    own = mapping(body, "message") or {}
    origin = mapping(own, "origin") or {}
    if own.get("role") != "user":
        return None
    own_line = _of(body, "user", text_of(own.get("content")) or "", name(own, "id"))
    return own_line if origin.get("kind", "user") == "user" else {**own_line, "isMeta": True}


def loop_event(body: Body) -> dict[str, Json] | None:
    """Reduce a part of an answer, or a tool's result."""
    event = mapping(body, "event") or {}
    key = name(event, "uuid")
    match event.get("type"):
        case "content.part":
            return _of(body, "assistant", [_block_of(mapping(event, "part") or {})], key)
        case "tool.call":
            call: dict[str, Json] = {"type": "tool_use", "id": event.get("toolCallId")}
            call |= {"name": event.get("name"), "input": mapping(event, "args") or {}}
            return _of(body, "assistant", [call], key)
        case "tool.result":
            result = mapping(event, "result") or {}
            block: dict[str, Json] = {
                "type": "tool_result",
                "tool_use_id": event.get("toolCallId"),
                "content": text_of(result.get("output")) or "",
                "is_error": flag(result, "isError"),
            }
            return _of(body, "user", [block], key)
    return None


def summary(body: Body) -> dict[str, Json]:
    """Reduce a compaction: how much of what was before it stays is not known from its record."""
    words = text(body, "contextSummary", "summary")
    if words is None:
        words = text_of((mapping(body, "summary") or {}).get("content")) or ""
    own: dict[str, Json] = {"type": "system", "subtype": "compact_boundary"}
    names = ("head_uuid", "tail_uuid", "anchor_uuid")
    unknown: Json = {"preserved_segment": dict.fromkeys(names, "unknown")}
    return {**own, "message": {"role": "user", "content": words}, "compact_metadata": unknown}


def taken_back(_: Body) -> dict[str, Json]:
    """Reduce that messages were removed: of which the record has only their number."""
    return {"type": "event_msg", "payload": {"type": "thread_rolled_back"}}


def nothing_else(_: Body) -> dict[str, Json]:
    """Reduce the clearing of the conversation."""
    return {"type": "conversation_reset"}


def _of(body: Body, role: str, content: Json, key: str | None) -> dict[str, Json]:
    """Return a message; one without an id is known by its time, too."""
    own: dict[str, Json] = {"role": role, "content": content}
    answer = name(mapping(body, "event") or {}, "stepUuid")
    own |= {} if answer is None or role == "user" else {"id": answer}
    made: dict[str, Json] = {"type": role, "message": own}
    return {**made, "timestamp": body.get("time")} if key is None else {**made, "uuid": key}


def _block_of(part: Body) -> Json:
    if part.get("type") == "think":
        return {"type": "thinking", "thinking": text(part, "think") or ""}
    return {"type": "text", "text": text(part, "text") or ""}
