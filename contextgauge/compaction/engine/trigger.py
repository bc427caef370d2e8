"""When to compact: a pure step from the last state and the size of the next request.

    below compact_at ............................. Idle, or Warn once
    at compact_at
      a call has no result yet ................... Idle: its result comes first
      no answer since the last compaction ........ Idle: its effect is not known yet
      the fixed part alone reaches it ............ Unreachable once, then Idle
      two compactions did not help ............... Idle until the user's next turn
      a summariser failed a moment ago ........... Idle until the pause is over, or the user's
                                                   next turn where no repetition can mend it
      it was declined ............................ Idle until then or the user's next turn
      else ....................................... Due
    at the window ................................ Due in spite of an unknown effect or a pause
                                                   after a failure, where the conversation grew
                                                   since the last try

A compaction helped if the request of the next answer was below compact_at. After `MAX_UNHELPFUL`
that did not, nothing is tried until the user's next turn: there is no loop of compactions.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from contextgauge.compaction.profiles import Profile, Window, share_of

MAX_UNHELPFUL: Final = 2
"""One failure may be chance, a third would cost without hope."""

FIRST_PAUSE_MS: Final = 30_000
LAST_PAUSE_MS: Final = 600_000
"""Pauses after failed summaries: doubled each time."""


@dataclass(frozen=True, slots=True)
class TriggerLimits:
    """The thresholds for one request, tokens: what is compared with its size."""

    window: Window
    usable_tokens: int
    warn_at_tokens: int | None
    compact_at_tokens: int
    compact_to_tokens: int


def limits_of(profile: Profile, window: Window, reserved_output_tokens: int) -> TriggerLimits:
    """Return the thresholds: shares of the window less the reserves."""
    reserve = profile.output_reserve_tokens
    if profile.count_reserved_output and reserved_output_tokens:
        reserve = reserved_output_tokens
    usable = max(1, window.tokens - profile.system_reserve_tokens - reserve - profile.safety_tokens)
    return TriggerLimits(
        window,
        usable,
        None if profile.warn_at is None else share_of(usable, profile.warn_at),
        share_of(usable, profile.compact_at),
        share_of(usable, profile.compact_to),
    )


@dataclass(frozen=True, slots=True)
class TriggerState:
    """What is remembered from one request to the next; kept with the history.

    `unhelpful` counts compactions in a row whose effect was too small; `stopped_at_turns` is the
    number of the user's turns at which they were given up. `retry_at_ms` ends the pause after
    `failures` failed summaries, in milliseconds since 1970. `declined_at_turns` is the number of
    the user's turns at which a compaction was declined, `final_at_turns` that at which a summariser
    failed with an error that a repetition cannot mend.
    """

    warned: bool = False
    awaiting_effect: bool = False
    unhelpful: int = 0
    stopped_at_turns: int | None = None
    unreachable_reported: bool = False
    failures: int = 0
    retry_at_ms: int | None = None
    tried_at_messages: int | None = None
    declined_at_turns: int | None = None
    final_at_turns: int | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """What one decision is made from.

    `size_tokens` is the size of the next request, `fixed_tokens` the least that it could be:
    system, tools, reserve and what always stays. `messages` counts all messages so far, `turns`
    those of the user. `effect_tokens` is the size that the first answer since the last compaction
    was made from, None where there was no answer yet.
    """

    size_tokens: int
    fixed_tokens: int
    messages: int
    turns: int
    effect_tokens: int | None
    open_calls: bool
    now_ms: int


IdleReason: TypeAlias = Literal[
    "disabled",
    "unknown_window",
    "below_threshold",
    "open_calls",
    "awaiting_effect",
    "threshold_unreachable",
    "no_progress",
    "pause_after_failure",
    "declined",
    "nothing_to_compact",
]


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing to do; `reason` says why."""

    reason: IdleReason


@dataclass(frozen=True, slots=True)
class Warn:
    """The warning threshold is reached for the first time since the last compaction."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """What cannot be compacted reaches the threshold: reported once."""


@dataclass(frozen=True, slots=True)
class Due:
    """A compaction is due. `overflow`: the request does not fit the window."""

    overflow: bool


Decision: TypeAlias = Idle | Warn | Unreachable | Due


def decide(
    state: TriggerState, limits: TriggerLimits, at: Situation
) -> tuple[TriggerState, Decision]:
    """Return the next state and what to do before the next request."""
    state = _judge(state, limits, at)
    if at.size_tokens < limits.compact_at_tokens:
        state = replace(state, unreachable_reported=False)
        is_low = limits.warn_at_tokens is None or at.size_tokens < limits.warn_at_tokens
        if is_low or state.warned:
            return state, Idle("below_threshold")
        return replace(state, warned=True), Warn()
    if at.open_calls:
        return state, Idle("open_calls")
    if at.fixed_tokens >= limits.compact_at_tokens:
        if state.unreachable_reported:
            return state, Idle("threshold_unreachable")
        return replace(state, unreachable_reported=True), Unreachable()
    if state.stopped_at_turns is not None:
        return state, Idle("no_progress")
    if state.declined_at_turns is not None and _in_pause(state, at):
        return state, Idle("declined")
    overflow = at.size_tokens >= limits.usable_tokens
    grown = state.tried_at_messages is None or at.messages > state.tried_at_messages
    if not (overflow and grown) and (reason := _waiting(state, at)):
        return state, Idle(reason)
    return replace(state, tried_at_messages=at.messages), Due(overflow)


def _waiting(state: TriggerState, at: Situation) -> IdleReason | None:
    if state.awaiting_effect:
        return "awaiting_effect"
    failing = state.final_at_turns is not None or _in_pause(state, at)
    return "pause_after_failure" if failing else None


def _in_pause(state: TriggerState, at: Situation) -> bool:
    return state.retry_at_ms is not None and at.now_ms < state.retry_at_ms


def _judge(state: TriggerState, limits: TriggerLimits, at: Situation) -> TriggerState:
    """Judge the last compaction by the request of the first answer since; a turn ends a stop."""
    if state.stopped_at_turns is not None and at.turns > state.stopped_at_turns:
        state = replace(state, stopped_at_turns=None, unhelpful=0)
    if state.declined_at_turns is not None and at.turns > state.declined_at_turns:
        state = replace(state, declined_at_turns=None, retry_at_ms=None)
    if state.final_at_turns is not None and at.turns > state.final_at_turns:
        state = replace(state, final_at_turns=None)
    if not state.awaiting_effect or at.effect_tokens is None:
        return state
    if at.effect_tokens < limits.compact_at_tokens:
        return replace(state, awaiting_effect=False, unhelpful=0)
    unhelpful = state.unhelpful + 1
    return replace(
        state,
        awaiting_effect=False,
        unhelpful=unhelpful,
        stopped_at_turns=at.turns if unhelpful >= MAX_UNHELPFUL else None,
    )


def compacted(state: TriggerState) -> TriggerState:
    """Return the state after a compaction: its effect is judged by the next answer."""
    return replace(
        state,
        warned=False,
        awaiting_effect=True,
        failures=0,
        retry_at_ms=None,
        declined_at_turns=None,
        final_at_turns=None,
    )


def declined(state: TriggerState, now_ms: int, turns: int) -> TriggerState:
    """Return the state after a compaction that was declined: a pause until the next turn, too."""
    return replace(failed(state, now_ms), declined_at_turns=turns)


def failed(
    state: TriggerState,
    now_ms: int,
    retry_after_ms: int | None = None,
    *,
    final_at_turns: int | None = None,
) -> TriggerState:
    """Return the state after a compaction that changed nothing.

    The next attempt is after what the provider asked for, else after a pause that is longer each
    time. `final_at_turns`: no repetition can mend it, so not before the user's next turn.
    """
    pause = min(FIRST_PAUSE_MS << min(state.failures, 10), LAST_PAUSE_MS)
    return replace(
        state,
        failures=state.failures + 1,
        declined_at_turns=None,
        retry_at_ms=None if final_at_turns is not None else now_ms + (retry_after_ms or pause),
        final_at_turns=final_at_turns,
    )
