"""The doctor: examines the services, read only, and reports what is wrong and how to fix it.

`gather` asks the ports and returns `Facts`; `judge` is pure and returns findings. Each check is a
function in `checks`, in the module of its subject. `docs/DOCTOR.md` lists the checks, and a test
compares it to them.
"""

from collections.abc import Sequence

from streams.flow.doctor.checks import (
    activity,
    control,
    ingest,
    kafka,
    publishers,
    readers,
    redis,
    topics,
    transactions,
    transcripts,
    views,
    workers,
)
from streams.flow.doctor.facts import Expected, Facts, Services
from streams.flow.doctor.findings import SEVERITIES, Check, Finding, Severity
from streams.flow.doctor.gather import gather

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

CHECKS: tuple[Check, ...] = (
    *kafka.CHECKS,
    *topics.CHECKS,
    *transactions.CHECKS,
    *publishers.CHECKS,
    *ingest.CHECKS,
    *transcripts.CHECKS,
    *workers.CHECKS,
    *views.CHECKS,
    *control.CHECKS,
    *readers.CHECKS,
    *activity.CHECKS,
    *redis.CHECKS,
)
"""A closed list of ids that scripts may rely on, in the order of the report."""


def judge(facts: Facts, expected: Expected) -> Sequence[Finding]:
    """Return the findings of all checks, at least one of each."""
    return [finding for check in CHECKS for finding in check.examine(facts, expected)]
