"""Anthropic's Messages API: messages of content blocks, the system prompt apart.

Server-side compactions and the uses of server-side tools are opaque: they are returned as they
came. A user's message that holds nothing but results has the role `tool` in the engine.
"""

from collections.abc import Callable, Sequence
from typing import Final

from contextgauge.compaction.formats.fields import (
    Fields,
    a_name,
    a_text,
    an_object,
    gathered,
    json_text,
    json_value,
    opaque,
    optional_text,
    own,
    read_content,
    result_content,
    role_of,
    same_block,
    unchanged,
    usage_of,
    with_result_role,
    wrong,
)
from contextgauge.compaction.formats.payloads import Payload, payload_of, read_image
from contextgauge.compaction.messages import (
    Block,
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

FORMAT: Final[FormatName] = "anthropic"

ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system"}


def read_messages(items: Sequence[Json], _after: Sequence[Message] = ()) -> list[Message]:
    """Read messages. Raises ConfigError with the path of what is wrong."""
    return [read_message(each, f"messages[{index}]") for index, each in enumerate(items)]


def read_message(value: Json, path: str) -> Message:
    """Read one message. Raises ConfigError with the path of what is wrong."""
    fields = an_object(value, path)
    role = role_of(fields, ROLES, path)
    if fields.get("content") is None:
        raise wrong(f"{path}.content", "text or an array", None)
    blocks = read_content(fields["content"], f"{path}.content", read_block)
    source = JsonSource(FORMAT, fields)
    return with_result_role(Message(role, blocks, usage=usage_of(fields), source=source))


def read_block(value: Json, path: str, format: FormatName = FORMAT) -> Block:  # noqa: A002 -- its name everywhere
    """Read one content block; `format` is that of the conversation it stands in."""
    fields = an_object(value, path)
    kind = a_text(fields, "type", path)
    source = JsonSource(format, fields)
    if kind == "text":
        return Text(a_text(fields, "text", path), source)
    if kind == "tool_use":
        arguments = json_text(fields.get("input", {}))
        return ToolCall(a_name(fields, "id", path), a_name(fields, "name", path), arguments, source)
    if kind == "tool_result":
        content = read_content(
            fields.get("content"),
            f"{path}.content",
            lambda part, at: read_block(part, at, format),
        )
        return ToolResult(
            a_name(fields, "tool_use_id", path),
            result_content(content),
            is_error=fields.get("is_error") is True,
            source=source,
        )
    if kind == "thinking":
        text = a_text(fields, "thinking", path)
        signature = optional_text(fields, "signature", path) or ""
        return Thinking(text, len(text) + len(signature), source)
    if kind == "redacted_thinking":
        return Thinking("", len(a_text(fields, "data", path)), source)
    if kind in {"image", "document"}:
        return read_image(fields, source)
    return opaque(kind, fields, format)


def write_messages(messages: Sequence[Message]) -> list[Json]:
    """Write messages; results of parallel calls become one message, as the API asks."""
    return gathered(messages, FORMAT, write_message, "content")


def write_message(message: Message) -> Fields | None:
    """Write one message; None where nothing of it can be expressed in this format."""
    fields = own(message, FORMAT)
    if fields is None:
        role = "assistant" if message.role == "assistant" else "user"
        content = write_content(message.blocks, write_block, FORMAT, in_array=False)
        return {"role": role, "content": content} if content else None
    if unchanged(message, read_message(fields, "message")):
        return fields
    role = "user" if message.role == "tool" else message.role
    in_array = isinstance(fields.get("content"), list)
    return {
        **fields,
        "role": role,
        "content": write_content(message.blocks, write_block, FORMAT, in_array=in_array),
    }


def write_content(
    blocks: Sequence[Block],
    write: Callable[[Block], Fields | None],
    format: FormatName,  # noqa: A002 -- its name everywhere
    *,
    in_array: bool,
) -> Json:
    """Write blocks: one new text as text where there was no array, else as an array."""
    if not in_array and len(blocks) == 1:
        only = blocks[0]
        if isinstance(only, Text) and own(only, format) is None:
            return only.text
    return [each for block in blocks if (each := write(block)) is not None]


def write_block(block: Block) -> Fields | None:
    """Write one block; None where it cannot be expressed in this format."""
    fields = own(block, FORMAT)
    if fields is not None and (
        isinstance(block, Opaque) or same_block(block, read_block(fields, "block"))
    ):
        return fields
    written = changes(block, fields, write_block, FORMAT)
    return None if written is None else {**(fields or {}), **written}


def changes(
    block: Block,
    fields: Fields | None,
    write: Callable[[Block], Fields | None],
    format: FormatName,  # noqa: A002 -- its name everywhere
) -> Fields | None:
    """Return the fields that say a block, to be laid over those that it was read from.

    `write` writes what a result consists of.
    """
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case ContextCompaction():
            return {"type": "text", "text": block.summary}
        case ToolCall():
            arguments = json_value(block.arguments)
            if not isinstance(arguments, dict):  # the API takes objects only
                arguments = {"value": arguments}
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": arguments}
        case ToolResult():
            in_array = fields is not None and isinstance(fields.get("content"), list)
            content = write_content(block.content, write, format, in_array=in_array)
            written: Fields = {
                "type": "tool_result",
                "tool_use_id": block.call_id,
                "content": content,
            }
            if block.is_error or (fields is not None and "is_error" in fields):
                written["is_error"] = block.is_error
            return written
        case Image():
            payload = payload_of(block)
            return None if payload is None else _image_fields(payload)
        case _:
            return None


def _image_fields(payload: Payload) -> Fields:
    kind = "image" if payload.is_image else "document"
    if payload.url is not None:
        return {"type": kind, "source": {"type": "url", "url": payload.url}}
    media_type = payload.media_type
    return {
        "type": kind,
        "source": {"type": "base64", "media_type": media_type, "data": payload.data},
    }
