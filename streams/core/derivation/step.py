"""One message's derivation under way: the session's parts, and the records so far.

The only mutable thing of the core. It lives inside one call of `derive`, starts as a view of the
immutable session and ends as a new one.
"""

from typing import Final, TypedDict

from contextgauge.normalise.signals import ContextUsage, Normal
from schemas.records import MAIN_CHAIN, CompactionComplete, Kind, Record, RecordData
from streams.core.derivation.record_ids import record_id
from streams.core.derivation.rules_config import Rules
from streams.core.derivation.state import NEW_CHAIN, Chain, Session

MAX_CHAINS: Final = 64
"""Chains of a session, the main one included; the least recent subagent's leaves (R2)."""


UNMEASURED: Final = "compaction_complete without a reading"

RECORD_ORDER: Final = (
    "session_info",
    "compaction_failed",
    "compaction_start",
    "compaction_progress",
    "context_reset",
    UNMEASURED,
    "compact_boundary",
    "compaction_timing",
    "compaction_summary",
    "pins_checked",
    "context_limits",
    "context_edit",
    "context_reading",
    "compaction_complete",
    "context_warning",
    "context_exhausted",
)
"""The order of the records of one message (docs/RULES.md, «Kinds»)."""

_RANKS: Final = {kind: rank for rank, kind in enumerate(RECORD_ORDER)}


class CommonFields(TypedDict):
    """The fields of `schemas.records.Common`."""

    session_id: str
    chain: str
    model: str | None
    task_id: str | None
    subagent_type: str | None


class Step:
    """The session while one message is applied to it; see the module."""

    def __init__(
        self, rules: Rules, session: Session, session_id: str, normal: Normal, subject: str
    ) -> None:
        self.rules = rules
        self.session_id = session_id
        self.normal = normal
        self.subject = subject
        self.chains = session.chains.copy()
        self._edited: list[str] = []
        self.attempt = session.attempt
        self.hint = session.hint
        self.facts = session.facts
        self.was_reset = session.last_reset
        self.last_reset: str | None = None
        self.limits_touched = False
        self.first_read: str | None = None
        self.has_own_window = False
        self.usage: ContextUsage | None = None
        self.usage_is_new = False
        self.emitted: list[tuple[str, RecordData]] = []
        """The records' ids and data."""
        self._touch(subject, session.applied + 1)

    def _touch(self, name: str, applied: int) -> None:
        if name not in self.chains and len(self.chains) >= MAX_CHAINS:
            self._drop_least_recent()
        chain = self.edit(name)
        chain.touched = applied
        kind = self.normal.subagent_type
        if kind is not None and name != MAIN_CHAIN:
            chain.subagent_type = kind

    def edit(self, name: str) -> Chain:
        """Return a chain that may be changed: the session's own stays as it is."""
        if name in self._edited:
            return self.chains[name]
        self._edited.append(name)
        chain = self.chains[name] = self.chains.get(name, NEW_CHAIN).copy()
        return chain

    def _drop_least_recent(self) -> None:
        """Drop the subagent that was silent longest; the main chain stays."""
        names = (name for name in self.chains if name != MAIN_CHAIN)
        del self.chains[min(names, key=lambda name: self.chains[name].touched)]

    @property
    def main(self) -> Chain:
        """The main chain; a session that began with a subagent may not have stored it yet."""
        return self.chains.get(MAIN_CHAIN, NEW_CHAIN)

    def common(self, name: str, model: str | None) -> CommonFields:
        """Return the fields that every record's data begins with."""
        chain = self.chains.get(name, NEW_CHAIN)
        return {
            "session_id": self.session_id,
            "chain": name,
            "model": model,
            "task_id": self.normal.task_id,
            "subagent_type": chain.subagent_type,
        }

    def record_id(self, chain: str, kind: Kind, *extra: str | int | None) -> str:
        """Return the id of this message's record of a kind."""
        return record_id(self.session_id, chain, kind, self.normal.cause, *extra)

    def emit(self, data: RecordData, *extra: str | int | None) -> str:
        """Add a record and return its id; see `record_id`."""
        own_id = self.record_id(data.chain, data.kind, *extra)
        self.emitted.append((own_id, data))
        return own_id

    def records(self, sequence: int) -> tuple[Record, ...]:
        """Return the envelopes in the order of the kinds, numbered after `sequence`."""
        emitted = self.emitted
        if not emitted:
            return ()
        if len(emitted) > 1:
            emitted.sort(key=_rank)
        time_ms, tag = self.normal.time_ms, self.rules.tag
        records = []
        for own_id, data in emitted:
            sequence += 1
            records.append(Record(own_id, data.chain, time_ms, sequence, tag, data))
        return tuple(records)


def _rank(emitted: tuple[str, RecordData]) -> int:
    data = emitted[1]
    unmeasured = isinstance(data, CompactionComplete) and data.tokens_after is None
    return _RANKS[UNMEASURED if unmeasured else data.kind]
