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
from dataclasses import dataclass
from pathlib import Path

_POLL_S = 0.05
"""Pause between looks at a process that is ending: ending takes seconds."""


@dataclass(frozen=True, slots=True)
class Running:
    """A started process. `started` is the system's own mark of when, compared and never read."""

    pid: int
    started: str

    def alive(self) -> bool:
        """Return whether that very process still runs."""
        _reap(self.pid)
        return start_mark(self.pid) == self.started


def start(
    command: Sequence[str],
    log_file: Path,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Running:
    """Start a process with its output in `log_file`; a terminal's Ctrl-C does not reach it.

    Raises OSError if the program cannot be started.
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
        )
    # The handle is not kept: a worker may live longer than this process, and `_reap` collects it.
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


def start_mark(pid: int) -> str | None:
    """Return a mark of when the process of this pid started, None where none runs."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            # The command's name is in parentheses and may hold anything; field 3 is the state
            # (Z: ended, not yet collected), 20 the number of threads, 22 the start in ticks since
            # boot. While one of its threads still ends, it holds its ports.
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] == "Z" and int(fields[17]) <= 1 else fields[19]
    listed = subprocess.run(  # noqa: S603 -- fixed arguments, no shell
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],  # noqa: S607 -- a tool of the system
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split(maxsplit=1)
    return None if len(listed) != 2 or listed[0].startswith("Z") else listed[1].strip()  # noqa: PLR2004 -- state and time


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
