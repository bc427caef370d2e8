"""Errors of the commands that read the views, which quote ids: an id is input."""

import os
from pathlib import Path

import pytest
import typer

from contextgauge.errors import ConfigError, StopError
from streams import wiring
from streams.cli import sessions
from streams.cli.exits import Exit
from streams.cli.screen.failures import show_failure
from streams.edge.files.folders import write_folder
from streams.edge.memory.view_store import MemoryPartition, MemoryViews
from streams.flow.simulator import SimulationOptions, sample_sessions
from streams.ports import Generations, ViewPosition
from streams.settings import Settings


def test_files_that_cannot_be_read_are_reported_and_the_others_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated = sample_sessions(SimulationOptions(providers=("gemini", "openai")))
    write_folder(tmp_path, ((each.file, each.value) for each in simulated))
    refused, *others = sorted(tmp_path.rglob("*.jsonl"))
    is_refused = {str(refused)}
    monkeypatch.setattr(os, "access", lambda path, _mode: str(path) not in is_refused)
    with pytest.raises(typer.Exit) as ended:
        sessions.sessions([str(tmp_path)])
    captured = capsys.readouterr()
    assert ended.value.exit_code == Exit.STOPPED
    assert captured.err == f"{refused}: cannot be read: Permission denied\n"
    assert refused.stem not in captured.out
    assert all(each.stem in captured.out for each in others)
    is_refused.update(map(str, others))
    with pytest.raises(ConfigError, match="nothing can be read"):
        sessions.sessions([str(tmp_path)])


@pytest.mark.parametrize("separator", ["\n", "\x0b", "\x0c", "\x85", "\u2028", "\r"])
def test_an_id_adds_no_line_to_an_error(
    separator: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    views = MemoryViews()
    views.numbers = Generations(1, None)
    partition = MemoryPartition(ViewPosition(2, 0, 1, caught_up=True, build="test"))
    ids = (f"a{separator}Redis was emptied", "ab")
    partition.held.rankings["recent"] = {each.encode(): 1.0 for each in ids}
    views.partitions[1, 0] = partition
    monkeypatch.setattr(wiring, "settings", lambda: Settings(redis_url="redis://localhost:1"))
    monkeypatch.setattr(wiring, "redis_views", lambda _settings: views)
    with pytest.raises(StopError) as caught:
        sessions.status("a")
    show_failure(caught.value)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("contextgauge: 2 sessions begin with 'a': give more of the id (a")
