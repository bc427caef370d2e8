"""Compares the output topics of two systems record by record, so that no system wins by doing less.

    python -m bench.compare BOOTSTRAP TOPIC OTHER

Partition by partition, per session and in order: every header (id, type, subject, time, sequence,
rules and where the record came from) and the data. Times of production are not looked at.
"""

import argparse
import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition

from bench.workload import PARTITIONS

SHOWN = 5
"""So many differences are printed in full; the rest are counted."""

_SHORT = 160


class Written(NamedTuple):
    """One record as a topic holds it."""

    headers: Mapping[str, str]
    data: Any

    @property
    def label(self) -> str:
        """Return what it is, for people."""
        kind = self.headers.get("ce_type", "no type").removeprefix("contextgauge.")
        return f"{kind} #{self.headers.get('ce_sequence', '?')} of {self.headers.get('ce_subject')}"


Records = Mapping[str, Sequence[Written]]
"""By session, in order."""


class Difference(NamedTuple):
    """Where two outputs first differ in one session."""

    session: str
    place: int
    details: tuple[str, ...]

    def __str__(self) -> str:
        lines = "".join(f"\n    {line}" for line in self.details)
        return f"  session {self.session}, record {self.place + 1}:{lines}"


class Outcome(NamedTuple):
    """What a comparison found: records compared, and the first difference of each session."""

    compared: int
    differences: Sequence[Difference]

    def summary(self, ours: str, theirs: str) -> str:
        """Return the outcome for people."""
        if not self.differences:
            return f"{theirs}: {self.compared:,} records, each equal to that of {ours}"
        shown = "\n".join(map(str, self.differences[:SHOWN]))
        return (
            f"{theirs}: differs from {ours} in {len(self.differences):,} sessions "
            f"({self.compared:,} records compared)\n{shown}"
        )


def compare(ours: Records, theirs: Records) -> Outcome:
    """Compare two outputs; of a session only the first difference counts: others follow from it."""
    compared = 0
    differences: list[Difference] = []
    for session in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(session, ()), theirs.get(session, ())
        compared += max(len(mine), len(other))
        for place, (one, two) in enumerate(zip_longest(mine, other)):
            details = tuple(_details(one, two))
            if details:
                differences.append(Difference(session, place, details))
                break
    return Outcome(compared, differences)


def _details(ours: Written | None, theirs: Written | None) -> Iterator[str]:
    if ours is None or theirs is None:
        if theirs is not None:
            yield f"only theirs: {theirs.label}"
        elif ours is not None:
            yield f"only ours: {ours.label}"
        return
    if ours == theirs:
        return
    yield from _fields("", ours.headers, theirs.headers)
    if isinstance(ours.data, dict) and isinstance(theirs.data, dict):
        yield from _fields("data.", ours.data, theirs.data)
    elif ours.data != theirs.data:
        yield "data: not both are objects"


def _fields(prefix: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(ours.keys() | theirs.keys()):
        one, two = (side.get(name, "(absent)") for side in (ours, theirs))
        if one != two or (name in ours) != (name in theirs):
            yield f"{prefix}{name}: ours {_short(one)}, theirs {_short(two)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHORT else text[:_SHORT] + "…"


async def compare_topics(bootstrap: str, ours: str, theirs: str) -> Outcome:
    """Compare what two topics hold; a session that is on another partition is there twice."""
    compared, differences = 0, list[Difference]()
    for partition in range(PARTITIONS):
        mine = await _read(bootstrap, TopicPartition(ours, partition))
        other = await _read(bootstrap, TopicPartition(theirs, partition))
        outcome = compare(mine, other)
        compared += outcome.compared
        differences += outcome.differences
    return Outcome(compared, differences)


async def _read(bootstrap: str, tp: TopicPartition) -> Records:
    """Read what is committed in a partition, to its end."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    by_session: defaultdict[str, list[Written]] = defaultdict(list)
    await consumer.start()
    try:
        consumer.assign([tp])
        end = (await consumer.end_offsets([tp]))[tp]
        while await consumer.position(tp) < end:
            for record in (await consumer.getmany(tp, timeout_ms=200)).get(tp, ()):
                headers = {name: value.decode() for name, value in record.headers}
                written = Written(headers, json.loads(record.value))
                by_session[record.key.decode()].append(written)
    finally:
        await consumer.stop()
    return by_session


def main() -> None:
    """Compare two topics; exit with 1 where they differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare")
    parser.add_argument("bootstrap")
    parser.add_argument("ours")
    parser.add_argument("theirs")
    given = parser.parse_args()
    outcome = asyncio.run(compare_topics(given.bootstrap, given.ours, given.theirs))
    print(outcome.summary(given.ours, given.theirs))
    sys.exit(1 if outcome.differences else 0)


if __name__ == "__main__":
    main()
