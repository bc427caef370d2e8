"""A message as JSON, and back: exactly, with its id and what it was read from.

A message is stored as its source with the blocks that differ from it; a changed one as the blocks
that differ from the message `before`. In these, `"source": "before"` is the source of the block
in the same place. Any other message is stored block by block.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, get_args

from contextgauge.compaction.formats import marker, read_messages
from contextgauge.compaction.formats.fields import (
    Fields,
    a_count,
    a_text,
    an_array,
    an_object,
    optional_text,
    source_of,
    wrong,
)
from contextgauge.compaction.messages import (
    ApiUsage,
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
from contextgauge.errors import ConfigError
from contextgauge.records import Json

_FORMATS: Final[tuple[FormatName, ...]] = get_args(FormatName)
_ROLES: Final[tuple[Role, ...]] = get_args(Role)

_BEFORE: Final = "before"


def write_message(message: Message, before: Message | None = None) -> Json:
    """Write a message, or what it is other than the message `before`."""
    written: Fields = {"id": message.id}
    if before is not None and (changes := _changes(message, before)) is not None:
        return {**written, **changes}
    if (source := message.source) is not None:
        written["format"], written["value"] = source
        read = _read_source(source, message.id)
        if read is not None and (changes := _changes(message, read)) is not None:
            return {**written, **changes}
    written |= {"role": message.role, "blocks": [_write_block(each) for each in message.blocks]}
    if message.usage is not None:
        written["usage"] = _write_usage(message.usage)
    return written


def _changes(message: Message, before: Message) -> Fields | None:
    """Return the blocks that differ, by their position; None where more than blocks does."""
    if (
        message.role != before.role
        or len(message.blocks) != len(before.blocks)
        or not _same_source(message.source, before.source)
    ):
        return None
    blocks: Fields = {
        str(index): _write_block(block, old)
        for index, (block, old) in enumerate(zip(message.blocks, before.blocks, strict=True))
        if not _same_block(block, old)
    }
    changes: Fields = {"blocks": blocks} if blocks else {}
    if message.usage != before.usage:
        changes["usage"] = None if message.usage is None else _write_usage(message.usage)
    return changes


def _same_block(block: Block, old: Block) -> bool:
    """Whether two blocks are the same, with what they were read from."""
    if block is old:
        return True
    if block != old or not _same_source(source_of(block), source_of(old)):
        return False
    if isinstance(block, ToolResult) and isinstance(old, ToolResult):
        return all(map(_same_block, block.content, old.content))
    return True


def _same_source(source: JsonSource | None, old: JsonSource | None) -> bool:
    return source is old or source == old


def _write_usage(usage: ApiUsage) -> Json:
    return {"context": usage.context, "output": usage.output}


def read_message(value: Json, path: str, before: Mapping[str, Message]) -> Message:
    """Read a message; `before` are those that it may be a change of. Raises ConfigError."""
    fields = an_object(value, path)
    message_id = a_text(fields, "id", path)
    source = _read_stored_source(fields, path)
    if not isinstance(fields.get("blocks"), list):
        base = before.get(message_id) if source is None else _read_source(source, message_id)
        if base is None:
            raise wrong(path, "a message of its format, or a change of one before it", value)
        return _read_changes(fields, path, base)
    role = next((each for each in _ROLES if each == fields.get("role")), None)
    if role is None:
        raise wrong(f"{path}.role", f"one of {', '.join(_ROLES)}", fields.get("role"))
    blocks = tuple(
        _read_block(an_object(each, f"{path}.blocks[{index}]"), f"{path}.blocks[{index}]")
        for index, each in enumerate(an_array(fields["blocks"], f"{path}.blocks"))
    )
    return Message(role, blocks, message_id, _read_usage(fields, path), source)


def _read_changes(fields: Fields, path: str, before: Message) -> Message:
    blocks = list(before.blocks)
    places = {str(index): index for index in range(len(blocks))}
    for key, value in an_object(fields.get("blocks", {}), f"{path}.blocks").items():
        where = f"{path}.blocks.{key}"
        index = places.get(key)
        if index is None:
            raise wrong(where, f"a position below {len(blocks)}", key)
        blocks[index] = _read_block(an_object(value, where), where, blocks[index])
    usage = _read_usage(fields, path) if "usage" in fields else before.usage
    return replace(before, blocks=tuple(blocks), usage=usage)


def _read_usage(fields: Fields, path: str) -> ApiUsage | None:
    if fields.get("usage") is None:
        return None
    counts = an_object(fields["usage"], f"{path}.usage")
    return ApiUsage(a_count(counts, "context", path), a_count(counts, "output", path))


def _read_source(source: JsonSource, message_id: str) -> Message | None:
    value = source.value
    try:
        # Of the Responses API, a message is several items.
        (message,) = read_messages(value if isinstance(value, list) else [value], source.format)
    except (ConfigError, ValueError):
        return None
    return replace(message, id=message_id, source=source)


def _read_stored_source(
    fields: Fields, path: str, before: Block | None = None
) -> JsonSource | None:
    if fields.get("source") == _BEFORE and before is not None:
        return source_of(before)
    if "format" not in fields:
        return None
    for name in _FORMATS:
        if fields["format"] == name:
            return JsonSource(name, fields.get("value"))
    raise wrong(f"{path}.format", f"one of {', '.join(_FORMATS)}", fields["format"])


def _write_block(block: Block, before: Block | None = None) -> Json:
    if isinstance(block, ContextCompaction):
        return {"kind": "compaction", **marker.write(block)}
    written: Fields = {"kind": _KINDS[type(block)]}
    if isinstance(block, ToolResult):
        written |= {"call_id": block.call_id, "name": block.name, "is_error": block.is_error}
        old = _contents(before, len(block.content))
        written["content"] = list(map(_write_block, block.content, old))
    elif isinstance(block, Opaque):
        written |= {"opaque": block.kind, "characters": block.characters}
    else:
        names = (name for name in type(block).__slots__ if name != "source")
        written |= {name: getattr(block, name) for name in names}
    if block.source is not None:
        if before is not None and _same_source(block.source, source_of(before)):
            written["source"] = _BEFORE
        else:
            written["format"], written["value"] = block.source
    return written


def _contents(before: Block | None, length: int) -> Sequence[Block | None]:
    """Return what a result had in each place, if it was as long."""
    if isinstance(before, ToolResult) and len(before.content) == length:
        return before.content
    return [None] * length


_KINDS: Final[Mapping[type, str]] = {
    Text: "text",
    Image: "image",
    Thinking: "thinking",
    Opaque: "opaque",
    ToolCall: "call",
    ToolResult: "result",
}


def _read_block(fields: Fields, path: str, before: Block | None = None) -> Block:
    source = _read_stored_source(fields, path, before)
    match fields.get("kind"):
        case "compaction":
            return marker.read(fields, path)
        case "text":
            return Text(a_text(fields, "text", path), source)
        case "thinking":
            return Thinking(
                a_text(fields, "text", path), a_count(fields, "characters", path), source
            )
        case "image":
            media_type = optional_text(fields, "media_type", path)
            return Image(a_count(fields, "tokens", path), media_type, source)
        case "opaque":
            kind = a_text(fields, "opaque", path)
            return Opaque(kind, a_count(fields, "characters", path), source)
        case "call":
            call_id, name = a_text(fields, "id", path), a_text(fields, "name", path)
            return ToolCall(call_id, name, a_text(fields, "arguments", path), source)
        case "result":
            return _read_result(fields, path, source, before)
        case other:
            raise wrong(f"{path}.kind", f"one of {', '.join(_KINDS.values())}, compaction", other)


def _read_result(
    fields: Fields, path: str, source: JsonSource | None, before: Block | None
) -> ToolResult:
    content = []
    values = an_array(fields.get("content"), f"{path}.content")
    old = _contents(before, len(values))
    for index, value in enumerate(values):
        where = f"{path}.content[{index}]"
        each = _read_block(an_object(value, where), where, old[index])
        if not isinstance(each, Text | Image | Opaque):
            raise wrong(f"{where}.kind", "text, image or opaque", fields.get("kind"))
        content.append(each)
    name = optional_text(fields, "name", path)
    is_error = fields.get("is_error") is True
    return ToolResult(a_text(fields, "call_id", path), tuple(content), name, is_error, source)
