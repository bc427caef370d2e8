"""The adapters work with the real packages, which are in an environment of their own."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from schemas.records import (
    CompactBoundary,
    CompactionFailed,
    CompactionStart,
    ContextReading,
    Record,
)
from tests.core.given import Given, every
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "build" / "frameworks" / "bin" / "python"

pytestmark = [
    pytest.mark.extended,
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


def published(name: str) -> list[dict[str, Any]]:
    lines = run("tests/frameworks/published_runs.py", name).splitlines()
    return [json.loads(line)["message"] for line in lines]


def derived(name: str) -> list[Record]:
    """Return the records of what a run published; the same again gives none."""
    given = Given()
    messages = published(name)
    records = given.take(*messages)
    assert given.take(*messages) == []
    return records


def test_langchains_calls_and_compactions_are_published() -> None:
    records = derived("langchain")
    sizes = [each.used_tokens for each in every(records, ContextReading)]
    assert sizes[:3] == [1_000, 2_000, 3_000]
    assert {each.data.session_id for each in records} == {"thread-1"}
    starts, boundaries = every(records, CompactionStart), every(records, CompactBoundary)
    assert [each.attempt_id for each in boundaries] == [each.attempt_id for each in starts]
    first = boundaries[0]
    assert (first.trigger, first.pre_tokens, first.messages_total) == ("auto", 2_000, 4)
    assert first.receipt is not None
    assert first.duration_ms is not None
    assert (first.receipt.summary_input_tokens, first.receipt.summary_output_tokens) == (2_500, 90)


def test_a_summary_that_langchain_cannot_get_is_a_failed_compaction() -> None:
    failures = every(derived("langchain-failing"), CompactionFailed)
    assert {each.error for each in failures} == {"ConnectionError"}


def test_calls_of_openais_agents_are_published() -> None:
    readings = every(derived("openai_agents"), ContextReading)
    assert [(each.used_tokens, each.cache_read_tokens) for each in readings] == [
        (5_000, 4_000),
        (10_000, 4_000),
    ]


def test_calls_of_pydantic_ai_are_published() -> None:
    readings = every(derived("pydantic_ai"), ContextReading)
    assert [(each.used_tokens, each.messages_total) for each in readings] == [
        (1_000, 2),
        (3_000, 4),
    ]


def main_sizes(records: list[Record]) -> list[int]:
    readings = every(records, ContextReading)
    return [each.used_tokens for each in readings if each.chain == "main"]


def test_a_subagent_of_deepagents_is_a_chain_and_summaries_are_compactions() -> None:
    records = derived("deepagents")
    assert main_sizes(records) == [10_000, 11_000, 12_000, 13_000, 19_000]
    others = [each for each in every(records, ContextReading) if each.chain != "main"]
    assert [each.used_tokens for each in others] == [101, 102, 103, 104]
    assert len({each.chain for each in others}) == 4, "each task is a run of its own"
    boundaries = every(records, CompactBoundary)
    assert {(each.chain, each.trigger) for each in boundaries} == {("main", "auto")}
    assert [each.pre_tokens for each in boundaries] == [11_000, 12_000, 13_000]
    assert {each.receipt and each.receipt.summary_input_tokens for each in boundaries} == {2_500}
    assert len(every(records, CompactionStart)) == len(boundaries)


def test_calls_and_compactions_of_googles_kit_are_published() -> None:
    records = derived("google_adk")
    assert {each.data.session_id for each in records} == {"ticket-4711"}
    assert main_sizes(records) == [1_001, 1_002, 1_003]
    readings = every(records, ContextReading)
    assert {each.cache_read_tokens for each in readings} == {600}
    branches = {each.chain for each in readings} - {"main"}
    assert sorted(each.rpartition(".")[2].partition("@")[0] for each in branches) == ["one", "two"]
    boundaries = every(records, CompactBoundary)
    assert [(each.trigger, each.pre_tokens) for each in boundaries] == [("auto", 1_002)]
    assert boundaries[0].receipt is not None
    assert boundaries[0].receipt.summary_input_tokens == 5_001
    assert not every(records, CompactionStart), "the kit reports no start"
