"""Values of what publishers send: keys, dead letters, clocks."""

from collections.abc import Iterator
from dataclasses import asdict

from schemas.topics import DAY_MS, HOUR_MS
from streams.flow.doctor.facts import AHEAD_MS, Expected, Facts, MiskeyedMessage, known
from streams.flow.doctor.rules import Values
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

_KEY = "Give each message its session id as the key"
_PARTITIONER = (
    "Use Kafka's default partitioner (librdkafka: partitioner=murmur2_random; kafkajs: "
    "Partitioners.JavaCompatiblePartitioner), unless partitions were added later: see "
    "topics.partitions"
)
_RESEND = (
    "`contextgauge dead list` shows them with their reasons; `contextgauge dead redrive` resends "
    "those that can be derived now"
)


def _keying(facts: Facts, expected: Expected) -> Iterator[Values]:
    keying = known(facts.kafka.keying)
    kinds = {
        "without a key": keying.without_key,
        "with a key that is not the session's": keying.other_key,
        "with the right key, on another partition than murmur2 gives": keying.other_partitioner,
        "with a wrong key, on the right partition by chance": keying.right_by_chance,
    }
    wrong = sum(kinds.values())
    percent = wrong * 100 // (keying.looked or 1)
    remedies = [_KEY] * (wrong > keying.other_partitioner)
    remedies += [_PARTITIONER] * (keying.other_partitioner > 0)
    yield asdict(keying) | {
        "subject": expected.messages.name,
        "wrong": wrong,
        "many_wrong": wrong and wrong * _MANY >= keying.looked,
        "share": f"{percent}%" if percent else "<1%",
        "kinds": listed(
            f"{counted(number, 'message')} {kind}" for kind, number in kinds.items() if number
        ),
        "newest": _newest_wrong(keying.newest_wrong, facts.now_ms),
        "remedy": ". ".join(remedies),
        "dead_topic": expected.dead.name,
        "ahead_limit_ms": AHEAD_MS,
        "differing": sum(keying.differing.values()),
        "spellings": listed(
            f"{counted(number, 'message')} with another `{other}` than `{first}`, which counts"
            for (first, other), number in keying.differing.items()
        ),
    }


def _newest_wrong(message: MiskeyedMessage | None, now_ms: int) -> str:
    if message is None:
        return ""
    headers = f", headers {listed(message.headers)}" if message.headers else ""
    return (
        f"; the last one {age(now_ms - message.timestamp_ms)} ago, partition {message.partition} "
        f"offset {message.offset}{headers}"
    )


def _dead_letters(facts: Facts, expected: Expected) -> Iterator[Values]:
    dead = known(facts.kafka.dead)
    age_ms = max(facts.now_ms - (dead.newest_ms or 0), 0)
    reasons = sorted(dead.reasons.items(), key=lambda item: (-item[1], item[0]))
    fixes = dict.fromkeys(_FIXES[reason] for reason, _ in reasons if reason in _FIXES)
    total = f" of about {dead.total:,}" if dead.total > dead.looked else ""
    yield {
        "subject": expected.dead.name,
        "looked": dead.looked,
        "reasons": dead.reasons,
        "within_hour": dead.looked and age_ms < HOUR_MS,
        "within_day": dead.looked and age_ms < DAY_MS,
        "text": f"the newest {dead.looked:,}{total}: "
        f"{listed(f'{count:,} {reason}' for reason, count in reasons)}; the last one "
        f"{age(age_ms)} ago",
        "remedy": (f"Fix the publisher: {'; '.join(fixes)}. " if fixes else "") + _RESEND,
    }


ITEMS = {"keying": _keying, "dead_letters": _dead_letters}
