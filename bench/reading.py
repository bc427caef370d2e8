"""Reading a large folder of transcripts: `replay` by one process and by all cores, `view`, a list.

    python -m bench.reading [--sessions 480] [--runs 3] [--folder PATH]

480 simulated sessions are a gigabyte. They are written into a temporary folder, or read from one
that `contextgauge simulate --out PATH` has written. The compiled build is measured where there is
one, and pure Python with BENCH_PURE=1. Runs alternate. Each is a process of its own, from its start
on; CPU time is that of all its processes. The outputs of `replay` must be equal.
`view` is measured until the first session is served, until everything has been read, and, started
once more, until all sessions are served; `sessions` without what a `view` has stored, and with it.
"""

import argparse
import hashlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.systems import ROOT, our_environment
from streams.cli.machine import cores
from streams.edge.files.folders import write_folder
from streams.flow.simulator import SimulationOptions, simulate

_BLOCK_BYTES = 1 << 20
_ASK_S = 0.02
_ASK_ALL_S = 0.1
"""Asking takes time of the process that is measured."""


class Run(NamedTuple):
    """What one run took, and the processor's time of all its processes."""

    elapsed_s: float
    cpu_s: float


class Started:
    """A command that runs; `end` waits for it."""

    def __init__(self, arguments: Sequence[str], state: Path) -> None:
        environment = {
            name: value
            for name, value in our_environment().items()
            if not name.startswith(("CONTEXTGAUGE_", "PYTHONDONTWRITEBYTECODE"))
        }
        environment["CONTEXTGAUGE_STATE_FOLDER"] = str(state)
        self.began_s = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streams", *arguments],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def elapsed_s(self) -> float:
        """Return the time since its start."""
        return time.perf_counter() - self.began_s

    def end(self) -> float:
        """Wait for its end; return its CPU time, other processes of it included."""
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode != 0:
            raise AssertionError(f"exit code {self.process.returncode}: {self.process.args!r}")
        return used.ru_utime + used.ru_stime


def replay(folder: Path, state: Path, processes: int) -> tuple[Run, str]:
    """Replay a folder; return what it took, and the hash of its output."""
    started = Started(["replay", "--processes", str(processes), str(folder)], state)
    digest = hashlib.sha256()
    if started.process.stdout is None:
        raise AssertionError
    while block := started.process.stdout.read(_BLOCK_BYTES):
        digest.update(block)
    cpu_s = started.end()
    return Run(started.elapsed_s(), cpu_s), digest.hexdigest()


def sessions(folder: Path, state: Path) -> tuple[Run, bytes]:
    """List the sessions of a folder; return what it took, and the list."""
    started = Started(["sessions", "--json", "--limit", "1000000", str(folder)], state)
    if started.process.stdout is None:
        raise AssertionError
    listed = started.process.stdout.read()
    cpu_s = started.end()
    return Run(started.elapsed_s(), cpu_s), listed


def view(folder: Path, state: Path, sessions: int | None) -> tuple[Run, Run, int]:
    """Start a view; return when it had a session, when all, and how many.

    `sessions` is how many there are, if it is known: then the second run ends when all are served.
    """
    started = Started(["view", "--port", "0", str(folder)], state)
    if started.process.stdout is None:
        raise AssertionError
    address = re.findall(rb"http://\S+/", started.process.stdout.readline())[0].decode()

    def ask(path: str) -> Any:  # noqa: ANN401 -- JSON
        with urllib.request.urlopen(address + path) as answer:  # noqa: S310 -- this machine
            return json.load(answer)

    while len(ask("v1/sessions?limit=1000")["sessions"]) < (sessions or 1):
        time.sleep(_ASK_S)
    first_s = started.elapsed_s()
    reading = None
    while reading is None or reading["read_bytes"] < reading["bytes"]:
        time.sleep(_ASK_ALL_S if sessions is None else _ASK_S)
        reading = ask("v1/projection")["reading"]
    all_s = started.elapsed_s()
    count = len(ask("v1/sessions?limit=1000")["sessions"])
    started.process.send_signal(signal.SIGINT)
    cpu_s = started.end()
    return Run(first_s, cpu_s), Run(all_s, cpu_s), count


def measure(folder: Path, runs: int) -> dict[str, list[Run]]:
    """Return the runs of each case."""
    figures: dict[str, list[Run]] = {}
    outputs: set[str] = set()
    for _ in range(runs):
        for processes in dict.fromkeys((1, cores())):
            with tempfile.TemporaryDirectory() as state:
                run, output = replay(folder, Path(state), processes)
            figures.setdefault(f"replay, {processes} processes", []).append(run)
            outputs.add(output)
        with tempfile.TemporaryDirectory() as state:
            first, everything, count = view(folder, Path(state), None)
            again, _, _ = view(folder, Path(state), count)
            stored, known = sessions(folder, Path(state))
        figures.setdefault("view, first session", []).append(first)
        figures.setdefault("view, everything read", []).append(everything)
        figures.setdefault("view, second start", []).append(again)
        with tempfile.TemporaryDirectory() as state:
            derived, all_known = sessions(folder, Path(state))
        figures.setdefault("sessions, nothing stored", []).append(derived)
        figures.setdefault("sessions, after view", []).append(stored)
        if known != all_known:
            raise AssertionError("the lists of sessions differ")
    if len(outputs) != 1:
        raise AssertionError("the outputs of replay differ")
    return figures


def main() -> None:
    """Print the medians, with the lowest and the highest."""
    parser = argparse.ArgumentParser(prog="python -m bench.reading")
    parser.add_argument("--sessions", type=int, default=480)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = given.folder
        if folder is None:
            folder = Path(name, "projects")
            options = SimulationOptions(sessions=given.sessions, providers=("claude",))
            write_folder(folder, ((each.file, each.value) for each in simulate(options)))
        figures = measure(folder, given.runs)
    print("| | elapsed, s (lowest to highest) | CPU, s (lowest to highest) |")
    print("|---|---|---|")
    for case, runs in figures.items():
        columns = [
            f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
            for values in zip(*runs, strict=True)
        ]
        print(f"| {case} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main()
