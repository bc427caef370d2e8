"""The Claude Agent SDK: hooks that hand the user's turns back after each compaction.

    options = ClaudeAgentOptions(hooks=carried_turns())

Claude Code compacts by itself, and no hook can do that in its place. So the user's turns are read
from the session's transcript when a compaction begins, and follow it with the next prompt or
result of a tool.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from claude_agent_sdk import HookMatcher

from contextgauge.compaction.messages import Message
from contextgauge.compaction.reading.transcripts import read_conversation
from contextgauge.errors import ConfigError

MOST_CHARACTERS: Final = 9_000
"""Claude Code takes 10 000 from a hook."""

_HEAD: Final = (
    "The conversation was compacted. These are the user's own turns before that, word for word "
    "and numbered; a later one wins over an earlier one:"
)


def carried_turns(characters: int = MOST_CHARACTERS) -> dict[Any, list[HookMatcher]]:
    """Return hooks for `ClaudeAgentOptions`, to be merged with your own.

    Of more than `characters` the first turn and the newest ones stay.
    """
    texts: dict[str, str] = {}

    async def before(given: Mapping[str, Any], _id: str | None, _context: object) -> dict[str, Any]:
        try:
            messages = await asyncio.to_thread(_messages, given["transcript_path"])
        except (OSError, ConfigError):  # a compaction goes on without this
            return {}
        texts[given["session_id"]] = turns_text(messages, characters)
        return {}

    async def after(given: Mapping[str, Any], _id: str | None, _context: object) -> dict[str, Any]:
        text = texts.pop(given["session_id"], "") if not given.get("agent_id") else ""
        if not text:
            return {}
        event = given["hook_event_name"]
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}

    hooks: dict[str, Any] = {"PreCompact": before, "UserPromptSubmit": after, "PostToolUse": after}
    return {event: [HookMatcher(hooks=[hook])] for event, hook in hooks.items()}


def _messages(path: str) -> Sequence[Message]:
    return read_conversation(Path(path).read_bytes()).everything


def turns_text(messages: Sequence[Message], characters: int) -> str:
    """Return the user's turns within so many characters; nothing where there are none."""
    turns = [text for each in messages if (text := each.user_text.strip())]
    if not turns:
        return ""
    lines = [f"{number}. {text}" for number, text in enumerate(turns, 1)]
    room = characters - len(_HEAD)
    stay: list[int] = []
    for place in (0, *range(len(lines) - 1, 0, -1)):
        room -= len(lines[place]) + 1
        if room < 0:
            break
        stay.append(place)
    return "\n".join([_HEAD, *(lines[place] for place in sorted(stay))])
