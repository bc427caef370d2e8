"""`contextgauge install`: hooks, status line and MCP server in a runtime's settings, and out again.

Shows the change and asks first. What is written is read again after the question: others may have
changed the files meanwhile.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from contextgauge.errors import ConfigError, StopError
from streams.cli.install.entries import SettingsEntry, add, foreign, is_installed, remember, remove
from streams.cli.install.runtimes import INSTALLATIONS, InstallPart, Placed, Runtime, placed
from streams.cli.screen.output import say
from streams.edge.files.settings_document import Settings, SettingsDocument

_ANY_PERCENT: Final = 100.0
"""Hooks at any threshold are taken out."""


def install(
    runtime: Annotated[Runtime, typer.Argument(metavar="RUNTIME", help="Whose settings.")],
    *,
    only: Annotated[
        list[InstallPart] | None,
        typer.Option("--only", metavar="PART", help="Only this part; several may be given."),
    ] = None,
    at: Annotated[
        float | None,
        typer.Option(
            "--at",
            metavar="N",
            min=1,
            max=100,
            show_default=False,
            help="Also a hook that tells the agent once its window is N percent full.",
        ),
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Take out what was installed; all else stays.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Write hooks, status line and MCP server into the settings of an agent's runtime.

    RUNTIME is claude-code, codex or gemini; PART is status-line (of Claude Code), hooks or mcp.
    Shows the change, and asks first. All other settings stay, and a copy of each file is stored
    next to it until --undo.
    """
    if undo and at is not None:
        raise ConfigError("--undo takes the hooks out at any percentage: leave out --at")
    program = _program(sys.argv[0])
    every = placed(runtime, os.environ, program, _ANY_PERCENT)
    parts = every if undo else placed(runtime, os.environ, program, at)
    wanted = _chosen(runtime, parts, only or (), undo=undo)
    changes = _changes(every, wanted, undo=undo)
    if not any(each.is_change for each in changes):
        if undo:
            raise StopError(f"nothing that was installed is in the settings of {runtime}")
        say(f"{runtime}: installed already")
        return
    _show(changes)
    _ask(yes=yes)
    again = _changes(every, wanted, undo=undo)
    if [each.replaced for each in again] != [each.replaced for each in changes]:
        raise StopError("the settings were changed meanwhile: nothing was written")
    for each in again:
        each.document.refuse_if_changed()
    for each in again:
        each.write()
    _say_what_next(runtime, again, undo=undo)


class _Change(NamedTuple):
    """A file, the text that it is to have, and what of other programs that replaces."""

    document: SettingsDocument
    text: bytes | None
    replaced: Sequence[object]
    remains: bool
    """Whether something that was installed is in the file then."""
    has_former: bool
    """Whether the copy, if there is one, is of the file before anything was installed."""

    @property
    def is_change(self) -> bool:
        return self.text != self.document.text

    def write(self) -> None:
        """Write the file, if it changes. Raises ConfigError."""
        if self.is_change:
            self.document.write(self.text, keep_former=self.remains, has_former=self.has_former)


def _chosen(
    runtime: Runtime, every: Sequence[Placed], only: Sequence[InstallPart], *, undo: bool
) -> list[Placed]:
    """Return what is to be written. Raises ConfigError for a part that is not there."""
    has_sdk = find_spec("mcp") is not None
    missing = set(only) - {each.part for each in every}
    if missing:
        raise ConfigError(f"{runtime} has no {', '.join(sorted(missing))}")
    if undo or has_sdk:
        return [each for each in every if not only or each.part in only]
    sdk = "the MCP SDK is not installed: install 'contextgauge[pipeline,mcp]'"
    if InstallPart.mcp in only:
        raise ConfigError(f"{sdk}, then run this again")
    say(f"Without the MCP server: {sdk}, then run this again", "yellow")
    return [
        each
        for each in every
        if each.part is not InstallPart.mcp and (not only or each.part in only)
    ]


def _changes(every: Sequence[Placed], wanted: Sequence[Placed], *, undo: bool) -> list[_Change]:
    """Return what is to be written to each file. Raises ConfigError for one that is not valid."""
    changes = []
    for path in dict.fromkeys(each.path for each in wanted):
        document = SettingsDocument(path)
        own = [each.entry for each in every if each.path == path]
        entries = [each.entry for each in wanted if each.path == path]
        former = document.former()
        has_former = undo or (former is not None and _is_any(own, document, former))
        replaced = [foreign(document.settings, each) for each in entries]
        if not undo and has_former and former is not None:
            _remember(document, former, zip(entries, replaced, strict=True))
        text = _removed(document, entries) if undo else _added(document, entries)
        remains = not undo or _is_any(own, document, former)
        changes.append(_Change(document, text, replaced, remains, has_former))
    return changes


def _remember(
    document: SettingsDocument, former: Settings, replaced: Iterable[tuple[SettingsEntry, object]]
) -> None:
    """Have the copy have what is replaced now: it may be newer than what the copy has."""
    try:
        for entry, value in replaced:
            if value is not None:
                remember(former, entry, value)
    except ConfigError as error:
        raise ConfigError(f"{document.backup}: {error}") from None
    document.set_former(former)


def _is_any(
    entries: Sequence[SettingsEntry], document: SettingsDocument, former: Settings | None
) -> bool:
    return any(is_installed(document.settings, entry, former) for entry in entries)


def _added(document: SettingsDocument, entries: Sequence[SettingsEntry]) -> bytes:
    try:
        for each in entries:
            add(document.settings, each)
    except ConfigError as error:
        raise ConfigError(f"{document.path}: {error}") from None
    return document.with_settings(document.settings)


def _removed(document: SettingsDocument, entries: Sequence[SettingsEntry]) -> bytes | None:
    former = document.former()
    there = [each for each in entries if is_installed(document.settings, each, former)]
    if not there:
        return document.text
    for each in there:
        remove(document.settings, each, former)
    return document.restored(document.settings)


def _show(changes: Sequence[_Change]) -> None:
    for each in changes:
        for line in each.document.diff(each.text) if each.is_change else ():
            colour = {"+": "green", "-": "red"}.get(line[:1], "")
            say(line, colour)


def _ask(*, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("no terminal to ask for consent: pass --yes")
    if not typer.confirm("Write this?", err=True):
        raise StopError("nothing was changed")


def _say_what_next(runtime: Runtime, changes: Sequence[_Change], *, undo: bool) -> None:
    if undo:
        say("Taken out.")
        return
    backups = [each.document.backup for each in changes]
    for each in backups:
        if each.exists() and each.stat().st_size:
            say(f"The file as it was: {each}")
    say(f"Installed. Undo with `contextgauge install {runtime} --undo`.")
    if notice := INSTALLATIONS[runtime][1].notice:
        say(notice)


def _program(started: str) -> list[str]:
    """Return what runs contextgauge from any folder, as this command was started."""
    path = Path(started).absolute()
    return [str(path)] if path.name == "contextgauge" else [sys.executable, "-m", "streams"]
