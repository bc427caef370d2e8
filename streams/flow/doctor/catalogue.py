"""All checks: a closed catalogue of names that scripts may rely on, each with why it matters.

`docs/DOCTOR.md` has the same table, and a test holds it against this one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["ok", "skipped", "note", "warning", "error"]
"""`skipped`: it could not be looked at, for a reason that is told; `note`: good to know;
`warning`: it works, and will hurt; `error`: something does not work, or is lost."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note", "skipped", "ok")
"""The worst first."""

CheckId: TypeAlias = Literal[
    "kafka.reachable",
    "kafka.access",
    "kafka.brokers",
    "kafka.version",
    "kafka.topic_creation",
    "kafka.message_size",
    "kafka.internal_topics",
    "kafka.session_timeout",
    "kafka.transaction_timeout",
    "topics.present",
    "topics.partitions",
    "topics.replication",
    "topics.in_sync",
    "topics.health",
    "topics.message_size",
    "topics.cleanup",
    "topics.retention",
    "topics.timestamps",
    "topics.segments",
    "topics.elections",
    "publishers.keys",
    "publishers.dead_letters",
    "publishers.clocks",
    "derive.workers",
    "derive.position",
    "derive.lag",
    "project.workers",
    "project.position",
    "project.lag",
    "views.generation",
    "views.format",
    "redis.reachable",
    "redis.access",
    "redis.version",
    "redis.role",
    "redis.cluster",
    "redis.persistence",
    "redis.eviction",
    "redis.memory",
    "redis.fragmentation",
    "redis.latency",
    "redis.rights",
    "clock.redis",
    "clock.kafka",
    "activity.messages",
    "activity.records",
    "activity.views",
]

CHECKS: dict[CheckId, str] = {
    "kafka.reachable": "Every address of the settings is one that a client may begin with: one "
    "that does not answer makes starts slow, and fails them when it is the last.",
    "kafka.access": "What Kafka refuses, no worker can do.",
    "kafka.brokers": "A client is sent on from the first address to the one that each broker "
    "advertises; all of them must be reachable from here.",
    "kafka.version": "Topics are made with a limit on times ahead of the clock, which brokers know "
    "since 3.6.",
    "kafka.topic_creation": "A topic that a broker makes by itself has its default partitions and "
    "retention, and sessions would be on other partitions than their state.",
    "kafka.message_size": "A message of the full size must be copied to the other brokers.",
    "kafka.internal_topics": "The fate of transactions and the offsets of groups are in topics of "
    "Kafka's own: lost with a broker, they stop all workers.",
    "kafka.session_timeout": "A broker refuses members whose session time-out is out of its "
    "bounds: no worker would start.",
    "kafka.transaction_timeout": "A broker refuses producers whose transaction time-out is above "
    "its bound: no derive worker would start.",
    "topics.present": "No worker starts without its topics.",
    "topics.partitions": "A session has one partition of the same number for its messages, records "
    "and state.",
    "topics.replication": "With one copy, the loss of a broker's disk is the loss of the log.",
    "topics.in_sync": "How many copies a write must reach: one only, and an acknowledged batch can "
    "be lost; all of them, and one broker's restart stops the workers.",
    "topics.health": "A partition without a leader can be neither read nor written; one with "
    "copies behind is a failure away from it.",
    "topics.message_size": "A message that is allowed must fit, with the headers that tell where "
    "it came from: a record that does not fit stops the worker.",
    "topics.cleanup": "The state needs its last values for as long as a session is open, and all "
    "other topics need every record.",
    "topics.retention": "What is deleted before it is derived is lost; what is deleted of the "
    "records a rebuild of the views lacks.",
    "topics.timestamps": "A message that was seen live has its time from its publisher's clock, "
    "and sessions are judged idle by it: a clock that is far ahead must be refused.",
    "topics.segments": "Only closed segments are compacted, and a restore reads all that is not: "
    "it is what a worker waits for when it takes a partition over.",
    "topics.elections": "A leader elected out of sync forgets acknowledged records.",
    "publishers.keys": "A message that is not on the partition of its session becomes a dead "
    "letter: one session would have two states.",
    "publishers.dead_letters": "What cannot be derived from is missing in all figures.",
    "publishers.clocks": "A clock that is ahead makes live times wrong, and retention and idleness "
    "late.",
    "derive.workers": "Without a derive worker messages become no records.",
    "derive.position": "A position that the log no longer has stops the worker: what was deleted "
    "before it was derived is lost.",
    "derive.lag": "Messages that wait are not in any figure yet.",
    "project.workers": "Without a project worker records do not reach the views.",
    "project.position": "Views whose position is not in the log cannot go on, and are built anew.",
    "project.lag": "Records that wait are not in the views yet.",
    "views.generation": "Readers see the active generation; one that is being built for long "
    "holds twice the memory.",
    "views.format": "Views of another format or number of partitions cannot be read.",
    "redis.reachable": "All readers read Redis.",
    "redis.access": "What Redis refuses, nobody can read or write.",
    "redis.version": "ZMSCORE, which the project worker uses, is there since 6.2.",
    "redis.role": "A replica refuses writes, and views would stand still.",
    "redis.cluster": "contextgauge works with a single Redis.",
    "redis.persistence": "Without its append-only file a restart empties Redis: the views are "
    "built anew from the log, and nothing is to be seen meanwhile.",
    "redis.eviction": "A Redis that evicts keys loses documents behind the project worker's back: "
    "each loss makes it build all views anew, and readers miss sessions.",
    "redis.memory": "A full Redis refuses writes, and the views fall behind.",
    "redis.fragmentation": "Memory that is held but not used counts for the machine.",
    "redis.latency": "Each batch waits for some round trips.",
    "redis.rights": "A command that is refused in the middle of a batch stops the project worker.",
    "clock.redis": "Ages that are told are differences between this machine's clock and others'.",
    "clock.kafka": "Kafka's retention and its limit on times ahead go by the brokers' clocks.",
    "activity.messages": "When the last message came: no message is no error.",
    "activity.records": "When the last record was derived.",
    "activity.views": "When the last session of the views was active.",
}


Figures: TypeAlias = Mapping[str, float | str | None]
"""What was found, for programs: counts, milliseconds, bytes, names."""

NO_FIGURES: Figures = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found of one thing.

    `subject` is the topic, address or the like that it is about, `found` one sentence with
    figures, `mend` what to do: a command or a setting. `figures` are for programs.
    """

    check: CheckId
    severity: Severity
    found: str
    subject: str = ""
    mend: str = ""
    figures: Figures = field(default_factory=lambda: NO_FIGURES)

    @property
    def why(self) -> str:
        """Why the check matters."""
        return CHECKS[self.check]


class Report:
    """Collects findings."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def add(
        self,
        check: CheckId,
        severity: Severity,
        found: str,
        *,
        subject: str = "",
        mend: str = "",
        figures: Figures = NO_FIGURES,
    ) -> None:
        """Add a finding. Whatever is no `ok` or `skipped` says how to mend it."""
        self.findings.append(Finding(check, severity, found, subject, mend, figures))

    def ok(
        self, check: CheckId, found: str, *, subject: str = "", figures: Figures = NO_FIGURES
    ) -> None:
        """Add what is as it should be."""
        self.findings.append(Finding(check, "ok", found, subject, figures=figures))

    def skip(self, reason: str, *checks: CheckId) -> None:
        """Add checks that could not be made."""
        for check in checks:
            self.add(check, "skipped", reason)

    def has(self, check: CheckId) -> bool:
        """Tell whether anything was found by a check yet."""
        return any(finding.check == check for finding in self.findings)
