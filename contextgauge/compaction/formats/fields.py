"""What the formats share: fields by their type, with the path of what is wrong, and overlaying.

A path is written as in Python: `messages[3].content[0].text`.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import is_not
from typing import Final, TypeAlias

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
from contextgauge.json_codec import dumps, loads
from contextgauge.normalise.usage import find_usage, read_output, read_usage
from contextgauge.records import Json

Fields: TypeAlias = dict[str, Json]

_SHOWN_CHARACTERS: Final = 40
"""What an error shows of a wrong value: enough to find it, little of what may be secret."""


def wrong(path: str, expectation: str, value: object) -> ConfigError:
    """Return the error of a value that is not what its format says."""
    return ConfigError(f"{path}: expected {expectation}, not {_described(value)}")


def _described(value: object) -> str:
    if value is None:
        return "null or nothing"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        cut = len(value) > _SHOWN_CHARACTERS
        return f"the text {value[:_SHOWN_CHARACTERS] + '…' * cut!r}"
    if isinstance(value, list | tuple):
        return "an array"
    if isinstance(value, Mapping):
        return "an object"
    hint = ": pass its model_dump()" if hasattr(value, "model_dump") else ""
    return f"a Python {type(value).__name__}{hint}"


def an_object(value: object, path: str) -> Fields:
    """Return a JSON object. Raises ConfigError."""
    if not isinstance(value, dict):
        raise wrong(path, "an object", value)
    return value


def an_array(value: object, path: str) -> Sequence[Json]:
    """Return a JSON array. Raises ConfigError."""
    if not isinstance(value, list | tuple):
        raise wrong(path, "an array", value)
    return value


def a_text(fields: Fields, name: str, path: str) -> str:
    """Return a field that must be text. Raises ConfigError."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise wrong(f"{path}.{name}", "text", value)
    return value


def a_name(fields: Fields, name: str, path: str) -> str:
    """Return a field that must be text and not empty, such as an id. Raises ConfigError."""
    value = a_text(fields, name, path)
    if not value:
        raise ConfigError(f"{path}.{name}: is empty")
    return value


def optional_text(fields: Fields, name: str, path: str) -> str | None:
    """Return a field that may be missing or null. Raises ConfigError for another type."""
    return None if fields.get(name) is None else a_text(fields, name, path)


def a_count(fields: Fields, name: str, path: str) -> int:
    """Return a whole number of 0 or more. Raises ConfigError."""
    value = fields.get(name)
    if type(value) is not int or value < 0:
        raise wrong(f"{path}.{name}", "a whole number of 0 or more", value)
    return value


def optional_count(fields: Fields, path: str, *names: str) -> int:
    """Return the first of these counts that is there; 0 for none. Raises ConfigError."""
    for name in names:
        if fields.get(name) is not None:
            return a_count(fields, name, path)
    return 0


def role_of(fields: Fields, roles: Mapping[str, Role], path: str) -> Role:
    """Return the role of a message. Raises ConfigError for one that the format does not have."""
    value = fields.get("role")
    if not isinstance(value, str) or value not in roles:
        raise wrong(f"{path}.role", f"one of {', '.join(roles)}", value)
    return roles[value]


def json_text(value: Json) -> str:
    """Return a value as compact JSON text."""
    return dumps(value).decode("utf-8")


def json_value(text: str) -> Json:
    """Return the value of a JSON text; what is not JSON stays text, so that nothing is lost."""
    try:
        value: Json = loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def without_bytes(value: object) -> object:
    """Return a value with its bytes as text in base64, as Gemini's SDK writes and reads them.

    A value without bytes is the same object.
    """
    if isinstance(value, bytes):
        return urlsafe_b64encode(value).decode("ascii")
    if isinstance(value, dict):
        changed = {key: without_bytes(each) for key, each in value.items()}
        return changed if any(changed[key] is not each for key, each in value.items()) else value
    if isinstance(value, list | tuple):
        items = [without_bytes(each) for each in value]
        return items if any(map(is_not, items, value)) else value
    return value


def opaque(kind: str, value: Json, format: FormatName) -> Opaque:  # noqa: A002 -- its name everywhere
    """Return an item that is kept as it is."""
    return Opaque(kind, len(json_text(value)), JsonSource(format, value))


def usage_of(body: Fields) -> ApiUsage | None:
    """Return what an API reported with an answer; None where it reported no input."""
    usage = find_usage(body)
    if usage is None or (counts := read_usage(usage)) is None:
        return None
    context = (counts.input or 0) + (counts.creation or 0) + (counts.read or 0)
    return ApiUsage(context, read_output(usage) or 0)


def read_content(
    content: Json, path: str, read_part: Callable[[Json, str], Block]
) -> tuple[Block, ...]:
    """Read what is a text or an array of parts; null is nothing. Raises ConfigError."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list):
        raise wrong(path, "text or an array", content)
    return tuple(read_part(each, f"{path}[{index}]") for index, each in enumerate(content))


def result_content(blocks: Sequence[Block]) -> tuple[Content, ...]:
    """Return the blocks of a result; what the engine knows only outside of one is opaque."""
    return tuple(
        each if isinstance(each, Text | Image | Opaque) else _as_opaque(each) for each in blocks
    )


def _as_opaque(block: Thinking | ToolCall | ToolResult | ContextCompaction) -> Opaque:
    source = source_of(block)
    value = None if source is None else source.value
    return Opaque(type(block).__name__, len(json_text(value)), source)


def source_of(block: Block) -> JsonSource | None:
    """Return what a block was read from."""
    return None if isinstance(block, ContextCompaction) else block.source


def own(block: Block | Message, format: FormatName) -> Fields | None:  # noqa: A002 -- as in `opaque`
    """Return the object that a block or message was read from, where it is of this format."""
    source = block.source if isinstance(block, Message) else source_of(block)
    if source is None or source.format != format or not isinstance(source.value, dict):
        return None
    return source.value


def with_result_role(message: Message) -> Message:
    """Give a user's message that holds nothing but results of tools the role of a tool."""
    blocks = message.blocks
    if message.role == "user" and blocks and all(isinstance(each, ToolResult) for each in blocks):
        return replace(message, role="tool")
    return message


def unchanged(message: Message, original: Message) -> bool:
    """Whether a message says what was read from its source."""
    return message.role == original.role and same_blocks(message.blocks, original.blocks)


def same_blocks(blocks: Sequence[Block], originals: Sequence[Block]) -> bool:
    """Whether blocks say the same; of those that the engine cannot read, the sources count."""
    return len(blocks) == len(originals) and all(map(same_block, blocks, originals))


def same_block(block: Block, original: Block) -> bool:
    """Whether a block says what was read from its source; an id that it lacked may be ours."""
    if isinstance(original, ToolCall) and not original.id and isinstance(block, ToolCall):
        block = replace(block, id="")
    elif (
        isinstance(original, ToolResult) and not original.call_id and isinstance(block, ToolResult)
    ):
        block = replace(block, call_id="")
    if block != original:
        return False
    if isinstance(block, Image | Thinking | Opaque):
        return block.source == source_of(original)
    if isinstance(block, ToolResult) and isinstance(original, ToolResult):
        return same_blocks(block.content, original.content)
    return True


def with_result_names(
    messages: Sequence[Message],
    format: FormatName,  # noqa: A002 -- as in `opaque`
) -> list[Message]:
    """Give the results that come from other formats the names of the tools that were called."""
    names: dict[str, str] = {}
    named: list[Message] = []
    for each in messages:
        names.update((call.id, call.name) for call in each.calls)
        if each.results and own(each, format) is None:
            blocks = tuple(
                replace(block, name=block.name or names.get(block.call_id))
                if isinstance(block, ToolResult)
                else block
                for block in each.blocks
            )
            named.append(replace(each, blocks=blocks))
        else:
            named.append(each)
    return named


def paired(messages: Sequence[Message], after: Sequence[Message]) -> list[Message]:
    """Give calls and results without an id one: each result that of the first open call by name.

    `after` are the messages before these, whose calls may still be open.
    """
    pairing = _Pairing()
    for each in after:
        pairing.pair(each)
    return [pairing.pair(each) for each in messages]


class _Pairing:
    def __init__(self) -> None:
        self._open: dict[str, list[str]] = {}
        self._ids: set[str] = set()
        self._calls = 0

    def pair(self, message: Message) -> Message:
        """Return a message whose calls and results have ids."""
        blocks = tuple(map(self._pair, message.blocks))
        return message if blocks == message.blocks else replace(message, blocks=blocks)

    def _pair(self, block: Block) -> Block:
        if isinstance(block, ToolCall):
            self._calls += 1
            block = block if block.id else replace(block, id=self._new_id())
            self._ids.add(block.id)
            self._open.setdefault(block.name, []).append(block.id)
        elif isinstance(block, ToolResult):
            waiting = self._open.get(block.name or "", [])
            if not block.call_id:
                block = replace(block, call_id=waiting[0] if waiting else self._new_id())
                self._ids.add(block.call_id)
            if block.call_id in waiting:
                waiting.remove(block.call_id)
        return block

    def _new_id(self) -> str:
        number = self._calls
        while f"call-{number}" in self._ids:
            number += 1
        return f"call-{number}"


def gathered(
    messages: Sequence[Message],
    format: FormatName,  # noqa: A002 -- as in `opaque`
    write: Callable[[Message], Fields | None],
    parts: str,
) -> list[Json]:
    """Write messages; the results of parallel calls from another format become one message.

    `parts` is the field of a written message that holds them.
    """
    written: list[Json] = []
    gathering: list[Json] | None = None
    for message in messages:
        each = write(message)
        if each is None:
            continue
        content = each.get(parts)
        if message.role == "tool" and own(message, format) is None and isinstance(content, list):
            if gathering is not None:
                gathering += content
                continue
            gathering = content
        else:
            gathering = None
        written.append(each)
    return written


def with_ids(messages: Sequence[Message]) -> list[Message]:
    """Give messages the ids that their sources have; of an id that stands twice, the first."""
    seen: set[str] = set()
    named: list[Message] = []
    for message in messages:
        value = None if message.source is None else message.source.value
        each = value.get("id") if isinstance(value, dict) else None
        if isinstance(each, str) and each and each not in seen:
            seen.add(each)
            named.append(replace(message, id=each))
        else:
            named.append(message)
    return named
