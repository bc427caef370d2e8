"""What a report is made of: the answers to its questions, read once each."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streams.cli.report.figures import KEPT, Basis

if TYPE_CHECKING:
    from streams.edge.tables.engine import SqlEngine
    from streams.edge.tables.questions import Question

MOST_ROWS: Final = 1_000
"""Of an answer: years of days. Of a list of sessions, which may have any number, its beginning."""


class FigureAnswer(NamedTuple):
    """The rows of a question, by column; `rows_left_out` were too many to be read."""

    question: "Question"
    columns: Sequence[str]
    rows: Sequence[dict[str, Any]]
    rows_left_out: int


class Stands(NamedTuple):
    """On how many rows of a view a figure stands, of how many that there are.

    `is_unknown`: how many there were is not known, since no such record was derived.
    """

    rows: int
    of: int
    is_unknown: bool = False


class Answers:
    """Asks an engine. Raises ConfigError for an unknown question, StopError for one that fails."""

    def __init__(self, engine: "SqlEngine") -> None:
        engine.keep(KEPT)
        self._engine = engine
        self._answers: dict[str, FigureAnswer] = {}

    def of(self, name: str) -> FigureAnswer:
        """Return the answer to a named question."""
        from streams.edge.tables.questions import question  # noqa: PLC0415 -- with the extra

        if name not in self._answers:
            named = question(name)
            answer = self._engine.answer(named.sql)
            rows: list[dict[str, Any]] = []
            left_out = 0
            for part in answer.rows():
                read = part[: MOST_ROWS - len(rows)]
                rows += [dict(zip(answer.columns, row, strict=True)) for row in read]
                left_out += len(part) - len(read)
            self._answers[name] = FigureAnswer(named, answer.columns, rows, left_out)
        return self._answers[name]

    def stands_on(self, basis: Basis) -> Stands:
        """Return on how many rows a figure stands."""
        # Its parts are this program's own, of the list of figures.
        rows, of = self._counts(
            f"SELECT count(*) FILTER (WHERE {basis.where}), count(*) "  # noqa: S608
            f"FROM {basis.view} WHERE {basis.of}"
        )
        return Stands(rows, of, basis.is_of_content and not self._has_content)

    @cached_property
    def _has_content(self) -> bool:
        """Whether any record is of the content of messages; a session has a turn, or calls."""
        return any(
            self._counts("SELECT (SELECT count(*) FROM tool_use), (SELECT count(*) FROM user_turn)")
        )

    def _counts(self, sql: str) -> tuple[int, ...]:
        (row,) = next(self._engine.answer(sql).rows())
        return row
