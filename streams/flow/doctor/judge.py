"""All facts in, all findings out: pure, in the catalogue's order, the worst of a check first."""

from collections.abc import Sequence

from streams.flow.doctor.catalogue import CHECKS, SEVERITIES, Finding, Report
from streams.flow.doctor.facts import AHEAD_MS, Expected, Facts
from streams.flow.doctor.judge_flow import judge_flow
from streams.flow.doctor.judge_kafka import judge_kafka
from streams.flow.doctor.judge_publishers import judge_publishers
from streams.flow.doctor.judge_redis import judge_redis
from streams.flow.doctor.judge_topics import judge_topics
from streams.flow.doctor.words import age
from streams.ports.inspection import Failure

_ORDER = {check: number for number, check in enumerate(CHECKS)}


def judge(facts: Facts, expected: Expected) -> Sequence[Finding]:
    """Return what all checks found; each has one finding at least."""
    report = Report()
    judge_kafka(report, facts, expected)
    judge_topics(report, facts, expected)
    judge_publishers(report, facts, expected)
    judge_flow(report, facts, expected)
    judge_redis(report, facts)
    _kafka_clock(report, facts)
    return sorted(
        report.findings,
        key=lambda found: (_ORDER[found.check], SEVERITIES.index(found.severity)),
    )


def _kafka_clock(report: Report, facts: Facts) -> None:
    """Judge by records that the broker stamped; where there are none, nothing is known."""
    keying = facts.keying
    stamped = None if isinstance(keying, Failure) else keying.newest_append_ms
    if stamped is None:
        report.skip(
            "not obtainable: Kafka's protocol tells no time, and no topic is stamped by the broker",
            "clock.kafka",
        )
    elif stamped - facts.now_ms > AHEAD_MS:
        report.add(
            "clock.kafka",
            "warning",
            f"a broker's clock is at least {age(stamped - facts.now_ms)} ahead of this machine's",
            mend="Set the brokers' clocks and this machine's by NTP",
            figures={"ahead_ms": stamped - facts.now_ms},
        )
    else:
        report.ok("clock.kafka", "no record that a broker stamped lies ahead of this clock")
