"""The targets of the Makefile that run until Ctrl-C."""

import shutil
from pathlib import Path

import pytest

from tests.cli.terminal_kit import Terminal

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine")

COMMAND = """#!/bin/sh
trap 'echo ended; exit "$CODE"' INT
echo "serving $*"
while :; do sleep 0.1; done
"""
MADE = (".venv/.runtime", "streams/serve/page/vendor/uPlot.esm.js")


@pytest.mark.parametrize("target", ["view", "demo"])
@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_make_ends_as_its_command_does_after_ctrl_c(
    tmp_path: Path, target: str, shell: str
) -> None:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell} on this machine")
    (tmp_path / "contextgauge").write_text(COMMAND)
    (tmp_path / "contextgauge").chmod(0o755)
    up_to_date = [f"--old-file={name}" for name in MADE]
    for code in (0, 3):
        terminal = Terminal(
            100,
            10,
            [*up_to_date, target, f"BIN={tmp_path}", f"SHELL={path}", f"CODE={code}", "SESSIONS=x"],
            {},
            ["make"],
        )
        try:
            terminal.wait(lambda text: f"serving {target} x" in text)
            terminal.press("\x03")
            assert terminal.end() == (2 if code else 0)
            assert "ended" in terminal.text
            # In a make of its own it is `make[1]: ***`.
            assert (": *** [" in terminal.text) is bool(code)
        finally:
            terminal.close()
