"""A step of a session, from one state to the next: its parts while messages change them.

The only mutable thing of the core. It begins as a view of an unchangeable session, takes one
message after another, each with the records that it gives, and ends as a new session.
"""

from collections.abc import Mapping
from typing import Final, TypedDict

from contextgauge.normalise.limit_signals import ContextUsage
from contextgauge.normalise.signals import Normal
from schemas.records import MAIN_CHAIN, CompactionComplete, Kind, Record, RecordData
from streams.core.derivation import inherited
from streams.core.derivation.record_ids import Distinction, record_id
from streams.core.derivation.rules_config import Rules
from streams.core.derivation.state import NEW_CHAIN, NEW_SESSION, Chain, Session
from streams.core.times import later

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
    "tool_use",
    "user_turn",
)
"""The order of the records of one message (docs/RULES.md, «Kinds»)."""

_RANKS: Final = {kind: rank for rank, kind in enumerate(RECORD_ORDER)}


NO_MESSAGE: Final = Normal(
    session_id=None,
    cause="",
    own_ms=None,
    live_ms=None,
    agent_id=None,
    parent_id=None,
    sidechain=False,
    subagent_type=None,
    task_id=None,
    signals=(),
)


class CommonFields(TypedDict):
    """The fields of `schemas.records.Common`."""

    session_id: str
    chain: str
    model: str | None
    task_id: str | None
    subagent_type: str | None
    inherited: bool | None


class Step:
    """A session that messages are applied to; see the module.

    What is of the message is set by `begin`: the message itself, and `subject`, the chain that it
    belongs to. `changed` tells whether any message changed the session.
    """

    def __init__(self, rules: Rules, session: Session | None, session_id: str) -> None:
        state = NEW_SESSION if session is None else session
        self.rules = rules
        self.session_id = session_id
        self.changed = False
        self.sequence = state.sequence
        self.applied = state.applied
        self.last_ms = state.last_ms
        self.known = state.known
        # The dictionary is the step's own; its chains are the session's until `edit` copies one.
        self.chains = state.chains.copy()
        self._edited: set[str] = set()
        self.attempt = state.attempt
        self.hint = state.hint
        self.facts = state.facts
        self.last_reset = state.last_reset
        self.was_reset: str | None = None
        self.normal = NO_MESSAGE
        self.subject = MAIN_CHAIN
        self.inherited: bool | None = None
        """True while the message is a copy of another session's (R30), else None."""
        self.gap_ms: int | None = None
        """The time since the latest message of its chain, where both have one."""
        self.limits_touched = False
        self.first_read: str | None = None
        self.has_own_window = False
        self.usage: ContextUsage | None = None
        self.usage_is_new = False
        self.emitted: list[tuple[str, RecordData]] = []
        """The message's records so far: their ids and data."""

    def begin(self, normal: Normal, subject: str) -> None:
        """Begin to apply a message to the chain that it belongs to."""
        self.normal = normal
        self.subject = subject
        self.changed = True
        self.applied += 1
        # Only a reset right before this message makes a second one nothing (R27).
        self.was_reset = self.last_reset
        self.last_reset = None
        self.gap_ms = None
        self.limits_touched = False
        self.first_read = None
        self.has_own_window = False
        self.usage = None
        self.usage_is_new = False
        if subject not in self.chains and len(self.chains) >= MAX_CHAINS:
            self._drop_least_recent()
        chain = self.edit(subject)
        chain.touched = self.applied
        time_ms = normal.time_ms
        if time_ms is not None:
            # Before the chain's latest time becomes that of this message.
            self.gap_ms = None if chain.last_ms is None else time_ms - chain.last_ms
            chain.last_ms = later(chain.last_ms, time_ms)
        kind = normal.subagent_type
        if kind is not None and subject != MAIN_CHAIN:
            chain.subagent_type = kind
        self.inherited = None
        if normal.inherited is not None or chain.thread is not None:
            # None in place of False: records leave the field out.
            self.inherited = inherited.is_inherited(chain, normal) or None

    def name_type(self, chain: str, subagent_type: str) -> None:
        """Note the type of a subagent, whose lines may be read after its result (R2).

        A chain that may never have lines takes the place of no other, and is the first to leave.
        """
        if chain in self.chains or len(self.chains) < MAX_CHAINS:
            self.edit(chain).subagent_type = subagent_type

    def edit(self, name: str) -> Chain:
        """Return a chain that may be changed: that of the session before stays as it is."""
        if name in self._edited:
            return self.chains[name]
        self._edited.add(name)
        chain = self.chains[name] = self.chains.get(name, NEW_CHAIN).copy()
        return chain

    def count_message(self, chain: Chain) -> None:
        """Count a message of the chain (R23): a copy is in its context, but is not its own."""
        chain.messages += 1
        if not self.inherited:
            chain.since_boundary += 1
            chain.total += 1

    def count_once(self, chain: Chain) -> None:
        """Take a message back that was counted twice."""
        chain.messages = max(0, chain.messages - 1)
        chain.since_boundary = max(0, chain.since_boundary - 1)
        chain.total = max(0, chain.total - 1)

    def learn(self, aliases: Mapping[str, str]) -> None:
        """Take what is known of which tool use runs which agent (R2)."""
        if aliases is not self.facts.aliases:
            self.facts = self.facts._replace(aliases=aliases)
            self.changed = True

    def end(self) -> Session:
        """Return the session after all messages. The step is over then."""
        return Session(
            self.sequence,
            self.applied,
            self.last_ms,
            self.known,
            self.chains,
            self.attempt,
            self.hint,
            self.last_reset,
            self.facts,
        )

    def _drop_least_recent(self) -> None:
        """Drop the subagent that was silent longest; the main chain stays."""
        names = (name for name in self.chains if name != MAIN_CHAIN)
        name = min(names, key=lambda name: self.chains[name].touched)
        del self.chains[name]
        # A later message may begin a chain of this name again, which `edit` has to make.
        self._edited.discard(name)

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
            "inherited": self.inherited,
        }

    def record_id(self, chain: str, kind: Kind, extra: Distinction = ()) -> str:
        """Return the id of this message's record of a kind."""
        return record_id(self.session_id, chain, kind, self.normal.cause, extra)

    def emit(self, data: RecordData, extra: Distinction = ()) -> str:
        """Add a record and return its id; see `record_id`."""
        own_id = self.record_id(data.chain, data.kind, extra)
        self.emitted.append((own_id, data))
        return own_id

    def records(self) -> tuple[Record, ...]:
        """Return the envelopes of what was emitted, in the order of the kinds, numbered on."""
        emitted = self.emitted
        if not emitted:
            return ()
        self.emitted = []
        if len(emitted) > 1:
            # A stable sort: records of one kind stay in the order of their emission.
            emitted.sort(key=_rank)
        time_ms, tag, sequence = self.normal.time_ms, self.rules.tag, self.sequence
        records = []
        for own_id, data in emitted:
            sequence += 1
            records.append(Record(own_id, data.chain, time_ms, sequence, tag, data))
        self.sequence = sequence
        return tuple(records)


def _rank(emitted: tuple[str, RecordData]) -> int:
    data = emitted[1]
    unmeasured = isinstance(data, CompactionComplete) and data.tokens_after is None
    return _RANKS[UNMEASURED if unmeasured else data.kind]
