"""`contextgauge hook threshold`: runs a command and tells the agent once its window is so full.

By the transcript on this machine alone, read on from where the last hook or status line left off.
Nothing stands in the agent's way: whatever goes wrong is one line on standard error, and the exit
code is 0.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Annotated, Final

import typer

from contextgauge.errors import ConfigError
from streams import codec
from streams.cli.hook_input import HookInput, read_hook_input, report
from streams.cli.hook_memory import HookMemory
from streams.cli.screen.figures import exact
from streams.cli.screen.lines import write_lines
from streams.cli.statusline.figures import Figures
from streams.cli.statusline.statusline_command import asked_of

_COMMAND: Final = "threshold"
_RUN_S: Final = 50
"""Claude Code ends a hook after 60 s."""

_STANDARD_ERROR: Final = 2

_FOR_THE_MODEL: Final = frozenset(
    {"UserPromptSubmit", "PostToolUse", "SessionStart", "BeforeAgent", "AfterTool"}
)
"""Events of Claude Code, Codex, Gemini CLI and Qwen Code whose hooks may add to the context."""


def threshold(
    *,
    at: Annotated[
        list[float],
        typer.Option(
            "--at",
            metavar="N",
            min=1,
            max=100,
            help="Percent of the window; several may be given.",
        ),
    ],
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="CMD",
            help="Shell command to run. It gets the figures as JSON on standard input, and as "
            "HOOK_SESSION_ID, HOOK_USED_PERCENT, HOOK_USED_TOKENS, HOOK_WINDOW_TOKENS and "
            "HOOK_AT_PERCENT.",
        ),
    ] = None,
    tell: Annotated[
        bool, typer.Option("--tell/--no-tell", help="Tell the agent how full its window is.")
    ] = True,
) -> None:
    """Run a command, and tell the agent, once its window is N percent full.

    Once for each crossing: again only after the window was less full, as after a compaction. For
    UserPromptSubmit and PostToolUse of Claude Code and Codex, BeforeAgent and AfterTool of Gemini
    CLI: only there the agent can be informed. At other events the command runs, and the agent is
    informed at the next of these. Needs neither Kafka nor Redis.
    """
    if run is None and not tell:
        report(_COMMAND, ConfigError("--no-tell without --run does nothing"))
        return
    try:
        given = read_hook_input()
        figures = _figures(given)
        if figures is None or figures.used_percent is None:
            return
        thresholds = sorted(set(at))
        if tell:
            _tell(given, figures, thresholds)
        if run is not None:
            _run_at(run, given, figures, thresholds)
    except Exception as error:  # noqa: BLE001 -- a hook must not stand in the way
        report(_COMMAND, error)


def _figures(given: HookInput) -> Figures | None:
    """Return the session's figures; None where its size or window is not known."""
    if given.transcript_path is None:
        raise ConfigError("standard input is not a hook's: it has no transcript_path")

    def warn(reason: str) -> None:
        sys.stderr.write(f"contextgauge hook {_COMMAND}: {reason}\n")

    asked = asked_of(given.body, os.environ, lambda _: None, warn)
    return asked.figures()


def _crosses(memory: HookMemory, figures: Figures, at: float) -> bool:
    """Return whether this process is the one that finds a threshold crossed."""
    as_of_ms = figures.as_of_ms
    if as_of_ms is None:  # of messages without times: hooks see them in their order
        as_of_ms = time.time_ns() // 1_000_000
    return memory.crosses(is_above=not _is_below(figures, at), as_of_ms=as_of_ms)


def _is_below(figures: Figures, at: float) -> bool:
    return figures.used_percent is None or figures.used_percent < at


def _run_at(command: str, given: HookInput, figures: Figures, thresholds: list[float]) -> None:
    """Run a person's command for the highest threshold that was crossed since the last hook."""
    memories = {
        percent: HookMemory(f"ran {percent:g} {command}", given.session_id)
        for percent in thresholds
    }
    crossed = [
        percent for percent, memory in memories.items() if _crosses(memory, figures, percent)
    ]
    if crossed:
        _run(command, given, figures, crossed[-1])


def _run(command: str, given: HookInput, figures: Figures, at: float) -> None:
    """Run a person's command. Its output is theirs, and none of the hook's."""
    document = {
        "session_id": given.session_id,
        "used_percent": figures.used_percent,
        "used_tokens": figures.used_tokens,
        "window_tokens": figures.window,
        "at_percent": at,
    }
    named = {f"HOOK_{name.upper()}": str(value) for name, value in document.items() if value}
    document |= {
        "tokens_until_compaction": figures.until_compaction_tokens,
        "transcript_path": given.transcript_path,
        "cwd": given.text("cwd"),
        "hook_event_name": given.event,
    }
    process = subprocess.Popen(  # noqa: S602 -- the person's own command
        command,
        shell=True,
        stdin=subprocess.PIPE,
        stdout=_STANDARD_ERROR,
        env={**os.environ, **named},
        start_new_session=True,
    )
    try:
        process.communicate(codec.dumps(document), timeout=_RUN_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise ConfigError(
            f"the command of --run did not end within {_RUN_S} s: end it with "
            "`>/dev/null 2>&1 &` to let it run on"
        ) from None
    if process.returncode:
        raise ConfigError(f"the command of --run ended with exit code {process.returncode}")


def _tell(given: HookInput, figures: Figures, thresholds: list[float]) -> None:
    """Tell the agent which thresholds were crossed, at an event where that is possible."""
    memories = {
        percent: HookMemory(f"informed {percent:g}", given.session_id) for percent in thresholds
    }
    if given.event not in _FOR_THE_MODEL:
        for percent, memory in memories.items():
            if _is_below(figures, percent):
                _crosses(memory, figures, percent)
        return
    new = [percent for percent, memory in memories.items() if _crosses(memory, figures, percent)]
    if new:
        output = {"hookEventName": given.event, "additionalContext": text_of(figures, new[-1])}
        write_lines([codec.dumps({"hookSpecificOutput": output})])


def text_of(figures: Figures, at: float) -> str:
    """Return what the agent reads."""
    size = f"{int(figures.used_percent or 0)} %"
    if figures.used_tokens is not None and figures.window is not None:
        mark = "about " if figures.window_is_doubtful or figures.is_partial else ""
        size += f" ({mark}{exact(figures.used_tokens)} of {exact(figures.window)} tokens)"
    until = figures.until_compaction_tokens
    text = f"Your context window is {size} full; the user set a mark at {at:g} %."
    if until is None:
        return text
    if until <= 0:
        return f"{text} Automatic compaction is due."
    about = "about " if figures.until_is_estimated else ""
    return f"{text} Automatic compaction comes in {about}{exact(until)} tokens."
