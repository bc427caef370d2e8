"""A history as JSON, and back: exactly, with ids, sources, edits and the trigger's state.

A message that its source says completely is stored as that source; any other block by block.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Final, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError

from contextgauge.compaction.counting import CumulativeTokens
from contextgauge.compaction.formats import marker, read_messages
from contextgauge.compaction.formats.fields import (
    Fields,
    a_count,
    a_text,
    an_array,
    an_object,
    optional_text,
    wrong,
)
from contextgauge.compaction.history import Edit, Entry, History
from contextgauge.compaction.messages import (
    ApiUsage,
    Block,
    ContextCompaction,
    FormatName,
    Image,
    Message,
    Opaque,
    Role,
    Source,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from contextgauge.compaction.receipts import Receipt
from contextgauge.compaction.trigger import TriggerState
from contextgauge.errors import ConfigError, VersionError
from contextgauge.json_codec import dumps, loads
from contextgauge.records import Json

VERSION: Final = 1

_RECEIPT: Final = TypeAdapter(Receipt)
_TRIGGER: Final = TypeAdapter(TriggerState)
_T = TypeVar("_T")

_FORMATS: Final[tuple[FormatName, ...]] = get_args(FormatName)
_ROLES: Final[tuple[Role, ...]] = get_args(Role)


def store_history(history: History) -> bytes:
    """Return a history as JSON, in UTF-8."""
    document = {
        "version": VERSION,
        "entries": [_write_entry(each, history) for each in history.entries],
        "trigger": asdict(history.trigger),
        "tokens": history.tokens.to_json(),
    }
    return dumps(document)


def load_history(value: bytes | str) -> History:
    """Rebuild a history. Raises ConfigError where it is damaged, VersionError of a later build."""
    try:
        document = an_object(loads(value), "history")
    except ValueError as error:
        raise ConfigError(f"the stored history is no JSON: {error}") from error
    if (version := document.get("version")) != VERSION:
        raise VersionError(f"a history of version {version!r}; this build reads {VERSION}")
    history = History()
    for index, each in enumerate(an_array(document.get("entries"), "entries")):
        entry = _read_entry(an_object(each, f"entries[{index}]"), f"entries[{index}]", history)
        history.add(entry)
    history.trigger = _read_by(_TRIGGER, document.get("trigger"), "trigger")
    history.tokens = CumulativeTokens.from_json(document.get("tokens"))
    return history


def _write_entry(entry: Entry, history: History) -> Json:
    if isinstance(entry, Message):
        return {"message": _write_message(entry)}
    replacement: list[Json] = [
        {"same": each.id}
        if history.original(each.id) == each and each.compaction is None
        # The marker's own message is remembered by the edit that brought it.
        else _write_message(each)
        for each in entry.replacement
    ]
    return {
        "covers": entry.covers,
        "replacement": replacement,
        "receipt": loads(dumps(asdict(entry.receipt))),
    }


def _read_entry(fields: Fields, path: str, history: History) -> Entry:
    if "message" in fields:
        return _read_message(fields["message"], f"{path}.message")
    replacement = []
    for index, value in enumerate(an_array(fields.get("replacement"), f"{path}.replacement")):
        where = f"{path}.replacement[{index}]"
        same = an_object(value, where).get("same")
        if same is None:
            replacement.append(_read_message(value, where))
        elif isinstance(same, str) and (original := history.original(same)) is not None:
            replacement.append(original)
        else:
            raise wrong(f"{where}.same", "the id of an earlier message", same)
    receipt = _read_by(_RECEIPT, fields.get("receipt"), f"{path}.receipt")
    return Edit(a_count(fields, "covers", path), tuple(replacement), receipt)


def _write_message(message: Message) -> Json:
    written: Fields = {"id": message.id}
    if (source := message.source) is not None:
        written["format"], written["value"] = source
        if _read_source(source, message.id) == message:
            return written
    written |= {"role": message.role, "blocks": [_write_block(each) for each in message.blocks]}
    if message.usage is not None:
        written["usage"] = {"context": message.usage.context, "output": message.usage.output}
    return written


def _read_source(source: Source, message_id: str) -> Message | None:
    try:
        (message,) = read_messages([source.value], source.format)
    except (ConfigError, ValueError):
        return None
    return replace(message, id=message_id, source=source)


def _read_message(value: Json, path: str) -> Message:
    fields = an_object(value, path)
    message_id = a_text(fields, "id", path)
    source = _read_stored_source(fields, path)
    if "blocks" not in fields:
        message = None if source is None else _read_source(source, message_id)
        if message is None:
            raise wrong(path, "a message of its format", value)
        return message
    role = next((each for each in _ROLES if each == fields.get("role")), None)
    if role is None:
        raise wrong(f"{path}.role", f"one of {', '.join(_ROLES)}", fields.get("role"))
    blocks = tuple(
        _read_block(an_object(each, f"{path}.blocks[{index}]"), f"{path}.blocks[{index}]")
        for index, each in enumerate(an_array(fields["blocks"], f"{path}.blocks"))
    )
    usage = None
    if fields.get("usage") is not None:
        counts = an_object(fields["usage"], f"{path}.usage")
        usage = ApiUsage(a_count(counts, "context", path), a_count(counts, "output", path))
    return Message(role, blocks, message_id, usage, source)


def _read_stored_source(fields: Fields, path: str) -> Source | None:
    if "format" not in fields:
        return None
    for name in _FORMATS:
        if fields["format"] == name:
            return Source(name, fields.get("value"))
    raise wrong(f"{path}.format", f"one of {', '.join(_FORMATS)}", fields["format"])


def _write_block(block: Block) -> Json:
    if isinstance(block, ContextCompaction):
        return {"kind": "compaction", **marker.write(block)}
    written: Fields = {"kind": _KINDS[type(block)]}
    if isinstance(block, ToolResult):
        written |= {"call_id": block.call_id, "name": block.name, "is_error": block.is_error}
        written["content"] = [_write_block(each) for each in block.content]
    elif isinstance(block, Opaque):
        written |= {"opaque": block.kind, "characters": block.characters}
    else:
        names = (name for name in type(block).__slots__ if name != "source")
        written |= {name: getattr(block, name) for name in names}
    if block.source is not None:
        written["format"], written["value"] = block.source
    return written


_KINDS: Final[Mapping[type, str]] = {
    Text: "text",
    Image: "image",
    Thinking: "thinking",
    Opaque: "opaque",
    ToolCall: "call",
    ToolResult: "result",
}


def _read_block(fields: Fields, path: str) -> Block:
    source = _read_stored_source(fields, path)
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
            return _read_result(fields, path, source)
        case other:
            raise wrong(f"{path}.kind", f"one of {', '.join(_KINDS.values())}, compaction", other)


def _read_result(fields: Fields, path: str, source: Source | None) -> ToolResult:
    content = []
    for index, value in enumerate(an_array(fields.get("content"), f"{path}.content")):
        where = f"{path}.content[{index}]"
        each = _read_block(an_object(value, where), where)
        if not isinstance(each, Text | Image | Opaque):
            raise wrong(f"{where}.kind", "text, image or opaque", fields.get("kind"))
        content.append(each)
    name = optional_text(fields, "name", path)
    is_error = fields.get("is_error") is True
    return ToolResult(a_text(fields, "call_id", path), tuple(content), name, is_error, source)


def _read_by(adapter: TypeAdapter[_T], value: Json, path: str) -> _T:
    try:
        return adapter.validate_json(dumps(value))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, (path, *first["loc"])))
        raise ConfigError(f"{where}: {first['msg']}") from error
