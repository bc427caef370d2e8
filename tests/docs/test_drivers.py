"""DRIVERS.md: its configuration is read as it stands, and its example runs."""

import asyncio
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from contextgauge.clock import SystemClock
from streams.edge.drivers.tables import drivers_of
from streams.ports.control import DriverResult
from tests.commands import command_environment
from tests.docs.test_docs import DOCS, _blocks, _rows, _section
from tests.docs.test_library import CLAUDE
from tests.e2e.test_publisher import create, written
from tests.patience import PATIENCE_S

TEXT = (DOCS / "DRIVERS.md").read_text(encoding="utf-8")


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    (text,) = _blocks(TEXT, "toml")
    password = tmp_path / "password"
    password.write_text("pa55")
    text = text.replace("/run/secrets/opencode", str(password))
    drivers = drivers_of(tomllib.loads(text)["drivers"], SystemClock())
    assert list(drivers) == ["codex", "opencode", "claude-code"]


def test_the_outcomes_are_those_of_the_code() -> None:
    documented = {row[0].strip("`") for row in _rows(_section(TEXT, "Results"))}
    assert documented == set(get_args(DriverResult.__annotations__["outcome"]))


@pytest.mark.extended
def test_the_example_runs(tmp_path: Path, kafka: str, topic_prefix: str) -> None:
    asyncio.run(create(kafka, topic_prefix))
    (tmp_path / "claude_agent_sdk.py").write_text(CLAUDE)
    (example,) = _blocks(TEXT, "python")
    settings = {"BOOTSTRAP_SERVERS": kafka, "TOPIC_PREFIX": topic_prefix}
    environment = command_environment(settings)
    paths = [str(tmp_path), environment.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["AssistantMessage", "AssistantMessage"]
    assert len(asyncio.run(written(kafka, topic_prefix))) == 2
