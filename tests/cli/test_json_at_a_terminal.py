"""JSON at a terminal: what the terminal would obey is escaped, and the values are the same."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.terminal_kit import Terminal
from tests.commands import Command

pytestmark = pytest.mark.extended

HOSTILE = "red\x9b31m del\x7f \u202egnp.exe \u2066x"


def test_a_terminal_obeys_nothing_of_json(command: Command, tmp_path: Path) -> None:
    usage = {"input_tokens": 9}
    message = {"id": "m", "model": HOSTILE, "usage": usage}
    line = {"type": "assistant", "sessionId": "s", "message": message, "version": "2.1.0"}
    file = tmp_path / "s.jsonl"
    file.write_text(json.dumps(line))
    for arguments in (["replay", str(file)], ["status", "--json", str(file)]):
        piped = command(*arguments).stdout
        assert HOSTILE in piped
        terminal = Terminal(8_000, 20, arguments, {})
        try:
            assert terminal.end() == 0
        finally:
            terminal.close()
        shown = terminal.received.decode()
        assert not re.search("[\x7f-\x9f\u202e\u2066]", shown)
        documents = re.findall(r"\{.*\}", shown)  # without the sign that it is reading
        assert list(map(json.loads, documents)) == list(map(json.loads, piped.splitlines()))
