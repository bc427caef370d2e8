"""What the lines of a Qwen Code chat hold of a conversation, and of what a person typed.

Messages are Gemini's: contents of parts, of which each is a text, a thought, a call or a result.
"""

from typing import Final

from contextgauge.json_codec import dumps
from contextgauge.normalise.fields import count, flag, items, mapping, name, text
from contextgauge.normalise.responses import text_of
from contextgauge.normalise.signals import Body
from contextgauge.records import Json

_LINKS: Final = ("uuid", "parentUuid")
_OF_PERSON: Final = "real_user"
"""Newer versions say whose a message is."""


def message(line: Body) -> dict[str, Json] | None:
    """Reduce a message to one of Claude Code's form."""
    own = mapping(line, "message")
    if own is None:
        return None
    is_answer = own.get("role") == "model"
    made: dict[str, Json] = {"role": "assistant" if is_answer else "user"}
    made["content"] = [_block_of(each) for each in items(own, "parts")]
    if is_answer:
        usage = mapping(line, "usageMetadata")
        made |= {} if usage is None else {"usage": usage}
        model = name(line, "model")
        made |= {} if model is None else {"model": model}
    own_line: dict[str, Json] = {"type": made["role"], "message": made}
    if not is_answer and line.get("provenance", _OF_PERSON) != _OF_PERSON:
        own_line["isMeta"] = True
    return own_line


def system(line: Body) -> dict[str, Json] | None:
    """Reduce a compression to a boundary with its summary; it keeps the last messages as well."""
    payload = mapping(line, "systemPayload") or {}
    history = items(payload, "compressedHistory")
    if line.get("subtype") != "chat_compression" or not history:
        return None
    summary: Json = {"role": "user", "content": text_of(history[0].get("parts")) or ""}
    metadata: dict[str, Json] = {}
    before = count(mapping(payload, "info") or {}, "originalTokenCount")
    if before is not None:
        metadata["pre_tokens"] = before
    if len(history) > _ACKNOWLEDGED:
        # They are written again, and not as what they were: which they are is not known here.
        unknown: Json = line.get("uuid")
        names = ("head_uuid", "tail_uuid", "anchor_uuid")
        metadata["preserved_segment"] = dict.fromkeys(names, unknown)
    return {"subtype": "compact_boundary", "message": summary, "compact_metadata": metadata}


_ACKNOWLEDGED: Final = 2
"""Contents with which a compressed history begins: the summary, and the model's answer to it."""


def prompt(line: Body) -> Json:
    """Return the content of a person's message."""
    if line.get("provenance", _OF_PERSON) != _OF_PERSON or flag(line, "isSidechain"):
        return None
    shown = text(mapping(line, "systemPayload") or {}, "displayText")
    return shown or (mapping(line, "message") or {}).get("parts")


def _block_of(part: Body) -> Json:
    call, result = mapping(part, "functionCall"), mapping(part, "functionResponse")
    if call is not None:
        made: dict[str, Json] = {"type": "tool_use", "input": mapping(call, "args") or {}}
        return {**made, "id": _id_of(call), "name": name(call, "name")}
    if result is not None:
        response = mapping(result, "response") or {}
        output = text(response, "output", "error") or dumps(response).decode()
        return {"type": "tool_result", "tool_use_id": _id_of(result), "content": output}
    if (data := mapping(part, "inlineData")) is not None:
        source = {"media_type": data.get("mimeType"), "data": data.get("data")}
        return {"type": "image", "source": {"type": "base64", **source}}
    words = text(part, "text") or ""
    if flag(part, "thought"):
        return {"type": "thinking", "thinking": words}
    return {"type": "text", "text": words}


def _id_of(call: Body) -> str | None:
    """Return a call's id; without one its name is all that its result has in common with it."""
    return name(call, "id", "name")
