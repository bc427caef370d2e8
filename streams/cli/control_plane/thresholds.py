"""`contextgauge thresholds`: when sessions are compacted, for one, an agent or a project."""

from typing import Annotated, cast

import typer

from contextgauge.errors import ConfigError
from schemas.commands import ThresholdScope, ThresholdsSet
from streams.cli.control_plane.connection import (
    ControlPlane,
    one_scope,
    requested_by,
    with_control,
)
from streams.cli.screen.commands import thresholds_text
from streams.cli.screen.options import AsJson
from streams.cli.screen.output import out, say, write_json
from streams.core.control.thresholds import check_entry, is_removal

_SIZE = "Share of the window (85%) or tokens (120000)"


def thresholds(
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="SESSION",
            show_default=False,
            help="Of a session: its ID or a unique prefix of it. Without other options, what is "
            "set for it is shown.",
        ),
    ] = None,
    *,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of all sessions of an agent.")
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of all sessions in a folder: its path, or its name."),
    ] = None,
    compact_at: Annotated[
        str | None, typer.Option(metavar="SIZE", help=f"{_SIZE} from which on to compact.")
    ] = None,
    compact_to: Annotated[
        str | None, typer.Option(metavar="SIZE", help=f"{_SIZE} that a compaction aims at.")
    ] = None,
    automatic: Annotated[
        bool | None,
        typer.Option("--automatic/--no-automatic", help="Whether to compact automatically."),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove what was set: the service's file holds.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Set when sessions are compacted, or show what is set for one.

    For a SESSION, or for all sessions of an --agent or a --project. What is not given is as the
    service's file says; a session beats a project, a project an agent. Each call replaces what was
    set before for the same name.
    """
    option, name = one_scope([("SESSION", session), ("--agent", agent), ("--project", project)])
    scope = cast("ThresholdScope", option.removeprefix("--").lower())
    entry = ThresholdsSet(
        scope=scope,
        name=name,
        requested_by=requested_by(),
        automatic=automatic,
        compact_at=compact_at,
        compact_to=compact_to,
    )
    check_entry(entry)
    if remove and not is_removal(entry):
        raise ConfigError("--remove goes with no other threshold")
    if is_removal(entry) and not remove:
        if scope != "session":
            raise ConfigError("set --compact-at, --compact-to or --automatic, or --remove")
        _show(name, as_json=as_json)
        return
    with_control(lambda plane: _set(plane, entry))


def _show(name: str, *, as_json: bool) -> None:
    async def show(plane: ControlPlane) -> None:
        session_id = (await plane.find(name)).session_id
        view = await plane.view(session_id)
        if as_json:
            write_json(view.thresholds)
        else:
            say(f"{session_id}: {thresholds_text(view.thresholds)}", to=out)
        await plane.warn_of_silence(
            session_id, "thresholds that none has read wait in the log, and are not shown"
        )

    with_control(show)


async def _set(plane: ControlPlane, entry: ThresholdsSet) -> None:
    name = entry.name
    if entry.scope == "session":
        name = (await plane.find(name)).session_id
        entry = ThresholdsSet(
            scope="session",
            name=name,
            requested_by=entry.requested_by,
            automatic=entry.automatic,
            compact_at=entry.compact_at,
            compact_to=entry.compact_to,
        )
    await plane.send(entry)
    what = "removed" if is_removal(entry) else thresholds_text(entry)
    say(f"{entry.scope} {name}: {what}; it holds from the next reading on")
