"""OpenAI's chat completions, and the many APIs that speak its language.

Calls stand in `tool_calls`, each result is a message of its own. The former `function_call` and the
role `function` have no ids: they are paired in order by name. `reasoning_content`, which some
providers send and take, is thinking.
"""

from collections.abc import Sequence
from typing import Final

from contextgauge.compaction.formats.fields import (
    Fields,
    a_name,
    a_text,
    an_array,
    an_object,
    opaque,
    own,
    paired,
    read_content,
    result_content,
    role_of,
    same_block,
    unchanged,
    usage_of,
    wrong,
)
from contextgauge.compaction.formats.payloads import Payload, payload_of, read_image
from contextgauge.compaction.formats.signatures import unsigned
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

FORMAT: Final[FormatName] = "openai-chat"

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

_REASONING: Final = ("reasoning_content", "reasoning")

_IMAGES: Final = frozenset({"image_url", "file", "input_audio"})


def read_messages(items: Sequence[Json], after: Sequence[Message]) -> list[Message]:
    """Read messages. Raises ConfigError with the path of what is wrong."""
    messages = [read_message(each, f"messages[{index}]") for index, each in enumerate(items)]
    return paired(messages, after)


def read_message(value: Json, path: str) -> Message:
    """Read one message; calls and results that have no id get none. Raises ConfigError."""
    fields = an_object(value, path)
    role = role_of(fields, _ROLES, path)
    content = read_content(fields.get("content"), f"{path}.content", _read_part)
    blocks: tuple[Block, ...]
    if role == "tool":
        blocks = (_read_result(fields, content, path),)
    elif role == "assistant":
        blocks = (*_read_thinking(fields), *content, *_read_calls(fields, path))
    elif fields.get("content") is None:
        raise wrong(f"{path}.content", "text or an array", None)
    else:
        blocks = content
    return Message(role, blocks, usage=usage_of(fields), source=JsonSource(FORMAT, fields))


def _read_result(fields: Fields, content: Sequence[Block], path: str) -> ToolResult:
    if fields["role"] == "function":
        return ToolResult("", result_content(content), a_name(fields, "name", path))
    name = fields.get("name")
    return ToolResult(
        a_name(fields, "tool_call_id", path),
        result_content(content),
        name if isinstance(name, str) else None,
    )


def _read_thinking(fields: Fields) -> list[Thinking]:
    texts = (fields.get(name) for name in _REASONING)
    text = next((each for each in texts if isinstance(each, str) and each), None)
    return [] if text is None else [Thinking(text, len(text))]


def _read_part(value: Json, path: str) -> Block:
    fields = an_object(value, path)
    kind = a_text(fields, "type", path)
    source = JsonSource(FORMAT, fields)
    if kind == "text":
        return Text(a_text(fields, "text", path), source)
    if kind in _IMAGES:
        return read_image(fields, source)
    return opaque(kind, fields, FORMAT)


def _read_calls(fields: Fields, path: str) -> list[Block]:
    calls: list[Block] = []
    if fields.get("tool_calls") is not None:
        entries = an_array(fields["tool_calls"], f"{path}.tool_calls")
        for index, entry in enumerate(entries):
            calls.append(_read_call(entry, f"{path}.tool_calls[{index}]"))
    if fields.get("function_call") is not None:
        path = f"{path}.function_call"
        called = an_object(fields["function_call"], path)
        arguments = a_text(called, "arguments", path)
        calls.append(ToolCall("", a_name(called, "name", path), arguments))
    return calls


def _read_call(value: Json, path: str) -> Block:
    fields = an_object(value, path)
    kind = a_text(fields, "type", path) if "type" in fields else "function"
    if kind not in {"function", "custom"}:
        return opaque(kind, fields, FORMAT)
    called = an_object(fields.get(kind), f"{path}.{kind}")
    return ToolCall(
        a_name(fields, "id", path),
        a_name(called, "name", f"{path}.{kind}"),
        a_text(called, _arguments_field(fields), f"{path}.{kind}"),
        JsonSource(FORMAT, fields),
    )


def _arguments_field(fields: Fields) -> str:
    return "input" if fields.get("type") == "custom" else "arguments"


def write_messages(messages: Sequence[Message]) -> list[Json]:
    """Write messages; one that came from another format may become several."""
    return [each for message in messages for each in _write_message(message)]


def _write_message(message: Message) -> list[Json]:
    fields = own(message, FORMAT)
    if fields is None:
        return _write_foreign(message)
    if unchanged(message, read_message(fields, "message")):
        return [fields]
    if message.role == "tool":
        results = message.results
        return [{**fields, **_result_fields(each, fields)} for each in results]
    role = fields["role"] if _ROLES.get(str(fields["role"])) == message.role else message.role
    in_array = isinstance(fields.get("content"), list)
    blocks = [each for each in message.blocks if not _is_call(each, fields)]
    content = _write_content(blocks, in_array=in_array)
    if content is None and message.role != "assistant":  # which alone may be without content
        content = []
    written: Fields = {**fields, "role": role, "content": content}
    if message.role == "assistant":
        _write_calls(message, fields, written)
        if _read_thinking(fields) and not any(
            isinstance(each, Thinking) for each in message.blocks
        ):
            written = {key: held for key, held in written.items() if key not in _REASONING}
    return [written]


def _write_calls(message: Message, fields: Fields, written: Fields) -> None:
    """Put the calls where they were: a field that is left without any goes."""
    former = isinstance(fields.get("function_call"), dict)
    calls: list[Json] = []
    if former:
        written.pop("function_call")
    for block in message.blocks:
        if isinstance(block, ToolCall):
            entry = own(block, FORMAT)
            if entry is None and former:
                called = fields["function_call"]
                written["function_call"] = {
                    **(called if isinstance(called, dict) else {}),
                    "name": block.name,
                    "arguments": block.arguments,
                }
            else:
                calls.append(_write_call(block))
        elif _is_call(block, fields):
            calls.append(own(block, FORMAT))
    if calls:
        written["tool_calls"] = calls
    elif fields.get("tool_calls"):  # the API refuses an empty array
        written.pop("tool_calls")


def _is_call(block: Block, fields: Fields) -> bool:
    """Whether an item that the engine cannot read stands among the calls, not in the content."""
    entries = fields.get("tool_calls")
    return isinstance(block, Opaque) and isinstance(entries, list) and own(block, FORMAT) in entries


def _write_call(call: ToolCall) -> Fields:
    fields = own(call, FORMAT) or {"type": "function"}
    kind = str(fields.get("type", "function"))
    called = fields.get(kind)
    changes = {"name": call.name, _arguments_field(fields): call.arguments}
    if isinstance(called, dict) and called.get(_arguments_field(fields)) != call.arguments:
        fields = unsigned(fields)
        called = fields.get(kind)
    return {
        **fields,
        "id": call.id,
        kind: {**(called if isinstance(called, dict) else {}), **changes},
    }


def _write_foreign(message: Message) -> list[Json]:
    """Write a message of another format: its results first, each a message of its own."""
    written: list[Json] = [
        {"role": "tool", **_result_fields(each, {"tool_call_id": ""})} for each in message.results
    ]
    rest = [each for each in message.blocks if not isinstance(each, ToolResult)]
    calls: list[Json] = [_write_call(each) for each in message.calls]
    content = _write_content(rest, in_array=False)
    if not content and not calls:
        return written
    role = "assistant" if calls else "user" if message.role == "tool" else message.role
    each: Fields = {"role": role, "content": content or None}
    if calls:
        each["tool_calls"] = calls
    return [*written, each]


def _result_fields(result: ToolResult, fields: Fields) -> Fields:
    in_array = isinstance(fields.get("content"), list)
    texts = [each for each in result.content if not isinstance(each, Image)]
    content = _write_content(texts, in_array=in_array) or ""
    if fields.get("role") == "function":
        return {"name": result.name, "content": content}
    return {"tool_call_id": result.call_id, "content": content}


def _write_content(blocks: Sequence[Block], *, in_array: bool) -> Json:
    """Write texts and images; None for none where there was no array."""
    held = [each for each in blocks if isinstance(each, Text | Image | Opaque | ContextCompaction)]
    if not in_array and len(held) == 1:
        only = held[0]
        if isinstance(only, ContextCompaction):
            return only.summary
        if isinstance(only, Text) and own(only, FORMAT) is None:
            return only.text
    parts: list[Json] = [part for each in held if (part := _write_part(each)) is not None]
    return parts if parts or in_array else None


def _write_part(block: Text | Image | Opaque | ContextCompaction) -> Fields | None:
    if isinstance(block, ContextCompaction):
        return {"type": "text", "text": block.summary}
    fields = own(block, FORMAT)
    if isinstance(block, Opaque):
        return fields
    if fields is not None and same_block(block, _read_part(fields, "part")):
        return fields
    if isinstance(block, Text):
        return {**(fields or {}), "type": "text", "text": block.text}
    payload = payload_of(block)
    return None if payload is None else _image_fields(payload)


def _image_fields(payload: Payload) -> Fields | None:
    url = payload.url or f"data:{payload.media_type};base64,{payload.data}"
    if payload.is_image:
        return {"type": "image_url", "image_url": {"url": url}}
    if payload.data is None:
        return None
    return {"type": "file", "file": {"file_data": url, "filename": "document"}}
