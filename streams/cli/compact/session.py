"""`contextgauge compact SESSION`: requests a compaction, and waits for it where it is to."""

import asyncio
import signal
from typing import TYPE_CHECKING, Final

import typer

from contextgauge.errors import StopError
from schemas.commands import CancelRequested, CommandView, CompactRequested, ControlView
from schemas.records import Json
from streams import wiring
from streams.cli.control_plane.connection import CLOCK, ControlPlane, requested_by, with_control
from streams.cli.exits import Exit, by_signal
from streams.cli.screen.commands import (
    compacted_text,
    progress_text,
    receipt_lines,
    result_text,
)
from streams.cli.screen.figures import duration, safe
from streams.cli.screen.output import err, out, say, write_json
from streams.edge.commands import new_id
from streams.serve.views.sessions import SessionLookupError

if TYPE_CHECKING:
    from contextgauge.compaction.history import History

_LOOK_S: Final = 0.5
_PATIENCE_MS: Final = 10_000
"""For a control worker to report for the first time after it was started."""
_WAITS: Final = "the request waits until then, for an hour at most"


def compact_session(
    name: str, instructions: str | None, *, urgent: bool, wait: bool, as_json: bool
) -> None:
    """Request a compaction. Raises StopError, and Exit where it did not succeed."""
    try:
        outcome = with_control(
            lambda plane: _request(
                plane, name, instructions, urgent=urgent, wait=wait, as_json=as_json
            )
        )
    except KeyboardInterrupt:
        say(
            "It goes on without this command. Follow it with "
            f"`contextgauge why {name}`, or cancel it with `contextgauge compact {name} --cancel`."
        )
        raise typer.Exit(by_signal(signal.SIGINT)) from None
    if outcome is not None and outcome != "completed":
        raise typer.Exit(Exit.STOPPED)


async def _request(
    plane: ControlPlane,
    name: str,
    instructions: str | None,
    *,
    urgent: bool,
    wait: bool,
    as_json: bool,
) -> str | None:
    """Send the request; return the outcome, None where nothing was waited for."""
    session_id = (await plane.find(name)).session_id
    command_id = new_id()
    await plane.send(
        CompactRequested(
            session_id=session_id,
            command_id=command_id,
            trigger="manual",
            requested_by=requested_by(),
            instructions=instructions,
            urgent=urgent,
        )
    )
    if not wait:
        if as_json:
            write_json({"session_id": session_id, "command_id": command_id})
        else:
            say(f"Requested: command {command_id} of session {session_id}")
            say(f"Follow it with `contextgauge why {name}`.")
        await plane.warn_of_silence(session_id, _WAITS)
        return None
    if not as_json:
        say("Compacting conversation...")
    command = await _outcome(plane, session_id, command_id)
    if as_json:
        write_json(command)
        return command.outcome
    say(result_text(command))
    for line in receipt_lines(command):
        say(line, to=out)
    receipt = command.receipt or {}
    history = await _compacted(plane, session_id, receipt.get("number"))
    if history is not None:
        for line in compacted_text(receipt, history).splitlines():
            say(line, to=out)
    return command.outcome


async def _compacted(plane: ControlPlane, session_id: str, number: Json) -> "History | None":
    """Return the session's history with a compaction of the service; None where it is not kept."""
    began_ms = CLOCK.now_ms()
    async with wiring.started(wiring.redis_conversations(plane.settings)) as conversations:
        while isinstance(number, int):
            conversation = await conversations.conversation(session_id)
            if conversation is None:
                break
            if conversation.history.rounds >= number:
                return conversation.history
            if CLOCK.now_ms() - began_ms >= _PATIENCE_MS:
                say("`contextgauge conversations` has not stored it yet; its summary follows there")
                break
            await asyncio.sleep(_LOOK_S)
    return None


async def _outcome(plane: ControlPlane, session_id: str, command_id: str) -> CommandView:
    """Return the command once it is finished. Raises StopError where no one carries it out."""
    began_ms, shown = CLOCK.now_ms(), ""
    with err.status("requested …", spinner="line") as status:
        while True:
            command = of(await plane.view(session_id), command_id)
            if command is not None and command.outcome is not None:
                return command
            text = progress_text(command)
            waited_ms = CLOCK.now_ms() - began_ms
            if err.is_terminal:
                status.update(f"{safe(text)} … {duration(waited_ms // 1_000 * 1_000)}")
            elif text != shown:
                say(text)
            shown = text
            silence = await plane.silence(session_id)
            if silence is not None and waited_ms >= _PATIENCE_MS:
                raise StopError(f"{silence}; {_WAITS}")
            await asyncio.sleep(_LOOK_S)


def of(view: ControlView, command_id: str) -> CommandView | None:
    """Return a command of a session."""
    return next((each for each in view.commands if each.command_id == command_id), None)


async def _cancelled_session(plane: ControlPlane, name: str) -> str:
    """Return the session of a name: the views may have lost one that a request waits for."""
    try:
        return (await plane.find(name)).session_id
    except SessionLookupError:
        if not (await plane.view(name)).commands:
            raise
        return name


def cancel_session(name: str) -> None:
    """Cancel the session's open commands. Raises StopError where there is none.

    Where no control worker reads them, what was requested is cancelled once one does.
    """

    async def cancel(plane: ControlPlane) -> None:
        session_id = await _cancelled_session(plane, name)
        view = await plane.view(session_id)
        commands = [each for each in view.commands if each.outcome is None]
        silence = await plane.silence(session_id)
        if not commands and silence is None:
            raise StopError(f"no compaction of {session_id} is under way")
        ids = [each.command_id for each in commands] if silence is None else [None]
        for command_id in ids:
            await plane.send(
                CancelRequested(
                    session_id=session_id, command_id=command_id, requested_by=requested_by()
                )
            )
        for command in commands:
            say(f"Cancelling {command.command_id}: {progress_text(command)}")
        if silence is not None:
            say(
                f"{silence[0].upper()}{silence[1:]}; whatever was requested of {session_id} until "
                "now is cancelled then",
                "yellow",
            )

    with_control(cancel)
