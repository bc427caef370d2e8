"""One frame of `contextgauge top`: its head and its rows agree, live sessions first."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from contextgauge.clock import SystemClock
from schemas.records import Record
from streams.cli.top.frame import once
from streams.cli.top.top_command import SessionSource
from streams.edge.files.session_files import SessionFiles
from streams.edge.memory.view_store import MemoryPartition, MemoryViews
from streams.flow.simulator import SimulationOptions, sample_sessions
from streams.ports import Generations, ViewPosition
from streams.serve.views.sessions import Sessions, active_sessions
from tests.cli.views_kit import records_of
from tests.doubles.dump import fold_records

NOW_MS = SystemClock().now_ms()


class StoppedClock(SystemClock):
    """However long the tests before took: what is live is so by the time they began."""

    def now_ms(self) -> int:
        return NOW_MS


def _records() -> list[Record]:
    return records_of(
        (each.value, each.session_id) for each in sample_sessions(SimulationOptions())
    )


async def _sessions(records: list[Record]) -> Sessions:
    """Return sessions in memory."""
    store = MemoryViews()
    (dump,) = fold_records(records, 1)
    position = ViewPosition(len(records), 0, 1, caught_up=True)
    store.partitions[1, 0] = MemoryPartition(position, dump)
    store.numbers = Generations(1, None)
    return await active_sessions(store, StoppedClock())


async def _frame(
    sessions: Sessions, limit: int = 100, local: SessionFiles | None = None
) -> list[str]:
    async def titles(session_ids: Sequence[str]) -> Mapping[str, str]:
        return {} if local is None else local.titles(session_ids)

    source = SessionSource(MemoryViews(), limit, titles)
    overview = await source.overview(sessions, "pressure")
    console = Console(width=300, color_system=None, file=io.StringIO())
    with console.capture() as captured:
        console.print(once(overview, NOW_MS, 300))
    # No project worker is at work, which a line says.
    head, warning, *rest = captured.get().splitlines()
    assert "no project worker" in warning
    return [head, *rest]


async def test_a_session_without_times_is_of_unknown_age() -> None:
    records = [replace(record, time_ms=None) for record in _records()]
    head, _, *rows = await _frame(await _sessions(records))
    assert head.endswith("newest record of unknown time")
    assert rows
    assert all(row.rstrip().endswith(" unknown") for row in rows)


async def test_live_sessions_are_in_the_frame_even_if_stale_ones_are_fuller() -> None:
    records = _records()
    live = records[-1].data.session_id
    now = [
        replace(record, time_ms=NOW_MS) if record.data.session_id == live else record
        for record in records
    ]
    _, _, first, *_ = await _frame(await _sessions(now), limit=1)
    assert first.startswith(live[:8])


async def test_titles_come_from_local_transcripts(tmp_path: Path) -> None:
    records = _records()
    session_id = records[0].data.session_id
    line = '{"type": "user", "message": {"role": "user", "content": "Fix the parser"}}\n'
    (tmp_path / f"{session_id}.jsonl").write_text(line)
    sessions = await _sessions(records)
    shown = "".join(await _frame(sessions, local=SessionFiles([tmp_path])))
    assert shown.count("Fix the parser") == 1
    assert "Fix the parser" not in "".join(await _frame(sessions))
