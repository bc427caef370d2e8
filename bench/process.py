"""What a process and its children cost: CPU seconds and memory, as Linux tells them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from bench.systems import ROOT, our_environment

_TICKS = os.sysconf("SC_CLK_TCK")
_UTIME, _CSTIME = 11, 15
"""Places of the CPU times in /proc/PID/stat after the name: utime, stime, cutime, cstime."""


class Cost(NamedTuple):
    """User and system CPU seconds, and the highest resident memory, of a process tree."""

    cpu_s: float
    peak_mib: float


def cost(pid: int) -> Cost:
    """Return the cost so far of a process, its living children, and those that it waited for."""
    ticks, peak_kib = 0, 0
    for each in _tree(pid):
        try:
            stat = Path(f"/proc/{each}/stat").read_text(encoding="ascii", errors="replace")
            status = Path(f"/proc/{each}/status").read_text(encoding="ascii", errors="replace")
        except OSError:  # it ended meanwhile
            continue
        ticks += sum(map(int, stat.rpartition(")")[2].split()[_UTIME:_CSTIME]))
        peaks = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        peak_kib += int(peaks[0].split()[1]) if peaks else 0
    return Cost(ticks / _TICKS, peak_kib / 1024)


def _tree(pid: int) -> list[int]:
    pids = [pid]
    for each in pids:
        for children in Path(f"/proc/{each}/task").glob("*/children"):
            try:
                pids += map(int, children.read_text(encoding="ascii").split())
            except OSError:
                continue
    return pids


def load() -> float:
    """Return the machine's load of the last minute: other work disturbs what is measured."""
    return round(os.getloadavg()[0], 1)


def apart(module: str, *arguments: str) -> dict[str, Any]:
    """Run a measurement in a process of its own, on the build that is measured.

    Returns the JSON object that its last line is.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=ROOT,
        env=dict(our_environment()),
    )
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures
