"""The agent's list of what is to be done, by its shape: items with a status, in a call."""

from collections.abc import Iterator
from typing import Final

from contextgauge.compaction.messages import ToolCall
from contextgauge.json_codec import loads
from contextgauge.records import Json

_ITEMS: Final = 50
_ITEM_CHARACTERS: Final = 300
"""An item is a line; a longer list or item is no plan."""

_MOST_CHARACTERS: Final = 100_000
"""Of arguments that are looked at: longer ones contain a file."""


def todo_list(call: ToolCall) -> str:
    """Return a line for each item with its status; nothing where the call has no such list."""
    if '"status"' not in call.arguments or len(call.arguments) > _MOST_CHARACTERS:
        return ""
    try:
        arguments: Json = loads(call.arguments)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(arguments, dict):
        return ""
    for value in arguments.values():
        if isinstance(value, list) and (lines := list(_lines(value))):
            return "\n".join(lines)
    return ""


def _lines(items: list[Json]) -> Iterator[str]:
    for item in items[:_ITEMS]:
        status = item.get("status") if isinstance(item, dict) else None
        if isinstance(item, dict) and isinstance(status, str):
            texts = [
                each for key, each in item.items() if isinstance(each, str) and key != "status"
            ]
            longest = max(map(len, texts), default=0)
            # The first of those that are about as long: others are ids, or say it in another form.
            text = next((each for each in texts if 2 * len(each) >= longest), "")
            if text:
                yield f"- {status[:40]}: {' '.join(text[:_ITEM_CHARACTERS].split())}"
