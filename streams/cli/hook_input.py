"""What a runtime passes to a hook on standard input, and what is reported of a hook that fails.

Claude Code's form, which Codex, Gemini CLI and Qwen Code have too.
"""

import sys
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from contextgauge.errors import ConfigError, ContextgaugeError
from streams import codec

_MOST_BYTES: Final = 1 << 20


class HookInput(NamedTuple):
    """A hook's input: what happened, in which session, and its transcript where it is named."""

    event: str
    session_id: str
    transcript_path: str | None
    body: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """Return a field that is a text and not empty; else None."""
        return _text(self.body, name)


def read_hook_input() -> HookInput:
    """Read standard input. Raises ConfigError for what is no hook's."""
    try:
        body = codec.loads(sys.stdin.buffer.read(_MOST_BYTES))
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ConfigError("standard input is not a hook's: it is no JSON object")
    session_id, event = _text(body, "session_id"), _text(body, "hook_event_name")
    if session_id is None:
        raise ConfigError("standard input is not a hook's: it has no session_id")
    return HookInput(event or "", session_id, _text(body, "transcript_path"), body)


def report(command: str, error: Exception) -> None:
    """Report in one line why a hook failed; a fault of ours without its text, which may quote."""
    expected = isinstance(error, ContextgaugeError | OSError)
    why = str(error) if expected else f"internal error: {type(error).__name__}"
    sys.stderr.write(f"contextgauge hook {command}: {' '.join(why.split())}\n")


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) and value else None
