"""What readers do not get: the facts, the check, its severity, and a part of its message."""

from schemas.topics import AGENT_MESSAGES, CONTEXT_EVENTS
from streams.flow.doctor import Facts, Severity
from tests.doctor.cases import facts, unreadable
from tests.doctor.transaction_problems import TRANSACTION_PROBLEMS

READING_PROBLEMS: list[tuple[str, Severity, Facts, str]] = [
    *TRANSACTION_PROBLEMS,
    (
        "topics.readable",
        "warning",
        facts(unreadable=[unreadable(AGENT_MESSAGES.name), unreadable(AGENT_MESSAGES.name)]),
        "2 batches cannot be read, the first one on partition 1 from offset 20 to 29: it is",
    ),
    (
        "topics.readable",
        "error",
        facts(unreadable=[unreadable(CONTEXT_EVENTS.name)._replace(next_offset=None)]),
        "1 batch cannot be read, the first one on partition 1 from offset 20 on: it is",
    ),
]
