"""What all commands print with: two consoles, table cells, JSON.

Results go to standard output and everything else to standard error, so commands can be piped.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from rich.align import AlignMethod
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from streams import codec
from streams.cli.screen.figures import GUESS, UNKNOWN, safe
from streams.cli.screen.lines import is_terminal, write_lines
from streams.core.until_compaction import WindowDoubt

_DOUBTS: Final[Mapping[WindowDoubt, str]] = {
    "assumed": f"{GUESS} the window is unknown: the default is assumed",
    "contradicted": f"{GUESS} the window is doubtful: automatic compactions come far below it",
}
GUESS_EXPLAINED = _DOUBTS["assumed"]
PASSED_EXPLAINED = "/? the window is unknown: the size passed the assumed one"

_UNLIMITED: Final = 1_000_000
"""Columns of a pipe or a file: nothing is cut or wrapped there."""

_RULE: Final = 80
"""Columns of a line across the screen, in a pipe."""


def _console(*, is_error: bool, is_tty: bool) -> Console:
    """Return a console that shows what it is given: no `:name:` becomes a picture."""
    width = None if is_tty else _UNLIMITED
    return Console(stderr=is_error, width=width, emoji=False, highlight=False)


out = _console(is_error=False, is_tty=is_terminal())
err = _console(is_error=True, is_tty=sys.stderr.isatty())


def table_width() -> int:
    """Return the columns that a table has: the screen's; in a pipe or a file those of `COLUMNS`.

    Without `COLUMNS` nothing is cut or wrapped there.
    """
    columns = os.environ.get("COLUMNS", "")
    is_set = not is_terminal() and columns.isdecimal() and int(columns) > 0
    return int(columns) if is_set else out.width


def doubts_explained(doubts: Iterable[WindowDoubt]) -> list[str]:
    """Return what the mark of a guess means, a line for each reason that there is."""
    reasons = set(doubts)
    return [words for doubt, words in _DOUBTS.items() if doubt in reasons]


def reading() -> AbstractContextManager[object]:
    """Show on a terminal that files are being read, while the context lasts."""
    if not err.is_terminal:
        return nullcontext()
    return err.status(Text("reading …"), spinner="line")


def rule(title: str | Text, align: AlignMethod = "center") -> None:
    """Print a title in a line across the screen."""
    width = out.width if is_terminal() else _RULE
    out.print(Rule(title, align=align, style="dim"), width=width)


def say(text: str, style: str = "", *, to: Console | None = None) -> None:
    """Print text that may quote input, on standard error unless `to` says where; never cut."""
    (to or err).print(safe(text), markup=False, soft_wrap=True, style=style)


def cell(text: str | None, style: str = "") -> Text:
    """Return text for a table, without markup; None is `unknown`."""
    return Text(UNKNOWN, style="dim") if text is None else Text(safe(text), style=style)


def write_json(value: Any) -> None:  # noqa: ANN401 -- any JSON value
    """Write one JSON value and a line end to standard output, byte for byte but on a terminal."""
    write_lines([codec.dumps(value)])
