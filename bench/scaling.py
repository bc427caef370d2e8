"""How the deriver scales with processes of one command, and what a cluster would carry.

    python -m bench.scaling [--messages 1000000] [--runs 3] [--processes 1 2]

One broker, one workload; the numbers of processes take turns. Deriver and broker share this
machine, so the CPU seconds per million of both say how far it can go here: where they use all
cores, more processes bring nothing. What one core of each carries is told too: by that a cluster
is calculated. Its brokers have more to do than this one, which keeps no copies.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import process, workload
from bench.measure import Measured
from bench.run import FULL, Size, filled_broker, median, one, say, stack_in
from bench.systems import OUR_NAME, Job, System, measured_build

_WARM_UP_PART = 5
"""A fifth of the messages warms up, as in the comparison."""


def system(processes: int) -> System:
    """Return the deriver with so many processes; one is the command without the option."""
    options = () if processes == 1 else ("--processes", str(processes))
    word = "process" if processes == 1 else "processes"
    return System(OUR_NAME, f"contextgauge, {processes} {word}", is_equal=True, options=options)


async def measure(size: Size, counts: Sequence[int]) -> Mapping[int, Sequence[Measured]]:
    """Return the runs of each number of processes."""
    found: defaultdict[int, list[Measured]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        async with filled_broker(stack_in(folder), size) as broker:
            job, number = Job(broker.bootstrap, "", folder), 0
            say("warming up:")
            await one(broker, system(counts[0]), number, folder, job, size)
            for turn in range(size.runs):
                for count in counts if turn % 2 == 0 else reversed(counts):
                    number += 1
                    found[count].append(await one(broker, system(count), number, folder, job, size))
    return found


def told(runs: Sequence[Measured]) -> dict[str, Any]:
    """Return the figures of one number of processes; `cores_busy` is of deriver and broker."""
    rate = median(runs, "messages_per_s")
    own, broker = median(runs, "cpu_s_per_million"), median(runs, "broker_cpu_s_per_million")
    return {
        "messages_per_s": round(rate),
        "lowest": round(min(run.messages_per_s for run in runs)),
        "highest": round(max(run.messages_per_s for run in runs)),
        "cpu_s_per_million": round(own, 1),
        "broker_cpu_s_per_million": round(broker, 1),
        "cores_busy": round(rate * (own + broker) / 1e6, 2),
        "peak_mib": round(median(runs, "peak_mib")),
        "load_before": max(run.load for run in runs),
    }


def main() -> None:
    """Measure and tell; the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.scaling")
    parser.add_argument("--messages", type=int, default=FULL.messages)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    given = parser.parse_args()
    # Told to stop, it stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    size = FULL._replace(
        messages=given.messages, warm_up=given.messages // _WARM_UP_PART, runs=given.runs
    )
    say(
        f"{size.messages:,} messages, {workload.PARTITIONS} partitions, {os.cpu_count()} cores, "
        f"load {process.load()}\n{measured_build()}"
    )
    found = {
        count: told(runs) for count, runs in asyncio.run(measure(size, given.processes)).items()
    }
    one_process = found[given.processes[0]]
    say("")
    for count, figures in found.items():
        ratio = figures["messages_per_s"] / one_process["messages_per_s"]
        say(
            f"{count} processes: {figures['messages_per_s']:9,} messages/s ({ratio:.2f} times), "
            f"{figures['cpu_s_per_million']:.1f} CPU s per million, broker "
            f"{figures['broker_cpu_s_per_million']:.1f}, {figures['cores_busy']} cores busy"
        )
    most = found[given.processes[-1]]
    say(
        f"one core carries {1e6 / most['cpu_s_per_million']:,.0f} messages/s of deriving, or "
        f"{1e6 / most['broker_cpu_s_per_million']:,.0f} of the broker's work for it"
    )
    print(json.dumps({str(count): figures for count, figures in found.items()}))


if __name__ == "__main__":
    main()
