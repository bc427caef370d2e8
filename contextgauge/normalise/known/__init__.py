"""Runtimes whose files are only recognised, or whose texts in the user's role."""

from typing import Final

from contextgauge.normalise.adapter import ABSENT, Adapter, Sign
from contextgauge.normalise.known.text_protocols import MARKS

_INIT: Final = {"type": "system", "subtype": "init"}

_SIGNS: Final[dict[str, tuple[Sign, ...]]] = {
    "Gemini CLI stream": ({"type": "init", "timestamp": str, "session_id": str, "model": str},),
    "Cursor CLI": (
        {**_INIT, "apiKeySource": str, "model": str, "tools": ABSENT, "uuid": ABSENT},
        {"type": "thinking", "session_id": str, "timestamp_ms": int},
        {"type": "tool_call", "call_id": str, "tool_call": dict, "session_id": str},
    ),
}

ADAPTERS: Final = tuple(
    Adapter(runtime="other", label=label, signs=_SIGNS.get(label, ()), marks=MARKS.get(label, ()))
    for label in dict.fromkeys((*_SIGNS, *MARKS))
)
