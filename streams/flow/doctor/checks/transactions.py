"""Checks of what holds readers back or is hidden from them: open transactions, damaged batches."""

from collections.abc import Iterator, Mapping

from contextgauge.units import MINUTE_MS
from streams.flow.doctor.facts import Expected, Facts, known
from streams.flow.doctor.findings import Result, check, error, note, ok, warning
from streams.flow.doctor.words import age, counted, listed
from streams.ports import UnreadableReason
from streams.ports.inspection import Failure, OpenTransaction

_OVERDUE_MS = MINUTE_MS
"""A coordinator looks every ten seconds for transactions that have passed their timeout."""

_UNREADABLE: Mapping[UnreadableReason, str] = {
    "batch_too_large": "Have its producer send smaller batches; to read it, raise "
    "CONTEXTGAUGE_BATCH_LIMIT_BYTES",
    "batch_damaged": "Fix its producer, or check the disk of the partition's leader: another "
    "replica may have it intact",
}

_NONE = "none is open for long"


@check("topics.transactions")
def transactions(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Everything behind an open transaction waits for its end: workers read what is committed."""
    # Of each topic the producers with an open transaction; then where none is known.
    by_producer: dict[tuple[str, int], dict[int, OpenTransaction]] = {}
    unknown: dict[tuple[str, str], list[int]] = {}
    unsettled = known(facts.kafka.unsettled)
    for (topic, partition), ends in unsettled.items():
        if isinstance(ends.transactions, Failure):
            unknown.setdefault((topic, ends.transactions.text), []).append(partition)
            continue
        for transaction in ends.transactions:
            places = by_producer.setdefault((topic, transaction.producer_id), {})
            places[partition] = transaction
    for (topic, _), places in by_producer.items():
        yield _open(topic, places, facts, expected)
    for (topic, reason), partitions in unknown.items():
        parts = {number: unsettled[topic, number] for number in partitions}
        waiting = sum(part.high - part.stable for part in parts.values())
        stable = ", ".join(f"{number}: {part.stable}" for number, part in parts.items())
        yield note(
            f"an open transaction holds back {counted(waiting, 'offset')} on partition "
            f"{listed(partitions)}; its producer is unknown: {reason}",
            f"Run this again. If the first one is the same ({stable}): `kafka-transactions.sh "
            f"--bootstrap-server {expected.bootstrap_servers} find-hanging --broker-id ID`",
            topic,
            {"waiting": waiting, "producer_id": None, "transactional_id": None, "open_ms": None},
        )
    if not by_producer:
        yield ok(_NONE)


def _open(
    topic: str, places: Mapping[int, OpenTransaction], facts: Facts, expected: Expected
) -> Result:
    """Return the result for a producer's open transaction, given by partition."""
    unsettled = known(facts.kafka.unsettled)
    held = next(iter(places.values()))
    open_ms = max(facts.now_ms - min(place.since_ms for place in places.values()), 0)
    waiting = sum(
        max(unsettled[topic, number].high - place.start, 0) for number, place in places.items()
    )
    figures = {
        "waiting": waiting,
        "producer_id": held.producer_id,
        "transactional_id": held.transactional_id,
        "open_ms": open_ms,
    }
    if open_ms <= expected.transaction_timeout_ms:
        return ok(_NONE, figures)
    timeout_ms = held.timeout_ms
    overdue = timeout_ms is not None and open_ms - timeout_ms > _OVERDUE_MS
    name = "whose transactional id no coordinator names, or not to this user"
    if held.transactional_id is not None:
        name = f"with the transactional id {held.transactional_id}"
    if overdue:
        name += f", which Kafka has not aborted after its timeout of {age(timeout_ms or 0)}"
    text = (
        f"a transaction has been open for {age(open_ms)} on partition {listed(sorted(places))} and "
        f"holds back {counted(waiting, 'offset')}: that of producer {held.producer_id} (epoch "
        f"{held.producer_epoch}), {name}"
    )
    (first, place), *others = sorted(places.items())
    abort = (
        f"`kafka-transactions.sh --bootstrap-server {expected.bootstrap_servers} abort "
        f"--topic {topic} --partition {first} --start-offset {place.start}`"
    ) + "".join(f"; partition {number}: --start-offset {other.start}" for number, other in others)
    if timeout_ms is None or overdue:
        return error(text, f"Stop that producer, then {abort}", topic, figures)
    remedy = (
        "Stop that producer, or wait: Kafka aborts its transaction in "
        f"{age(max(timeout_ms - open_ms, 0))} (its timeout is {age(timeout_ms)}). To end it now: "
        f"{abort}"
    )
    return warning(text, remedy, topic, figures)


@check("topics.readable")
def readable(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Readers pass over a batch that unpacks to too much, or is damaged: its records are missing."""  # noqa: E501 -- as in docs/DOCTOR.md
    unreadable = known(facts.kafka.unreadable)
    for topic in expected.topics:
        batches = [batch for batch in unreadable if batch.topic == topic.name]
        if not batches:
            continue
        first, end = batches[0], batches[0].next_offset
        text = (
            f"{counted(len(batches), 'batch')} cannot be read, the first one on partition "
            f"{first.partition} from offset {first.first_offset} "
            f"{'on' if end is None else f'to {end - 1}'}: {first.detail}"
        )
        figures = {"batches": len(batches), "reason": first.reason}
        remedy = _UNREADABLE[first.reason]
        if topic is expected.messages:
            remedy += ". Derive workers keep it as a dead letter: `contextgauge dead list`"
            yield warning(text, remedy, topic.name, figures)
        else:
            yield error(text, remedy, topic.name, figures)
    yield ok("nothing that was looked at is unreadable")


CHECKS = (transactions, readable)
