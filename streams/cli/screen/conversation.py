"""All messages of a conversation in the terminal, with a marker for each compaction (001)."""

from collections.abc import Collection, Iterator

from rich.text import Text as Line

from contextgauge.compaction.displays import marker_text, preview
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Block, Image, Message, Text, ToolCall, ToolResult
from streams.cli.screen.figures import count, safe

_ARCHIVED = "dim"
_MARKER = "bold cyan"


def message_lines(
    history: History, expanded: Collection[int] | None, dropped: int
) -> Iterator[Line]:
    """Yield the lines of all messages, numbered from 1; what the model no longer sees is dim.

    `expanded` are numbers of those to show whole, None all. The `dropped` ones are not kept.
    """
    if dropped:
        yield Line(f"{count(dropped, 'older message')} not kept", style=_ARCHIVED)
    active = {each.id for each in history.active}
    freed = {each.number: each.tokens_saved for each in history.receipts}
    for number, message in enumerate(history.everything, dropped + 1):
        is_whole = expanded is None or number in expanded
        marker = message.compaction
        if marker is not None:
            text = marker_text(marker, freed_tokens=freed.get(marker.number), expanded=is_whole)
            style = _MARKER
        else:
            text = _said(message, is_whole=is_whole)
            style = "" if message.id in active else _ARCHIVED
        first, *rest = text.splitlines() or [""]
        role = "" if marker is not None else f"{message.role:<11}"
        yield Line(f"{number:>5}  {role}{safe(first)}", style=style)
        for line in rest:
            yield Line(f"       {safe(line)}", style=style)


def _said(message: Message, *, is_whole: bool) -> str:
    parts = [_part(each, is_whole=is_whole) for each in message.blocks]
    return ("\n" if is_whole else " ").join(filter(None, parts))


def _part(block: Block, *, is_whole: bool) -> str:
    match block:
        case Text():
            return block.text if is_whole else preview(block.text)
        case ToolCall():
            return f"[{block.name} {block.arguments if is_whole else preview(block.arguments)}]"
        case ToolResult() if is_whole:
            return f"[result of {block.name or 'a tool'}]\n{block.text}"
        case ToolResult():
            return f"[result of {block.name or 'a tool'}: {len(block.text):,} characters]"
        case Image():
            return f"[{block.media_type or 'image'}]"
    return ""
