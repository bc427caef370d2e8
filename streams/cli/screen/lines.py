"""Standard output as lines of bytes, for a pipe whose reader may go away."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer


def write_lines(lines: Sequence[bytes]) -> None:
    """Write lines to standard output at once, so that a reader sees them as they come."""
    if lines:
        sys.stdout.buffer.write(b"\n".join(lines) + b"\n")
        sys.stdout.buffer.flush()


def discard_output() -> None:
    """Let what Python still holds for standard output go nowhere, rather than into an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def quiet_pipe() -> Iterator[None]:
    """End without a word when the reader of standard output has gone, as `head` does."""
    try:
        yield
    except BrokenPipeError:
        discard_output()
        raise typer.Exit from None
