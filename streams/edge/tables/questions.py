"""The library of questions: named SQL over the views of analysis, one file each."""

from importlib.resources import files
from typing import Final, NamedTuple

from contextgauge.errors import ConfigError

_SQL = files(__package__) / "sql"

VIEWS: Final = (
    *(
        "attempts",
        "calls",
        "compactions",
        "costs",
        "epoch_readings",
        "epochs",
        "profits",
        "readings",
    ),
    *("receipts", "sessions", "tools", "user_turns", "warnings"),
)
"""What questions are asked of; `contextgauge query NAME` shows one whole."""

COMPUTED_FIRST: Final = ("repeated_readings", "copied_history", "copied_records")
"""Views with few rows or none that most others use: an engine that computes each use of a view
again had better keep them as tables, in this order."""


class Question(NamedTuple):
    """A named query and what it answers."""

    name: str
    title: str
    sql: str


def views_sql() -> str:
    """Return the SQL that makes the views over one table per kind."""
    return "".join((_SQL / name).read_text("utf-8") for name in ("views.sql", "costs.sql"))


def questions() -> list[Question]:
    """Return the library, by name."""
    return sorted(
        _question(entry.name.removesuffix(".sql"), entry.read_text("utf-8"))
        for entry in (_SQL / "questions").iterdir()
        if entry.name.endswith(".sql")
    )


def question(name: str) -> Question:
    """Return a question by its name. Raises ConfigError where there is none."""
    for each in questions():
        if each.name == name:
            return each
    raise ConfigError(f"no question is named {name!r}: `contextgauge query --list` shows them")


def _question(name: str, text: str) -> Question:
    title, _, sql = text.partition("\n")
    return Question(name, title.removeprefix("-- "), sql.strip())
