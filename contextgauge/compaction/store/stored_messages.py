"""A message as JSON, and back: exactly, with its id and what it was read from.

A message is stored as its source with the blocks that differ from it; a changed one as the blocks
that differ from the message `before`. In these, `"source": "before"` is the source of the block
in the same place. Any other message is stored block by block.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from contextgauge.compaction.formats import marker, read_messages
from contextgauge.compaction.formats.fields import (
    Fields,
    a_text,
    an_array,
    an_object,
    source_of,
    wrong,
)
from contextgauge.compaction.messages import (
    ApiUsage,
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
from contextgauge.errors import ConfigError
from contextgauge.records import Json

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_Sourced: TypeAlias = Text | Image | Thinking | Opaque | ToolCall | ToolResult
_KINDS: Final[Mapping[type[_Sourced], str]] = {
    Text: "text",
    Image: "image",
    Thinking: "thinking",
    Opaque: "opaque",
    ToolCall: "call",
    ToolResult: "result",
}
_BLOCKS: Final[Mapping[str, type[_Sourced]]] = {kind: block for block, kind in _KINDS.items()}

_BEFORE: Final = "before"
_FROM_USER: Final = "from_user"


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
        written["usage"] = message.usage._asdict()
    if message.from_user is not None:
        written[_FROM_USER] = message.from_user
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
        changes["usage"] = None if message.usage is None else message.usage._asdict()
    if message.from_user is not before.from_user:
        changes[_FROM_USER] = message.from_user
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
    role = validated(Role, fields.get("role"), f"{path}.role")
    blocks = tuple(
        _read_block(an_object(each, f"{path}.blocks[{index}]"), f"{path}.blocks[{index}]")
        for index, each in enumerate(an_array(fields["blocks"], f"{path}.blocks"))
    )
    from_user = _read_from_user(fields, path)
    return Message(role, blocks, message_id, _read_usage(fields, path), source, from_user)


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
    from_user = _read_from_user(fields, path) if _FROM_USER in fields else before.from_user
    return replace(before, blocks=tuple(blocks), usage=usage, from_user=from_user)


def _read_from_user(fields: Fields, path: str) -> bool | None:
    from_user: bool | None = validated(bool | None, fields.get(_FROM_USER), f"{path}.{_FROM_USER}")
    return from_user


def _read_usage(fields: Fields, path: str) -> ApiUsage | None:
    usage: ApiUsage | None = validated(ApiUsage | None, fields.get("usage"), f"{path}.usage")
    return usage


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
    name = validated(FormatName, fields["format"], f"{path}.format")
    return JsonSource(name, fields.get("value"))


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


def _read_block(fields: Fields, path: str, before: Block | None = None) -> Block:
    kind = fields.get("kind")
    if kind == "compaction":
        return marker.read(fields, path)
    shape = _BLOCKS.get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise wrong(f"{path}.kind", f"one of {', '.join(_BLOCKS)}, compaction", kind)
    values: dict[str, Any] = {**fields, "kind": fields.get("opaque"), "source": None}
    if kind == "result":
        values["content"] = _read_content(fields, path, before)
    block: _Sourced = validated(shape, values, path)
    return replace(block, source=_read_stored_source(fields, path, before))


def _read_content(fields: Fields, path: str, before: Block | None) -> tuple[Content, ...]:
    values = an_array(fields.get("content"), f"{path}.content")
    content: list[Content] = []
    for index, (value, old) in enumerate(zip(values, _contents(before, len(values)), strict=True)):
        where = f"{path}.content[{index}]"
        block = _read_block(an_object(value, where), where, old)
        if not isinstance(block, Content):
            raise wrong(f"{where}.kind", "text, image or opaque", fields.get("kind"))
        content.append(block)
    return tuple(content)


@cache
def _adapter(shape: Any) -> "TypeAdapter[Any]":  # noqa: ANN401 -- any type
    from pydantic import TypeAdapter  # noqa: PLC0415 -- takes 0.1 s, and is for stored histories

    return TypeAdapter(shape)


def validated(shape: Any, value: Json, path: str) -> Any:  # noqa: ANN401 -- of the shape that is given
    """Read a value by its type. Raises ConfigError with the path of what is wrong."""
    from pydantic import ValidationError  # noqa: PLC0415 -- as above

    try:
        return _adapter(shape).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, (path, *first["loc"])))
        raise ConfigError(f"{where}: {first['msg']}") from error
