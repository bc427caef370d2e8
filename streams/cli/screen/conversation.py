"""All messages of a conversation in the terminal, with a marker for each compaction (001)."""

from collections.abc import Collection, Iterator, Mapping

from rich.text import Text as Line

from contextgauge.compaction.carried.failure_lines import failure_in
from contextgauge.compaction.displays import marker_text, preview
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import (
    Block,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from streams.cli.screen.figures import count, safe

_ARCHIVED = "dim"
_MARKER = "bold cyan"


def message_lines(
    history: History,
    expanded: Collection[int] | None,
    dropped: int,
    freed: Mapping[int, int | None],
) -> Iterator[Line]:
    """Yield the lines of all messages, numbered from 1; what the model no longer sees is dim.

    `expanded` are numbers of those to show whole, None all. The `dropped` ones are not kept.
    `freed` are tokens by the number of a compaction, where that is known.
    """
    if dropped:
        yield Line(f"{count(dropped, 'older message')} not kept", style=_ARCHIVED)
    active = {each.id for each in history.active}
    tools = {call.id: call.name for each in history.everything for call in each.calls}
    for number, message in enumerate(history.everything, dropped + 1):
        is_whole = expanded is None or number in expanded
        marker = message.compaction
        if marker is not None:
            tokens = freed.get(marker.number)
            text = marker_text(marker, freed_tokens=tokens, expanded=is_whole)
            style = _MARKER
        else:
            parts = _whole(message, tools) if is_whole else _previews(message, tools)
            text = f"{message.role:<11}" + ("\n" if is_whole else " ").join(parts)
            style = "" if message.id in active else _ARCHIVED
        first, *rest = text.splitlines()
        if marker is not None and not is_whole:
            first += f"  [--expand {number}]"
        yield Line(f"{number:>5}  {safe(first)}", style=style)
        for line in rest:
            yield Line(f"       {safe(line)}", style=style)


def _previews(message: Message, tools: Mapping[str, str]) -> Iterator[str]:
    """Yield what one line says of a message: first the user's words, of data and results the size.

    Of a call that failed also what it says.
    """
    data = message.data_text
    if message.user_text:
        yield preview(message.user_text)
    if data:
        yield f"[data, {_size(data)}: {preview(data)}]"
    for block in message.blocks:
        match block:
            case Text():
                if message.role != "user":
                    yield preview(block.text)
            case ToolCall():
                yield f"[{block.name} {preview(block.arguments)}]"
            case ToolResult():
                failure = failure_in(block.text, is_error=block.is_error)
                says = f": {preview(failure)}" if failure else ""
                yield f"[{_result(block, tools)}, {_size(block.text)}{says}]"
            case _:
                yield _other(block)


def _whole(message: Message, tools: Mapping[str, str]) -> Iterator[str]:
    for block in message.blocks:
        match block:
            case Text():
                yield block.text
            case ToolCall():
                yield f"[{block.name} {block.arguments}]"
            case ToolResult():
                yield f"[{_result(block, tools)}]\n{block.text}"
            case Thinking() if block.text:
                yield f"[thinking]\n{block.text}"
            case _:
                yield _other(block)


def _result(block: ToolResult, tools: Mapping[str, str]) -> str:
    what = "error" if block.is_error else "result"
    return f"{what} of {block.name or tools.get(block.call_id, 'a tool')}"


def _other(block: Block) -> str:
    match block:
        case Image():
            return f"[{block.media_type or 'image'}]"
        case Thinking():
            return f"[thinking, {block.characters:,} characters]"
        case Opaque():
            return f"[{block.kind}, {block.characters:,} characters]"
    return ""


def _size(text: str) -> str:
    return f"{len(text):,} characters"
