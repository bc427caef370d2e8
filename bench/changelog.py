"""What a derive worker writes to `context.state`: entries and bytes per message.

    python -m bench.changelog [--messages 300000]

The workload's messages of one partition in batches of several sizes; the second half counts. Small
batches are those of a worker that keeps up, large ones those of a backlog. Bytes are compressed as
the worker's producer compresses them, each batch by itself, without the frame of Kafka's batches.
"""

import argparse
import json
from collections import Counter
from itertools import islice

from bench import workload
from bench.state import Result, new_state, table
from streams import codec
from streams.edge.kafka import zstd
from streams.ports import LogRecord

BATCHES = (20, 100, 1_000, 5_000)
_POSITION = "position"


def written(messages: list[LogRecord], batch: int) -> Result:
    """Return what is written per message, in batches of so many, and the entries by kind."""
    state, begin = new_state(), len(messages) // 2
    kinds, size, compressed, counted = Counter[str](), 0, 0, 0
    for start in range(0, len(messages), batch):
        some = messages[start : start + batch]
        state.apply(some)
        changes = state.finish(some[-1].offset + 1).changes
        if start < begin:
            continue
        counted += len(some)
        for key in changes:
            _, name = [_POSITION, *codec.loads(key)][-2:]
            kinds[name.partition(":")[0]] += 1
        entries = b"".join(key + (value or b"") for key, value in changes.items())
        size += len(entries)
        compressed += len(zstd.compress(entries))
    return {
        "messages_in_a_batch": batch,
        "entries": round(kinds.total() / counted, 2),
        "bytes": round(size / counted),
        "compressed_bytes": round(compressed / counted),
        **{kind: round(kinds[kind] / counted, 3) for kind in sorted(kinds)},
    }


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(prog="python -m bench.changelog")
    parser.add_argument("--messages", type=int, default=300_000, help="of all partitions")
    given = parser.parse_args()
    found = islice(workload.read(workload.cached(given.messages)), given.messages)
    first = (message for message in found if message.partition == 0)
    messages = [
        LogRecord(offset, message.at_ms, message.key, message.value, ())
        for offset, message in enumerate(first)
    ]
    rows = [written(messages, batch) for batch in BATCHES]
    print(table(rows))
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
