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

from contextgauge.compaction.carried.digest import carry
from contextgauge.compaction.carried.digest_room import within
from contextgauge.compaction.messages import Carried, DigestEntry
from contextgauge.compaction.reading.lines import compacts_inside, is_boundary
from contextgauge.compaction.reading.transcripts import read_conversation
from contextgauge.errors import ConfigError
from contextgauge.json_codec import loads
from streams.cli.hook_rules import session_start, user_prompt_submit

app = typer.Typer(
    help="Answer a hook of Claude Code: carry the user's rules over its compactions.",
    add_completion=False,
)

_FAILED: Final = 1
"""A failure that does not block the compaction."""
_MARKS: Final = (b"compact_boundary", b'"compaction"')
"""What a line that archives has in it: the others need not be parsed for that."""
_MOST_INPUT_BYTES: Final = 1024 * 1024
_MOST_CHARACTERS: Final = 8_000
"""Of the user's turns: about 2,000 tokens, a tenth of what a summary may have."""
_INTRODUCTION: Final = (
    "These are the user's turns, word for word. What they lay down stays in force: write it into "
    "the summary, word for word, under the heading «Rules of the user»; where two turns contradict "
    "each other, the later one holds:"
)


@app.callback()
def hook() -> None:
    """Answer a hook of Claude Code: carry the user's rules over its compactions."""


app.command("session-start")(session_start)
app.command("user-prompt-submit")(user_prompt_submit)


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
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise ConfigError(f"the transcript cannot be read ({error.strerror})") from None


def user_turns(transcript: bytes) -> tuple[DigestEntry, ...]:
    """Return the user's turns, oldest first, from before any compaction."""
    carried = Carried()
    for epoch in _epochs(transcript):
        try:
            conversation = read_conversation(epoch)
        except ConfigError:  # nothing was written yet
            continue
        carried = carry(carried, conversation.request.messages)
    return tuple(each for each in carried.entries if each.speaker == "user" and each.text.strip())


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


def instructions(turns: Sequence[DigestEntry]) -> str:
    """Return the instructions: of too many turns the first and the newest, of long ones a part."""
    lines = [_INTRODUCTION]
    last = 0
    for turn in within(turns, _MOST_CHARACTERS):
        if turn.number > last + 1:
            lines.append(f"[{turn.number - last - 1:,} turns left out]")
        last = turn.number
        omitted = f" [{turn.omitted:,} characters left out] " if turn.omitted else ""
        lines.append(f"{turn.number}. {turn.text}{omitted}{turn.end}")
    return "\n".join(lines)
