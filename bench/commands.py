"""The compaction service: from a request to its plan, and commands per second, without a model.

    .venv/bin/python -m bench.commands [COMMANDS]

Starts a Kafka, a Redis, `contextgauge conversations` and `contextgauge control` of its own. Times
are those of the records in Kafka, so what is measured includes reading and transactions.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

from contextgauge.clock import SystemClock
from contextgauge.json_codec import dumps
from contextgauge.kafka.options import KafkaOptions
from contextgauge.partitioner import key_bytes, partition_of
from schemas.commands import CommandEntry, CommandFinished, CommandPlanned, CompactRequested
from schemas.topics import AGENT_MESSAGES, CONTEXT_COMMANDS, TOPICS
from streams.codec.commands import read_entry, write_entry
from streams.edge.kafka.log import KafkaLog
from streams.edge.local_stack.stack import LocalStack
from streams.flow.common.ranges import read_range
from streams.ports import NewRecord, started
from streams.settings import load_settings

PARTITIONS = 4
TURNS = 12
ONE_BY_ONE = 20
FILE = '[conversations]\nsessions = ["*"]\n\n[[sessions]]\nsessions = ["*"]\n'
PATIENCE_S = 120.0

Times = dict[str, dict[str, int]]


class Bench:
    """The topics, and what was read from them."""

    def __init__(self, log: KafkaLog) -> None:
        self._log = log

    async def say(self, session: str) -> None:
        """Publish a conversation that is worth compacting."""
        records = []
        for number in range(TURNS):
            for role in ("user", "assistant"):
                text = f"{role} {number} " + "word " * 300
                content = text if role == "user" else [{"type": "text", "text": text}]
                line = {
                    "type": role,
                    "uuid": f"{session}-{role}-{number}",
                    "session_id": session,
                    "message": {"role": role, "content": content},
                }
                records.append(_record(AGENT_MESSAGES.name, session, dumps(line)))
        await self._send(records)

    async def request(self, sessions: Sequence[str]) -> None:
        """Request a compaction of each session."""
        records = []
        for session in sessions:
            data = CompactRequested(
                session_id=session, command_id=session, trigger="manual", requested_by="bench"
            )
            entry = CommandEntry(f"request of {session}", SystemClock().now_ms(), data)
            headers, value = write_entry(entry)
            records.append(_record(CONTEXT_COMMANDS.name, session, value)._replace(headers=headers))
        await self._send(records)

    async def _send(self, records: Sequence[NewRecord]) -> None:
        async with started(self._log.producer()) as producer:
            for record in records:
                await producer.send(record)
            await producer.flush()

    async def times(self) -> Times:
        """Return by command when each kind of entry was appended first, milliseconds."""
        found: Times = {}
        for number in range(PARTITIONS):
            async with started(self._log.reader(CONTEXT_COMMANDS.name, [number])) as reader:
                first, end = await reader.bounds(number)
                async for batch in read_range(reader, SystemClock(), number, first, end):
                    for record in batch.records:
                        data = read_entry(record.headers, record.value or b"").data
                        if isinstance(data, CompactRequested | CommandPlanned | CommandFinished):
                            times = found.setdefault(data.command_id, {})
                            times.setdefault(data.kind, record.timestamp_ms)
        return found

    async def finished(self, sessions: Sequence[str]) -> Times:
        """Wait for the outcomes of all, and return their times."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                times = await self.times()
                if all(CommandFinished.kind in times.get(each, {}) for each in sessions):
                    return {each: times[each] for each in sessions}
                await asyncio.sleep(0.1)


def _record(topic: str, session: str, value: bytes) -> NewRecord:
    return NewRecord(topic, partition_of(session, PARTITIONS), key_bytes(session), value)


async def measure(bootstrap: str, commands: int) -> None:
    """Print both figures."""
    log = KafkaLog(KafkaOptions(bootstrap))
    await log.start()
    bench = Bench(log)
    one_by_one = [f"one-{each}" for each in range(ONE_BY_ONE)]
    at_once = [f"all-{each}" for each in range(commands)]
    for session in ("first", *one_by_one, *at_once):
        await bench.say(session)
    await bench.request(["first"])  # everything has started then
    await bench.finished(["first"])
    for session in one_by_one:
        await bench.request([session])
        await bench.finished([session])
    times = await bench.finished(one_by_one)
    plan = [each[CommandPlanned.kind] - each[CompactRequested.kind] for each in times.values()]
    whole = [each[CommandFinished.kind] - each[CompactRequested.kind] for each in times.values()]
    for name, values in (("planned", plan), ("outcome", whole)):
        p95 = quantiles(values, n=20)[-1]
        print(f"request to {name}: p50 {median(values):.0f} ms, p95 {p95:.0f} ms")
    await bench.request(at_once)
    times = await bench.finished(at_once)
    began_ms = min(each[CompactRequested.kind] for each in times.values())
    ended_ms = max(each[CommandFinished.kind] for each in times.values())
    seconds = (ended_ms - began_ms) / 1_000
    print(f"{commands} commands at once: {seconds:.1f} s, {commands / seconds:.1f} a second")
    await log.stop()


async def _create(bootstrap: str) -> None:
    log = KafkaLog(KafkaOptions(bootstrap))
    await log.start()
    settings = load_settings({})
    await log.create_topics([settings.topic(topic) for topic in TOPICS], PARTITIONS)
    await log.stop()


def main() -> None:
    """Start everything, and measure."""
    commands = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        stack = LocalStack(Path(folder) / "stack")
        services = stack.start(["kafka", "redis"])
        bootstrap = services["kafka"].address
        asyncio.run(_create(bootstrap))
        file = Path(folder) / "compaction.toml"
        file.write_text(FILE)
        environment = {
            **os.environ,
            "CONTEXTGAUGE_COMPACTION_FILE": str(file),
            "CONTEXTGAUGE_BOOTSTRAP_SERVERS": bootstrap,
            "CONTEXTGAUGE_REDIS_URL": services["redis"].address,
        }
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "streams", name],
                env={**environment, "CONTEXTGAUGE_STATE_FOLDER": f"{folder}/{name}"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for name in ("conversations", "control")
        ]
        try:
            asyncio.run(measure(bootstrap, commands))
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait()
            stack.stop()


if __name__ == "__main__":
    main()
