"""The examples of COMPACTION.md and of `examples/` run as they stand; its tables are the code's."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from contextgauge.compaction import EngineEvent, Receipt
from contextgauge.compaction.profiles import PROFILES, Profile
from contextgauge.compaction.summarisers.naming import PROVIDERS
from tests.docs.test_docs import DOCS, _blocks, _rows, _section
from tests.patience import PATIENCE_S

ROOT = DOCS.parent
TEXT = (DOCS / "COMPACTION.md").read_text(encoding="utf-8")
EXAMPLES = _blocks(TEXT, "python")


def run(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.extended
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tmp_path: Path) -> None:
    out = run(EXAMPLES[number], tmp_path)
    expected = {0: "Blue; you sent 1 message.\n", 1: "1\n", 4: "42 True One more.\n"}
    assert out == expected.get(number, "")


def test_the_example_agent_is_compacted_and_recalls_what_it_needs(tmp_path: Path) -> None:
    out = run((ROOT / "examples" / "compacting_agent.py").read_text(encoding="utf-8"), tmp_path)
    lines = out.splitlines()
    assert lines[-1] == "The release key is mauve-otter-41. Signed: REVIEW-7."
    assert "⚠️ Context: " in out
    assert "/compact" not in out
    assert re.search(r"^\[Compaction\] Round 2: ", out, re.MULTILINE)
    assert [line for line in lines if "recall" in line and "{" in line] == [
        "  recall {'text': 'RELEASE_KEY'}"
    ]
    used = [int(percent) for percent in re.findall(r"^Context: (\d+)%", out, re.MULTILINE)]
    assert max(used) < 100
    assert "secrets" not in out


def test_the_profiles_are_those_of_the_code() -> None:
    header, *_ = [line for line in _section(TEXT, "Profiles").splitlines() if "`default`" in line]
    assert re.findall(r"`([\w-]+)`", header) == list(PROFILES)
    rows = {row[0]: row[1:] for row in _rows(_section(TEXT, "Profiles"))}
    for index, profile in enumerate(PROFILES.values()):
        assert rows["summary's role"][index] == profile.summary_role
        unknown = profile.unknown_window_tokens
        cell = "off" if unknown is None else f"{unknown:,}".replace(",", " ")
        assert rows["unknown window"][index] == cell
        assert rows["warning, compaction, goal"][index] == _shares(profile)


def _shares(profile: Profile) -> str:
    goal = None if profile.compact_to == profile.compact_at else profile.compact_to
    shares = (profile.warn_at, profile.compact_at, goal)
    return ", ".join("none" if each is None else f"{each * 100:.0f} %" for each in shares)


def test_the_summarisers_are_those_of_the_code() -> None:
    names = re.findall(r"`([\w-]+):MODEL`", _section(TEXT, "Summarisers"))
    assert sorted({name for name in names if name in PROVIDERS}) == sorted(PROVIDERS)


def test_the_events_are_those_of_the_code() -> None:
    rows = _rows(_section(TEXT, "Events and displays"))
    events = [f"{each.__name__} {each.name}" for each in get_args(EngineEvent)]
    assert [" ".join(row[:2]).replace("`", "") for row in rows] == events


def test_the_figures_of_a_receipt_are_those_of_the_code() -> None:
    rows = _rows(_section(TEXT, "Receipts"))
    names = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert names <= {each.name for each in fields(Receipt)} | {"tokens_saved"}
    assert hasattr(Receipt, "tokens_saved")
