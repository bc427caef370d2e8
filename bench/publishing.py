"""Publishing from one process: messages that the broker has acknowledged, per second.

    python -m bench.publishing [--messages 100000] [--runs 5]

Starts a Kafka of its own. Each run opens a `Publisher` that waits for room, as an agent would,
hands it the messages of the workload as lines, and closes it: what is measured ends with the last
acknowledgement. Prints each run, the medians, and as its last line one object of JSON.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import uvloop

from bench import workload
from contextgauge.kafka.options import KafkaOptions
from contextgauge.publisher import Publisher
from schemas.topics import AGENT_MESSAGES
from streams.edge.kafka.log import KafkaLog
from streams.edge.local_stack.stack import LocalStack


class Run(NamedTuple):
    """Messages per second, and microseconds of CPU time per message."""

    messages_per_s: float
    cpu_us: float


async def _publish(bootstrap: str, lines: Sequence[bytes]) -> Run:
    began, cpu = time.perf_counter(), time.process_time()
    async with Publisher(when_full="wait", strict=True, bootstrap_servers=bootstrap) as publisher:
        for line in lines:
            await publisher.publish(line)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    if publisher.stats.sent != len(lines):
        raise AssertionError(f"{publisher.stats.sent} of {len(lines)} messages were acknowledged")
    return Run(len(lines) / seconds, cpu / len(lines) * 1e6)


async def _measure(bootstrap: str, lines: Sequence[bytes], runs: int) -> list[Run]:
    log = KafkaLog(KafkaOptions(bootstrap))
    await log.start()
    # The workload's times lie in the past.
    await log.create_topics([replace(AGENT_MESSAGES, retention_ms=-1)], workload.PARTITIONS)
    await log.stop()
    await _publish(bootstrap, lines)  # warms the broker up
    return [await _publish(bootstrap, lines) for _ in range(runs)]


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench.publishing")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    stream = workload.read(workload.cached(given.messages))
    lines = [
        message.value
        for message in islice(stream, given.messages)
        if b'"session_id"' in message.value
    ]
    with tempfile.TemporaryDirectory() as folder:
        stack = LocalStack(Path(folder))
        try:
            bootstrap = stack.start(["kafka"])["kafka"].address
            runs = uvloop.run(_measure(bootstrap, lines, given.runs))
        finally:
            stack.stop()
    for run in runs:
        print(
            f"{run.messages_per_s:10,.0f} messages/s  {run.cpu_us:6.2f} µs of CPU time per message"
        )
    rates, costs = [run.messages_per_s for run in runs], [run.cpu_us for run in runs]
    rate, cost = statistics.median(rates), statistics.median(costs)
    print(f"median {rate:,.0f} ({min(rates):,.0f} to {max(rates):,.0f}) messages/s, {cost:.2f} µs")
    print(
        json.dumps(
            {
                "messages": len(lines),
                "messages_per_s": round(rate),
                "lowest": round(min(rates)),
                "highest": round(max(rates)),
                "cpu_us": round(cost, 2),
            }
        )
    )


if __name__ == "__main__":
    main()
