"""`make bench`: the same derivation on contextgauge, Quix Streams and Kafka Streams.

    python -m bench.run [--quick]

One broker, one workload, every system in its turn and again, each run with topics of its own.
The records of the systems are compared one by one. The last line is one JSON object.
"""

import argparse
import asyncio
import json
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import freshness, growth, plot, process, workload
from bench.compare import compare_topics
from bench.measure import Broker, Measured, counted, measure, stack_in
from bench.systems import (
    OUR_NAME,
    OURS,
    SOURCE,
    SYSTEMS,
    Job,
    System,
    build_java,
    measured_build,
)
from streams.edge.local_stack.stack import LocalStack

RESULTS = workload.CACHE / "results"


class Size(NamedTuple):
    """How much is run: messages, sessions open at a time, and runs of each system.

    Where a limit is set, no round begins that would not be over by then; one is always run.
    """

    messages: int
    warm_up: int
    """Messages at the beginning of each run that do not count: Java's compiler takes some."""
    sessions: int
    runs: int
    fresh_s: float
    """Seconds of steady load for freshness."""
    growth_rounds: int
    limit_s: float | None = None


FULL = Size(1_000_000, 200_000, workload.SESSIONS, 5, 30.0, 3)
QUICK = Size(200_000, 100_000, 300, 3, 10.0, 1, 170.0)
SOURCE_CONFIG = {"retention.ms": "-1", "max.message.bytes": str(10 << 20)}

Runs = Mapping[str, Sequence[Measured]]


def say(text: str) -> None:
    """Tell the person at the screen how far it is."""
    print(text, flush=True)


def chosen(names: Sequence[str]) -> list[System]:
    """Return the systems that run here: all, or those named, without what is missing."""
    systems = []
    for system in SYSTEMS:
        if names and system.name not in names and system.name != OUR_NAME:
            continue
        missing = system.missing()
        if missing is None:
            systems.append(system)
        else:
            say(f"without {system.title}: {missing}")
    return systems


async def fill(broker: Broker, size: Size) -> None:
    """Publish the workload."""
    path = workload.cached(size.messages, size.sessions)
    await broker.create(SOURCE, SOURCE_CONFIG)
    began = time.monotonic()
    counts = await workload.publish(broker.bootstrap, SOURCE, workload.read(path))
    seconds = time.monotonic() - began
    say(f"published {sum(counts):,} messages in {seconds:.0f} s; by partition: {counts}")


@asynccontextmanager
async def filled_broker(stack: LocalStack, size: Size) -> AsyncIterator[Broker]:
    """Run a Kafka that holds the workload, and stop the stack in the end."""
    try:
        service = stack.start(["kafka"])["kafka"]
        broker = Broker(service.address, service.process.pid)
        await broker.start()
        await fill(broker, size)
        yield broker
        await broker.stop()
    finally:
        stack.stop()


async def one(
    broker: Broker, system: System, number: int, folder: Path, job: Job, size: Size
) -> Measured:
    """Run a system once, and tell what it did."""
    place = folder / f"{system.name}-{number}"
    place.mkdir()
    measured_job = job._replace(run=f"{system.name}-{number}-{folder.name}", folder=place)
    done = await measure(broker, system, measured_job, size.messages, size.warm_up)
    shutil.rmtree(place, ignore_errors=True)
    say(
        f"  {system.title:42} {done.messages_per_s:10,.0f} messages/s "
        f"{done.cpu_s_per_million:7.1f} CPU s per million {done.peak_mib:7.0f} MiB "
        f"(load {done.load})"
    )
    return done


async def first_round(
    broker: Broker, systems: Sequence[System], folder: Path, job: Job, size: Size
) -> tuple[Job, Runs, bool]:
    """Run each once, uncounted: warms the machine up, and gives the records to compare."""
    is_equal = True
    runs: dict[str, list[Measured]] = {}
    for system in systems:
        runs[system.name] = [await one(broker, system, 0, folder, job, size)]
        if system.name == OUR_NAME:
            records, mean_bytes = await counted(broker.bootstrap, OURS)
            job = job._replace(
                records_per_message=records / size.messages, record_bytes=round(mean_bytes)
            )
            say(f"  {records:,} records of {mean_bytes:.0f} bytes on average")
        elif system.is_equal:
            run = f"{system.name}-0-{folder.name}"
            target = system.command(job._replace(run=run)).target
            outcome = await compare_topics(broker.bootstrap, OURS, target)
            say("  " + outcome.summary(OUR_NAME, system.title))
            is_equal = is_equal and not outcome.differences
        if system.name != OUR_NAME:
            await broker.delete(await broker.left_over(f"-{folder.name}"))
    return job, runs, is_equal


async def rounds(
    broker: Broker, systems: Sequence[System], folder: Path, size: Size, began: float
) -> tuple[Runs, bool]:
    """Run all systems in turn, as often as the size says."""
    job = Job(broker.bootstrap, "", folder)
    say("warming up, and comparing the records:")
    job, _, is_equal = await first_round(broker, systems, folder, job, size)
    runs: defaultdict[str, list[Measured]] = defaultdict(list)
    longest = 0.0
    for number in range(1, size.runs + 1):
        before = time.monotonic()
        if runs and size.limit_s is not None and before - began + longest > size.limit_s:
            say(f"no time left for round {number}: the machine is too busy, or too slow")
            break
        say(f"round {number} of {size.runs}:")
        # Each round begins with another system: none always runs after the same one.
        turn = number % len(systems)
        for system in (*systems[turn:], *systems[:turn]):
            done = await one(broker, system, number, folder, job, size)
            runs[system.name].append(done)
            await broker.delete(await broker.left_over(f"-{folder.name}"))
        longest = max(longest, time.monotonic() - before)
    return runs, is_equal


def median(runs: Sequence[Measured], figure: str) -> float:
    """Return the median of a figure."""
    return float(statistics.median(getattr(run, figure) for run in runs))


def table(runs: Runs) -> str:
    """Return the figures for people: medians, and the lowest and highest rate."""
    head = f"{'system':42} {'messages/s':>11} {'lowest':>9} {'highest':>9} {'runs':>5}"
    lines = [f"{head} {'CPU s/M':>8} {'broker':>7} {'MiB':>6} {'start s':>8}"]
    for system in SYSTEMS:
        done = runs.get(system.name)
        if not done:
            continue
        rates = [run.messages_per_s for run in done]
        lines.append(
            f"{system.title:42} {statistics.median(rates):11,.0f} {min(rates):9,.0f} "
            f"{max(rates):9,.0f} {len(done):5} {median(done, 'cpu_s_per_million'):8.1f} "
            f"{median(done, 'broker_cpu_s_per_million'):7.1f} {median(done, 'peak_mib'):6.0f} "
            f"{median(done, 'start_s'):8.1f}"
        )
    return "\n".join(lines)


def verdict(runs: Runs, freshness_ms: float, cost_growth: float) -> dict[str, Any]:
    """Return what is measured against the bars: ratios are ours divided by theirs."""

    def ratio(name: str, figure: str) -> float | None:
        if name not in runs:
            return None
        return round(median(runs[OUR_NAME], figure) / median(runs[name], figure), 3)

    return {
        "ratios": {
            "quix_eos": ratio("quix_eos", "messages_per_s"),
            "kafka_streams_eos_v2": ratio("kafka_streams_eos_v2", "messages_per_s"),
            "raw_aiokafka": ratio("raw_aiokafka", "messages_per_s"),
            "cpu_vs_quix_eos": ratio("quix_eos", "cpu_s_per_million"),
        },
        "freshness_p99_ms_at_half_load": freshness_ms,
        "cost_growth_1k_to_1m_sessions": cost_growth,
    }


async def at_half_load(stack: LocalStack, folder: Path, size: Size) -> float:
    """Measure freshness at half load, p99 in ms, on the broker that has just been at work."""
    say("\nfrom publishing to readable in Redis:")
    loads = freshness.Loads((), (0.5,), size.fresh_s, size.messages // 5, freshness.USED_BROKER_S)
    steps = await freshness.on(stack, folder, loads)
    return steps[0].p99_ms


async def bench(size: Size, names: Sequence[str]) -> int:
    """Run the whole comparison; return the exit code."""
    began = time.monotonic()
    systems = chosen(names)
    if any(system.name == "kafka_streams_eos_v2" for system in systems):
        build_java()
    say(
        f"{size.messages:,} messages, {size.sessions:,} sessions at a time, {size.runs} runs each; "
        f"load of the machine {process.load()}\n{measured_build()}"
    )
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        stack = stack_in(folder)
        async with filled_broker(stack, size) as broker:
            runs, is_equal = await rounds(broker, systems, folder, size, began)
            fresh_ms = await at_half_load(stack, folder, size)
    RESULTS.mkdir(parents=True, exist_ok=True)
    picture = RESULTS / "throughput.svg"
    picture.write_text(plot.throughput({one.title: runs.get(one.name, []) for one in SYSTEMS}))
    listed = {system: [run._asdict() for run in done] for system, done in runs.items()}
    (RESULTS / "runs.json").write_text(json.dumps(listed, indent=1))
    say("")
    say(table(runs))
    say(f"\n{'all records are equal' if is_equal else 'THE RECORDS DIFFER: see above'}")
    say(f"plot: {picture}; every run: {RESULTS / 'runs.json'}")
    say("\ncost per message as sessions grow:")
    cost_growth = await asyncio.to_thread(growth.measure, size.growth_rounds)
    print(json.dumps(verdict(runs, fresh_ms, cost_growth)))
    return 0 if is_equal else 1


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(prog="python -m bench.run")
    parser.add_argument("--quick", action="store_true", help="at most 5 minutes")
    parser.add_argument("--messages", type=int, help="another number of messages")
    parser.add_argument("--sessions", type=int, help="sessions open at a time")
    parser.add_argument("--runs", type=int, help="runs of each system")
    parser.add_argument("--only", nargs="*", default=[], help="these systems, and ours")
    given = parser.parse_args()
    # On SIGTERM too, it stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    size = QUICK if given.quick else FULL
    messages = given.messages or size.messages
    size = size._replace(
        messages=messages,
        warm_up=min(size.warm_up, messages // 2),
        sessions=given.sessions or size.sessions,
        runs=given.runs or size.runs,
    )
    sys.exit(asyncio.run(bench(size, given.only)))


if __name__ == "__main__":
    main()
