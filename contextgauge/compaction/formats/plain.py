"""Plain dicts: `{role, content}`, the AI SDK's `CoreMessage` (seed 002), and seed 001's blocks.

Parts of the AI SDK are `text`, `tool-call`, `tool-result`, `image`, `file` and `reasoning`; its
fields `args` and `result` are called `input` and `output` in later versions. Blocks of Anthropic's
kind are read too, as seed 001 stores them, with its `context_compaction`. What comes from another
format is written with the parts of seed 002.
"""

from collections.abc import Sequence
from typing import Final

from contextgauge.compaction.formats import anthropic, marker
from contextgauge.compaction.formats.fields import (
    Fields,
    a_name,
    a_text,
    an_array,
    an_object,
    json_text,
    json_value,
    opaque,
    own,
    read_content,
    result_content,
    role_of,
    same_block,
    unchanged,
    usage_of,
    with_result_names,
    with_result_role,
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

FORMAT: Final[FormatName] = "plain"

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}

_IMAGES: Final = frozenset({"image", "file"})

_OUTPUT_IMAGES: Final = frozenset({"media", "image-data", "image-url", "file-data", "file-url"})
"""Kinds of images in a later `output`."""

_SHOWN: Final = "experimental_content"


def read_messages(items: Sequence[Json], _after: Sequence[Message] = ()) -> list[Message]:
    """Read messages. Raises ConfigError with the path of what is wrong."""
    return [read_message(each, f"messages[{index}]") for index, each in enumerate(items)]


def read_message(value: Json, path: str) -> Message:
    """Read one message. Raises ConfigError with the path of what is wrong."""
    fields = an_object(value, path)
    role = role_of(fields, _ROLES, path)
    blocks = read_content(fields.get("content"), f"{path}.content", read_part)
    if role == "assistant" and fields.get("toolCalls") is not None:
        blocks += _calls_apart(fields, blocks, path)
    source = JsonSource(FORMAT, fields)
    return with_result_role(Message(role, blocks, usage=usage_of(fields), source=source))


def _calls_apart(fields: Fields, blocks: Sequence[Block], path: str) -> tuple[Block, ...]:
    """Return the calls of `toolCalls` that are not among the parts."""
    path = f"{path}.toolCalls"
    among = {each.id for each in blocks if isinstance(each, ToolCall)}
    calls = (
        _read_call(an_object(each, f"{path}[{index}]"), f"{path}[{index}]")
        for index, each in enumerate(an_array(fields["toolCalls"], path))
    )
    return tuple(each for each in calls if each.id not in among)


def read_part(value: Json, path: str) -> Block:
    """Read one part or block. Raises ConfigError."""
    fields = an_object(value, path)
    kind = a_text(fields, "type", path)
    source = JsonSource(FORMAT, fields)
    if kind == "tool-call":
        return _read_call(fields, path)
    if kind == "tool-result":
        return _read_result(fields, path)
    if kind == marker.KIND:
        return marker.read(fields, path)
    if kind == "reasoning":
        text = a_text(fields, "text", path)
        signature = fields.get("signature")
        extra = len(signature) if isinstance(signature, str) else 0
        return Thinking(text, len(text) + extra, source)
    if kind == "redacted-reasoning":
        return Thinking("", len(a_text(fields, "data", path)), source)
    if kind in _IMAGES:
        return read_image(fields, source)
    return anthropic.read_block(fields, path, FORMAT)


def _read_call(fields: Fields, path: str) -> ToolCall:
    arguments = fields.get("args", fields.get("input"))
    return ToolCall(
        a_name(fields, "toolCallId", path),
        a_name(fields, "toolName", path),
        "{}" if arguments is None else json_text(arguments),
        JsonSource(FORMAT, fields),
    )


def _read_result(fields: Fields, path: str) -> ToolResult:
    call_id = a_name(fields, "toolCallId", path)
    name = fields.get("toolName")
    is_error = fields.get("isError") is True
    content: tuple[Content, ...]
    if isinstance(fields.get(_SHOWN), list):  # what a model sees instead of `result`
        shown = read_content(fields[_SHOWN], f"{path}.{_SHOWN}", _read_output_part)
        content = result_content(shown)
    elif "result" in fields or "output" not in fields:
        content = _read_value(fields.get("result"))
    else:
        content, failed = _read_output(fields["output"], f"{path}.output")
        is_error = is_error or failed
    return ToolResult(
        call_id,
        content,
        name if isinstance(name, str) else None,
        is_error,
        JsonSource(FORMAT, fields),
    )


def _read_value(value: Json) -> tuple[Content, ...]:
    """Read a tool's answer, which may be any JSON value: as the text that a model sees."""
    if value is None:
        return ()
    return (Text(value if isinstance(value, str) else json_text(value)),)


def _read_output(output: Json, path: str) -> tuple[tuple[Content, ...], bool]:
    """Read the AI SDK's later form `{type, value}`, and whether it is of an error."""
    if not isinstance(output, dict) or "value" not in output:
        return _read_value(output), False
    kind = str(output.get("type"))
    value = output["value"]
    if kind == "content" and isinstance(value, list):
        return result_content(read_content(value, f"{path}.value", _read_output_part)), False
    return _read_value(value), kind in {"error-text", "error-json"}


def _read_output_part(value: Json, path: str) -> Block:
    fields = an_object(value, path)
    kind = a_text(fields, "type", path)
    if kind == "text":
        return Text(a_text(fields, "text", path), JsonSource(FORMAT, fields))
    if kind in _OUTPUT_IMAGES or kind in _IMAGES:
        return read_image(fields, JsonSource(FORMAT, fields))
    return opaque(kind, fields, FORMAT)


def write_messages(messages: Sequence[Message]) -> list[Json]:
    """Write messages."""
    named = with_result_names(messages, FORMAT)
    return [each for message in named if (each := write_message(message)) is not None]


def write_message(message: Message) -> Fields | None:
    """Write one message; None where nothing of it can be expressed in this format."""
    fields = own(message, FORMAT)
    if fields is None:
        content = anthropic.write_content(message.blocks, write_part, FORMAT, in_array=False)
        return {"role": message.role, "content": content} if content else None
    if unchanged(message, read_message(fields, "message")):
        return fields
    blocks = list(message.blocks)
    written: Fields = {**fields, "role": _role(message, fields)}
    if fields.get("role") == "assistant" and isinstance(fields.get("toolCalls"), list):
        written["toolCalls"], blocks = _write_calls_apart(fields, blocks)
    held = fields.get("content")
    if held is None and not blocks:
        return written
    parts = held if isinstance(held, list) else []
    markers = [each for each in parts if isinstance(each, dict) and each.get("type") == marker.KIND]
    written["content"] = anthropic.write_content(
        blocks,
        lambda block: _write_marker(block, markers) or write_part(block),
        FORMAT,
        in_array=isinstance(held, list),
    )
    return written


def _write_marker(block: Block, markers: list[Fields]) -> Fields | None:
    """Return the block of a compaction as it came, with what changed; `markers` are unused yet."""
    if not isinstance(block, ContextCompaction) or not markers:
        return None
    for index, part in enumerate(markers):
        if marker.read(part, "part") == block:
            return markers.pop(index)
    return {**markers.pop(0), **marker.write(block)}


def _role(message: Message, fields: Fields) -> Json:
    """Return the role that was read, where it means the message's: results of a user's turn."""
    user_s = message.role == "tool" and fields.get("role") == "user"
    return "user" if user_s else message.role


def _write_calls_apart(fields: Fields, blocks: Sequence[Block]) -> tuple[Json, list[Block]]:
    """Return `toolCalls` with what changed, and the blocks that are parts of the content."""
    parts = read_content(fields.get("content"), "content", read_part)
    within = {each.id: each for each in parts if isinstance(each, ToolCall)}
    content = list(blocks)
    written: list[Json] = []
    for value in an_array(fields["toolCalls"], "toolCalls"):
        entry = an_object(value, "call")
        original = _read_call(entry, "call")
        call = next(
            (each for each in content if isinstance(each, ToolCall) and each.id == original.id),
            None,
        )
        if call is None:
            continue
        if call.id not in within:
            content.remove(call)
        if call.arguments != within.get(call.id, original).arguments:
            entry = {**unsigned(entry), **_call_fields(call, entry), "toolName": entry["toolName"]}
        written.append(entry)
    return written, content


def write_part(block: Block) -> Fields | None:
    """Write one part; None where it cannot be expressed in this format."""
    fields = own(block, FORMAT)
    if fields is not None and (
        isinstance(block, Opaque) or same_block(block, _reread(block, fields))
    ):
        return fields
    if isinstance(block, ContextCompaction):
        return marker.write(block)
    written = _changes(block, fields)
    return None if written is None else {**unsigned(fields or {}), **written}


def _reread(block: Block, fields: Fields) -> Block:
    if isinstance(block, ToolCall) and "toolCallId" in fields:  # maybe an entry of `toolCalls`
        return _read_call(fields, "part")
    if str(fields.get("type")) in _OUTPUT_IMAGES:
        return _read_output_part(fields, "part")
    return read_part(fields, "part")


def _changes(block: Block, fields: Fields | None) -> Fields | None:
    kind = None if fields is None else str(fields.get("type"))
    if kind in {"tool_use", "tool_result"}:
        return anthropic.changes(block, fields, write_part, FORMAT)
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case ToolCall():
            return {"type": "tool-call", **_call_fields(block, fields or {})}
        case ToolResult():
            return _result_fields(block, fields or {})
        case Image():
            payload = payload_of(block)
            if payload is None:
                return None
            name = "image" if payload.is_image else "data"
            return {
                "type": "image" if payload.is_image else "file",
                name: payload.url or payload.data,
                "mimeType": payload.media_type,
            }
        case _:
            return None


def _call_fields(call: ToolCall, fields: Fields) -> Fields:
    name = "input" if "input" in fields and "args" not in fields else "args"
    arguments = json_value(call.arguments)
    return {"toolCallId": call.id, "toolName": call.name, name: arguments}


def _result_fields(result: ToolResult, fields: Fields) -> Fields:
    written: Fields = {"type": "tool-result", "toolCallId": result.call_id}
    if result.name is not None or not fields:
        written["toolName"] = result.name or ""
    text = result.text
    output = fields.get("output")
    if "output" in fields and "result" not in fields:
        failed = result.is_error
        written["output"] = {
            **(output if isinstance(output, dict) else {}),
            "type": "error-text" if failed else "text",
            "value": text,
        }
    else:
        if isinstance(fields.get(_SHOWN), list):
            content = anthropic.write_content(result.content, write_part, FORMAT, in_array=True)
            written[_SHOWN] = content
        written["result"] = text
        if result.is_error or "isError" in fields:
            written["isError"] = result.is_error
    return written
