"""Hooks that hand back what the user wrote and the summary of a compaction lost.

They never stand in the way: whatever goes wrong is one line on standard error, and the exit code
is 0.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from contextgauge.addresses import session_address
from contextgauge.units import MINUTE_MS
from streams import codec
from streams.cli.api_client import SERVE_URL, ApiClient, NotFoundError, TokenFile
from streams.cli.hook_input import read_hook_input, report
from streams.cli.hook_memory import HookMemory
from streams.cli.screen.lines import write_lines

MOST_CHARACTERS: Final = 1_900
"""Runtimes put a longer text into a file, and show its beginning to the model."""

RECENT_MS: Final = 10 * MINUTE_MS
"""A boundary that is older is not the one that a session starts again after."""

_REQUEST_S: Final = 2.0
_LOOK_EVERY_S: Final = 0.5
"""The agent waits for the hook meanwhile."""
_COMMANDS: Final = {"SessionStart": "session-start", "UserPromptSubmit": "user-prompt-submit"}

_INTRODUCTION: Final = (
    "The user wrote this earlier in this session, in this order. The summary of the conversation "
    "seems to have left it out:"
)

Url = Annotated[str, typer.Option("--url", metavar="URL", help="Address of `contextgauge serve`.")]


def session_start(
    *,
    url: Url = SERVE_URL,
    token_file: TokenFile = None,
    wait: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, max=60, help="How long to wait for the check."),
    ] = 8.0,
) -> None:
    """Hand back what the user wrote and the summary of a compaction lost.

    For SessionStart with the matcher `compact`. Needs `contextgauge control` and kept
    conversations; other session starts do nothing.
    """
    _run("SessionStart", url, token_file, wait, lambda given: given.get("source") == "compact")


def user_prompt_submit(*, url: Url = SERVE_URL, token_file: TokenFile = None) -> None:
    """Hand lost turns back with the user's next prompt, once after each compaction.

    For UserPromptSubmit: also for runtimes that ignore what SessionStart prints after a compaction.
    """
    _run("UserPromptSubmit", url, token_file, 0.0, lambda _: True)


def _run(
    event: str,
    url: str,
    token_file: Path | None,
    wait_s: float,
    concerns: Callable[[Mapping[str, Any]], bool],
) -> None:
    """Print the turns that were lost, if any. Never raises."""
    try:
        given = read_hook_input()
        if not concerns(given.body):
            return
        memory = HookMemory(event, given.session_id)
        server = ApiClient(url, token_file, _REQUEST_S)
        rules = _await_rules(server, given.session_id, memory, wait_s)
        if rules is None:
            return
        if rules["lost_pins"]:
            text = context_of(rules["lost_pins"], rules["pins_lost"])
            output = {"hookEventName": event, "additionalContext": text}
            write_lines([codec.dumps({"hookSpecificOutput": output})])
        memory.write(rules["boundary_id"])
    except Exception as error:  # noqa: BLE001 -- a hook must not stand in the way
        report(_COMMANDS[event], error)


def context_of(lost: list[str], count: int) -> str:
    """Return the text for the model, as many turns as there is room for."""
    lines = [_INTRODUCTION]
    for turn in lost:
        line = f"- {' '.join(turn.split())}"
        if sum(map(len, lines)) + len(line) + len(lines) > MOST_CHARACTERS:
            break
        lines.append(line)
    more = count - (len(lines) - 1)
    return "\n".join([*lines, f"({more} more: ask the user)"] if more > 0 else lines)


def _await_rules(
    server: ApiClient, session_id: str, memory: HookMemory, wait_s: float
) -> dict[str, Any] | None:
    """Return what was checked of a boundary that was not handled yet; None: there is none.

    A session that is not published is not waited for.
    """
    until_s = time.monotonic() + wait_s
    while True:
        answer = _ask(server, f"/v1/sessions/{session_address(session_id)}/rules")
        rules: dict[str, Any] | None = None if answer is None else answer["rules"]
        if (
            rules is not None
            and rules["pins_kept"] is not None
            and memory.read() != rules["boundary_id"]
            and (wait_s == 0 or _is_recent(rules["time_ms"]))
        ):
            return rules
        if time.monotonic() >= until_s or (answer is None and not _is_behind(server)):
            return None
        time.sleep(_LOOK_EVERY_S)


def _is_recent(time_ms: int | None) -> bool:
    return time_ms is None or time.time() * 1_000 - time_ms <= RECENT_MS


def _ask(server: ApiClient, path: str) -> dict[str, Any] | None:
    """Return an answer; None where what is asked for is not known."""
    try:
        return server.get(path)
    except NotFoundError:
        return None


def _is_behind(server: ApiClient) -> bool:
    """Return whether records wait that may be of a session that is not known yet."""
    projection = _ask(server, "/v1/projection")
    as_of = {"stale": True} if projection is None else projection["as_of"]
    return bool(as_of["stale"] or as_of["lag_records"])
