"""A `contextgauge view` of a test."""

import json
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.commands import Command
from tests.patience import PATIENCE_S


class View:
    """A `contextgauge view` of a folder, with a state folder of its own."""

    def __init__(self, command: Command, state: Path, *arguments: str) -> None:
        self.state = state
        self.process: subprocess.Popen[str] = command.start(
            "view", *arguments, "--port", "0", STATE_FOLDER=str(state)
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert match is not None, line
        self.address = match[0]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.address + path) as answer:
            return json.load(answer)

    def sessions(self) -> dict[str, dict[str, Any]]:
        answer = self.get("v1/sessions?limit=200")
        return {session["session_id"]: session for session in answer["sessions"]}

    def wait_until_read(self) -> None:
        """Wait until all transcripts are in the views."""
        end_s = time.monotonic() + PATIENCE_S
        while True:
            reading = self.get("v1/projection")["reading"]
            if reading is not None and reading["read_bytes"] == reading["bytes"] > 0:
                return
            assert time.monotonic() < end_s, reading
            time.sleep(0.05)

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until it is true of what the view shows."""
        end_s = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end_s
            time.sleep(0.05)

    def file(self) -> Path:
        (path,) = (self.state / "view").glob("*.sqlite3")
        return path

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)
