"""Judges what publishers send: keys, dead letters, clocks."""

from schemas.topics import DAY_MS, HOUR_MS
from streams.flow.doctor.catalogue import Figures, Report, Severity
from streams.flow.doctor.facts import AHEAD_MS, DeadLetters, Expected, Facts, Keying
from streams.flow.doctor.words import age, listed, share, some
from streams.ports.inspection import Failure

_MANY = 10
"""One in so many wrongly keyed messages is no accident of one client."""

_MENDS = {
    "misrouted": "key messages by their session id and partition them by murmur2",
    "no_session": "key messages by their session id",
    "not_json": "send each message as one JSON object",
    "not_object": "send each message as one JSON object",
    "not_utf8": "write JSON in UTF-8",
    "byte_order_mark": "write JSON without a byte order mark",
    "too_deep": "send what the runtime wrote, not wrapped again and again",
    "too_large": "publish by `contextgauge publish`, which shortens such lines",
}

_LOOK = (
    "`contextgauge dead list` tells which and why; `contextgauge dead redrive` sends those again "
    "that can be derived from by now"
)


def judge_publishers(report: Report, facts: Facts, expected: Expected) -> None:
    """Judge the newest messages and dead letters."""
    if isinstance(facts.keying, Failure):
        report.skip(facts.keying.text, "publishers.keys", "publishers.clocks")
    else:
        _keys(report, facts.keying, expected, facts.now_ms)
        _clocks(report, facts.keying)
    if isinstance(facts.dead, Failure):
        report.skip(facts.dead.text, "publishers.dead_letters")
    else:
        _dead(report, facts.dead, expected, facts.now_ms)


def _keys(report: Report, found: Keying, expected: Expected, now_ms: int) -> None:
    topic = expected.messages.name
    figures: Figures = {
        "looked": found.looked,
        "without_key": found.keyless,
        "other_key": found.foreign,
        "other_partitioner": found.misplaced,
        "right_by_chance": found.lucky,
    }
    if not found.looked:
        report.ok("publishers.keys", "no message to look at", figures=figures)
        return
    wrong = found.dead + found.lucky
    if not wrong:
        said = f"the newest {some(found.looked, 'message')} are keyed and placed by their sessions"
        report.ok("publishers.keys", said, figures=figures)
        return
    kinds = [
        f"{some(count, 'message')} {what}"
        for count, what in (
            (found.keyless, "without a key"),
            (found.foreign, "under a key that is not the session's"),
            (found.misplaced, "keyed rightly, but on another partition than murmur2 gives"),
            (found.lucky, "wrongly keyed, and on the right partition by chance"),
        )
        if count
    ]
    newest = found.newest_wrong
    where = ""
    if newest is not None:
        names = f", headers {listed(list(newest.headers))}" if newest.headers else ""
        where = (
            f"; the last one {age(max(now_ms - newest.timestamp_ms, 0))} ago, partition "
            f"{newest.partition} offset {newest.offset}{names}"
        )
    severity: Severity = "error" if wrong * _MANY >= found.looked else "warning"
    report.add(
        "publishers.keys",
        severity,
        f"{share(wrong, found.looked)} of the newest {some(found.looked, 'message')}: "
        f"{listed(kinds)}{where}",
        subject=topic,
        mend=_mend_keys(found, expected),
        figures=figures,
    )


def _mend_keys(found: Keying, expected: Expected) -> str:
    steps = []
    if found.keyless or found.foreign or found.lucky:
        steps.append("Give each message its session id as the key")
    if found.misplaced:
        steps.append(
            "use Kafka's default partitioner (librdkafka: partitioner=murmur2_random; kafkajs: "
            "Partitioners.JavaCompatiblePartitioner). If the topic was given more partitions "
            "later, this is why: see topics.partitions"
        )
    text = "; ".join(steps)
    begin = text[:1].upper() + text[1:]
    return f"{begin}. What came wrongly is kept in {expected.dead.name}"


def _clocks(report: Report, found: Keying) -> None:
    if found.ahead:
        report.add(
            "publishers.clocks",
            "warning",
            f"{some(found.ahead, 'message')} of the newest {found.looked:,} lie ahead of this "
            f"clock, by {age(found.most_ahead_ms)} at most",
            mend="Set the publishers' clocks by NTP, and this machine's: see clock.redis",
            figures={"ahead": found.ahead, "most_ahead_ms": found.most_ahead_ms},
        )
    else:
        report.ok(
            "publishers.clocks", f"no message lies ahead of this clock by more than {age(AHEAD_MS)}"
        )


def _dead(report: Report, found: DeadLetters, expected: Expected, now_ms: int) -> None:
    if not found.looked or found.newest_ms is None:
        report.ok("publishers.dead_letters", "none", figures={"looked": 0})
        return
    since_ms = max(now_ms - found.newest_ms, 0)
    by_count = sorted(found.reasons.items(), key=lambda item: (-item[1], item[0]))
    told = listed([f"{count:,} {reason}" for reason, count in by_count])
    mends = dict.fromkeys(_MENDS[reason] for reason, _ in by_count if reason in _MENDS)
    severity: Severity = (
        "error" if since_ms < HOUR_MS else "warning" if since_ms < DAY_MS else "note"
    )
    more = f" of about {found.kept:,}" if found.kept > found.looked else ""
    report.add(
        "publishers.dead_letters",
        severity,
        f"the newest {found.looked:,}{more}: {told}; the last one {age(since_ms)} ago",
        subject=expected.dead.name,
        mend=(f"Mend the publisher: {'; '.join(mends)}. " if mends else "") + _LOOK,
        figures={"looked": found.looked, **found.reasons},
    )
