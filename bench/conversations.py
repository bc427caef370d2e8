"""What a message costs the worker that keeps conversations: its part of one CPU, and of Redis.

    python -m bench.conversations --rounds 5
    python -m bench.conversations --redis redis://127.0.0.1:6379/9

Messages of the simulator's sessions, and of one long session with long texts, go through all that
the worker does with a batch, into a store in memory or a Redis.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Sequence

from contextgauge.partitioner import key_bytes
from contextgauge.units import DAY_MS
from streams.core.alerts.rules import Patterns
from streams.core.conversation.opt_in import KeptConversations
from streams.edge.memory.conversations import MemoryConversations
from streams.edge.redis.conversations import RedisConversations
from streams.flow.conversations.config import ConversationsConfig
from streams.flow.conversations.sessions import SessionKeeper
from streams.flow.simulator.plans import SimulationOptions
from streams.flow.simulator.simulation import sample_sessions
from streams.ports import LogRecord
from streams.ports.conversations import ConversationStore, Mark

_BATCH = 1_000
_LONG_TEXT = 2_000
_LONG_SESSION = 10_000
_COMPACTED_EVERY = 2_000


def simulated() -> list[LogRecord]:
    """Return the messages of the simulator's sample."""
    options = SimulationOptions(seed=1)
    return [
        LogRecord(number, 1_700_000_000_000 + number, key_bytes(each.session_id), each.value, ())
        for number, each in enumerate(sample_sessions(options))
    ]


def one_long_session() -> list[LogRecord]:
    """Return the messages of a transcript of long texts, beyond what is kept of a session."""
    records = []
    for number in range(_LONG_SESSION):
        role = "user" if number % 2 == 0 else "assistant"
        line = {
            "type": role,
            "sessionId": "long",
            "uuid": f"{number}",
            "parentUuid": f"{number - 1}" if number else None,
            "message": {"role": role, "content": f"{number} " + "x" * _LONG_TEXT},
        }
        value = json.dumps(line).encode()
        records.append(LogRecord(number, 1_700_000_000_000 + number, b"long", value, ()))
        if (number + 1) % _COMPACTED_EVERY == 0:
            boundary = {
                "type": "system",
                "subtype": "compact_boundary",
                "sessionId": "long",
                "uuid": f"{number}b",
                "logicalParentUuid": f"{number}",
            }
            value = json.dumps(boundary).encode()
            records.append(LogRecord(number, 1_700_000_000_000 + number, b"long", value, ()))
    return records


async def microseconds(
    records: Sequence[LogRecord], kept: KeptConversations, store: ConversationStore
) -> float:
    """Return what a message costs, CPU time of this process."""
    await store.drop(0)
    await store.open(0, 1)

    async def read(session: bytes) -> Sequence[bytes]:
        return await store.lines(0, session)

    keeper = SessionKeeper(ConversationsConfig(kept=kept), {}, None, {}, read)
    expected: str | None = None
    started_s = time.process_time()
    for begin in range(0, len(records), _BATCH):
        for record in records[begin : begin + _BATCH]:
            await keeper.add(record)
        position = begin + _BATCH
        await store.apply(
            0,
            expected=expected,
            mark=Mark(position, str(position)),
            plan=kept.plan,
            since_ms=None,
            keep_ms=8 * DAY_MS,
            changes=keeper.take_changes(),
        )
        expected = str(position)
    return (time.process_time() - started_s) / len(records) * 1e6


async def measure(url: str | None, rounds: int) -> dict[str, float]:
    """Return the figures, each the median of some rounds."""
    everything = KeptConversations(sessions=Patterns(("*",)))
    nothing = KeptConversations(sessions=Patterns(("no such session",)))
    by_project = KeptConversations(projects=Patterns(("/no/such/folder",)))
    store: ConversationStore = (
        MemoryConversations() if url is None else RedisConversations(url, "bench")
    )
    await store.start()
    sample, long = simulated(), one_long_session()
    cases = {
        "kept": (sample, everything),
        "passed_over_by_id": (sample, nothing),
        "passed_over_by_folder": (sample, by_project),
        "kept_in_a_long_session": (long, everything),
    }
    figures: dict[str, float] = {"messages": len(sample)}
    for name, (records, policy) in cases.items():
        costs = [await microseconds(records, policy, store) for _ in range(rounds)]
        figures[f"{name}_us"] = round(statistics.median(costs), 1)
    await store.drop(0)
    await store.stop()
    return figures


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--redis", metavar="URL", help="a Redis to write to; else in memory")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    figures = asyncio.run(measure(arguments.redis, arguments.rounds))
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
