"""The notebook of `examples/` runs from the first cell to the last, on an export."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from streams.cli.inputs import sources_of
from streams.cli.transcripts import Replay
from streams.edge.files.folders import write_folder
from streams.edge.tables.folder import ArrowFolder
from streams.flow.export.export import Export
from streams.flow.simulator import SimulationOptions, sample_sessions
from tests.docs.test_docs import ROOT

pytestmark = pytest.mark.extended

NOTEBOOK = ROOT / "examples" / "compactions.ipynb"


def test_every_cell_runs_and_shows_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = sample_sessions(SimulationOptions())
    write_folder(tmp_path / "projects", ((each.file, each.value) for each in sessions))
    folder = ArrowFolder(str(tmp_path / "tables"), "parquet")
    with Export(folder, "parquet", "paths") as made:
        for records in Replay(sources_of([str(tmp_path / "projects")]), processes=1).records():
            made.add((record, None) for record in records)
        made.commit()
    monkeypatch.setenv("TABLES", str(tmp_path / "tables"))
    names: dict[str, Any] = {}
    shown = 0
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
        body = ast.parse("".join(cell["source"])).body
        shows = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), str(NOTEBOOK), "exec"), names)  # noqa: S102 -- as a kernel does
        if isinstance(shows, ast.Expr):
            value = eval(compile(ast.Expression(shows.value), str(NOTEBOOK), "eval"), names)  # noqa: S307
            assert value.shape[1] > 0
            shown += 1
    assert shown > 20
    assert (names["responses"], names["compactions"]) == (0, 0)
    assert len(names["own"]) > 0
