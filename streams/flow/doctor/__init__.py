"""The doctor: examines the services, read only, and reports what is wrong and how to fix it.

`gather` asks the ports and returns `Facts`; `judge` is pure and returns findings. One table in
`checks` for each area (`kafka.toml` and so on) has a check's id, why it matters, and its rules; the
module of the same name computes the values that the table refers to. `docs/DOCTOR.md` lists the
checks, and a test compares it to the tables.
"""

from collections.abc import Sequence

from streams.flow.doctor.checks import kafka, publishers, redis, topics, workers
from streams.flow.doctor.facts import Expected, Facts, Services
from streams.flow.doctor.gather import gather
from streams.flow.doctor.rules import SEVERITIES, Finding, Severity, load

__all__ = [
    "CHECKS",
    "SEVERITIES",
    "Expected",
    "Facts",
    "Finding",
    "Services",
    "Severity",
    "gather",
    "judge",
]

CHECKS = (
    *load("kafka", kafka.ITEMS),
    *load("topics", topics.ITEMS),
    *load("publishers", publishers.ITEMS),
    *load("workers", workers.ITEMS),
    *load("redis", redis.ITEMS),
)
"""A closed list of ids that scripts may rely on, in the order of the report."""


def judge(facts: Facts, expected: Expected) -> Sequence[Finding]:
    """Return the findings of all checks, at least one of each."""
    return [finding for check in CHECKS for finding in check.examine(facts, expected)]
