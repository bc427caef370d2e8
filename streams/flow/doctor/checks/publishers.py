"""Checks of what publishers send: keys, dead letters, clocks."""

from collections.abc import Iterator

from schemas.topics import DAY_MS, HOUR_MS
from streams.flow.doctor.facts import AHEAD_MS, Expected, Facts, MiskeyedMessage, known
from streams.flow.doctor.findings import Result, check, note, ok, warning
from streams.flow.doctor.words import age, counted, listed

_MANY = 10
"""One in so many wrongly keyed messages is not a single client's accident."""

_FIXES = {
    "misrouted": "key messages by their session id and partition them by murmur2",
    "no_session": "key messages by their session id",
    "not_json": "send each message as one JSON object",
    "not_object": "send each message as one JSON object",
    "not_utf8": "write JSON in UTF-8",
    "byte_order_mark": "write JSON without a byte order mark",
    "too_deep": "send what the runtime wrote, without wrapping it",
    "too_large": "use `contextgauge publish`, which shortens such lines",
    "batch_too_large": "send smaller batches",
    "batch_damaged": "send batches whose records can be read",
}

_KEY = "Give each message its session id as the key. "
_PARTITIONER = (
    "Use Kafka's default partitioner (librdkafka: partitioner=murmur2_random; kafkajs: "
    "Partitioners.JavaCompatiblePartitioner), unless partitions were added later: see "
    "topics.partitions. "
)


@check("publishers.keys")
def keys(facts: Facts, expected: Expected) -> Iterator[Result]:
    """A message that is not on its session's partition becomes a dead letter."""
    keying, topic = known(facts.kafka.keying), expected.messages.name
    counts = {
        name: getattr(keying, name)
        for name in ("without_key", "other_key", "other_partitioner", "right_by_chance")
    }
    figures = {"looked": keying.looked, **counts}
    texts = (
        "without a key",
        "with a key that is not the session's",
        "with the right key, on another partition than murmur2 gives",
        "with a wrong key, on the right partition by chance",
    )
    wrong = sum(counts.values())
    newest = f"the newest {counted(keying.looked, 'message')}"
    if not wrong:
        yield ok(f"{newest}: keyed and partitioned by session", figures)
        return
    percent = wrong * 100 // (keying.looked or 1)
    kinds = listed(
        f"{counted(number, 'message')} {text}"
        for number, text in zip(counts.values(), texts, strict=True)
        if number
    )
    remedy = _KEY if wrong > keying.other_partitioner else ""
    remedy += _PARTITIONER if keying.other_partitioner else ""
    yield Result(
        "error" if wrong * _MANY >= keying.looked else "warning",
        f"{f'{percent}%' if percent else '<1%'} of {newest}: {kinds}"
        + _newest_wrong(keying.newest_wrong, facts.now_ms),
        f"{remedy}Misrouted messages are kept in {expected.dead.name}",
        topic,
        figures,
    )


def _newest_wrong(message: MiskeyedMessage | None, now_ms: int) -> str:
    if message is None:
        return ""
    headers = f", headers {listed(message.headers)}" if message.headers else ""
    return (
        f"; the last one {age(now_ms - message.timestamp_ms)} ago, partition {message.partition} "
        f"offset {message.offset}{headers}"
    )


@check("publishers.dead_letters")
def dead_letters(facts: Facts, expected: Expected) -> Iterator[Result]:
    """All figures lack the messages that cannot be derived."""
    dead = known(facts.kafka.dead)
    figures = {"looked": dead.looked, **dead.reasons}
    if not dead.looked:
        yield ok("none", figures)
        return
    age_ms = max(facts.now_ms - (dead.newest_ms or 0), 0)
    reasons = sorted(dead.reasons.items(), key=lambda item: (-item[1], item[0]))
    fixes = dict.fromkeys(_FIXES[reason] for reason, _ in reasons if reason in _FIXES)
    total = f" of about {dead.total:,}" if dead.total > dead.looked else ""
    yield Result(
        "error" if age_ms < HOUR_MS else "warning" if age_ms < DAY_MS else "note",
        f"the newest {dead.looked:,}{total}: "
        f"{listed(f'{count:,} {reason}' for reason, count in reasons)}; the last one "
        f"{age(age_ms)} ago",
        (f"Fix the publisher: {'; '.join(fixes)}. " if fixes else "")
        + "`contextgauge dead list` shows them with their reasons; `contextgauge dead redrive` "
        "resends those that can be derived now",
        expected.dead.name,
        figures,
    )


@check("publishers.clocks")
def clocks(facts: Facts, expected: Expected) -> Iterator[Result]:
    """A clock that is ahead makes live times wrong, and delays retention and idle detection."""
    keying = known(facts.kafka.keying)
    figures = {"ahead": keying.ahead, "most_ahead_ms": keying.most_ahead_ms}
    if keying.ahead:
        yield warning(
            f"{counted(keying.ahead, 'message')} of the newest {keying.looked:,} ahead of this "
            f"machine's clock, by up to {age(keying.most_ahead_ms)}",
            "Synchronise the publishers' clocks and this machine's by NTP: see clock.redis",
            expected.messages.name,
            figures,
        )
    yield ok(f"no message is more than {age(AHEAD_MS)} ahead of this machine's clock", figures)


@check("publishers.spellings")
def spellings(facts: Facts, expected: Expected) -> Iterator[Result]:
    """A line that names one thing in two spellings, differently, is read by one of them."""
    keying = known(facts.kafka.keying)
    figures = {"looked": keying.looked, "differing": sum(keying.differing.values())}
    if keying.differing:
        texts = listed(
            f"{counted(number, 'message')} with another `{other}` than `{first}`, which counts"
            for (first, other), number in keying.differing.items()
        )
        yield note(
            f"of the newest {counted(keying.looked, 'message')}, {texts}",
            "Claude Code writes such lines after /clear. Other readers of these messages must take "
            "the same spelling: see R1 in RULES.md",
            expected.messages.name,
            figures,
        )
    yield ok("no message names one thing in two spellings, differently", figures)


@check("publishers.unread")
def unread(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Figures under a type of line that a newer version of a runtime writes are missing."""
    keying = known(facts.kafka.keying)
    figures = {"looked": keying.looked, "unread": sum(keying.unread.values())}
    newest = f"of the newest {counted(keying.looked, 'message')}"
    if keying.unread:
        texts = listed(
            f"{counted(number, 'message')} of type {line.type} with {line.figure}"
            for line, number in keying.unread.items()
        )
        yield note(
            f"{newest}, {texts}, which this version does not read",
            "Install a newer contextgauge, or report the runtime and its version",
            expected.messages.name,
            figures,
        )
    yield ok(f"{newest}, all figures of a context are of types that are read", figures)


CHECKS = (keys, dead_letters, clocks, spellings, unread)
