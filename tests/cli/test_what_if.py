"""`contextgauge what-if`: recorded sessions under other settings, as tables and as JSON."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from streams.cli.whatif.tables import show
from streams.core.whatif.answers import answer_of
from streams.core.whatif.compaction_facts import FactPool
from streams.core.whatif.comparison import ChainComparison
from streams.core.whatif.new_settings import read_triggers, setting_of
from streams.edge.files.folders import write_folder
from streams.flow.simulator import SimulationOptions, simulate
from tests.commands import Command
from tests.core.whatif.whatif_kit import WINDOW, compaction, log_of, price_at


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A projects folder with transcripts that were compacted."""
    folder = tmp_path_factory.mktemp("projects")
    options = SimulationOptions(seed=1, sessions=6, turns=60, providers=("claude",))
    write_folder(folder, ((each.file, each.value) for each in simulate(options)))
    return folder


def document(command: Command, *arguments: str) -> dict[str, Any]:
    done = command("what-if", "--json", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    value: dict[str, Any] = json.loads(done.stdout)
    return value


@pytest.mark.extended
def test_settings_are_compared_by_model(command: Command, projects: Path) -> None:
    value = document(command, "--trigger", "50,75%,167000", str(projects))
    assert [each["name"] for each in value["settings"]] == ["50%", "75%", "167,000"]
    counts = [0, 0, 0]
    for model in value["models"]:
        for number, each in enumerate(model["settings"]):
            counts[number] += each["totals"]["compactions"]
            if each["change"] is not None:
                change = {name: Decimal(text) for name, text in each["change"].items()}
                assert change["low"] <= change["amount"] <= change["high"]
                whole = Decimal(each["totals"]["cost"]) - Decimal(model["recorded"]["cost"])
                assert change["amount"] == whole
        assert model["advice"]["verdict"] in {
            "use",
            "no_difference",
            "unknown_price",
            "not_possible",
        }
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 0
    own = [each for chain in value["chains"] for each in chain["compactions"]]
    assert {each["verdict"] for each in own} <= {"given", "reproduced", "attempt_failed"}
    recorded = sum(model["recorded"]["compactions"] for model in value["models"])
    assert len(own) == recorded > 0


@pytest.mark.extended
def test_windows_and_thresholds_are_derived_again(command: Command, projects: Path) -> None:
    value = document(command, "--window", "1000000", "--warn", "1,50", str(projects))
    rows = {each["kind"]: each for each in value["rules"]}
    warnings = rows["context_warning"]
    assert warnings["derived_again"] != warnings["recorded"]
    # Where fewer compactions come, fewer epochs begin, in which all is warned of again.
    assert 0 < warnings["settings"][0] < warnings["derived_again"]
    assert rows["context_reading"]["derived_again"] == rows["context_reading"]["recorded"]
    assert rows["compact_boundary"]["rule"] == "R19"
    (boundaries,) = rows["compact_boundary"]["settings"]
    given = [
        each
        for chain in value["chains"]
        for each in chain["compactions"]
        if each["verdict"] == "given"
    ]
    assert boundaries == len(given)


@pytest.mark.extended
def test_the_engine_compacts_again(command: Command, projects: Path) -> None:
    value = document(command, "--strategy", "default,prune", "--goal", "30", str(projects))
    assert [each["strategy"] for each in value["settings"]] == ["default to 30%", "prune to 30%"]
    totals = [
        each["totals"]
        for model in value["models"]
        for each in model["settings"]
        if each["totals"]["pins"]
    ]
    assert totals
    assert all(each["pins_kept"] <= each["pins"] for each in totals)


@pytest.mark.extended
@pytest.mark.parametrize("by", ["model", "session", "rule"])
def test_tables_and_the_setting_to_use(command: Command, projects: Path, by: str) -> None:
    done = command("what-if", str(projects), "--by", by)
    assert (done.returncode, done.stderr) == (0, "")
    assert "reproduced" in done.stdout
    assert {"model": "Difference", "session": "· main ·", "rule": "R19"}[by] in done.stdout
    assert "compact" in done.stdout.splitlines()[-1] or "price" in done.stdout.splitlines()[-1]
    assert ("amounts are at least: the output of " in done.stdout) == (by != "rule")


def test_a_percentage_of_several_windows_is_shown_and_not_advised(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs = [
        log_of(150_000, compaction(), 30_000, window=window) for window in (WINDOW, 1_000_000, None)
    ]
    (setting,) = map(setting_of, read_triggers("60%"))
    comparison = ChainComparison(FactPool(logs), [setting], price_at, ())
    show(
        answer_of([setting], [comparison.of(log, [None]) for log in logs], {}, is_whole=True),
        by="model",
    )
    shown = capsys.readouterr().out
    assert "120,000 to 600,000 or unknown" in shown
    assert "compare sizes in tokens" in " ".join(shown.split())


@pytest.mark.extended
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--trigger", "0"],
            "--trigger '0': expected percentages up to 100 or 1,000 tokens and more",
        ),
        (["--trigger", "x"], "--trigger 'x'"),
        (["--warn", "12.5"], "--warn '12.5': expected whole percentages"),
        (["--goal", "200"], "--goal '200': expected percentages up to 100, with commas"),
        (["--strategy", "best"], "--strategy 'best': there are default, seed-001"),
    ],
)
def test_wrong_options_say_what_is_expected(
    command: Command, projects: Path, options: list[str], words: str
) -> None:
    done = command("what-if", str(projects), *options)
    assert done.returncode == 2
    assert words in done.stderr


def test_what_has_no_sizes_is_refused(command: Command, tmp_path: Path) -> None:
    line = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user"}}
    (tmp_path / "s.jsonl").write_text(json.dumps(line) + "\n")
    done = command("what-if", str(tmp_path / "s.jsonl"))
    assert done.returncode != 0
    assert "nothing to compare" in done.stderr
