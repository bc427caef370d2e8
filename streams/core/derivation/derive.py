"""The one deriver: a session and one message give the next state and the message's records.

Pure and total: no clock, no randomness, no IO, and no message raises. A message that is already
known gives no records (R4).
"""

from collections.abc import Mapping
from typing import Any, Final, assert_never

from contextgauge.normalise.limit_signals import (
    AutoCompact,
    ContextUsage,
    ModelReport,
    OwnWindow,
    RuntimeWindows,
    SubagentResult,
    TurnModel,
)
from contextgauge.normalise.runtimes import OWN_CALL_PREFIXES
from contextgauge.normalise.signals import (
    ROLLED_BACK,
    Boundary,
    CompactionRefused,
    CompactionStatus,
    Exhausted,
    MicroCompaction,
    Normal,
    OwnCall,
    PinCheck,
    Reset,
    Response,
    ResponseEnd,
    SessionFacts,
    Signal,
    Thread,
    Timing,
    TriggerHint,
    TurnEnded,
    UserLine,
)
from schemas.records import MAIN_CHAIN, Record, SessionInfo
from streams.core.derivation import (
    compact_boundaries as boundaries,
)
from streams.core.derivation import (
    compaction_attempts as attempts,
)
from streams.core.derivation import (
    content,
    inherited,
    limits,
    own_calls,
    readings,
)
from streams.core.derivation import (
    known_causes as known,
)
from streams.core.derivation.inherited import Head
from streams.core.derivation.rules_config import Rules
from streams.core.derivation.state import NEW_SESSION, KnownFacts, Session
from streams.core.derivation.step import MAX_CHAINS, Step
from streams.core.derivation.transitions import AttemptEvent
from streams.core.times import later

_SIDECHAIN: Final = "sidechain"
"""Chain of a side line that names no agent (R2)."""

_NOT_MAIN: Final = "agent:main"
"""Chain of a subagent that calls itself `main`: it must not touch the main one (R2)."""

_OF_A_CHAIN: Final = frozenset(
    (
        Response,
        UserLine,
        ResponseEnd,
        Boundary,
        Timing,
        PinCheck,
        MicroCompaction,
        Reset,
        TriggerHint,
        OwnWindow,
        TurnModel,
        Thread,
    )
)
"""Signals that belong to the message's chain; all others are the main chain's (R2)."""

_FACTS: Final = (
    "runtime",
    "runtime_version",
    "model",
    "cwd",
    "forked_from",
    "publisher_agent_id",
    "compaction_settings",
)


def derive(
    rules: Rules, state: Session | None, normal: Normal, session_id: str
) -> tuple[Session, tuple[Record, ...]]:
    """Apply one message to its session.

    Returns the next state and the records in their order. Where nothing was to apply, the state
    comes back as the same object.
    """
    step = Step(rules, state, session_id)
    records = derive_in(step, normal)
    return step.end() if step.changed else state or NEW_SESSION, records


def derive_in(step: Step, normal: Normal) -> tuple[Record, ...]:
    """Apply one message to a session in place, and return its records in their order."""
    return _derive_content(step, normal) if normal.content else _derive_signals(step, normal)


def _derive_content(step: Step, normal: Normal) -> tuple[Record, ...]:
    """Derive a message with what it contains (R35), which changes nothing else of a session."""
    cause = known.cause_hash(normal.cause)
    was_known = known.is_known(step.known, cause)
    records = _derive_signals(step, normal) if normal.signals else ()
    if was_known:
        _refresh(step, cause)
        return records
    if not known.is_known(step.known, cause):
        step.known, step.changed = known.add(step.known, cause), True
    return records + content.measure(step, normal, _chain_of(step.facts, normal)[0])


def _derive_signals(step: Step, normal: Normal) -> tuple[Record, ...]:
    signals = normal.signals
    only_fills, of_a_chain = _survey(signals)
    if only_fills:
        return _fill(step, normal)
    if isinstance(signals[-1], OwnCall):
        return _note_own_call(step, normal, signals[-1])
    cause = known.cause_hash(normal.cause)
    if known.is_known(step.known, cause):
        _refresh(step, cause)
        return ()
    chain, aliases = _chain_of(step.facts, normal)
    step.learn(aliases)
    if chain.startswith(OWN_CALL_PREFIXES):
        return ()
    step.begin(normal, chain if of_a_chain else MAIN_CHAIN)
    time_ms = normal.time_ms
    if time_ms is not None:
        if step.last_ms is not None and time_ms - step.last_ms > attempts.GAP_MS:
            # Before the message itself: it must not revive what the silence ended (R18).
            attempts.move(step, AttemptEvent.GAP)
        # Not the latest time: the log orders messages, and a timestamp may go back (R28). Telemetry
        # is in no order: what is late is no sign that the rest was silent since (R34).
        step.last_ms = later(step.last_ms, time_ms) if normal.is_telemetry else time_ms
    for signal in signals:
        _apply(step, signal)
    if step.limits_touched:
        limits.emit_limits(step)
    step.known = known.add(step.known, cause)
    return step.records()


def _survey(signals: tuple[Signal, ...]) -> tuple[bool, bool]:
    """Return whether a message only fills gaps, and is its chain's."""
    only_fills, of_a_chain = True, False
    for signal in signals:
        if isinstance(signal, SessionFacts):
            only_fills = only_fills and signal.only_new
            continue
        only_fills = False
        of_a_chain = of_a_chain or type(signal) in _OF_A_CHAIN
    return only_fills, of_a_chain


def _refresh(step: Step, cause: bytes) -> None:
    """Take a repeated cause as a new one where it would be forgotten soon."""
    refreshed = known.refresh(step.known, cause)
    if refreshed is not step.known:
        step.known, step.changed = refreshed, True


def _note_own_call(step: Step, normal: Normal, line: OwnCall) -> tuple[Record, ...]:
    """Note a line of a compaction's own call: the boundary that it belongs to tells of it (R11)."""
    cause = known.cause_hash(normal.cause)
    if known.is_known(step.known, cause):
        _refresh(step, cause)
    else:
        own_calls.note(step.edit(MAIN_CHAIN), line, normal.own_ms)
        step.known, step.changed = known.add(step.known, cause), True
    return ()


def _fill(step: Step, normal: Normal) -> tuple[Record, ...]:
    """Take facts that only fill gaps; one that fills none is not remembered: floods have many."""
    facts, step.normal = step.facts, normal
    for signal in normal.signals:
        _apply(step, signal)
    if not step.emitted:
        return ()
    cause = known.cause_hash(normal.cause)
    if known.is_known(step.known, cause):
        # The line was known: what it filled is taken back.
        step.facts, step.emitted = facts, []
        return ()
    step.known, step.changed = known.add(step.known, cause), True
    return step.records()


def _chain_of(facts: KnownFacts, normal: Normal) -> tuple[str, Mapping[str, str]]:
    """Return the message's chain, and what is known of which tool use runs which agent (R2)."""
    aliases = facts.aliases
    parent_id, agent_id = normal.parent_id, normal.agent_id
    if parent_id is None and not normal.sidechain:
        return MAIN_CHAIN, aliases
    if agent_id is None:
        name = _SIDECHAIN if parent_id is None else aliases.get(parent_id, parent_id)
    else:
        name = agent_id
        if parent_id is not None and parent_id not in aliases:
            learned = {**aliases, parent_id: agent_id}
            if len(learned) > MAX_CHAINS:
                # The oldest leaves: there are as many as a session has chains.
                del learned[next(iter(learned))]
            aliases = learned
    return _not_main(name), aliases


def _not_main(name: str) -> str:
    return _NOT_MAIN if name == MAIN_CHAIN else name


def _apply(step: Step, signal: Signal) -> None:  # noqa: C901, PLR0912, PLR0915 -- one arm per signal
    match signal:
        case Response():
            readings.respond(step, signal)
        case UserLine():
            boundaries.user_line(step, signal)
        case ResponseEnd():
            readings.end_response(step, signal)
        case SessionFacts():
            _apply_facts(step, signal)
        case Boundary():
            boundaries.bound(step, signal)
        case Reset():
            boundaries.reset(step, signal)
        case Timing():
            boundaries.apply_timing(step, signal)
        case OwnCall():
            raise AssertionError("derive_in has noted it")
        case PinCheck():
            boundaries.check_pins(step, signal)
        case CompactionStatus(event="COMPACTING"):
            attempts.compacting(step, signal)
        case CompactionStatus():
            attempts.move(step, AttemptEvent[signal.event])
        case CompactionRefused():
            attempts.refused(step, signal)
        case TurnEnded():
            attempts.agent_went_on(step, AttemptEvent.RESULT)
            step.hint = None
        case TriggerHint():
            # Attempts are the main chain's, and so are their hints.
            if step.subject == MAIN_CHAIN:
                step.hint = signal.trigger
        case ModelReport():
            limits.apply_model(step, signal)
        case SubagentResult():
            _take_result(step, signal)
        case TurnModel():
            limits.apply_turn_model(step, signal)
        case Thread():
            _take_head(step, signal)
        case RuntimeWindows():
            limits.apply_windows(step, signal)
        case OwnWindow():
            limits.apply_own_window(step, signal)
        case AutoCompact():
            limits.apply_auto_compact(step, signal)
        case ContextUsage():
            limits.apply_usage(step, signal)
        case Exhausted():
            readings.exhaust(step, MAIN_CHAIN, signal.reason, signal.tokens_over)
        case MicroCompaction():
            readings.micro_compact(step, signal)
        case _:
            assert_never(signal)


def _take_result(step: Step, result: SubagentResult) -> None:
    """Take what a subagent's result says: the type of its chain, whose lines may follow."""
    if result.agent_id is not None and result.subagent_type is not None:
        step.name_type(_not_main(result.agent_id), result.subagent_type)
    if result.model is not None:
        limits.apply_suffixed(step, result.model)


def _take_head(step: Step, head: Thread) -> None:
    """Take a rollout's head (R30)."""
    taken = inherited.begin(step.edit(step.subject), head, step.normal.own_ms)
    if taken is Head.ORIGIN:
        step.inherited = True
    elif taken is Head.ROLLED_BACK:
        boundaries.reset(step, ROLLED_BACK)


def _apply_facts(step: Step, message: SessionFacts) -> None:
    """Take facts of the session; emit them, first and whenever one changes (`session_info`).

    A subagent's line fills what is not known yet but changes nothing: its folder is its own. So
    does a copy of another session's line.
    """
    if step.inherited:
        message = message._replace(only_new=True)
    facts = step.facts
    changed: dict[str, Any] = {}
    for name in _FACTS:
        new, old = getattr(message, name), getattr(facts, name)
        # Empty settings are new only where there were some.
        if new is None or new == old or not (new or old):
            continue
        if old is None or not message.only_new:
            changed[name] = new
    if not changed:
        return
    facts = step.facts = facts._replace(**changed)
    # A window is assumed for some runtimes only.
    step.limits_touched = step.limits_touched or "runtime" in changed
    step.emit(
        SessionInfo(
            **step.common(MAIN_CHAIN, facts.model),
            runtime=facts.runtime,
            runtime_version=facts.runtime_version,
            cwd=facts.cwd,
            forked_from=facts.forked_from,
            publisher_agent_id=facts.publisher_agent_id,
            compaction_settings=facts.compaction_settings,
        )
    )
