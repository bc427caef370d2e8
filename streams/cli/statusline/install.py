"""Writes the status line into Claude Code's settings, and takes it out again, with consent."""

import os
import shlex
import sys
from pathlib import Path

import typer

from contextgauge.errors import ConfigError, StopError
from streams.cli.screen.output import say
from streams.edge.files.claude_settings import ClaudeSettings, settings_path


def install(*, yes: bool) -> None:
    """Set the status line's command. Raises ConfigError, and StopError without consent."""
    command = own_command(sys.argv[0])
    settings = _settings()
    if settings.command == command:
        say(f"{settings.path}: the status line is installed already")
        return
    say(f"{settings.path}: the status line becomes")
    say(f"  {command}")
    if settings.command is not None:
        say(f"in place of {settings.command}")
    _ask("Write this?", yes=yes)
    settings = _again(settings)
    settings.install(command)
    say("Installed: Claude Code shows it from the next prompt on.")
    if settings.backup.exists():
        say(f"The file as it was: {settings.backup}")
    say("Undo with `contextgauge statusline --uninstall`.")


def uninstall(*, yes: bool) -> None:
    """Restore the status line as it was. Raises ConfigError, StopError."""
    settings = _settings()
    if settings.has_ours:
        former = settings.former_command
        say(f"{settings.path}: the status line {_becomes(former)}")
        _ask("Write this?", yes=yes)
        settings = _again(settings)
    settings.uninstall()
    say("Uninstalled.")


def _settings() -> ClaudeSettings:
    return ClaudeSettings(settings_path(os.environ))


def _again(shown: ClaudeSettings) -> ClaudeSettings:
    """Return the settings as they are after the question: others may have changed meanwhile.

    Raises StopError where it is the status line, of which something else was shown.
    """
    now = _settings()
    if now.command != shown.command:
        raise StopError(f"{now.path}: the status line was changed meanwhile: nothing was written")
    return now


def own_command(program: str) -> str:
    """Return the command that runs the status line from any folder, as this one was started."""
    path = Path(program).absolute()
    words = [str(path)] if path.name == "contextgauge" else [sys.executable, "-m", "streams"]
    return shlex.join([*words, "statusline"])


def _becomes(former: str | None) -> str:
    return "is removed" if former is None else f"becomes again {former}"


def _ask(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("no terminal to ask for consent: pass --yes")
    if not typer.confirm(question, err=True):
        raise StopError("nothing was changed")
