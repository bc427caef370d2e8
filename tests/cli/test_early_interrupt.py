"""Ctrl-C before a command has begun: no traceback."""

import subprocess
import sys

from tests.commands import command_environment

_INTERRUPTED_WHILE_IT_IMPORTS = """
import sys, types

class Interrupting(types.ModuleType):
    def __getattr__(self, name):
        raise KeyboardInterrupt

import streams.cli
sys.modules["streams.cli.app"] = streams.cli.app = Interrupting("streams.cli.app")
sys.argv = ["contextgauge", "sessions"]
from streams.__main__ import main
main()
"""


def test_an_interrupt_while_it_imports_is_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_WHILE_IT_IMPORTS],
        env=command_environment({}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
