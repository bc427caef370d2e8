"""Gemini's generateContent: contents of parts, in the names of its REST API or its Python SDK.

Calls and results may have ids; those without are paired in order by name, and the ids that the
engine gives them are not written. A signature of thoughts stays with the part that has it, and goes
where that was changed.
"""

from collections.abc import Sequence
from typing import Final

from contextgauge.compaction.formats.fields import (
    Fields,
    a_name,
    an_array,
    an_object,
    gathered,
    json_text,
    json_value,
    opaque,
    own,
    paired,
    result_content,
    role_of,
    same_block,
    unchanged,
    usage_of,
    with_result_names,
    with_result_role,
    without_bytes,
    wrong,
)
from contextgauge.compaction.formats.payloads import payload_of, read_image
from contextgauge.compaction.formats.signatures import unsigned
from contextgauge.compaction.messages import (
    Block,
    Content,
    ContextCompaction,
    FormatName,
    Image,
    JsonSource,
    Message,
    Opaque,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from contextgauge.records import Json

FORMAT: Final[FormatName] = "gemini"

_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "model": "assistant",
    "function": "tool",
    "system": "system",
}

_CALL: Final = ("functionCall", "function_call")
_RESULT: Final = ("functionResponse", "function_response")
_SIGNATURE: Final = ("thoughtSignature", "thought_signature")
_DATA: Final = ("inlineData", "inline_data", "fileData", "file_data")

_TEXT_FIELDS: Final = ("output", "result", "error", "content")
"""Fields of a response that hold its whole text where they stand alone."""


def read_messages(items: Sequence[Json], after: Sequence[Message]) -> list[Message]:
    """Read contents. Raises ConfigError with the path of what is wrong."""
    messages = [read_message(each, f"contents[{index}]") for index, each in enumerate(items)]
    return paired(messages, after)


def read_message(value: Json, path: str) -> Message:
    """Read one content; calls and results that have no id get none. Raises ConfigError."""
    fields = an_object(without_bytes(value), path)
    role: Role = "user" if fields.get("role") is None else role_of(fields, _ROLES, path)
    parts = an_array(fields.get("parts", []), f"{path}.parts")
    blocks = tuple(_read_part(each, f"{path}.parts[{index}]") for index, each in enumerate(parts))
    message = Message(
        role,
        blocks,
        usage=usage_of(fields),
        source=JsonSource(FORMAT, fields),
    )
    return with_result_role(message)


def _named(fields: Fields, names: Sequence[str]) -> str | None:
    """Return which of these fields is there."""
    return next((name for name in names if fields.get(name) is not None), None)


def _read_part(value: Json, path: str) -> Block:
    fields = an_object(value, path)
    source = JsonSource(FORMAT, fields)
    if (name := _named(fields, _CALL)) is not None:
        return _read_call(an_object(fields[name], f"{path}.{name}"), f"{path}.{name}", source)
    if (name := _named(fields, _RESULT)) is not None:
        return _read_result(an_object(fields[name], f"{path}.{name}"), f"{path}.{name}", source)
    text = fields.get("text")
    if text is not None and not isinstance(text, str):
        raise wrong(f"{path}.text", "text", text)
    if fields.get("thought") is True:
        signature = fields.get(_named(fields, _SIGNATURE) or "")
        extra = len(signature) if isinstance(signature, str) else 0
        return Thinking(text or "", len(text or "") + extra, source)
    if text is not None:
        return Text(text, source)
    if _named(fields, _DATA) is not None:
        return read_image(fields, source)
    return opaque(next(iter(fields), "empty"), fields, FORMAT)


def _id(fields: Fields) -> str:
    each = fields.get("id")
    return each if isinstance(each, str) else ""


def _read_call(fields: Fields, path: str, source: JsonSource) -> ToolCall:
    arguments = fields.get("args")
    text = "{}" if arguments is None else json_text(arguments)
    return ToolCall(_id(fields), a_name(fields, "name", path), text, source)


def _read_result(fields: Fields, path: str, source: JsonSource) -> ToolResult:
    response = fields.get("response")
    content: list[Content] = []
    if (name := _text_field(response)) is not None and isinstance(response, dict):
        content.append(Text(str(response[name])))
    elif response is not None:
        content.append(Text(json_text(response)))
    parts = an_array(fields.get("parts") or [], f"{path}.parts")
    held = [_read_part(each, f"{path}.parts[{index}]") for index, each in enumerate(parts)]
    return ToolResult(
        _id(fields),
        (*content, *result_content(held)),
        a_name(fields, "name", path),
        isinstance(response, dict) and "error" in response,
        source,
    )


def _text_field(response: Json) -> str | None:
    """Return the field that holds the whole text of a response, where there is one."""
    if not isinstance(response, dict) or len(response) != 1:
        return None
    name = next(iter(response))
    return name if name in _TEXT_FIELDS and isinstance(response[name], str) else None


def write_messages(messages: Sequence[Message]) -> list[Json]:
    """Write contents; results of parallel calls become one, as the API asks."""
    return gathered(with_result_names(messages, FORMAT), FORMAT, write_message, "parts")


def write_message(message: Message) -> Fields | None:
    """Write one content; None where nothing of it can be expressed in this format."""
    fields = own(message, FORMAT)
    if fields is not None and unchanged(message, read_message(fields, "content")):
        return fields
    parts: list[Json] = [
        part for block in message.blocks if (part := _write_part(block)) is not None
    ]
    role = "model" if message.role == "assistant" else "user"
    if fields is None:
        return {"role": role, "parts": parts} if parts else None
    if _keeps_role(fields, message.role):
        return {**fields, "parts": parts}
    return {**fields, "role": role, "parts": parts}


def _keeps_role(fields: Fields, role: Role) -> bool:
    """Whether the role that was read means the message's: results come in a user's content."""
    read = _ROLES.get(str(fields.get("role") or "user"))
    return read == role or (read == "user" and role == "tool")


def _write_part(block: Block) -> Fields | None:
    fields = own(block, FORMAT)
    if fields is not None and (
        isinstance(block, Opaque) or same_block(block, _read_part(fields, "part"))
    ):
        return fields
    over = unsigned(fields or {})
    match block:
        case Text():
            return {**over, "text": block.text}
        case ContextCompaction():
            return {"text": block.summary}
        case ToolCall():
            name = _named(over, _CALL) or _CALL[0]
            called = _object(over.get(name))
            arguments = json_value(block.arguments)
            if not isinstance(arguments, dict):  # the API takes objects only
                arguments = {"value": arguments}
            changes: Fields = {"name": block.name, "args": arguments}
            return {**over, name: {**called, **_id_fields(block.id, fields, called), **changes}}
        case ToolResult():
            return _write_result(block, fields)
        case Image():
            payload = payload_of(block)
            if payload is None:
                return None
            if payload.url is not None:
                return {"fileData": {"mimeType": payload.media_type, "fileUri": payload.url}}
            return {"inlineData": {"mimeType": payload.media_type, "data": payload.data}}
        case _:
            return None


def _object(value: Json) -> Fields:
    return value if isinstance(value, dict) else {}


def _id_fields(given: str, fields: Fields | None, called: Fields) -> Fields:
    """Return the id where it came with the call, or from another format: not one of ours."""
    return {"id": given} if fields is None or called.get("id") else {}


def _write_result(result: ToolResult, fields: Fields | None) -> Fields:
    over = fields or {}
    name = _named(over, _RESULT) or _RESULT[0]
    called = _object(over.get(name))
    response = called.get("response")
    in_field = _text_field(response)
    field = in_field if in_field and result.is_error == (in_field == "error") else None
    changes: Fields = {
        "name": result.name or "unknown",
        "response": {field or ("error" if result.is_error else "output"): result.text},
    }
    if "parts" in called:
        held = [each for each in result.content if not isinstance(each, Text) or own(each, FORMAT)]
        changes["parts"] = [part for each in held if (part := _write_part(each)) is not None]
        texts = [
            each.text for each in result.content if isinstance(each, Text) and each not in held
        ]
        changes["response"] = {field or "output": "\n".join(texts)}
    return {**over, name: {**called, **_id_fields(result.call_id, fields, called), **changes}}
