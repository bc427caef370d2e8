"""The rules applied to one partition's records: a record in, the alerts that it raises out.

What a rule remembers follows from the records alone, so that reading them again comes to the
same alerts, with the same ids:

- *pressure*: an epoch of a chain lasts from one boundary or reset to the next. Of a reading, the
  messages of all time less those of the epoch are how many there were when the epoch began, which
  no other epoch of the chain has in common: that names it, and the alert. An answer to a call that
  began before the boundary says nothing of the epoch after it.
- *stalled*: the attempts that are open, each with its last sign of life.
- *thrash*: the times of a chain's last compactions.

Readings are nine of ten records, and what they raised is known by its id to a memory of what
was sent; so who reads records again only to remember (`recall`) leaves them out.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from schemas.records import (
    CompactBoundary,
    CompactionFailed,
    CompactionProgress,
    CompactionStart,
    ContextExhausted,
    ContextReading,
    Json,
    PinsChecked,
    Record,
    RecordData,
    SessionInfo,
    event_type,
)
from streams.core.alerts.alert import Alert, Who, alert_id
from streams.core.alerts.rules import (
    AlertPlan,
    Condition,
    Exhaustion,
    Failed,
    LostRules,
    Pressure,
    Rule,
    Stalled,
    Thrashing,
)
from streams.core.bounded_memory import BoundedMemory
from streams.core.late_answers import LateAnswers

ConditionKind = TypeVar("ConditionKind", bound=Condition)

MOST_CHAINS: Final = 100_000
"""Of each kind of memory: some tens of megabytes. The chain that was quiet for longest is forgotten
first; what it raised is still known to the memory of the alerts that were sent."""

_NOBODY: Final = Who()

RECALLED_KINDS: Final = frozenset(
    data.kind
    for data in (
        CompactBoundary,
        CompactionFailed,
        CompactionProgress,
        CompactionStart,
        SessionInfo,
    )
)
"""Kinds of records that later alerts can depend on."""

WATCHED_KINDS: Final = RECALLED_KINDS | {
    ContextExhausted.kind,
    ContextReading.kind,
    PinsChecked.kind,
}
"""Kinds of records that can raise an alert, or that one can depend on."""


@dataclass(slots=True)
class _Attempt:
    """An open attempt. `sign_ms` is its last sign of life, by the log's clock.

    Its own clock may be ahead, and would have it never be silent.
    """

    record: Record
    data: CompactionStart | CompactionProgress
    started_ms: int | None
    sign_ms: int
    time_ms: int | None
    alerted_rules: set[str]


class Watch:
    """The memory of one partition: at most `MOST_CHAINS` entries of each kind."""

    def __init__(self, plan: AlertPlan) -> None:
        self._rules, self._max_age_ms = plan.rules, plan.max_age_ms
        self._announced = BoundedMemory[tuple[str, str, str, int], int](MOST_CHAINS)
        self._compacted = BoundedMemory[tuple[str, str, str], tuple[deque[int], bool]](MOST_CHAINS)
        self._attempts = BoundedMemory[str, _Attempt](MOST_CHAINS)
        self._who = BoundedMemory[str, Who](MOST_CHAINS)
        self._late = LateAnswers()

    def observe(self, record: Record, logged_ms: int, now_ms: int) -> list[Alert]:
        """Return the alerts that a record raises. `logged_ms` is its Kafka timestamp.

        Whether they are fresh enough to be sent is for the caller to ask.
        """
        match record.data:
            case SessionInfo() as data:
                self._info(data)
            case data if data.inherited:
                pass  # it was another session's, which raises the alert (R30)
            case ContextReading() as data:
                return list(self._read(record, data, now_ms))
            case CompactionStart() as data:
                self._open(record, data, record.time_ms, logged_ms)
            case CompactionProgress() as data:
                self._progress(record, data, logged_ms)
            case CompactBoundary() as data:
                return list(self._boundary(record, data))
            case CompactionFailed() as data:
                return list(self._failed(record, data))
            case ContextExhausted() as data:
                return list(self._exhausted(record, data))
            case PinsChecked() as data:
                return list(self._pins_checked(record, data))
        return []

    def recall(self, record: Record, logged_ms: int) -> None:
        """Remember what later alerts depend on of a record whose own were dealt with."""
        if record.data.kind in RECALLED_KINDS:
            self.observe(record, logged_ms, logged_ms)

    def due(self, now_ms: int) -> list[Alert]:
        """Return the alerts that time alone raises: attempts that have gone silent."""
        alerts = []
        for attempt in self._attempts.values():
            silent_ms = now_ms - attempt.sign_ms
            start = attempt.data if isinstance(attempt.data, CompactionStart) else None
            for rule, condition in self._rules_for(attempt.data, Stalled):
                if silent_ms >= condition.after_ms and rule.name not in attempt.alerted_rules:
                    facts: dict[str, Json] = {
                        "attempt_id": attempt.data.attempt_id,
                        "started_ms": attempt.started_ms,
                        "last_sign_ms": attempt.time_ms,
                        "silent_ms": silent_ms,
                        "used_tokens": None if start is None else start.used_tokens,
                        "used_percent": None if start is None else start.context_used_percent,
                    }
                    # By the attempt, which its start's id names: however it came to be known.
                    attempt_id = attempt.data.attempt_id
                    alert = replace(
                        self._alert(rule, attempt.record, facts, attempt_id),
                        record_id=attempt_id,
                        record_type=event_type(CompactionStart.kind),
                        time_ms=attempt.time_ms,
                    )
                    if alert.time_ms is None or alert.is_fresh(now_ms, self._max_age_ms):
                        # One too old to be sent may show a sign of life, and fall silent again.
                        attempt.alerted_rules.add(rule.name)
                        alerts.append(alert)
        return alerts

    def clear(self) -> None:
        """Forget all: the records are read again."""
        for memory in (self._announced, self._compacted, self._attempts, self._who, self._late):
            memory.clear()

    def forget(self, before_ms: int) -> None:
        """Drop attempts that were last active before a time: they raise no alert any more."""
        old = [name for name, item in self._attempts.items() if item.sign_ms < before_ms]
        for name in old:
            del self._attempts[name]

    def _read(self, record: Record, data: ContextReading, now_ms: int) -> Iterator[Alert]:
        # Of one that is late the size is another one by now (R34).
        if data.late or self._late.reported(record) or data.window is None or data.window <= 0:
            return
        epoch = data.messages_total - data.messages
        for rule, condition in self._rules_for(data, Pressure):
            if data.used_tokens * 100 < data.window * condition.at_percent:
                continue
            key = (rule.name, data.session_id, data.chain, data.window)
            if self._announced.get(key) == epoch:
                self._announced.move_to_end(key)
                continue
            facts: dict[str, Json] = {
                "at_percent": condition.at_percent,
                "used_percent": data.used_percent,
                "used_tokens": data.used_tokens,
                "window": data.window,
                "window_source": data.window_source,
                "messages": data.messages,
            }
            identity = (data.session_id, data.chain, str(epoch), str(data.window))
            alert = self._alert(rule, record, facts, *identity)
            if alert.is_fresh(now_ms, self._max_age_ms):
                # An old one is not sent, so a later reading of the epoch still has to alert.
                self._announced[key] = epoch
            yield alert

    def _progress(self, record: Record, data: CompactionProgress, logged_ms: int) -> None:
        attempt = self._attempts.get(data.attempt_id)
        if attempt is None:
            # It began before what was read back, and goes on: no more is known of its start.
            known = record.time_ms is not None and data.elapsed_ms is not None
            started_ms = (record.time_ms or 0) - (data.elapsed_ms or 0) if known else None
            self._open(record, data, started_ms, logged_ms)
        else:
            attempt.sign_ms = max(attempt.sign_ms, logged_ms)
            attempt.time_ms = attempt.time_ms if record.time_ms is None else record.time_ms

    def _open(
        self,
        record: Record,
        data: CompactionStart | CompactionProgress,
        started_ms: int | None,
        logged_ms: int,
    ) -> None:
        self._attempts[data.attempt_id] = _Attempt(
            record, data, started_ms, logged_ms, record.time_ms, set()
        )

    def _boundary(self, record: Record, data: CompactBoundary) -> Iterator[Alert]:
        self._late.ended(data)
        if data.attempt_id is not None:
            self._attempts.pop(data.attempt_id, None)
        if record.time_ms is None:
            return
        for rule, condition in self._rules_for(data, Thrashing):
            yield from self._thrash(rule, condition, record, record.time_ms)

    def _thrash(
        self, rule: Rule, condition: Thrashing, record: Record, time_ms: int
    ) -> Iterator[Alert]:
        key = (rule.name, record.data.session_id, record.data.chain)
        times, was_told = self._compacted.get(key, (deque(), False))
        times.append(time_ms)
        while times and times[0] <= time_ms - condition.within_ms:
            times.popleft()
        is_thrash = len(times) >= condition.count
        self._compacted[key] = (times, is_thrash)
        while len(times) > condition.count:
            times.popleft()
        if is_thrash and not was_told:
            facts: dict[str, Json] = {
                "compactions": len(times),
                "within_ms": condition.within_ms,
                "first_ms": times[0],
            }
            yield self._alert(rule, record, facts)

    def _failed(self, record: Record, data: CompactionFailed) -> Iterator[Alert]:
        if data.attempt_id is not None:
            self._attempts.pop(data.attempt_id, None)
        for rule, condition in self._rules_for(data, Failed):
            if data.outcome in condition.outcomes:
                facts: dict[str, Json] = {
                    "attempt_id": data.attempt_id,
                    "outcome": data.outcome,
                    "error": data.error,
                    "duration_ms": data.duration_ms,
                }
                yield self._alert(rule, record, facts)

    def _exhausted(self, record: Record, data: ContextExhausted) -> Iterator[Alert]:
        for rule, condition in self._rules_for(data, Exhaustion):
            if data.reason in condition.reasons:
                yield self._alert(rule, record, {"reason": data.reason})

    def _pins_checked(self, record: Record, data: PinsChecked) -> Iterator[Alert]:
        for rule, condition in self._rules_for(data, LostRules):
            if data.pins_lost >= condition.at_least:
                # Without their texts, which are the user's words.
                facts: dict[str, Json] = {
                    "boundary_id": data.boundary_id,
                    "number": data.number,
                    "pins_kept": data.pins_kept,
                    "pins_lost": data.pins_lost,
                }
                yield self._alert(rule, record, facts)

    def _info(self, data: SessionInfo) -> None:
        who = Who.of(data.publisher_agent_id, data.cwd)
        self._who[data.session_id] = who.or_else(self._who.get(data.session_id, _NOBODY))

    def _rules_for(
        self, data: RecordData, kind: type[ConditionKind]
    ) -> Iterator[tuple[Rule, ConditionKind]]:
        """Yield the rules with a condition of this kind that are for the record's chain."""
        for rule in self._rules:
            condition = rule.condition
            if isinstance(condition, kind) and rule.concerns(
                data.session_id, data.chain, data.model
            ):
                yield rule, condition

    def _alert(self, rule: Rule, record: Record, facts: Mapping[str, Json], *name: str) -> Alert:
        """Return an alert; `name` is what identifies it among the rule's, else the record."""
        data = record.data
        return Alert(
            id=alert_id(rule.name, *(name or (record.id,))),
            rule=rule,
            record_id=record.id,
            record_type=event_type(data.kind),
            session_id=data.session_id,
            chain=data.chain,
            model=data.model,
            who=self._who.get(data.session_id, _NOBODY),
            time_ms=record.time_ms,
            facts=facts,
        )
