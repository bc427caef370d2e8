"""`contextgauge hook`: commands for the hooks of Claude Code's settings.

What a PreCompact hook prints is added to the instructions of the compaction, if it exits with 0;
with 2 it would block it, with any other code nothing happens but a note. So whatever goes wrong
here ends with 1.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import typer

from contextgauge.compaction.engine.cutting import middle_cut
from contextgauge.compaction.reading.lines import compacts_inside, is_boundary
from contextgauge.compaction.reading.transcripts import read_conversation
from contextgauge.errors import ConfigError
from contextgauge.json_codec import loads
from contextgauge.user_folders import expanded
from streams.cli.hook_compaction import compaction
from streams.cli.hook_rules import session_start, user_prompt_submit
from streams.cli.hook_threshold import threshold

app = typer.Typer(
    help="Answer a hook of Claude Code: carry the user's turns over its compactions.",
    add_completion=False,
)

_FAILED: Final = 1
"""A failure that does not block the compaction."""
_MARKS: Final = (b"compact_boundary", b'"compaction"')
"""What a line that archives has in it: the others need not be parsed for that."""
_MOST_INPUT_BYTES: Final = 1024 * 1024
_MOST_CHARACTERS: Final = 8_000
"""Of turns: about 2,000 tokens, a tenth of what a summary may have."""
_MOST_OF_A_TURN: Final = 900
"""Of one turn, so that eight long ones fit."""
_INTRODUCTION: Final = (
    "The user wrote this, in this order; where two turns contradict each other, the later one "
    "holds. Write each of them into the summary, word for word, under the heading «What the user "
    "wrote»:"
)


@app.callback()
def hook() -> None:
    """Answer a hook of Claude Code: carry the user's turns over its compactions."""


app.command("session-start")(session_start)
app.command("user-prompt-submit")(user_prompt_submit)
app.command("threshold")(threshold)
app.command("compaction")(compaction)


@app.command("pre-compact")
def pre_compact() -> None:
    """Print the user's turns as instructions for the compaction that is about to begin.

    Reads the hook's JSON on standard input, and the transcript that it names.
    """
    try:
        turns = user_turns(_transcript(sys.stdin.buffer.read(_MOST_INPUT_BYTES)))
        if turns:
            sys.stdout.write(f"{instructions(turns)}\n")
            sys.stdout.flush()
    except Exception as error:  # noqa: BLE001 -- no failure may block a compaction
        why = error if isinstance(error, ConfigError) else type(error).__name__
        sys.stderr.write(f"contextgauge hook pre-compact: {why}\n")
        raise typer.Exit(_FAILED) from None


def _transcript(given: bytes) -> bytes:
    """Return the transcript of a hook's input. Raises ConfigError."""
    try:
        document = loads(given)
    except ValueError:
        document = None
    path = document.get("transcript_path") if isinstance(document, dict) else None
    if not isinstance(path, str):
        raise ConfigError(
            "no transcript_path on standard input: make it a PreCompact hook of Claude Code"
        )
    try:
        return Path(expanded(path)).read_bytes()
    except OSError as error:
        raise ConfigError(f"the transcript cannot be read ({error.strerror})") from None


def user_turns(transcript: bytes) -> list[str]:
    """Return the user's turns in order, from before any compaction too."""
    turns: list[str] = []
    for epoch in _epochs(transcript):
        try:
            conversation = read_conversation(epoch)
        except ConfigError:  # nothing was written yet
            continue
        turns += [each.user_text for each in conversation.request.messages if each.user_text]
    return turns


def _epochs(transcript: bytes) -> Iterator[bytes]:
    """Yield what was written between two compactions: a compaction archives what is before it."""
    lines: list[bytes] = []
    for line in transcript.splitlines(keepends=True):
        if any(mark in line for mark in _MARKS) and _archives(line):
            yield b"".join(lines)
            lines = []
        lines.append(line)
    yield b"".join(lines)


def _archives(line: bytes) -> bool:
    try:
        document = loads(line)
    except ValueError:
        return False
    return isinstance(document, dict) and (is_boundary(document) or compacts_inside(document))


def instructions(turns: Sequence[str]) -> str:
    """Return the instructions: where there are too many turns, the first and the newest."""
    lines = [f"{n}. {middle_cut(turn, _MOST_OF_A_TURN)}" for n, turn in enumerate(turns, 1)]
    room = _MOST_CHARACTERS - len(lines[0])
    for index in range(len(lines) - 1, 0, -1):
        room -= len(lines[index]) + 1
        if room < 0:
            lines[1 : index + 1] = [f"({index} more)"]
            break
    return "\n".join([_INTRODUCTION, *lines])
