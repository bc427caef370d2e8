"""Where a session's figures come from, by runtime: the table of the page and of `docs/RULES.md`."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

OTHER: Final[Mapping[str, str]] = {
    "Size": "reported",
    "Cache written": "if sent",
    "Window": "by name",
    "Compaction threshold": "if sent",
    "Model": "if sent",
    "Folder, version": "if sent",
    "Time": "if sent, else arrival",
    "Subagents": "if sent",
    "Compaction": "if sent",
    "Start": "if sent",
    "Heartbeat": "if sent",
    "Failed attempt": "if sent",
    "Trigger": "if sent",
    "Duration": "if sent",
    "Tokens before": "if sent",
    "Tokens after": "derived",
    "Summary": "if sent",
    "Cost of the summary": "if sent",
}
"""All figures, with what an agent of another make gets: it sends its messages in a known format."""


class FigureColumn(NamedTuple):
    """A format's column. `words` has the figures that differ from `OTHER`, by their words."""

    title: str
    words: Mapping[str, tuple[str, ...]]


def figure_table(columns: Iterable[FigureColumn]) -> list[list[str]]:
    """Return the table's rows: the titles first, then each figure's name and words."""
    by_title = {
        title: {figure: word for word, figures in words.items() for figure in figures}
        for title, words in columns
    }
    rows = [["Figure", *by_title, "Other"]]
    for figure, other in OTHER.items():
        rows.append([figure, *(words.get(figure, other) for words in by_title.values()), other])
    return rows
