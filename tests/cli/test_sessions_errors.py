"""Errors of the commands that read the views, which quote ids: an id is input."""

import pytest

from contextgauge.errors import StopError
from streams import wiring
from streams.cli import sessions
from streams.cli.screen.failures import show_failure
from streams.edge.memory.views import MemoryPartition, MemoryViews
from streams.ports import Generations, ViewPosition
from streams.settings import Settings


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
    monkeypatch.setattr(wiring, "settings", Settings)
    monkeypatch.setattr(wiring, "redis_views", lambda _settings: views)
    with pytest.raises(StopError) as caught:
        sessions.status("a")
    show_failure(caught.value)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("contextgauge: 2 sessions begin with 'a': give more of the id (a")
