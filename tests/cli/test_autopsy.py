"""`contextgauge autopsy`."""

import json
from pathlib import Path

import pytest

from contextgauge.json_codec import dumps, loads
from tests.commands import Command
from tests.core.autopsy.labels_kit import LABELS, lines_of


@pytest.fixture(scope="module")
def transcripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The labelled conversations, as transcripts of their runtimes."""
    folder = tmp_path_factory.mktemp("transcripts")
    for number, case in enumerate(loads(LABELS.read_bytes())):
        lines = b"\n".join(map(dumps, lines_of(case)))
        (folder / f"{number}.jsonl").write_bytes(lines + b"\n")
    return folder


def test_json_has_each_item_with_its_evidence(command: Command, transcripts: Path) -> None:
    done = command("autopsy", "--json", str(transcripts))
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    items = [
        item
        for session in document["sessions"]
        for boundary in session["boundaries"]
        for item in boundary["items"]
    ]
    for kind, verdicts in document["totals"].items():
        for verdict, number in verdicts.items():
            assert number == sum(
                (each["kind"], each["verdict"]) == (kind, verdict) for each in items
            )
    assert all(each["message_ids"] for each in items)
    assert all(bool(each["found_in"]) == (each["verdict"] != "LOST") for each in items)
    assert document["consequences"]["files_read_again"]["outcome"] == "unknown"


def test_the_table_lists_what_was_lost(command: Command, transcripts: Path) -> None:
    done = command("autopsy", str(transcripts / "0.jsonl"))
    assert done.returncode == 0
    (lost,) = [each for each in done.stdout.splitlines() if "database schema" in each]
    assert lost.split()[:2] == ["LOST", "request"]
    assert "1 compaction, by comparison of characters (~)" in done.stdout


def test_a_session_without_a_compaction(
    command: Command, tmp_path: Path, transcripts: Path
) -> None:
    first = (transcripts / "0.jsonl").read_text(encoding="utf-8").splitlines()[0]
    (tmp_path / "short.jsonl").write_text(first + "\n", encoding="utf-8")
    done = command("autopsy", str(tmp_path / "short.jsonl"))
    assert done.stdout == "no compaction with a summary that can be read\n"
