"""`contextgauge export` of paths: what the other commands read, and exports in other formats."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import zstandard
from rich.console import Console

from streams.cli.export import export
from streams.cli.screen import output
from streams.edge.files.status_windows import StatusWindows
from tests.cli.test_hook_compaction import SESSION, Runtime
from tests.commands import Command
from tests.flow.local_view_kit import write_sample
from tests.runtimes import every_runtime

pytestmark = pytest.mark.extended


def answered(command: Command, sql: str, path: Path, **settings: str) -> list[dict[str, Any]]:
    """Return the rows of an answer."""
    done = command("query", "--format", "ndjson", sql, str(path), **settings)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def exported(command: Command, source: Path, to: Path, *options: str, **settings: str) -> None:
    done = command("export", str(source), "--to", str(to), *options, **settings)
    assert done.returncode == 0, done.stderr


def test_an_export_has_what_the_status_line_and_hooks_reported(
    command: Command, tmp_path: Path
) -> None:
    runtime = Runtime(command, tmp_path)
    runtime.respond(160_000)
    StatusWindows(runtime.state).remember(SESSION, "claude-sonnet-4-5", 1_000_000)
    runtime.hook("PreCompact")
    runtime.boundary()
    runtime.hook("PostCompact")
    runtime.respond(20_000)
    exported(command, runtime.path, tmp_path / "tables", STATE_FOLDER=runtime.state)
    for sql in (
        'SELECT "window" FROM context_reading ORDER BY sequence',
        "SELECT * FROM compaction_start ORDER BY sequence",
        "SELECT started, duration_source FROM compactions",
    ):
        rows = answered(command, sql, tmp_path / "tables", STATE_FOLDER=runtime.state)
        assert rows
        assert rows == answered(command, sql, runtime.path, STATE_FOLDER=runtime.state)
    assert {row["window"] for row in answered(command, "FROM context_reading", runtime.path)} == {
        200_000
    }


def test_a_terminal_shows_that_transcripts_are_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGAUGE_STATE_FOLDER", str(tmp_path / "state"))
    shown = io.StringIO()
    monkeypatch.setattr(output, "err", Console(file=shown, force_terminal=True))
    export([str(write_sample(tmp_path / "projects"))], to=str(tmp_path / "tables"))
    assert "reading …" in shown.getvalue()


def test_an_export_is_a_source_of_exports_in_every_format(command: Command, tmp_path: Path) -> None:
    first = tmp_path / "parquet"
    exported(command, write_sample(tmp_path / "projects"), first)
    total = "SELECT count(*) AS n FROM (FROM context_reading UNION ALL BY NAME FROM user_turn)"
    before = first
    for table_format in ("arrow", "csv", "ndjson", "parquet"):
        to = tmp_path / f"from-{before.name}"
        exported(command, before, to, "--format", table_format)
        again = command("export", str(before), "--to", str(to), "--format", table_format)
        assert again.returncode == 0
        before = to
    for sql in (
        "totals",
        "durations",
        total,
        "FROM compact_boundary ORDER BY session_id, sequence",
    ):
        assert answered(command, sql, before) == answered(command, sql, first)


def test_an_export_is_no_source_of_itself(command: Command, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    exported(command, write_sample(tmp_path / "projects"), tables)
    (tmp_path / "link").symlink_to(tables)
    for to in (tables, tmp_path / "link"):
        done = command("export", str(tables), "--to", str(to))
        assert (done.returncode, "cannot be written into itself" in done.stderr) == (2, True)
    done = command("export", str(tables), str(tmp_path / "projects"), "--to", str(tmp_path / "x"))
    assert (done.returncode, "is an export: name it alone" in done.stderr) == (2, True)
    assert not (tmp_path / "x").exists()


def test_an_export_keeps_sessions_whose_transcripts_were_deleted(
    command: Command, tmp_path: Path
) -> None:
    tables, projects = tmp_path / "tables", write_sample(tmp_path / "projects")
    exported(command, projects, tables)
    total = answered(command, "totals", tables)
    deleted = min(projects.rglob("*.jsonl"), key=lambda path: (len(path.parts), path))
    content = deleted.read_bytes()
    deleted.unlink()
    again = command("export", str(projects), "--to", str(tables))
    assert again.returncode == 0
    assert re.search(r"kept \d+ records of 1 other session\n", again.stdout + again.stderr)
    assert answered(command, "totals", tables) == total
    exported(command, projects, tables, "--replace")
    assert answered(command, "totals", tables) == answered(command, "totals", projects) != total
    deleted.write_bytes(content)
    exported(command, projects, tables)
    assert answered(command, "totals", tables) == total


def test_what_a_cut_transcript_lost_stays_in_the_export(command: Command, tmp_path: Path) -> None:
    tables, projects = tmp_path / "tables", write_sample(tmp_path / "projects")
    exported(command, projects, tables)
    total = answered(command, "totals", tables)
    cut = max(projects.rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    cut.write_bytes(b"".join(cut.read_bytes().splitlines(keepends=True)[:-40]))
    again = command("export", str(projects), "--to", str(tables))
    assert (again.returncode, "less is here than what was exported" in again.stderr) == (0, True)
    assert answered(command, "totals", tables) == total
    exported(command, cut, tables, "--even-if-less")
    assert answered(command, "totals", tables) == answered(command, "totals", projects) != total


def test_sessions_of_every_runtime_are_exported_as_they_are_after_they_grew(
    command: Command, tmp_path: Path
) -> None:
    home, tables = tmp_path / "home", tmp_path / "tables"
    every_runtime.write(home)
    whole = {path: path.read_bytes() for path in home.rglob("*.jsonl")}
    for share in (1, 2, 3):
        for path, content in whole.items():
            lines = content.splitlines(keepends=True)
            path.write_bytes(b"".join(lines[: -(-len(lines) * share // 3)]))
        grown = command("export", str(home), "--to", str(tables))
        assert "less is here" not in grown.stderr
    for sql in (
        *("totals", "cost-by-session", "tool-tokens", "SELECT * FROM profits ORDER BY ALL"),
        "SELECT id, rules FROM context_reading ORDER BY ALL",
    ):
        rows = answered(command, sql, tables)
        assert rows
        assert rows == answered(command, sql, home)


def test_nothing_is_replaced_by_what_could_not_be_read(command: Command, tmp_path: Path) -> None:
    tables, projects = tmp_path / "tables", write_sample(tmp_path / "projects")
    exported(command, projects, tables)
    total = answered(command, "totals", tables)
    damaged = min(projects.rglob("*.jsonl"))
    content = zstandard.ZstdCompressor().compress(damaged.read_bytes())
    damaged.rename(damaged.with_suffix(".jsonl.zst")).write_bytes(content[:30])
    done = command("export", str(projects), "--to", str(tables), "--replace")
    assert (done.returncode, "nothing was replaced" in done.stderr) == (1, True)
    assert answered(command, "totals", tables) == total
    assert command("export", str(projects), "--to", str(tables)).returncode == 1
    assert answered(command, "totals", tables) == total
