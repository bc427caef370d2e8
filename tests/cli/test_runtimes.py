"""`contextgauge runtimes`: which runtimes are on this machine, and what their sessions show."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contextgauge.normalise.runtimes import RUNTIMES
from streams.cli.app import app

IDS = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(3)]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for adapter in RUNTIMES:
        for variable in adapter.folders.variables if adapter.folders else ():
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def listed(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["runtimes", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def by_name() -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in json.loads(listed("--json"))}


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")


def test_sessions_are_counted_in_the_folders_that_are_there(home: Path) -> None:
    projects = home / ".claude" / "projects"
    for project in ("a", "b"):
        write(projects / project / f"{IDS[0]}.jsonl")
    write(projects / "a" / f"{IDS[1]}.jsonl")
    write(projects / "a" / IDS[1] / "subagents" / "agent-1.jsonl")
    write(projects / "a" / "agent-2.jsonl")
    write(home / ".codex" / "archived_sessions" / f"rollout-2026-08-16T14-07-04-{IDS[2]}.jsonl")
    runtimes = by_name()
    assert runtimes["Claude Code"]["folders"] == [str(projects)]
    assert {name: each["sessions"] for name, each in runtimes.items() if each["folders"]} == {
        "Claude Code": 2,
        "Codex": 1,
    }
    shown = listed()
    assert "Claude Code  2 sessions" in shown
    assert "Codex  1 session\n" in shown
    assert "Qwen Code  not here" in shown


def test_each_runtime_says_what_its_sessions_show() -> None:
    figures = by_name()["Codex"]["figures"]
    assert figures["size"] == "measured"
    assert figures["threshold"] == "derived"
    assert figures["trigger"] == "unknown"
    assert {len(each["figures"]) for each in by_name().values()} == {len(figures)}
    shown = listed()
    for adapter in RUNTIMES:
        assert adapter.label in shown or adapter.instead is not None
