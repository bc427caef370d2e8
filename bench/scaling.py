"""How the deriver scales with processes of one command, and what a cluster would carry.

    python -m bench.scaling [--messages 1000000] [--runs 3] [--processes 1 2] [--peer]

One broker, one workload; the numbers of processes take turns, with `--peer` those of stream threads
of a Kafka Streams process too: what the machine as a whole carries with each. Deriver and broker
share this machine, so the CPU seconds per million of both say how far it can go here: where they
use all cores, more processes bring nothing. What one core of each carries is reported too: by that
a cluster is calculated. Its brokers have more to do than this one, which keeps no copies.
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
from bench.measure import Measured, stack_in
from bench.run import FULL, Size, filled_broker, median, one, say
from bench.systems import OUR_NAME, Job, System, measured_build

PEER = "kafka_streams_eos_v2"

_WARM_UP_PART = 5
"""A fifth of the messages warms up, as in the comparison."""


Row = tuple[str, int]
"""A system's name, and how many processes or threads it has."""


def system(row: Row) -> System:
    """Return a system with so many processes or threads; one is as in the comparison."""
    name, count = row
    if name == OUR_NAME:
        options = () if count == 1 else ("--processes", str(count))
        word = "process" if count == 1 else "processes"
        return System(name, f"contextgauge, {count} {word}", is_equal=True, options=options)
    word = "thread" if count == 1 else "threads"
    title = f"Kafka Streams, {count} {word}"
    return System(name, title, is_equal=True, options=(f"-Dbench.threads={count}",))


async def measure(size: Size, rows: Sequence[Row]) -> Mapping[Row, Sequence[Measured]]:
    """Return the runs of each row."""
    by_row: defaultdict[Row, list[Measured]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        async with filled_broker(stack_in(folder), size) as broker:
            job, number = Job(broker.bootstrap, "", folder), 0
            say("warming up:")
            for first in dict.fromkeys(name for name, _ in rows):
                number += 1
                await one(broker, system((first, 1)), number, folder, job, size)
                await broker.delete(await broker.left_over(f"-{folder.name}"))
            for turn in range(size.runs):
                for row in rows if turn % 2 == 0 else reversed(rows):
                    number += 1
                    by_row[row].append(await one(broker, system(row), number, folder, job, size))
                    await broker.delete(await broker.left_over(f"-{folder.name}"))
    return by_row


def figures_of(runs: Sequence[Measured]) -> dict[str, Any]:
    """Return the figures of a row; `cores_busy` is of its processes and the broker."""
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
    parser.add_argument("--peer", action="store_true", help="Kafka Streams, as many threads")
    given = parser.parse_args()
    # On SIGTERM too, it stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    size = FULL._replace(
        messages=given.messages, warm_up=given.messages // _WARM_UP_PART, runs=given.runs
    )
    say(
        f"{size.messages:,} messages, {workload.PARTITIONS} partitions, {os.cpu_count()} cores, "
        f"load {process.load()}\n{measured_build()}"
    )
    names = (OUR_NAME, PEER) if given.peer else (OUR_NAME,)
    rows = [(name, count) for name in names for count in given.processes]
    found = {row: figures_of(runs) for row, runs in asyncio.run(measure(size, rows)).items()}
    say("")
    for row, figures in found.items():
        ratio = figures["messages_per_s"] / found[OUR_NAME, given.processes[0]]["messages_per_s"]
        say(
            f"{system(row).title:28} {figures['messages_per_s']:9,} messages/s "
            f"({ratio:.2f} times), "
            f"{figures['cpu_s_per_million']:.1f} CPU s per million, broker "
            f"{figures['broker_cpu_s_per_million']:.1f}, {figures['cores_busy']} cores busy"
        )
    most = found[OUR_NAME, given.processes[-1]]
    say(
        f"one core carries {1e6 / most['cpu_s_per_million']:,.0f} messages/s of deriving, or "
        f"{1e6 / most['broker_cpu_s_per_million']:,.0f} of the broker's work for it"
    )
    by_row = {name: {str(count): found[name, count] for count in given.processes} for name in names}
    print(json.dumps(by_row))


if __name__ == "__main__":
    main()
