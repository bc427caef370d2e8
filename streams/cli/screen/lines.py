"""Standard output and error without rich: lines of bytes, closed pipes, warnings."""

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

_UNSEEN = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""What JSON may have as it is, and what would move a terminal's cursor or hide text there."""


def write_lines(lines: Sequence[bytes]) -> None:
    """Write lines of JSON to standard output at once, so that a reader sees them as they come.

    A terminal gets what it would obey as JSON's escapes: the values are the same.
    """
    if lines:
        if is_terminal():
            lines = [_shown(line) for line in lines]
        sys.stdout.flush()
        sys.stdout.buffer.write(b"\n".join(lines) + b"\n")
        sys.stdout.buffer.flush()


def _shown(line: bytes) -> bytes:
    text = line.decode("utf-8", "surrogatepass")
    escaped = _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return escaped.encode("utf-8", "surrogatepass")


def write_error(text: str) -> None:
    """Write text to standard error as it is."""
    sys.stderr.write(text)


def is_terminal() -> bool:
    """Return whether people read standard output, not a program or a file."""
    return sys.stdout.isatty()


def discard_output() -> None:
    """Discard what Python still buffers for standard output, so that its flush cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def quiet_pipe() -> Iterator[None]:
    """End silently when the reader of standard output has gone, as `head` does."""
    try:
        yield
    except BrokenPipeError:
        discard_output()
        raise typer.Exit from None


def show_warnings(show: Callable[[str], object]) -> None:
    """Pass the project's own warnings, of unsafe settings, to `show`; leave others as they are."""
    show_other = warnings.showwarning

    def showwarning(
        message: Warning | str,
        category: type[Warning],
        *where: Any,  # noqa: ANN401 -- file, line and more: nothing that a user needs
    ) -> None:
        if category.__module__.partition(".")[0] in {"streams", "contextgauge"}:
            show(str(message))
        else:
            show_other(message, category, *where)

    warnings.showwarning = showwarning  # type: ignore[assignment]  # takes all that it is given
