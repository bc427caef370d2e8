"""Claude Code compacts by itself: hooks of the Claude Agent SDK hand the user's turns back.

    python examples/claude_agent_hooks.py

Claude Code does not run here: the hooks are called as it would, with a transcript of two turns.
In your own program only `ClaudeAgentOptions(hooks=carried_turns())` is needed.
"""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions

from contextgauge.adapters.claude_agent import carried_turns

TURNS = ["Fix the login. Never touch src/secrets.py.", "Nicht auf main!"]


def line(number: int, role: str, text: str) -> str:
    """Return a line of a transcript."""
    parent = f"uuid-{number - 1}" if number else None
    message = {"role": role, "content": text}
    names = {"type": role, "uuid": f"uuid-{number}", "parentUuid": parent, "sessionId": "s-1"}
    return json.dumps({**names, "message": message}) + "\n"


async def main() -> None:
    """Compact a session, and send the next prompt."""
    options = ClaudeAgentOptions(hooks=carried_turns())
    with tempfile.TemporaryDirectory() as folder:
        transcript = Path(folder) / "s-1.jsonl"
        lines = [
            line(0, "user", TURNS[0]),
            line(1, "assistant", "Done."),
            line(2, "user", TURNS[1]),
        ]
        transcript.write_text("".join(lines), encoding="utf-8")
        given = {"session_id": "s-1", "transcript_path": str(transcript), "cwd": folder}
        await call(options, "PreCompact", {**given, "trigger": "auto", "custom_instructions": None})
        answer = await call(options, "UserPromptSubmit", {**given, "prompt": "Go on."})
    print(answer["hookSpecificOutput"]["additionalContext"])


async def call(options: ClaudeAgentOptions, event: str, given: dict[str, Any]) -> dict[str, Any]:
    """Call a hook as Claude Code does."""
    hooks: Any = options.hooks
    hook = hooks[event][0].hooks[0]
    answer: dict[str, Any] = await hook({**given, "hook_event_name": event}, None, {"signal": None})
    return answer


if __name__ == "__main__":
    asyncio.run(main())
