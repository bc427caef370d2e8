"""Records as events of OpenTelemetry: the names and attributes that a backend sees.

Attributes that the semantic conventions have go by their names, all others begin with
`contextgauge.`. What a user or a model wrote is in none.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from contextgauge.frozen import fields_of
from schemas.records import MAIN_CHAIN, ContextReading, Record
from streams.ports.otel import Attribute, OutgoingEvent, Severity

EVENT_PREFIX: Final = "contextgauge."
RECORD_ID: Final = "log.record.uid"
"""By the conventions, records of the same id are duplicates, which can be dropped."""
RUNTIME: Final = "contextgauge.runtime.name"
TRIGGER: Final = "contextgauge.compaction.trigger"
OUTCOME: Final = "contextgauge.compaction.outcome"
REASON: Final = "contextgauge.reason"
UTILIZATION: Final = "contextgauge.context.utilization"
THRESHOLD: Final = "contextgauge.warning.threshold"

LEFT_OUT: Final = frozenset({"compaction_progress", "compaction_summary", "tool_use", "user_turn"})
"""Kinds that are no event: heartbeats report nothing new, a summary is text, and what messages
contain (R35) is many records for analysts."""

_SEVERITIES: Final[Mapping[str, Severity]] = {
    "context_warning": "warn",
    "compaction_failed": "warn",
    "context_exhausted": "error",
}

_MOST_CHARACTERS: Final = 1_024
"""Of a text: a runtime's error may be a page long."""
_MOST_INTEGER: Final = 2**63 - 1
"""An integer of OTLP has 64 bits; a publisher may write any number."""


def _as_is(value: Any) -> Attribute | None:  # noqa: ANN401 -- any field's value
    if isinstance(value, str):
        # A lone surrogate is no UTF-8, which the protocol wants.
        return value[:_MOST_CHARACTERS].encode("utf-8", "replace").decode()
    if isinstance(value, int) and abs(value) > _MOST_INTEGER:
        return None
    plain: Attribute = value
    return plain


def _seconds(milliseconds: int) -> float:
    return milliseconds / 1_000


def _fraction(percent: float) -> float:
    """Return a percentage as the conventions write it, 1 for all of it."""
    return round(percent / 100, 6)


class _Field(NamedTuple):
    attribute: str
    write: Callable[[Any], Attribute | None] = _as_is


_FIELDS: Final[Mapping[str, _Field]] = {
    "session_id": _Field("gen_ai.conversation.id"),
    "model": _Field("gen_ai.request.model"),
    "publisher_agent_id": _Field("gen_ai.agent.id"),
    "subagent_type": _Field("gen_ai.agent.name"),
    "response_id": _Field("gen_ai.response.id"),
    "cache_creation_tokens": _Field("gen_ai.usage.cache_write.input_tokens"),
    "cache_read_tokens": _Field("gen_ai.usage.cache_read.input_tokens"),
    "output_tokens": _Field("gen_ai.usage.output_tokens"),
    "chain": _Field("contextgauge.chain"),
    "task_id": _Field("contextgauge.task.id"),
    "inherited": _Field("contextgauge.record.inherited"),
    "forked_from": _Field("contextgauge.session.forked_from"),
    "runtime": _Field(RUNTIME),
    "runtime_version": _Field("contextgauge.runtime.version"),
    "used_tokens": _Field("contextgauge.context.tokens"),
    "total_tokens": _Field("contextgauge.context.tokens"),
    "used_percent": _Field(UTILIZATION, _fraction),
    "context_used_percent": _Field(UTILIZATION, _fraction),
    "window": _Field("contextgauge.context.window_tokens"),
    "context_window": _Field("contextgauge.context.window_tokens"),
    "window_source": _Field("contextgauge.context.window_source"),
    "effective_window": _Field("contextgauge.context.effective_window_tokens"),
    "tokens_over": _Field("contextgauge.context.tokens_over"),
    "cleared_input_tokens": _Field("contextgauge.context.cleared_tokens"),
    "messages": _Field("contextgauge.context.messages"),
    "messages_since_last": _Field("contextgauge.context.messages"),
    "threshold_percent": _Field(THRESHOLD, _fraction),
    "auto_compact_enabled": _Field("contextgauge.auto_compaction.enabled"),
    "auto_compact_threshold": _Field("contextgauge.auto_compaction.threshold_tokens"),
    "attempt_id": _Field("contextgauge.compaction.attempt_id"),
    "boundary_id": _Field("contextgauge.compaction.boundary_id"),
    "number": _Field("contextgauge.compaction.number"),
    "trigger": _Field(TRIGGER),
    "trigger_reason": _Field("contextgauge.compaction.trigger_reason"),
    "outcome": _Field(OUTCOME),
    "error": _Field("contextgauge.compaction.error"),
    "pre_tokens": _Field("contextgauge.compaction.tokens_before"),
    "tokens_before": _Field("contextgauge.compaction.tokens_before"),
    "pre_tokens_source": _Field("contextgauge.compaction.tokens_before_source"),
    "post_tokens": _Field("contextgauge.compaction.tokens_kept"),
    "tokens_after": _Field("contextgauge.compaction.tokens_after"),
    "cache_rewrite_tokens": _Field("contextgauge.compaction.cache_write_tokens"),
    "duration_ms": _Field("contextgauge.compaction.duration", _seconds),
    "duration_source": _Field("contextgauge.compaction.duration_source"),
    "idle_ms": _Field("contextgauge.compaction.idle", _seconds),
    "pins_kept": _Field("contextgauge.turns.kept"),
    "pins_lost": _Field("contextgauge.turns.lost"),
    "reason": _Field(REASON),
}
"""By field, whatever the kind: a name has one meaning in all records. Other fields are no
attribute: texts, objects, and what follows from these."""

_OF_READINGS: Final = "gen_ai.usage.input_tokens"
"""By the conventions, the cached parts are included."""

ATTRIBUTES: Final = frozenset(
    {
        RECORD_ID,
        _OF_READINGS,
        "contextgauge.record.sequence",
        *(each.attribute for each in _FIELDS.values()),
    }
)
"""All that an event may have."""


def event_of(record: Record, runtime: str | None, logged_ms: int) -> OutgoingEvent | None:
    """Return the event of a record; None for a kind that is none.

    `runtime` is the session's, where it is known from elsewhere; `logged_ms` is Kafka's time.
    """
    if record.kind in LEFT_OUT:
        return None
    return OutgoingEvent(
        EVENT_PREFIX + record.kind,
        _SEVERITIES.get(record.kind, "info"),
        record.time_ms,
        logged_ms,
        attributes_of(record, runtime),
    )


def attributes_of(record: Record, runtime: str | None) -> dict[str, Attribute]:
    """Return the attributes of a record's event; `runtime` as of `event_of`."""
    known = {} if runtime is None else {RUNTIME: runtime}
    return {**known, **dict(_attributes(record))}


def _attributes(record: Record) -> Iterator[tuple[str, Attribute]]:
    yield RECORD_ID, record.id
    yield "contextgauge.record.sequence", record.sequence
    data = record.data
    if isinstance(data, ContextReading):
        yield _OF_READINGS, data.used_tokens
    for name, value in fields_of(data).items():
        if value is None or name not in _FIELDS:
            continue
        attribute, write = _FIELDS[name]
        if (written := write(value)) is not None:
            yield attribute, written
    if data.chain != MAIN_CHAIN and (agent := _as_is(data.chain)) is not None:
        yield "gen_ai.agent.id", agent
