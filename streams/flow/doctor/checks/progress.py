"""How far a topic is read: the results that derive, project and conversations workers share."""

from collections.abc import Iterator, Mapping
from typing import TypedDict

from streams.flow.doctor.facts import Facts, WorkerProgress, known
from streams.flow.doctor.findings import Figures, Result, error, note, ok, warning
from streams.flow.doctor.words import age, counted, listed
from streams.ports.inspection import Failure, Group

LATE_MS = 60_000
"""What waits for longer is not just a batch in progress."""

Progress = Mapping[int, WorkerProgress] | Failure

_LOOK_AT_TRANSACTIONS = (
    "More workers do not help: topics.transactions names the producer, and says how to end it"
)


def members(
    command: str, noun: str, name: str, group: Group | Failure, progress: Progress
) -> Iterator[Result]:
    """Report whether workers of a group run; `noun` is what waits for them."""
    group = known(group)
    parts = [] if isinstance(progress, Failure) else list(progress.values())
    waiting = sum(part.waiting for part in parts)
    figures: Figures = {"members": len(group.hosts), "state": group.state}
    start = f"Start one with `contextgauge {command}`, or correct CONTEXTGAUGE_GROUP_PREFIX"
    workers = f"{counted(len(group.hosts), 'worker')} in the group {name}"
    if not group.hosts and waiting:
        text = f"none in the group {name}, and {counted(waiting, noun)} wait"
        yield error(text, start, figures=figures)
    elif not group.hosts:
        yield warning(f"none in the group {name}; nothing waits", start, figures=figures)
    elif group.state not in {"Stable", ""}:
        text = f"{workers}, which is rebalancing ({group.state})"
        remedy = "Run this again shortly; if it persists, see the workers' logs"
        yield note(text, remedy, figures=figures)
    else:
        yield ok(f"{workers}, on {listed(sorted(set(group.hosts)))}", figures)


def positions(progress: Progress, deleted: Result, beyond_end: Result) -> Iterator[Result]:
    """Compare each partition's position with the log; the results given are completed."""
    parts = known(progress)
    started = sum(part.position is not None for part in parts.values())
    for partition, part in parts.items():
        position, where = _position(part), place(partition, part)
        if position < part.first:
            gone = counted(part.first - position, "offset")
            text = f"position {position} is before {part.first}, the first offset in the log: "
            yield deleted._replace(message=f"{text}{gone} were deleted {deleted.message}", **where)
        elif position > part.end:
            text = f"position {position} is beyond the end, {part.end}: {beyond_end.message}"
            yield beyond_end._replace(message=text, **where)
        total = counted(len(parts), "partition")
        text = f"{started} of {total} started, all positions in the log"
        yield ok(text, where["figures"])


class PartitionPlace(TypedDict):
    """Which partition a result is about, and its figures."""

    subject: str
    figures: Figures


def place(partition: int, part: WorkerProgress) -> PartitionPlace:
    """Return a partition, and how far it is read."""
    figures = {"position": _position(part), "first": part.first, "end": part.end}
    return {"subject": f"partition {partition}", "figures": figures}


def _position(part: WorkerProgress) -> int:
    return part.first if part.position is None else part.position


def lag(noun: str, topic: str, facts: Facts, progress: Progress, remedy: str) -> Iterator[Result]:
    """Report what waits, and for how long."""
    parts, open_since = known(progress), open_since_ms(topic, facts)
    waiting = {number: part.waiting for number, part in parts.items() if part.waiting}
    times_ms = [
        open_since.get(number) if parts[number].waiting_ms is None else parts[number].waiting_ms
        for number in waiting
    ]
    oldest_ms = max((facts.now_ms - time for time in times_ms if time is not None), default=0)
    oldest_ms, total = max(oldest_ms, 0), sum(waiting.values())
    figures = {"waiting": total, "oldest_ms": oldest_ms}
    text = "nothing waits"
    if waiting:
        most = max(waiting, key=waiting.__getitem__)
        since = f"the oldest for {age(oldest_ms)}" if any(times_ms) else "for an unknown time"
        text = f"about {counted(total, noun)} wait, {since}; most on partition {most} "
        text += f"({waiting[most]:,})"
    held = [number for number, since_ms in open_since.items() if facts.now_ms - since_ms >= LATE_MS]
    if held:
        text += f"; behind an open transaction on partition {listed(held)}"
        yield warning(text, _LOOK_AT_TRANSACTIONS, figures=figures)
    elif oldest_ms >= LATE_MS:
        remedy += f" up to one for each of {counted(len(parts), 'partition')}"
        yield warning(text, remedy, figures=figures)
    yield ok(text, figures)


def open_since_ms(topic: str, facts: Facts) -> Mapping[int, int]:
    """Return since when a transaction has been open, by partition of a topic."""
    unsettled = facts.kafka.unsettled
    if isinstance(unsettled, Failure):
        return {}
    return {
        number: min(transaction.since_ms for transaction in ends.transactions)
        for (name, number), ends in unsettled.items()
        if name == topic and not isinstance(ends.transactions, Failure) and ends.transactions
    }
