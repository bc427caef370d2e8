"""What `contextgauge ingest` carries: requests and messages a second, and how long they wait.

    python -m bench.ingesting [--seconds 10] [--runs 3]

One server over one Kafka, both started here. Clients post over kept connections, each again once it
is answered. In the last case the broker is killed half-way and started again; clients send again
what was not accepted. Afterwards the topic is read: each message that was answered with 202 must be
there. Clients, server and broker share this machine. The last line is one object of JSON.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import aiohttp
import uvloop

from bench.process import load
from bench.systems import ROOT
from contextgauge import json_codec
from contextgauge.kafka.options import KafkaOptions
from schemas.topics import AGENT_MESSAGES
from streams.edge.kafka.log import KafkaLog
from streams.edge.local_stack.stack import LocalStack
from streams.edge.telemetry.server import listening, port_of

PARTITIONS: Final = 4
_ACCEPTED: Final = 202
_PAUSE_S: Final = 0.1
_READ: Final = 10_000


Result: TypeAlias = dict[str, Any]


class Case(NamedTuple):
    """So many clients, with so many messages in each request."""

    name: str
    clients: int
    messages: int
    kills: bool = False


CASES: Final = (
    Case("1 client, 1 message", 1, 1),
    Case("32 clients, 1 message", 32, 1),
    Case("8 clients, 1 000 messages", 8, 1_000),
    Case("32 clients, 1 message, broker killed", 32, 1, kills=True),
)


@dataclass
class Posted:
    """What clients were answered; a wait is from a request's first try until it is accepted."""

    accepted: set[str] = field(default_factory=set)
    waits_s: list[float] = field(default_factory=list)
    refused: int = 0


async def _client(url: str, name: str, case: Case, until_s: float, posted: Posted) -> None:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as session:
        number = 0
        while time.monotonic() < until_s:
            ids = [f"{name}-{number + each}" for each in range(case.messages)]
            body = json_codec.dumps([_message(name, each) for each in ids])
            headers = {"content-type": "application/json", "idempotency-key": ids[0]}
            status, began_s = 0, time.monotonic()
            while status != _ACCEPTED:
                try:
                    async with session.post(url, data=body, headers=headers) as answer:
                        status = answer.status
                        await answer.read()
                except aiohttp.ClientError:
                    status = 0
                if status != _ACCEPTED:
                    posted.refused += 1
                    await asyncio.sleep(_PAUSE_S)
            posted.waits_s.append(time.monotonic() - began_s)
            posted.accepted.update(ids)
            number += case.messages


def _message(session: str, name: str) -> dict[str, Any]:
    usage = {"input_tokens": 12_000, "output_tokens": 300}
    message = {"role": "assistant", "model": "claude-sonnet-4-5", "usage": usage}
    return {"type": "assistant", "session_id": session, "uuid": name, "message": message}


async def _run(url: str, case: Case, run: int, seconds: float, stack: LocalStack) -> Posted:
    posted, until_s = Posted(), time.monotonic() + seconds
    prefix = f"{CASES.index(case)}-{run}"
    clients = [
        _client(url, f"{prefix}-{number}", case, until_s, posted) for number in range(case.clients)
    ]
    running = asyncio.gather(*clients)
    if case.kills:
        await asyncio.sleep(seconds / 2)
        stack.kill("kafka")
        await asyncio.to_thread(stack.start, ["kafka"])
    await running
    return posted


async def _in_topic(bootstrap: str) -> set[str]:
    reader = KafkaLog(KafkaOptions(bootstrap)).reader(AGENT_MESSAGES.name, range(PARTITIONS))
    await reader.start()
    uuids: set[str] = set()
    for partition in range(PARTITIONS):
        position, end = await reader.bounds(partition)
        reader.seek(partition, position)
        while position < end:
            batch = await reader.poll(partition, _READ, 1)
            uuids.update(json_codec.loads(each.value or b"")["uuid"] for each in batch.records)
            position = batch.position
    await reader.stop()
    return uuids


async def _measure(
    url: str, bootstrap: str, seconds: float, runs: int, stack: LocalStack
) -> Result:
    await _run(url, CASES[1], -1, 2, stack)  # warms up
    results, lost = [], 0
    for case in CASES:
        every = [await _run(url, case, run, seconds, stack) for run in range(runs)]
        written = await _in_topic(bootstrap)
        lost += sum(len(each.accepted - written) for each in every)
        rates = [len(each.accepted) / seconds for each in every]
        halves = [statistics.median(each.waits_s) * 1_000 for each in every]
        slow = [statistics.quantiles(each.waits_s, n=100)[98] * 1_000 for each in every]
        results.append(
            {
                "case": case.name,
                "messages_per_s": [round(each) for each in sorted(rates)],
                "p50_ms": [round(each, 1) for each in sorted(halves)],
                "p99_ms": [round(each, 1) for each in sorted(slow)],
                "sent_again": sum(each.refused for each in every),
            }
        )
        print(*(f"{name}: {value}" for name, value in results[-1].items()), sep="  ")
    return {"cases": results, "lost": lost, "load": load()}


async def _all(given: argparse.Namespace, stack: LocalStack) -> Result:
    bootstrap = stack.start(["kafka"])["kafka"].address
    log = KafkaLog(KafkaOptions(bootstrap))
    await log.start()
    await log.create_topics([AGENT_MESSAGES], PARTITIONS)
    await log.stop()
    with listening("127.0.0.1", 0) as listener:
        port = port_of(listener)
    settings = {"BOOTSTRAP_SERVERS": bootstrap, "INGEST_PORT": str(port), "LOG_LEVEL": "error"}
    environment = os.environ | {f"CONTEXTGAUGE_{name}": each for name, each in settings.items()}
    server = subprocess.Popen(  # noqa: ASYNC220 -- at the start
        [sys.executable, "-m", "streams", "ingest"], cwd=ROOT, env=environment
    )
    try:
        url = f"http://127.0.0.1:{port}"
        async with aiohttp.ClientSession() as session:
            while True:
                try:
                    async with session.get(f"{url}/readyz") as answer:
                        if answer.status == 200:  # noqa: PLR2004 -- HTTP's own
                            break
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(_PAUSE_S)
        return await _measure(f"{url}/v1/messages", bootstrap, given.seconds, given.runs, stack)
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench.ingesting")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stack = LocalStack(Path(folder))
        try:
            result = uvloop.run(_all(given, stack))
        finally:
            stack.stop()
    print(json.dumps(result))
    if result["lost"]:
        sys.exit(f"{result['lost']} messages that were accepted are not in the topic")


if __name__ == "__main__":
    main()
