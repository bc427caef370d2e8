"""`contextgauge autopsy`."""

import json
import weakref
from pathlib import Path

import pytest

from contextgauge.delivery.privacy import without_text
from contextgauge.json_codec import dumps, loads
from contextgauge.records import Json
from streams.cli import autopsy as command_module
from streams.core.autopsy.autopsy import AutopsyReading
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
    assert all(bool(each["missing"]) <= (each["verdict"] == "DEGRADED") for each in items)
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


def test_what_followed_stands_with_the_lost_item(command: Command, tmp_path: Path) -> None:
    def line(kind: str, content: Json, **more: Json) -> dict[str, Json]:
        return {
            "type": kind,
            "uuid": f"{kind}-{len(lines)}",
            "sessionId": "s-1",
            "message": {"role": kind, "content": content},
            **more,
        }

    def read() -> dict[str, Json]:
        return line(
            "assistant",
            [
                {
                    "type": "tool_use",
                    "id": f"t{len(lines)}",
                    "name": "Read",
                    "input": {"path": "a.py"},
                }
            ],
        )

    lines: list[dict[str, Json]] = []
    lines.append(line("user", "Never push to main, and keep the tests green."))
    lines.append(read())
    lines.append({"type": "system", "subtype": "compact_boundary", "uuid": "b", "sessionId": "s-1"})
    lines.append(line("user", "Tests stay green: keep them so.", isCompactSummary=True))
    lines.append(read())
    path = tmp_path / "s-1.jsonl"
    path.write_bytes(b"\n".join(map(dumps, lines)) + b"\n")
    shown = command("autopsy", str(path)).stdout
    assert "then 1 read again: 1 of these were LOST or DEGRADED" in shown
    rows = [each.split() for each in shown.splitlines() if "DEGRADED  " in each or "LOST  " in each]
    assert rows[0] == ["LOST", "file", "a.py", "assistant-1", "read", "again", "assistant-4"]
    assert rows[1][:2] == ["DEGRADED", "request"]
    assert "Never push to main," in " ".join(rows[1][3:]), "what is missing"


def test_published_without_text_everything_is_unknown(
    command: Command, tmp_path: Path, transcripts: Path
) -> None:
    lines = (transcripts / "0.jsonl").read_bytes().splitlines()
    stripped = [dumps(without_text(loads(each), each, b"key")) for each in lines]
    path = tmp_path / "stripped.jsonl"
    path.write_bytes(b"\n".join(stripped) + b"\n")
    assert "is not all in the file, as text" in command("autopsy", str(path)).stdout
    document = json.loads(command("autopsy", "--json", str(path)).stdout)
    verdicts = {
        verdict
        for counts in document["totals"].values()
        for verdict, number in counts.items()
        if number
    }
    assert verdicts == {"unknown"}
    assert {each["outcome"] for each in document["consequences"].values()} == {"unknown"}


@pytest.mark.parametrize(("wanted", "read"), [(None, None), ("verb", 1)])
def test_a_sessions_messages_are_kept_no_longer_than_its_file_is_read(
    transcripts: Path, monkeypatch: pytest.MonkeyPatch, wanted: str | None, read: int | None
) -> None:
    made: list[weakref.ref[AutopsyReading]] = []
    alive: list[int] = []

    class WatchedReading(AutopsyReading):
        def __init__(self) -> None:
            super().__init__()
            made.append(weakref.ref(self))
            alive.append(sum(each() is not None for each in made))

    monkeypatch.setattr(command_module, "AutopsyReading", WatchedReading)
    command_module.autopsy([str(transcripts)], wanted=wanted, as_json=True)
    assert len(made) == (read or len(list(transcripts.iterdir())))
    assert max(alive) <= 2, "of the file before, and of this one"


@pytest.mark.extended
def test_one_session_of_a_folder(command: Command, transcripts: Path) -> None:
    done = command("autopsy", "--json", str(transcripts), "--session", "verb")
    assert [each["session_id"] for each in json.loads(done.stdout)["sessions"]] == ["verbatim"]
    for wanted, error in (("nobody", "no session begins"), ("", "an empty name")):
        done = command("autopsy", str(transcripts), "--session", wanted)
        assert done.returncode == 1
        assert error in done.stderr
    done = command("autopsy", "verbatim")
    assert done.returncode == 2
    assert "`contextgauge autopsy --session verbatim`" in done.stderr


@pytest.mark.extended
def test_what_is_no_transcript_is_reported(
    command: Command, transcripts: Path, tmp_path: Path
) -> None:
    first, *_ = transcripts.rglob("*.jsonl")
    notes, part, empty = (tmp_path / name for name in ("notes.txt", "part.jsonl", "empty.jsonl"))
    notes.write_text("no transcript\n")
    part.write_bytes(first.read_bytes() + b'{"type": "user"\n')
    empty.touch()
    for path, code, words in (
        (notes, 1, "could be read: this does not look like a transcript"),
        (part, 0, "1 could not be read: see above"),
        (empty, 1, "it is empty"),
    ):
        done = command("autopsy", str(path))
        assert (done.returncode, words in done.stderr) == (code, True), done.stderr
