"""Open transactions: the facts, the check, its severity, and a part of its message."""

from schemas.topics import AGENT_MESSAGES, CONTEXT_EVENTS, CONTEXT_STATE
from streams.flow.doctor import Facts, Severity
from streams.flow.doctor.facts import Unsettled
from tests.doctor.cases import REFUSED, facts, held_up, open_on

TRANSACTION_PROBLEMS: list[tuple[str, Severity, Facts, str]] = [
    (
        "topics.transactions",
        "warning",
        open_on(AGENT_MESSAGES.name, 0, 1),
        "70 s on partition 0, 1 and holds back 80 offsets: that of producer 4000 (epoch 3), with",
    ),
    (
        "topics.transactions",
        "error",
        open_on(CONTEXT_EVENTS.name, 1, timeout_ms=5_000),
        "their-app, which Kafka has not aborted after its timeout of 5 s",
    ),
    (
        "topics.transactions",
        "error",
        open_on(CONTEXT_STATE.name, 1, started_ms=None, timeout_ms=None, transactional_id=None),
        "60 s on partition 1 and holds back 40 offsets: that of producer 4000 (epoch 3), whose",
    ),
    (
        "topics.transactions",
        "note",
        facts(unsettled={(CONTEXT_STATE.name, 1): Unsettled(20, 60, REFUSED)}),
        "holds back 40 offsets on partition 1; its producer is unknown: TopicAuthorization",
    ),
    (
        "derive.lag",
        "warning",
        held_up(open_on(AGENT_MESSAGES.name, 1)),
        "for 70 s; most on partition 1 (40)",
    ),
    (
        "derive.lag",
        "warning",
        held_up(open_on(AGENT_MESSAGES.name, 1)),
        "an open transaction on partition 1",
    ),
    (
        "project.lag",
        "warning",
        held_up(open_on(CONTEXT_EVENTS.name, 0)),
        "an open transaction on partition 0",
    ),
    (
        "conversations.lag",
        "warning",
        held_up(open_on(AGENT_MESSAGES.name, 1)),
        "an open transaction on partition 1",
    ),
]
