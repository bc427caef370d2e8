"""Child processes that may outlive this one: started in their own session, ended by pid.

A process is remembered by its pid and the moment it started, so a pid that was given to another
process since is never taken for it.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from contextgauge.settings.local_stack import Running, start_mark

_POLL_S = 0.05
"""Pause between looks at a process that is ending: ending takes seconds."""

_OWNER_ONLY = 0o077


def start(
    command: Sequence[str],
    log_file: Path,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Running:
    """Start a process with its output in `log_file`; a terminal's Ctrl-C does not reach it.

    The files that it makes are its user's alone. Raises OSError if the program cannot be started.
    """
    with log_file.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 -- a list of arguments, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=None if environment is None else dict(environment),
            start_new_session=True,
            umask=_OWNER_ONLY,
        )
    # The handle is not kept: a worker may live longer than this process, and `Running` collects it.
    process.returncode = 0
    return Running(process.pid, start_mark(process.pid) or "ended")


def stop(process: Running, timeout_s: float) -> None:
    """Ask the process to end; kill it if it has not after `timeout_s`. One that ended is fine."""
    for signal_number, patience_s in ((signal.SIGTERM, timeout_s), (signal.SIGKILL, 10.0)):
        if not process.alive():
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal_number)
        deadline = time.monotonic() + patience_s
        while process.alive() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
