"""`contextgauge runtimes`: the runtimes on this machine, and what their sessions show."""

import os
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from rich.text import Text

from contextgauge.normalise.adapter import Adapter
from contextgauge.normalise.runtimes import RUNTIMES
from contextgauge.normalise.tells import Source, Tells
from schemas.records import Json
from streams.cli.screen.figures import count, safe
from streams.cli.screen.options import AsJson
from streams.cli.screen.output import cell, out, reading, say, write_json
from streams.cli.screen.tables import plain_table
from streams.edge.files.database import titles_in
from streams.edge.files.housekeeping import DATABASES
from streams.edge.files.names import name_of
from streams.edge.files.runtime_folders import folders_of
from streams.edge.files.watch import TranscriptFinder

FIGURES: Final[Mapping[str, str]] = {
    "window": "window",
    "size": "size",
    "start": "start",
    "end": "end",
    "trigger": "trigger",
    "duration": "duration",
    "summary": "summary",
    "own_cost": "own cost",
    "composition": "composition",
    "subagents": "subagents",
    "threshold": "threshold",
}
"""What is known of a session, by the field of `Tells`, and how that is called."""

_STYLES: Final[Mapping[Source, str]] = {Source.MEASURED: "green", Source.UNKNOWN: "dim"}


class PresentRuntime(NamedTuple):
    """A runtime, its folders that are on this machine, and how many sessions are in them."""

    adapter: Adapter
    tells: Tells
    folders: list[str]
    sessions: int

    def as_json(self) -> dict[str, Json]:
        """Return what `--json` prints."""
        return {
            "runtime": self.adapter.runtime,
            "name": self.adapter.label,
            "folders": list(self.folders),
            "sessions": self.sessions,
            "version": self.tells.version,
            "figures": {name: str(value) for name, value in self.tells.sources().items()},
            "note": self.tells.note or None,
        }


def read_runtimes() -> Iterator[tuple[Adapter, Tells]]:
    """Yield the runtimes that are read, by their names."""
    for adapter in sorted(RUNTIMES, key=lambda each: each.label):
        if adapter.tells is not None:
            yield adapter, adapter.tells


def recognised_runtimes() -> list[Adapter]:
    """Return the runtimes that are only recognised, by their names."""
    recognised = (each for each in RUNTIMES if not each.is_read and each.instead is None)
    return sorted(recognised, key=lambda each: each.label)


def runtimes(*, as_json: AsJson = False) -> None:
    """List the runtimes whose sessions are read, and what they show.

    measured: the runtime writes it; derived: a rule gives it from what the runtime writes; unknown:
    its files do not show it.
    """
    with reading():
        rows = [_present(adapter, tells) for adapter, tells in read_runtimes()]
    if as_json:
        write_json([each.as_json() for each in rows])
        return
    _show(rows)


def _present(adapter: Adapter, tells: Tells) -> PresentRuntime:
    folders = [str(each) for each in folders_of(adapter, os.environ) if each.is_dir()]
    files = TranscriptFinder((), folders).look(0.0, _say_unread)
    databases = [each.place for each in files if each.place.endswith(DATABASES)]
    names = [name_of(each.path) for each in files if each.place not in databases]
    sessions = len({name.unit for name in names if name.is_main})
    return PresentRuntime(adapter, tells, folders, sessions + sum(map(_sessions_in, databases)))


def _sessions_in(place: str) -> int:
    try:
        return len(titles_in(place))
    except OSError as error:
        _say_unread(place, error)
        return 0


def _say_unread(place: str, error: OSError) -> None:
    say(f"{safe(place)}: {error.strerror}", "yellow")


def _show(rows: list[PresentRuntime]) -> None:
    for each in rows:
        title = Text(each.adapter.label, style="bold")
        title.append(f"  {count(each.sessions, 'session')}" if each.folders else "  not here", "")
        out.print(title)
        for folder in each.folders:
            say(f"  {safe(folder)}", to=out)
        by_source: dict[Source, list[str]] = {}
        for name, source in each.tells.sources().items():
            by_source.setdefault(source, []).append(FIGURES[name])
        table = plain_table("", "", wrap=("",))
        table.show_header = False
        for source in Source:
            if source in by_source:
                words = cell(f"  {source}", _STYLES.get(source, ""))
                table.add_row(words, cell(", ".join(by_source[source])))
        out.print(table)
        if each.tells.note:
            say(f"  {each.tells.note}", "dim", to=out)
    labels = ", ".join(each.label for each in recognised_runtimes())
    say(f"Recognised, but not read yet: {labels}", to=out)
