"""When something was last published, derived and projected."""

from collections.abc import Iterator

from streams.flow.doctor.checks.progress import LATE_MS, open_since_ms
from streams.flow.doctor.facts import Expected, Facts, known
from streams.flow.doctor.findings import Result, check, ok
from streams.flow.doctor.words import age


def _newest(noun: str, newest_ms: int | None, facts: Facts, topic: str = "") -> Iterator[Result]:
    text = f"no {noun} yet"
    if newest_ms is not None:
        text = f"the newest {noun}: {age(facts.now_ms - newest_ms)} ago"
    since_ms = open_since_ms(topic, facts).values()
    if any(facts.now_ms - time_ms >= LATE_MS for time_ms in since_ms):
        text += ", not counting what is behind an open transaction (topics.transactions)"
    yield ok(text, {"newest_ms": newest_ms})


@check("activity.messages")
def messages(facts: Facts, expected: Expected) -> Iterator[Result]:
    """When the last message was published. No message is not an error."""
    return _newest("message", known(facts.kafka.keying).newest_ms, facts, expected.messages.name)


@check("activity.records")
def records(facts: Facts, expected: Expected) -> Iterator[Result]:
    """When the last record was derived."""
    return _newest("record", known(facts.kafka.newest_record_ms), facts, expected.events.name)


@check("activity.views")
def views(facts: Facts, _: Expected) -> Iterator[Result]:
    """When the last session in the views was active."""
    return _newest("session in the views", known(facts.views).newest_ms, facts)


CHECKS = (messages, records, views)
