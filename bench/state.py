"""What a partition's state costs: bytes per session, memory, time to restore, and per message.

    python -m bench.state sizes                     bytes and keys per session
    python -m bench.state cost  --sessions 1000     time per message with so many open sessions
    python -m bench.state restore --sessions 1000   from a real Kafka: time, rate, memory
    python -m bench.state all                       all of it, 100 to 1 000 000 sessions

Sessions are the simulator's in the middle of their lives, the same few hundred again and again
under new ids; every one has bytes of its own. Each time per message is a median over batches, in
CPU time, and each measurement runs in a process of its own. Prints a table, and as its last line
one object of JSON.
"""

import argparse
import asyncio
import gc
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from bench.process import apart
from contextgauge.clock import SystemClock
from contextgauge.kafka.options import KafkaOptions
from contextgauge.window_catalog import bundled
from schemas.topics import CONTEXT_STATE
from streams import codec
from streams.cli.machine import collect_young_garbage
from streams.core.derivation.rules_config import Rules
from streams.edge.kafka.log import KafkaLog
from streams.edge.local_stack.stack import LocalStack
from streams.edge.sqlite.values import TemporaryValues
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.log_proof import LogProof
from streams.flow.derive.partition_state import (
    POSITION_VERSION,
    InputPartition,
    PartitionState,
)
from streams.flow.derive.restoring import restore
from streams.flow.derive.state_store import StateStore
from streams.flow.simulator import SimulationOptions, simulate
from streams.ports import LogRecord, NewRecord

TEMPLATES = 200
"""Different sessions; all others are copies of them under other ids."""

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
RESTORED = (100_000, 1_000_000)
AT_WORK = 1_000
"""Sessions that get messages, however many are open: how many do is the workload's affair."""

BATCH_MESSAGES = 1_000
MEASURED_MESSAGES = 40_000
_TURNS = 3
LONG_STEP = 1_000
_LONG_BATCH = 100
_BOUNDARY_EVERY = 200
_FILLED_SESSIONS = 2_000
MESSAGE_TEXT = "x" * 1_200
"""Makes a message about as long as the simulator's on average."""

START_MS = 1_790_000_000_000
MIB = 1024 * 1024

Entries = list[tuple[str, bytes]]
Result = dict[str, Any]


class Template(NamedTuple):
    """A session as it is stored: its parts' names and values."""

    parts: Entries

    @property
    def value_bytes(self) -> int:
        """Bytes of the values, without keys."""
        return sum(len(value) for _, value in self.parts)


def new_state() -> PartitionState:
    """Return an empty state of the only partition."""
    return PartitionState(
        Rules(bundled()), DeriveConfig(), InputPartition(0, 1, 1), TemporaryValues()
    )


def templates(share: float = 0.5) -> list[Template]:
    """Return simulated sessions of 40 turns after so much of their messages."""
    by_session: dict[str, list[bytes]] = defaultdict(list)
    for message in simulate(SimulationOptions(seed=7, sessions=TEMPLATES)):
        if len(by_session) > TEMPLATES and message.session_id not in by_session:
            continue
        by_session[message.session_id].append(message.value)
    state, offset = new_state(), 0
    stored: dict[str, dict[str, bytes]] = defaultdict(dict)
    for session_id, values in list(by_session.items())[:TEMPLATES]:
        some = values[: max(int(len(values) * share), 1)]
        state.apply(
            [_message(offset + index, session_id, value) for index, value in enumerate(some)]
        )
        offset += len(some)
        for key, part in state.finish(offset).changes.items():
            names = codec.loads(key)
            if len(names) > 1 and part is not None:
                stored[names[0]][names[1]] = part
    return [Template(list(parts.items())) for parts in stored.values()]


def session_name(number: int) -> str:
    """Return a session id of the usual length."""
    return f"{number:08x}-0000-4000-8000-{number * 7919 % 2**48:012x}"


def entries_of(number: int, kinds: list[Template]) -> list[tuple[bytes, bytes]]:
    """Return the changelog entries of a session, its values with bytes of their own."""
    name = session_name(number)
    return [
        (codec.dumps([name, part]), bytes(bytearray(value)))
        for part, value in kinds[number % len(kinds)].parts
    ]


def position_entry() -> tuple[bytes, bytes]:
    """Return the entry of the position."""
    document = {
        "v": POSITION_VERSION,
        "position": 0,
        "kafka_time_ms": START_MS,
        "partitions": 1,
        "log": LogProof().document(),
    }
    return codec.dumps(["position"]), codec.dumps(document)


def _message(offset: int, session_id: str, value: bytes) -> LogRecord:
    return LogRecord(offset, START_MS, codec.key_bytes(session_id), value, ())


def _reading(number: int, session_id: str) -> bytes:
    usage = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 900 + number % 700,
        "cache_read_input_tokens": 30_000 + number % 5_000,
        "output_tokens": 300,
    }
    content = [{"type": "text", "text": MESSAGE_TEXT}]
    body = {"id": f"msg_{number:024d}", "role": "assistant", "model": "claude-sonnet-4-5-20250929"}
    return codec.dumps(
        {
            "type": "assistant",
            "message": {**body, "content": content, "usage": usage},
            "session_id": session_id,
            "uuid": f"{number:032x}",
        }
    )


def rss_mib() -> float:
    """Return this process's resident memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def measure_sizes() -> Result:
    """Measure bytes and keys per session: at its begin, in the middle of its life, at its end."""
    sizes: Result = {}
    for label, share in (("first message", 0.0), ("middle of life", 0.5), ("end of life", 1.0)):
        kinds = templates(share)
        values = [kind.value_bytes for kind in kinds]
        keys = [sum(len(key) for key, _ in entries_of(0, [kind])) for kind in kinds]
        sizes[label] = {
            "value_bytes_median": round(statistics.median(values)),
            "value_bytes_mean": round(statistics.mean(values)),
            "value_bytes_largest": max(values),
            "keys_mean": round(statistics.mean(len(kind.parts) for kind in kinds), 1),
            "key_bytes_mean": round(statistics.mean(keys)),
        }
    return sizes


def loaded_state(sessions: int, kinds: list[Template]) -> PartitionState:
    """Return a state with so many sessions, restored without a log."""
    state = new_state()
    state.add([position_entry()])
    for number in range(sessions):
        state.add(entries_of(number, kinds))
    for _ in state.load():
        pass
    return state


def _boundary(number: int, session_id: str) -> bytes:
    metadata = {"trigger": "auto", "pre_tokens": 150_000 + number % 1_000}
    return codec.dumps(
        {
            "type": "system",
            "subtype": "compact_boundary",
            "compact_metadata": metadata,
            "session_id": session_id,
            "uuid": f"{number:032x}",
        }
    )


def _cost_us(state: PartitionState, messages: list[LogRecord]) -> float:
    """Return the CPU microseconds per message of a batch."""
    began = time.process_time()
    state.apply(messages)
    state.finish(messages[-1].offset + 1)
    return (time.process_time() - began) / len(messages) * 1e6


def measure_cost(sessions: int, at_work: int = AT_WORK) -> Result:
    """Measure the time per message with so many sessions open, and what these take.

    `at_work` of them, spread evenly over all, get messages in turn, the others rest. A batch has
    one message for each of `BATCH_MESSAGES` sessions, however many are open. The first message
    of each unpacks it, as after a restore, and is reported separately.
    """
    with ProcessPoolExecutor(1) as other:  # so that their memory is not ours
        kinds = other.submit(templates).result()
    collect_young_garbage()
    before, began = rss_mib(), time.process_time()
    state = loaded_state(sessions, kinds)
    spent, memory = time.process_time() - began, rss_mib() - before
    began = time.process_time()
    gc.collect()
    collected = time.process_time() - began
    at_work = min(sessions, at_work)
    batch = min(at_work, BATCH_MESSAGES)
    figures: tuple[list[float], list[float]] = ([], [])
    for begin in range(0, max(_TURNS * at_work, MEASURED_MESSAGES), batch):
        messages = []
        for number in range(begin, begin + batch):
            name = session_name(number % at_work * (sessions // at_work))
            messages.append(_message(number, name, _reading(number, name)))
        figures[begin >= at_work].append(_cost_us(state, messages))
    return {
        "sessions": sessions,
        "at_work": at_work,
        "cpu_us_per_message": round(statistics.median(figures[1]), 1),
        "cpu_us_first_after_restore": round(statistics.median(figures[0]), 1),
        "making_cpu_s": round(spent, 1),
        "state_mib": round(memory),
        "full_gc_cpu_ms": round(collected * 1000),
    }


def measure_long(messages: int) -> list[float]:
    """Measure the CPU microseconds per message of one session, for each `LONG_STEP` of its life.

    A batch has 100 messages. Every 200th is a boundary, so that what is kept of those grows too.
    """
    collect_young_garbage()
    state, name, costs_us = new_state(), session_name(1), []
    for step in range(0, messages, LONG_STEP):
        each = []
        for begin in range(step, step + LONG_STEP, _LONG_BATCH):
            lines = [
                (_reading if number % _BOUNDARY_EVERY else _boundary)(number, name)
                for number in range(begin, begin + _LONG_BATCH)
            ]
            some = [_message(begin + index, name, line) for index, line in enumerate(lines)]
            each.append(_cost_us(state, some))
        costs_us.append(round(statistics.median(each), 2))
    return costs_us


async def measure_restore(sessions: int, bootstrap: str, topic: str) -> Result:
    """Measure restoring a partition from Kafka, and only reading it, which bounds that."""
    log = KafkaLog(KafkaOptions(bootstrap))
    await log.start()
    store, clock = StateStore(log, topic), SystemClock()
    state, before = new_state(), rss_mib()
    began, cpu = time.perf_counter(), time.process_time()
    await restore(state, 0, state_store=store, telemetry=PrometheusTelemetry(), clock=clock)
    seconds, memory = time.perf_counter() - began, rss_mib() - before
    cpu = time.process_time() - cpu
    began = time.perf_counter()
    gc.collect()
    collected = time.perf_counter() - began
    began, reading_cpu, entries = time.perf_counter(), time.process_time(), 0
    async for stretch in store.restore(0):
        entries += len(stretch.entries)
    reading, reading_cpu = time.perf_counter() - began, time.process_time() - reading_cpu
    await log.stop()
    if state.sessions != sessions:
        raise AssertionError(f"{state.sessions} sessions were restored of {sessions}")
    return {
        "sessions": sessions,
        "entries": entries,
        "seconds": round(seconds, 1),
        "cpu_s": round(cpu, 1),
        "entries_per_s": round(entries / seconds),
        "reading_s": round(reading, 1),
        "reading_cpu_s": round(reading_cpu, 1),
        "state_mib": round(memory),
        "bytes_per_session": round(memory * MIB / sessions),
        "worker_rss_mib": round(before + memory),
        "full_gc_ms": round(collected * 1000),
    }


async def fill(sessions: int, bootstrap: str, topic: str) -> None:
    """Write the changelog of so many sessions, as the deriver's transactions do."""
    log = KafkaLog(KafkaOptions(bootstrap))
    await log.start()
    await log.create_topics([CONTEXT_STATE.__class__(topic, "", "compact", -1, 9 * MIB)], 1)
    producer = log.transactional_producer(f"fill-{topic}")
    await producer.start()
    for records in _filling(sessions, topic):
        await producer.commit(records)
    await producer.stop()
    await log.stop()


def _filling(sessions: int, topic: str) -> Iterator[list[NewRecord]]:
    kinds = templates()
    for begin in range(0, sessions, _FILLED_SESSIONS):
        entries = [
            entry
            for number in range(begin, min(begin + _FILLED_SESSIONS, sessions))
            for entry in entries_of(number, kinds)
        ]
        yield [NewRecord(topic, 0, key, value) for key, value in entries]
    yield [NewRecord(topic, 0, *position_entry())]


def restore_from_kafka(sessions: int) -> Result:
    """Start a Kafka, write the changelog, and measure in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        stack = LocalStack(Path(folder))
        try:
            bootstrap = stack.start(["kafka"])["kafka"].address
            asyncio.run(fill(sessions, bootstrap, CONTEXT_STATE.name))
            return apart(
                "bench.state", "restore-from", "--sessions", str(sessions), "--kafka", bootstrap
            )
        finally:
            stack.stop()


def table(rows: list[Result]) -> str:
    """Return rows of figures for people, named by their first."""
    names = list(rows[0])
    cells = [names, *([str(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[index]) for line in cells) for index in range(len(names))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in cells
    )


def _everything() -> Result:
    sizes = apart("bench.state", "sizes")
    print(table([{"session": label, **figures} for label, figures in sizes.items()]), "\n")
    cost = [apart("bench.state", "cost", "--sessions", str(sessions)) for sessions in SIZES]
    print(table(cost), "\n")
    restores = [restore_from_kafka(sessions) for sessions in RESTORED]
    print(table(restores), "\n")
    return {"sizes": sizes, "cost": cost, "restore": restores}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench.state")
    parser.add_argument("what", choices=["sizes", "cost", "long", "restore", "restore-from", "all"])
    parser.add_argument("--sessions", type=int, default=1_000, help="open sessions")
    parser.add_argument("--at-work", type=int, default=AT_WORK, help="of them get messages")
    parser.add_argument("--messages", type=int, default=100_000, help="of the long session")
    parser.add_argument("--kafka", default="", help="bootstrap servers of a filled Kafka")
    given = parser.parse_args()
    if given.what == "all":
        found = _everything()
    elif given.what == "sizes":
        found = measure_sizes()
        print(table([{"session": label, **figures} for label, figures in found.items()]))
    elif given.what == "cost":
        found = measure_cost(given.sessions, given.at_work)
        print(table([found]))
    elif given.what == "long":
        found = {"cpu_us_per_message": measure_long(given.messages)}
    elif given.what == "restore":
        found = restore_from_kafka(given.sessions)
        print(table([found]))
    else:
        found = asyncio.run(measure_restore(given.sessions, given.kafka, CONTEXT_STATE.name))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
