"""What Copilot CLI's events hold of a conversation, in the form of Claude Code's lines."""

from contextgauge.normalise.fields import items, long_name, mapping, name, text
from contextgauge.normalise.signals import Body
from contextgauge.records import Json


def _payload(line: Body) -> Body:
    return mapping(line, "data") or {}


def facts(line: Body) -> dict[str, Json] | None:
    """Reduce the beginning of a run: folder and model."""
    payload = _payload(line)
    known = {"model": name(payload, "selectedModel")}
    known["cwd"] = long_name(mapping(payload, "context") or {}, "cwd")
    return _as_init(known)


def model(line: Body) -> dict[str, Json] | None:
    """Reduce a change of the model."""
    return _as_init({"model": name(_payload(line), "newModel")})


def _as_init(known: dict[str, str | None]) -> dict[str, Json] | None:
    fields: dict[str, Json] = {each: value for each, value in known.items() if value is not None}
    return {"type": "system", "subtype": "init", **fields} if fields else None


def nothing_else(_: Body) -> dict[str, Json]:
    """Reduce the clearing of the conversation."""
    return {"type": "conversation_reset"}


def prompt(line: Body) -> dict[str, Json] | None:
    """Reduce a message to the model."""
    payload = _payload(line)
    content = text(payload, "transformedContent", "content")
    if content is None or "parentToolCallId" in payload:
        return None
    return {"type": "user", "message": {"role": "user", "content": content}}


def typed(line: Body) -> Json:
    """Return what a person typed."""
    payload = _payload(line)
    is_own = "agentId" not in line and text(payload, "source") in (None, "user")
    return payload.get("content") if is_own else None


def answer(line: Body) -> dict[str, Json] | None:
    """Reduce a message of the model, with its calls of tools."""
    payload = _payload(line)
    if "parentToolCallId" in payload:
        return None
    blocks: list[Json] = []
    if (content := text(payload, "content")) is not None:
        blocks.append({"type": "text", "text": content})
    for call in items(payload, "toolRequests"):
        arguments = call.get("arguments")
        blocks.append(
            {
                "type": "tool_use",
                "id": call.get("toolCallId"),
                "name": call.get("name"),
                "input": arguments if isinstance(arguments, dict) else {"arguments": arguments},
            }
        )
    if not blocks:
        return None
    message: dict[str, Json] = {"role": "assistant", "content": blocks}
    if (named := name(payload, "model")) is not None:
        message["model"] = named
    return {"type": "assistant", "message": message}


def result(line: Body) -> dict[str, Json] | None:
    """Reduce a tool's result."""
    payload = _payload(line)
    call = name(payload, "toolCallId")
    if call is None or "parentToolCallId" in payload:
        return None
    given = mapping(payload, "result") or mapping(payload, "error") or {}
    content = text(given, "content", "message") or ""
    block: Json = {"type": "tool_result", "tool_use_id": call, "content": content}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def summary(line: Body) -> dict[str, Json] | None:
    """Reduce a compaction to the summary that the next messages follow."""
    payload = _payload(line)
    content = text(payload, "summaryContent")
    if payload.get("success") is not True or content is None:
        return None
    message: Json = {"role": "user", "content": content}
    return {"type": "user", "isCompactSummary": True, "message": message}
