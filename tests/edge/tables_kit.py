"""Questions of the library, asked of records by hand."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from contextgauge.pricing import price_of
from schemas.records import Record, ReportedReceipt
from streams.core.costs import PriceLookup
from streams.edge.tables.engine import SqlEngine
from streams.edge.tables.folder import ArrowFolder
from streams.edge.tables.questions import question
from streams.flow.export.checkpoint import committed_files
from streams.flow.export.export import Export
from tests.core.history import History


def engine_of(records: Iterable[Record], folder: Path, prices: PriceLookup = price_of) -> SqlEngine:
    """Return an engine over an export of these records."""
    target = ArrowFolder(str(folder), "parquet")
    with Export(target, "parquet", "paths") as export:
        export.add((record, None) for record in records)
        export.commit()
    tables = committed_files(target)
    assert tables is not None
    return SqlEngine(target, tables, prices)


def asked(engine: SqlEngine, sql: str) -> list[dict[str, Any]]:
    """Return the rows of a question by its name, or of a statement."""
    answer = engine.answer(sql if " " in sql else question(sql).sql)
    return [dict(zip(answer.columns, row, strict=True)) for part in answer.rows() for row in part]


class Session(History):
    """A session whose responses have ids of their own, which copies keep."""

    def response(self, used: int, response: str, at: float | None = -1, **more: Any) -> Record:
        """A response, all of it but ten tokens from the cache."""
        return changed(
            self.reading(used, at=at), response_id=response, **{"output_tokens": 1} | more
        )

    def compacted(self, receipt: ReportedReceipt | None = None, **more: Any) -> Record:
        """A boundary with what a service reports of it."""
        return changed(self.boundary(), receipt=receipt, **more)


def changed(record: Record, **fields: Any) -> Record:
    """Return a record with other data."""
    return replace(record, data=replace(record.data, **fields))
