"""A session's commands, folded from `context.commands`, and what its owner has to do next. Pure.

    requested ─▶ accepted ─▶ planned ─▶ called ─▶ finished
        └──────────────────────────────────────────▲

An entry may come several times and in another order than the log's: an owner folds its own entries
as soon as they are committed, and reads them again behind requests that were written before. So no
entry takes a command back, and what is finished stays so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from contextgauge.frozen import copied
from contextgauge.units import HOUR_MS, MINUTE_MS
from schemas.commands import (
    CancelRequested,
    CommandAccepted,
    CommandCalled,
    CommandEntry,
    CommandFinished,
    CommandOutcome,
    CommandPlanned,
    CommandState,
    CommandView,
    CompactionDecided,
    CompactRequested,
    ControlView,
    DecisionView,
    TextDeleted,
    ThresholdsSet,
)
from streams.core.control.short_receipts import short_receipt
from streams.core.control.thresholds import is_removal

MOST_COMMANDS: Final = 20
MOST_DECISIONS: Final = 100
MOST_IDS: Final = 200
"""Ids of finished commands that are remembered: a repeated request is the same one."""

MANUAL_MAX_AGE_MS: Final = HOUR_MS
"""A worker that is started late must not surprise anyone with what was asked for before."""

_RANKS: Final[dict[CommandState, int]] = {
    "requested": 0,
    "accepted": 1,
    "planned": 2,
    "called": 3,
    "finished": 4,
}

TEXT_DELETED: Final = "the session's text was deleted"
CANCELLED: Final = "cancelled on request"


@dataclass(frozen=True, slots=True)
class UnfinishedCommand:
    """A command without an outcome. `attempt` is the last one that was planned or called.

    `is_called`: the runtime's log shows an attempt that has to end there, too.
    """

    request: CompactRequested
    requested_ms: int
    accepted: CommandAccepted | None = None
    accepted_ms: int = 0
    attempt: int = 0
    is_called: bool = False
    cancelled: str | None = None
    """Why it is to be cancelled."""

    @property
    def id(self) -> str:
        """Its id."""
        return self.request.command_id


@dataclass(frozen=True, slots=True)
class SessionControl:
    """What the log says of a session: for readers, and what its owner needs besides."""

    view: ControlView
    open: tuple[UnfinishedCommand, ...] = ()
    """In the order of their requests; at most one is accepted."""
    past: tuple[str, ...] = ()
    """Ids of finished commands, the latest last."""
    thresholds_ms: int = 0
    """When the thresholds were set last."""

    def of(self, command_id: str) -> UnfinishedCommand | None:
        """Return an open command."""
        return next((each for each in self.open if each.id == command_id), None)


def empty(session_id: str) -> SessionControl:
    """Return the state of a session of which the log says nothing."""
    return SessionControl(ControlView(session_id=session_id))


def fold(state: SessionControl, entry: CommandEntry, logged_ms: int) -> SessionControl:
    """Return the state after an entry of its session, whose Kafka time is `logged_ms`."""
    data = entry.data
    if isinstance(data, CompactRequested):
        return _requested(state, data, entry.time_ms)
    if isinstance(data, CancelRequested):
        return _cancelling(state, data.command_id, CANCELLED)
    if isinstance(data, CompactionDecided):
        return _decided(state, data, entry)
    if isinstance(data, ThresholdsSet):
        view = replace(state.view, thresholds=None if is_removal(data) else data)
        return replace(state, view=view, thresholds_ms=entry.time_ms)
    if isinstance(data, TextDeleted):
        before_ms = state.view.text_deleted_ms or 0
        view = replace(state.view, text_deleted_ms=max(before_ms, logged_ms))
        return _cancelling(replace(state, view=view), None, TEXT_DELETED)
    return _stepped(state, data, entry.time_ms)


def _requested(state: SessionControl, data: CompactRequested, time_ms: int) -> SessionControl:
    known = state.of(data.command_id)
    if known is not None and data.urgent and not known.request.urgent:
        return _with_open(state, replace(known, request=replace(known.request, urgent=True)))
    if data.command_id in state.past or any(
        each.command_id == data.command_id for each in state.view.commands
    ):
        return state
    view = copied(CommandView, data, state="requested", requested_ms=time_ms)
    commands = [*state.view.commands, view]
    if len(commands) > MOST_COMMANDS:
        done = next((each for each in commands if each.state == "finished"), None)
        if done is not None:
            commands.remove(done)
    return replace(
        state,
        view=replace(state.view, commands=tuple(commands)),
        open=(*state.open, UnfinishedCommand(data, time_ms)),
    )


def _cancelling(state: SessionControl, command_id: str | None, why: str) -> SessionControl:
    """Mark a command that is open as one to be cancelled; None: all of them."""
    for command in state.open:
        if command.cancelled is None and command_id in {None, command.id}:
            state = _with_view(state, command.id, is_cancelling=True)
            state = _with_open(state, replace(command, cancelled=why))
    return state


def _decided(state: SessionControl, data: CompactionDecided, entry: CommandEntry) -> SessionControl:
    decisions = state.view.decisions
    if any(each.id == entry.id for each in decisions):
        return state
    decision = copied(DecisionView, data, id=entry.id, time_ms=entry.time_ms)
    latest = (*decisions, decision)[-MOST_DECISIONS:]
    return replace(state, view=replace(state.view, decisions=latest))


def _stepped(
    state: SessionControl,
    data: CommandAccepted | CommandPlanned | CommandCalled | CommandFinished,
    time_ms: int,
) -> SessionControl:
    command = state.of(data.command_id)
    if command is None:
        return state
    if isinstance(data, CommandAccepted):
        if command.accepted is not None:
            return state
        state = _with_view(
            state, command.id, state="accepted", accepted_ms=time_ms, driver=data.driver
        )
        return _with_open(state, replace(command, accepted=data, accepted_ms=time_ms))
    if isinstance(data, CommandFinished):
        return _finished(state, data, time_ms)
    if command.accepted is None or data.attempt < command.attempt:
        return state
    is_new = data.attempt > command.attempt
    view = next(each for each in state.view.commands if each.command_id == command.id)
    if isinstance(data, CommandPlanned):
        if not is_new and _RANKS[view.state] >= _RANKS["planned"]:
            return state
        state = _with_view(
            state,
            command.id,
            state="planned",
            planned_ms=time_ms,
            attempt=data.attempt,
            tokens_before=data.tokens_before,
        )
        return _with_open(state, replace(command, attempt=data.attempt))
    if not is_new and view.state == "called":
        return state  # a heartbeat
    state = _with_view(
        state,
        command.id,
        state="called",
        called_ms=time_ms,
        attempt=data.attempt,
        summariser=data.summariser,
    )
    return _with_open(state, replace(command, attempt=data.attempt, is_called=True))


def _finished(state: SessionControl, data: CommandFinished, time_ms: int) -> SessionControl:
    state = _with_view(
        state,
        data.command_id,
        state="finished",
        finished_ms=time_ms,
        attempt=data.attempt,
        outcome=data.outcome,
        reason=data.reason,
        boundary_uuid=data.boundary_uuid,
        receipt=None if data.receipt is None else short_receipt(data.receipt),
    )
    return replace(
        state,
        open=tuple(each for each in state.open if each.id != data.command_id),
        past=(*state.past, data.command_id)[-MOST_IDS:],
    )


def _with_view(state: SessionControl, command_id: str, /, **changes: object) -> SessionControl:
    commands = tuple(
        replace(each, **changes) if each.command_id == command_id else each  # type: ignore[arg-type]  # fields of the view
        for each in state.view.commands
    )
    return replace(state, view=replace(state.view, commands=commands))


def _with_open(state: SessionControl, command: UnfinishedCommand) -> SessionControl:
    commands = tuple(command if each.id == command.id else each for each in state.open)
    return replace(state, open=commands)


@dataclass(frozen=True, slots=True)
class Finish:
    """A command is to be finished at once, without another attempt."""

    command: UnfinishedCommand
    outcome: CommandOutcome
    reason: str


@dataclass(frozen=True, slots=True)
class CarryOut:
    """A command is to be carried out: examined first, unless it is accepted already."""

    command: UnfinishedCommand


Action: TypeAlias = Finish | CarryOut


def actions(
    state: SessionControl, now_ms: int, max_age_ms: int, *, busy: str | None
) -> Sequence[Action]:
    """Return what the owner has to do; `busy` is the command that it begins or carries out.

    An automatic request that is older than `max_age_ms` was made for a conversation that has gone
    on since; a person who asked for something longer ago no longer waits for it.

    At most one of them takes long: one command of a session is begun or carried out at a time.
    """
    todo: list[Action] = []
    current = next((each for each in state.open if each.accepted is not None), None)
    if current is not None and busy is None:
        todo.append(CarryOut(current))
    for command in state.open:
        if command.accepted is not None or command.id == busy:
            continue
        age_ms = now_ms - command.requested_ms
        if command.cancelled is not None:
            todo.append(Finish(command, "cancelled", command.cancelled))
        elif age_ms > (MANUAL_MAX_AGE_MS if command.request.trigger == "manual" else max_age_ms):
            minutes = age_ms // MINUTE_MS
            reason = f"requested {minutes} minutes ago, for a conversation that has gone on since"
            todo.append(Finish(command, "expired", reason))
        elif current is not None:
            reason = f"the session's command {current.id} is not finished: wait, or cancel it"
            todo.append(Finish(command, "refused", reason))
        elif busy is None:
            todo.append(CarryOut(command))
            break
    return todo
