"""What a status line costs: process time (user and system) of the whole command, start to end.

    python -m bench.statusline [--runs 51]

Each run is a process of its own, as Claude Code starts it, with the kernel's figures for it. A
transcript is measured at the first prompt that meets it, and at prompts after one more response,
once all of it has been read. For comparison: an interpreter that does nothing, and the start of the
other commands.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.systems import ROOT
from schemas.topics import MIB
from streams.edge.local_stack.stack import LocalStack
from streams.flow.simulator import SimulationOptions, simulate
from tests.cli.views_kit import records_of, write_views

_COMMAND = (str(Path(sys.executable).with_name("contextgauge")), "statusline")
_NOWHERE = "redis://127.0.0.1:1/0"
_SIZES = (1, 30)
"""MiB of transcripts: of a day, and of a session that was never cleared."""


class Cost(NamedTuple):
    """Milliseconds of a case: medians and the 95th of a hundred of process time, and of time."""

    case: str
    process_ms: float
    process_p95_ms: float
    elapsed_ms: float
    line: str


def measure(
    case: str,
    command: Sequence[str],
    given: bytes,
    environment: Mapping[str, str],
    runs: int,
    before: Callable[[], object] = lambda: None,
) -> Cost:
    """Run a command so often and return what it cost; `before` each run it is prepared."""
    process: list[float] = []
    elapsed: list[float] = []
    line = b""
    for _ in range(runs):
        before()
        began = time.perf_counter()
        with subprocess.Popen(
            command, cwd=ROOT, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as started:
            if started.stdin is None or started.stdout is None:
                raise AssertionError(case)
            started.stdin.write(given)
            started.stdin.close()
            line = started.stdout.read()
            _, status, used = os.wait4(started.pid, 0)
            started.returncode = os.waitstatus_to_exitcode(status)
        elapsed.append((time.perf_counter() - began) * 1_000)
        process.append((used.ru_utime + used.ru_stime) * 1_000)
    return Cost(
        case,
        statistics.median(process),
        statistics.quantiles(process, n=20)[-1],
        statistics.median(elapsed),
        line.decode().strip(),
    )


def _transcript(folder: Path, size_bytes: int) -> tuple[Path, str, list[bytes]]:
    """Write a transcript of a size by repeating a session's turns under new message ids."""
    lines: list[bytes] = []
    options = SimulationOptions(sessions=3, turns=200, providers=("claude",))
    by_file: dict[str, list[bytes]] = {}
    for each in simulate(options):
        if b'"sessionId"' in each.value and "agent-" not in each.file:
            by_file.setdefault(each.file, []).append(each.value)
    found = max(by_file.values(), key=len)
    session_id = str(json.loads(found[-1])["sessionId"])
    size = number = 0
    while size < size_bytes:
        number += 1
        for line in found:
            again = line.replace(b'"msg_', b'"msg_%d_' % number)
            again = again.replace(b'"uuid":"', b'"uuid":"%d-' % number)
            lines.append(again.rstrip(b"\n"))
            size += len(again) + 1
    path = folder / f"{size_bytes // MIB}.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path, session_id, found


def _of_transcript(
    path: Path, given: bytes, environment: Mapping[str, str], state: Path, runs: int
) -> list[Cost]:
    """Measure the first prompt of a transcript, and those that read on."""
    name = f"transcript, {path.stat().st_size / MIB:.0f} MiB"
    own = {**environment, "CONTEXTGAUGE_STATE_FOLDER": str(state)}

    def forget() -> None:
        shutil.rmtree(state, ignore_errors=True)

    number = 0
    last = path.read_bytes().splitlines()[-1]

    def respond() -> None:
        nonlocal number
        number += 1
        again = last.replace(b'"msg_', b'"msg_on_%d_' % number)
        with path.open("ab") as file:
            file.write(again.replace(b'"uuid":"', b'"uuid":"on-%d-' % number) + b"\n")

    first = measure(f"{name}, first prompt", _COMMAND, given, own, runs, forget)
    measure(name, _COMMAND, given, own, 2 + path.stat().st_size // MIB)
    return [first, measure(f"{name}, read on", _COMMAND, given, own, runs, respond)]


def main() -> None:
    """Measure all cases and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=51)
    runs = parser.parse_args().runs
    skipped = ("CONTEXTGAUGE_", "PYTHONDONTWRITEBYTECODE")
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(skipped)  # users' installations have bytecode
    }
    plain |= {"CONTEXTGAUGE_STATE_FOLDER": os.devnull}
    plain |= {"NO_COLOR": "1", "COLUMNS": "120", "CONTEXTGAUGE_REDIS_URL": _NOWHERE}
    costs = [
        measure("python -c pass", [sys.executable, "-c", "pass"], b"", plain, runs),
        measure("no figures at all", _COMMAND, b"{}", plain, runs),
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stack = LocalStack(folder / "stack")
        try:
            address = stack.start(["redis"])["redis"].address
            for size in _SIZES:
                path, session_id, lines = _transcript(folder, size * MIB)
                given = {"session_id": session_id, "transcript_path": str(path)}
                text = json.dumps(given).encode()
                costs += _of_transcript(path, text, plain, folder / "state", runs)
            records = records_of((line, session_id) for line in lines)
            asyncio.run(write_views(address, "cg", records))
            stored = plain | {"CONTEXTGAUGE_REDIS_URL": address}
            only_id = json.dumps({"session_id": session_id}).encode()
            costs.append(measure("Redis, a session elsewhere", _COMMAND, only_id, stored, runs))
            whole = [sys.executable, "-c", "from streams.cli.app import main; main()"]
            costs.append(measure("as other commands start", [*whole, "--version"], b"", plain, 5))
        finally:
            stack.stop()
    print("| case | process time, ms | 95 of 100 under | elapsed, ms | line |")
    print("|---|---|---|---|---|")
    for cost in costs:
        figures = f"{cost.process_ms:.0f} | {cost.process_p95_ms:.0f} | {cost.elapsed_ms:.0f}"
        print(f"| {cost.case} | {figures} | `{cost.line}` |")


if __name__ == "__main__":
    main()
