"""What all commands print with: two consoles, table cells, JSON.

Results go to standard output and everything else to standard error, so commands can be piped.
"""

from typing import Any

from rich.console import Console
from rich.text import Text

from streams import codec
from streams.cli.screen.figures import GUESS, UNKNOWN, safe
from streams.cli.screen.lines import write_lines

GUESS_EXPLAINED = f"{GUESS} the window is unknown: the default is assumed"

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def say(text: str, style: str = "", *, to: Console | None = None) -> None:
    """Print text that may quote input, on standard error unless `to` says where; never cut."""
    (to or err).print(safe(text), markup=False, soft_wrap=True, style=style)


def cell(text: str | None, style: str = "") -> Text:
    """Return text for a table, without markup; None is `unknown`."""
    return Text(UNKNOWN, style="dim") if text is None else Text(safe(text), style=style)


def write_json(value: Any) -> None:  # noqa: ANN401 -- any JSON value
    """Write one JSON value and a line end to standard output, byte for byte."""
    write_lines([codec.dumps(value)])
