"""OpenAI's Responses API: a conversation of items, of which an answer may be several.

The items of one answer become one message: reasoning, texts and parallel calls, which the API
refuses apart from one another. The results of these calls become one message too. Items that the
engine does not know, such as a server-side `compaction`, are opaque. The source of a message is
the array of its items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from contextgauge.compaction.formats.fields import (
    Fields,
    a_name,
    a_text,
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
    wrong,
)
from contextgauge.compaction.formats.payloads import Payload, payload_of, read_image
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

FORMAT: Final[FormatName] = "openai-responses"

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}

_TEXTS: Final = frozenset({"input_text", "output_text", "text"})
_IMAGES: Final = frozenset({"input_image", "input_file", "input_audio", "computer_screenshot"})
_ARGUMENTS: Final = ("arguments", "input", "action", "operation")
"""Fields of a call that hold what the tool is given, by the kind of call."""

_ALONE: Final = frozenset({"compaction", "compaction_summary", "context_compaction"})
"""Items that stand for what was before them: no part of an answer."""

_LOCAL_SHELL_OUTPUT: Final = "local_shell_call_output"
_SEARCH: Final = "tool_search_call"
"""Its output is no `_call_output`: both are opaque."""

_Kind: TypeAlias = Literal["answer", "results", "alone"]


def read_messages(items: Sequence[Json], after: Sequence[Message] = ()) -> list[Message]:
    """Read items. Raises ConfigError with the path of what is wrong.

    A result that names its call by the id of the item is given that call's: of these messages, or
    of those `after` which they come.
    """
    groups: list[tuple[_Kind, list[tuple[Json, str]]]] = []
    for index, item in enumerate(items):
        path = f"input[{index}]"
        kind = _kind(an_object(item, path))
        if groups and kind != "alone" and groups[-1][0] == kind:
            groups[-1][1].append((item, path))
        else:
            groups.append((kind, [(item, path)]))
    messages = [_read_group(kind, group) for kind, group in groups]
    if not any(result.call_id == "" for message in messages for result in message.results):
        return messages
    calls = {
        fields["id"]: call.id
        for message in (*after, *messages)
        for call in message.calls
        if (fields := own(call, FORMAT)) is not None and isinstance(fields.get("id"), str)
    }
    return [_with_call_ids(each, calls) for each in messages]


def _with_call_ids(message: Message, calls: Mapping[Json, str]) -> Message:
    def named(block: Block) -> Block:
        if not isinstance(block, ToolResult) or block.call_id:
            return block
        item_id = str((own(block, FORMAT) or {})["id"])
        return replace(block, call_id=calls.get(item_id, item_id))

    return replace(message, blocks=tuple(map(named, message.blocks)))


def _kind(fields: Fields) -> _Kind:
    kind = str(fields.get("type") or "message")
    if kind == "message":
        return "answer" if fields.get("role") == "assistant" else "alone"
    if kind in _ALONE:
        return "alone"
    return "results" if kind.endswith("_output") else "answer"


def _read_group(kind: _Kind, group: Sequence[tuple[Json, str]]) -> Message:
    role: Role = "tool" if kind == "results" else "assistant"
    first, path = an_object(group[0][0], group[0][1]), group[0][1]
    if (first.get("type") or "message") == "message":
        role = role_of(first, _ROLES, path)
    blocks = tuple(block for item, at in group for block in read_item(item, at))
    return Message(role, blocks, source=JsonSource(FORMAT, [item for item, _ in group]))


def read_item(value: Json, path: str) -> tuple[Block, ...]:
    """Read one item: a message's parts, or one block. Raises ConfigError."""
    fields = an_object(value, path)
    kind = str(fields.get("type") or "message")
    source = JsonSource(FORMAT, fields)
    if kind == "message":
        role_of(fields, _ROLES, path)
        if fields.get("content") is None:
            raise wrong(f"{path}.content", "text or an array", None)
        return read_content(fields["content"], f"{path}.content", _read_part)
    if kind == "reasoning":
        return (_read_reasoning(fields, path),)
    if kind.endswith("_call") and "call_id" in fields and kind != _SEARCH:
        return (_read_call(fields, kind, path),)
    if kind.endswith("_call_output") and ("call_id" in fields or kind == _LOCAL_SHELL_OUTPUT):
        # The latter has the id of its call's item instead: it is paired once all are read.
        call_id = a_name(fields, "call_id" if "call_id" in fields else "id", path)
        content = _read_output(fields.get("output"), f"{path}.output")
        return (ToolResult(call_id if "call_id" in fields else "", content, source=source),)
    return (opaque(kind, fields, FORMAT),)


def _read_part(value: Json, path: str) -> Block:
    fields = an_object(value, path)
    kind = a_text(fields, "type", path)
    source = JsonSource(FORMAT, fields)
    if kind in _TEXTS:
        return Text(a_text(fields, "text", path), source)
    if kind in _IMAGES:
        return read_image(fields, source)
    return opaque(kind, fields, FORMAT)


def _read_reasoning(fields: Fields, path: str) -> Thinking:
    texts: list[str] = []
    for name in ("summary", "content"):
        parts = read_content(fields.get(name), f"{path}.{name}", _read_reasoning_part)
        texts += [each.text for each in parts if isinstance(each, Text)]
    text = "\n".join(texts)
    encrypted = fields.get("encrypted_content")
    extra = len(encrypted) if isinstance(encrypted, str) else 0
    return Thinking(text, len(text) + extra, JsonSource(FORMAT, fields))


def _read_reasoning_part(value: Json, path: str) -> Block:
    fields = an_object(value, path)
    text = fields.get("text")
    return Text(text) if isinstance(text, str) else opaque("reasoning", fields, FORMAT)


def _read_call(fields: Fields, kind: str, path: str) -> ToolCall:
    """Read a call that the client runs: a function's, a custom tool's, a shell's."""
    given = fields.get(_arguments_field(fields))
    if kind == "function_call":
        a_name(fields, "name", path)
        a_text(fields, "arguments", path)
    name = fields.get("name")
    return ToolCall(
        a_name(fields, "call_id", path),
        name if isinstance(name, str) and name else kind.removesuffix("_call"),
        given if isinstance(given, str) else json_text(given),
        JsonSource(FORMAT, fields),
    )


def _arguments_field(fields: Fields) -> str:
    return next((name for name in _ARGUMENTS if name in fields), _ARGUMENTS[0])


def _read_output(output: Json, path: str) -> tuple[Content, ...]:
    if isinstance(output, str | list) or output is None:
        return result_content(read_content(output, path, _read_part))
    if isinstance(output, dict) and str(output.get("type")) in _IMAGES:
        return result_content([_read_part(output, path)])
    return (Text(json_text(output)),)


def write_messages(messages: Sequence[Message]) -> list[Json]:
    """Write messages as items."""
    return [item for message in messages for item in _write_message(message)]


def _write_message(message: Message) -> list[Json]:
    source = message.source
    if source is None or source.format != FORMAT or not isinstance(source.value, list):
        return _write_blocks(message, message.blocks)
    items = source.value
    original = [
        block for index, item in enumerate(items) for block in read_item(item, f"input[{index}]")
    ]
    if unchanged(message, Message(message.role, tuple(original))):
        return list(items)
    return _write_changed(message, [an_object(item, "item") for item in items])


def _write_changed(message: Message, items: Sequence[Fields]) -> list[Json]:
    """Write blocks into the items that they come from; items without a block left go."""
    places = _places(message.blocks, items)
    empty = [index for index, item in enumerate(items) if not read_item(item, "item")]
    written: list[Json] = []
    start = 0
    while start < len(places):
        place = places[start]
        while place is not None and empty and empty[0] < place:
            written.append(items[empty.pop(0)])
        end = start + 1
        while end < len(places) and places[end] == place:
            end += 1
        blocks = message.blocks[start:end]
        if place is None:
            written += _write_blocks(message, blocks)
        elif _is_message(items[place]):
            item = items[place]
            held = item.get("content")
            role = item["role"] if _ROLES.get(str(item["role"])) == message.role else message.role
            content = _write_content(blocks, message.role, in_array=isinstance(held, list))
            written.append({**item, "role": role, "content": content})
        else:
            written += [each for block in blocks for each in _write_item(block)]
        start = end
    return [*written, *(items[index] for index in empty)]


def _is_message(item: Fields) -> bool:
    return (item.get("type") or "message") == "message"


def _places(blocks: Sequence[Block], items: Sequence[Fields]) -> list[int | None]:
    """Return which item each block comes from: by what it was read from, else by the order.

    A text without a source comes from the first message of plain text that is not taken yet.
    """
    sources: list[tuple[int, Json]] = []
    for index, item in enumerate(items):
        held = item.get("content") if _is_message(item) else None
        parts = held if isinstance(held, list) else [item]
        sources += [(index, part) for part in parts]
    places: list[int | None] = []
    for block in blocks:
        value = own(block, FORMAT)
        place = next(
            (place for place, (_, part) in enumerate(sources) if _is_from(block, value, part)), None
        )
        places.append(None if place is None else sources.pop(place)[0])
    return places


def _is_from(block: Block, value: Fields | None, part: Json) -> bool:
    if value is not None:
        return part is value or part == value
    if not isinstance(block, Text) or not isinstance(part, dict):
        return False
    return _is_message(part) and isinstance(part.get("content"), str)


def _write_blocks(message: Message, blocks: Sequence[Block]) -> list[Json]:
    """Write blocks of another format, or new ones: texts in a row as one message."""
    written: list[Json] = []
    texts: list[Block] = []

    def end_text() -> None:
        content = _write_content(texts, message.role, in_array=False)
        if content:
            role = "user" if message.role == "tool" else message.role
            written.append({"type": "message", "role": role, "content": content})
        texts.clear()

    for block in blocks:
        if isinstance(block, Text | Image | ContextCompaction):
            texts.append(block)
        else:
            end_text()
            written += _write_item(block)
    end_text()
    return written


def _write_item(block: Block) -> list[Json]:
    fields = own(block, FORMAT)
    if fields is not None and isinstance(block, Thinking | Opaque):
        return [fields]
    if fields is not None and same_block(block, read_item(fields, "item")[0]):
        return [fields]
    if isinstance(block, ToolCall):
        return [_write_call(block, fields)]
    if isinstance(block, ToolResult):
        held = None if fields is None else fields.get("output")
        output = _write_content(block.content, "user", in_array=isinstance(held, list)) or ""
        base: Fields = {"type": "function_call_output"} if fields is None else fields
        changed: Fields = {"output": output}
        if fields is None or "call_id" in fields:
            changed["call_id"] = block.call_id
        return [{**base, **changed}]
    return []


def _write_call(call: ToolCall, fields: Fields | None) -> Fields:
    if fields is None:
        return {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }
    name = _arguments_field(fields)
    as_text = isinstance(fields.get(name), str)
    given: Json = call.arguments if as_text else json_value(call.arguments)
    written: Fields = {**fields, "call_id": call.id, name: given}
    return {**written, "name": call.name} if "name" in fields else written


def _write_content(blocks: Sequence[Block], role: Role, *, in_array: bool) -> Json:
    """Write texts and images; one text without other fields as text where there was no array."""
    if not in_array and len(blocks) == 1:
        only = blocks[0]
        if isinstance(only, ContextCompaction):
            return only.summary
        if isinstance(only, Text) and own(only, FORMAT) is None:
            return only.text
    return [part for each in blocks if (part := _write_part(each, role)) is not None]


def _write_part(block: Block, role: Role) -> Fields | None:
    fields = own(block, FORMAT)
    if fields is not None and (
        isinstance(block, Opaque) or same_block(block, _read_part(fields, "part"))
    ):
        return fields
    if isinstance(block, Text | ContextCompaction):
        text = block.text if isinstance(block, Text) else block.summary
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": kind, **(fields or {}), "text": text}
    payload = payload_of(block) if isinstance(block, Image) else None
    return None if payload is None else _image_fields(payload)


def _image_fields(payload: Payload) -> Fields:
    url = payload.url or f"data:{payload.media_type};base64,{payload.data}"
    if payload.is_image:
        return {"type": "input_image", "image_url": url}
    if payload.url is not None:
        return {"type": "input_file", "file_url": url}
    return {"type": "input_file", "filename": "document", "file_data": url}
