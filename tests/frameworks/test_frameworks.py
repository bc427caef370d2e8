"""The adapters work with the real packages, which are in an environment of their own."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "build" / "frameworks" / "bin" / "python"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PYTHON.exists() and not os.environ.get("CI"), reason="needs `make frameworks-setup`"
    ),
]


def run(*arguments: str) -> str:
    done = subprocess.run(
        [PYTHON, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["langchain", "openai_agents", "pydantic_ai", "claude_agent"])
def test_an_adapter_keeps_what_its_framework_needs(name: str) -> None:
    cases = f"tests/frameworks/{name}_cases.py"
    options = ("-q", "--noconftest", "-p", "no:cacheprovider", "-c", os.devnull)
    assert " passed" in run("-m", "pytest", *options, "--rootdir", str(ROOT), cases)


@pytest.mark.parametrize("name", ["langchain_agent", "openai_agents_agent", "pydantic_ai_agent"])
def test_the_example_stays_below_its_window(name: str) -> None:
    whole, largest, task, answer = run(f"examples/{name}.py").splitlines()
    assert int(whole.split(": ")[1].split()[0].replace(",", "")) > 16_000
    assert int(largest.split(": ")[1].split()[0].replace(",", "")) < 8_000
    assert task == "the task is in the last one: True"
    assert answer == "All files are read."


def test_the_example_of_hooks_hands_the_turns_back() -> None:
    assert run("examples/claude_agent_hooks.py").splitlines()[-2:] == [
        "1. Fix the login. Never touch src/secrets.py.",
        "2. Nicht auf main!",
    ]
