"""The doctor: looks into the services, read only, and judges what it finds.

`gather` asks the ports and gives `Facts`; `judge` turns facts into findings and is pure. A check
that could not be made says so, and hides no other.
"""

from streams.flow.doctor.catalogue import CHECKS, SEVERITIES, CheckId, Finding, Severity
from streams.flow.doctor.facts import Expected, Facts
from streams.flow.doctor.gather import Services, gather
from streams.flow.doctor.judge import judge

__all__ = [
    "CHECKS",
    "SEVERITIES",
    "CheckId",
    "Expected",
    "Facts",
    "Finding",
    "Services",
    "Severity",
    "gather",
    "judge",
]
