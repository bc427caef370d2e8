"""The doctor: examines the services, read only, and reports what is wrong and how to fix it.

`gather` asks the ports and returns `Facts`; `judge` is pure and returns findings.
"""

from streams.flow.doctor.checks import CHECKS, judge
from streams.flow.doctor.facts import Expected, Facts
from streams.flow.doctor.gather import gather
from streams.flow.doctor.log_facts import Services
from streams.flow.doctor.rules import SEVERITIES, Finding, Severity

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
