"""The view of a session: a pure fold of its records, in their order.

`project(None, first)` begins a view, `project(view, next)` goes on. Every field is an absolute
value, so a view that was stored with its position is all that is needed to go on from there.
"""

from collections.abc import Mapping
from typing import Any, Final

from contextgauge.distributions import mean
from contextgauge.frozen import copied, maker, replace
from contextgauge.normalise.signals import ROLLED_BACK
from schemas.records import (
    MAIN_CHAIN,
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionProgress,
    CompactionStart,
    CompactionTiming,
    ContextLimits,
    ContextReading,
    ContextReset,
    Record,
    SessionInfo,
    ToolUse,
    Trigger,
    UserTurn,
)
from schemas.views import (
    LAST_COMPACTIONS,
    MAX_CHAINS,
    AttemptView,
    ChainView,
    CompactionBrief,
    CompactionsView,
    Identity,
    PendingCompaction,
    SessionView,
    UntimedCompaction,
)
from streams.core.projection.chain import begin_epoch, limit, raise_peak, read, settled

_NOBODY = Identity()
_NO_COMPACTIONS = CompactionsView()
_session_view = maker(SessionView)

COUNTED_AS: Final[Mapping[Trigger | None, str]] = {
    "manual": "manual",
    "auto": "automatic",
    "idle": "idle",
    None: "unknown_trigger",
}
"""Fields of a view's and of the aggregates' counts, by what set a compaction off."""


def project(view: SessionView | None, record: Record, offset: int) -> SessionView:
    """Return the view after a record of its session, read at `offset` of its partition.

    A record below the view's position is in it already: then the view itself is returned.
    """
    if view is not None and offset < view.position:
        return view
    data, time_ms = record.data, record.time_ms
    chains = {} if view is None else view.chains
    attempt = None if view is None else view.attempt
    compactions = _NO_COMPACTIONS if view is None else view.compactions
    identity = _NOBODY if view is None else view.identity
    if type(data) is ContextReading:  # most are: no attempt or compaction changes
        chain = chains.get(data.chain) or ChainView(chain=data.chain)
        compacting = attempt is not None and attempt.chain == data.chain
        chains = _with_chain(chains, read(chain, record, data, compacting=compacting))
    elif isinstance(data, SessionInfo):
        identity = _identify(identity, data)
    elif not isinstance(data, ToolUse | UserTurn):  # these are for analysts alone
        compactions = _compactions(compactions, record, attempt, chains.get(data.chain))
        attempt = _attempt(attempt, record)
        chains = _with_chain(chains, _chain(chains.get(data.chain), record, attempt))
    if data.task_id is not None and data.task_id != identity.task_id:
        identity = replace(identity, task_id=data.task_id)
    first_ms, last_ms = (None, None) if view is None else (view.first_ms, view.last_ms)
    return _session_view(
        session_id=data.session_id,
        position=offset + 1,
        sequence=record.sequence,
        first_ms=time_ms if first_ms is None else first_ms,
        # Times may go back (R28): the latest one is when the session was last active.
        last_ms=time_ms if last_ms is None else max(last_ms, time_ms or 0),
        identity=identity,
        chains=chains,
        attempt=attempt,
        compactions=compactions,
    )


def attempted_trigger(attempt: AttemptView | None) -> Trigger | None:
    """Return what set an attempt off, in a boundary's words, as far as its start reported it."""
    if attempt is None or attempt.trigger_reason is None:
        return None
    return "manual" if attempt.trigger_reason == "manual" else "auto"


def _identify(identity: Identity, data: SessionInfo) -> Identity:
    return Identity(
        runtime=data.runtime or identity.runtime,
        runtime_version=data.runtime_version or identity.runtime_version,
        model=data.model or identity.model,
        cwd=data.cwd or identity.cwd,
        forked_from=data.forked_from or identity.forked_from,
        task_id=identity.task_id,
        publisher_agent_id=data.publisher_agent_id or identity.publisher_agent_id,
        compaction_settings=(
            identity.compaction_settings
            if data.compaction_settings is None
            else data.compaction_settings
        ),
    )


def _with_chain(chains: dict[str, ChainView], chain: ChainView) -> dict[str, ChainView]:
    """Return the chains with this one; of too many the least recent leaves, never main (R2)."""
    after = {**chains, chain.chain: chain}
    if len(after) > MAX_CHAINS:
        others = (other for name, other in after.items() if name != MAIN_CHAIN)
        del after[min(others, key=lambda other: other.last_sequence).chain]
    return after


def _chain(before: ChainView | None, record: Record, attempt: AttemptView | None) -> ChainView:
    data, time_ms = record.data, record.time_ms
    chain = ChainView(chain=data.chain) if before is None else before
    compacting = attempt is not None and attempt.chain == chain.chain
    match data:
        case ContextLimits():
            chain = limit(chain, data, time_ms)
        case ContextReset():
            messages = chain.messages if data.reason == ROLLED_BACK.reason else 0
            chain = replace(begin_epoch(chain, time_ms), messages=messages)
        case CompactBoundary():
            chain = _bound(chain if data.inherited else raise_peak(chain, data), record, data)
        case CompactionComplete():
            chain = replace(chain, pending=None)
        case CompactionTiming() if awaits(chain, data):
            chain = replace(chain, untimed=None)
        case _:
            pass
    return replace(
        chain,
        model=data.model or chain.model,
        subagent_type=data.subagent_type or chain.subagent_type,
        oldest_ms=time_ms if chain.oldest_ms is None else chain.oldest_ms,
        state="compacting" if compacting else settled(chain),
        last_sequence=record.sequence,
    )


def awaits(chain: ChainView | None, data: CompactionTiming) -> bool:
    """Return whether a timing is that of the chain's latest boundary without a duration."""
    untimed = None if chain is None else chain.untimed
    return untimed is not None and untimed.boundary_id == data.boundary_id


def _bound(chain: ChainView, record: Record, data: CompactBoundary) -> ChainView:
    """Return the chain after a boundary, which may still get a measurement and a duration."""
    untimed = chain.untimed
    if data.duration_ms is None:
        untimed = copied(UntimedCompaction, data, boundary_id=record.id, time_ms=record.time_ms)
    pending = PendingCompaction(boundary_id=record.id, number=data.number)
    chain = replace(begin_epoch(chain, record.time_ms), messages_total=data.messages_total)
    return replace(chain, pending=pending, untimed=untimed, latest=pending)


def _attempt(attempt: AttemptView | None, record: Record) -> AttemptView | None:
    """Return the open attempt after a record; one whose end never comes stays open (R18)."""
    data = record.data
    match data:
        case CompactionStart():
            return AttemptView(
                attempt_id=data.attempt_id,
                chain=data.chain,
                trigger_reason=data.trigger_reason,
                started_ms=record.time_ms,
                last_heartbeat_ms=None,
                elapsed_ms=None,
                used_tokens=data.used_tokens,
                used_percent=data.context_used_percent,
            )
        case CompactionProgress() if attempt and attempt.attempt_id == data.attempt_id:
            return replace(attempt, last_heartbeat_ms=record.time_ms, elapsed_ms=data.elapsed_ms)
        case CompactBoundary() | CompactionFailed() if attempt and _ends(attempt, record, data):
            return None
        case _:
            return attempt


def _ends(attempt: AttemptView, record: Record, data: CompactBoundary | CompactionFailed) -> bool:
    """Return whether an outcome is the attempt's.

    A subagent's is not, nor is one that came late, from before the attempt (R34).
    """
    if attempt.chain != data.chain:
        return False
    time_ms, started_ms = record.time_ms, attempt.started_ms
    if data.attempt_id is not None or time_ms is None or started_ms is None:
        return True
    return time_ms >= started_ms


def _compactions(
    before: CompactionsView, record: Record, attempt: AttemptView | None, chain: ChainView | None
) -> CompactionsView:
    data = record.data
    match data:
        case CompactBoundary():
            return _succeeded(before, record, data, None if chain is None else chain.window)
        case CompactionFailed() if not data.inherited:
            return replace(
                before,
                failed=before.failed + 1,
                last=(*before.last, _failure(record, data, attempt))[-LAST_COMPACTIONS:],
            )
        case CompactionComplete():
            return _change(
                before,
                data.boundary_id,
                tokens_after=data.tokens_after,
                tokens_saved=data.tokens_saved,
            )
        case CompactionTiming():
            return _change(
                before,
                data.boundary_id,
                duration_ms=data.duration_ms,
                duration_source=data.duration_source,
            )
        case _:
            return before


def _change(before: CompactionsView, boundary_id: str, **changes: Any) -> CompactionsView:  # noqa: ANN401 -- fields of a brief
    """Return the compactions with changes to the one of this boundary, if it is among the last."""
    last = tuple(
        replace(brief, **changes) if brief.record_id == boundary_id else brief
        for brief in before.last
    )
    return replace(before, last=last)


def _succeeded(
    before: CompactionsView, record: Record, data: CompactBoundary, window: int | None
) -> CompactionsView:
    brief = copied(
        CompactionBrief,
        data,
        record_id=record.id,
        outcome="succeeded",
        error=None,
        time_ms=record.time_ms,
        tokens_before=data.pre_tokens,
        tokens_after=None,
        tokens_saved=None,
        inherited=data.inherited is True,
        window=window,
    )
    last = (*before.last, brief)[-LAST_COMPACTIONS:]
    if data.inherited:
        # A subagent's copies are of its own session, where they are among the last already.
        is_main = data.chain == MAIN_CHAIN
        return replace(before, inherited=before.inherited + 1, last=last) if is_main else before
    name = COUNTED_AS[data.trigger]
    counted: dict[str, Any] = {name: getattr(before, name) + 1}
    after = replace(
        before,
        messages=before.messages + data.messages_since_last,
        last=last,
        **counted,
    )
    count = after.manual + after.automatic + after.idle + after.unknown_trigger
    return replace(after, messages_per_compaction=mean(after.messages, count))


def _failure(
    record: Record, data: CompactionFailed, attempt: AttemptView | None
) -> CompactionBrief:
    return CompactionBrief(
        record_id=record.id,
        chain=data.chain,
        number=None,
        outcome=data.outcome,
        trigger=attempted_trigger(attempt),
        error=data.error,
        time_ms=record.time_ms,
        tokens_before=None if attempt is None else attempt.used_tokens,
        tokens_after=None,
        tokens_saved=None,
        duration_ms=data.duration_ms,
        duration_source=None if data.duration_ms is None else "paired",
        messages_since_last=None,
    )
