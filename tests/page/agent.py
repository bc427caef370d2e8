"""Messages of one agent, as Claude's stream has them, said one by one."""

import itertools
import json
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MODEL = "claude-sonnet-4-5-20250929"
WINDOW = 200_000
THRESHOLD = 167_000


class Agent:
    """Says messages into a file that is followed. Times are those that it is given."""

    def __init__(self, path: Path, session_id: str) -> None:
        self.path = path
        self.session_id = session_id
        self._numbers = itertools.count(1)
        self._tag = zlib.crc32(session_id.encode())

    def begin(self, time_ms: int) -> None:
        """Say who it is and what its window is."""
        self._say(
            time_ms, type="system", subtype="init", cwd="/srv/orchard", model=MODEL,
            claude_code_version="2.1.0", tools=[],
        )  # fmt: skip
        self._say(
            time_ms, type="control_response",
            response={"subtype": "success", "request_id": "r", "response": {
                "totalTokens": 18_000, "maxTokens": WINDOW, "rawMaxTokens": WINDOW,
                "percentage": 9, "model": MODEL, "autoCompactThreshold": THRESHOLD,
                "isAutoCompactEnabled": True, "categories": [],
            }},
        )  # fmt: skip

    def respond(self, time_ms: int, used: int, *, agent_id: str | None = None) -> None:
        """Say a response whose context was so large."""
        number = next(self._numbers)
        usage = {
            "input_tokens": 4, "cache_creation_input_tokens": 1_000,
            "cache_read_input_tokens": used - 1_004, "output_tokens": 120,
        }  # fmt: skip
        message = {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "model": MODEL,
            "content": [{"type": "text", "text": "Done."}], "usage": usage,
        }  # fmt: skip
        more = {} if agent_id is None else {"agent_id": agent_id, "subagent_type": "explorer"}
        tool = None if agent_id is None else f"toolu_{agent_id}"
        self._say(time_ms, type="assistant", message=message, parent_tool_use_id=tool, **more)

    def compacting(self, time_ms: int) -> None:
        """Say that a compaction is under way: the first time it begins."""
        self._say(time_ms, type="system", subtype="status", status="compacting")

    def failed(self, time_ms: int, why: str) -> None:
        """Say that it failed."""
        self._say(
            time_ms, type="system", subtype="status", status=None, compact_result="failed",
            compact_error=why,
        )  # fmt: skip

    def compacted(
        self, time_ms: int, pre: int, duration_ms: int, summary: str, **more: object
    ) -> None:
        """Say that it ended, and with what; `more` is of its metadata."""
        self._say(time_ms, type="system", subtype="status", status=None, compact_result="success")
        metadata = {"trigger": "auto", "pre_tokens": pre, "duration_ms": duration_ms, **more}
        self._say(time_ms, type="system", subtype="compact_boundary", compact_metadata=metadata)
        text = f"This session is being continued from a previous conversation. {summary}"
        self._say(
            time_ms, type="user", isSynthetic=True, parent_tool_use_id=None,
            message={"role": "user", "content": text},
        )  # fmt: skip

    def cleared(self, time_ms: int) -> None:
        """Say that the conversation was cleared."""
        self._say(time_ms, type="conversation_reset", trigger="clear")

    def checked(self, time_ms: int, boundary_id: str, kept: int, lost: list[str]) -> None:
        """Say which rules were found after a boundary."""
        self._say(
            time_ms, type="system", subtype="pins_checked", boundary_id=boundary_id, kept=kept,
            lost=lost,
        )  # fmt: skip

    def _say(self, time_ms: int, **body: Any) -> None:
        time = datetime.fromtimestamp(time_ms / 1_000, UTC).isoformat().replace("+00:00", "Z")
        number = next(self._numbers)
        whole = {
            **body, "uuid": f"{number:08x}-0000-4000-8000-{self._tag:012x}",
            "session_id": self.session_id, "timestamp": time,
        }  # fmt: skip
        with self.path.open("a") as target:
            target.write(json.dumps(whole) + "\n")
