"""All messages of a conversation in the terminal, with a marker for each compaction (001)."""

from collections.abc import Collection, Iterator, Mapping

from rich.text import Text as Line

from contextgauge.compaction.displays import marker_text, preview
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Block, Image, Text, ToolCall, ToolResult
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
            parts = (_part(each, tools, is_whole=is_whole) for each in message.blocks)
            text = f"{message.role:<11}" + ("\n" if is_whole else " ").join(filter(None, parts))
            style = "" if message.id in active else _ARCHIVED
        first, *rest = text.splitlines()
        if marker is not None and not is_whole:
            first += f"  [--expand {number}]"
        yield Line(f"{number:>5}  {safe(first)}", style=style)
        for line in rest:
            yield Line(f"       {safe(line)}", style=style)


def _part(block: Block, tools: Mapping[str, str], *, is_whole: bool) -> str:
    match block:
        case Text():
            return block.text if is_whole else preview(block.text)
        case ToolCall():
            return f"[{block.name} {block.arguments if is_whole else preview(block.arguments)}]"
        case ToolResult():
            name = block.name or tools.get(block.call_id, "a tool")
            if is_whole:
                return f"[result of {name}]\n{block.text}"
            return f"[result of {name}: {len(block.text):,} characters]"
        case Image():
            return f"[{block.media_type or 'image'}]"
    return ""
