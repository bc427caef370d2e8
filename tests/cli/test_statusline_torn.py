"""The status line of a transcript whose lines two processes wrote."""

import json
from pathlib import Path

from tests.cli.test_statusline import told


def test_an_object_behind_a_torn_one_counts(tmp_path: Path) -> None:
    def line(number: int, size: int) -> str:
        usage = {"input_tokens": size}
        message = {"id": f"m{number}", "model": "claude-sonnet-4-5", "usage": usage}
        return json.dumps({"type": "assistant", "sessionId": "s", "message": message})

    path = tmp_path / "s.jsonl"
    path.write_text(f"{line(1, 20_000)}\n{line(2, 90_000)[:60]}{line(3, 150_000)}\n")
    shown, _, _ = told({"session_id": "s", "transcript_path": str(path)})
    assert "150K/200K" in shown
