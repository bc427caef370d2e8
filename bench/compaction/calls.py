"""What the calls of the generated sessions say: their tools are read, edit, write and bash."""

from collections.abc import Iterable

from contextgauge.compaction.messages import Message, ToolCall
from contextgauge.json_codec import loads


def argument(call: ToolCall, name: str) -> str:
    """Return an argument of a call, empty where it has none of that name."""
    arguments = loads(call.arguments)
    value = arguments.get(name) if isinstance(arguments, dict) else None
    return value if isinstance(value, str) else ""


def files_of(messages: Iterable[Message]) -> dict[str, bool]:
    """Return the files that calls read or changed, and whether they changed them."""
    files: dict[str, bool] = {}
    for message in messages:
        for call in message.calls:
            if path := argument(call, "path"):
                files[path] = files.get(path, False) or call.name != "read"
    return files
