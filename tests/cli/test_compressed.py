"""Commands over compressed and archived rollouts: the output is that of the plain files."""

import json
from pathlib import Path

import pytest

from streams.cli import deriving
from streams.cli.inputs import sources_of
from streams.cli.transcripts import Replay
from streams.edge.files.folders import write_folder
from streams.flow.simulator import SimulationOptions, sample_sessions
from tests.commands import Command
from tests.core.given import moment
from tests.edge.follower_kit import ROLLOUT, Codex, compressed
from tests.edge.test_origins import head, history, thread

ID = thread(1)


@pytest.fixture
def codex(tmp_path: Path) -> Codex:
    """A rollout with a prompt and compactions."""
    codex = Codex(tmp_path / "codex", ROLLOUT.replace("01a00ae5", "01a00000"))
    talk = []
    for number in range(40):
        role, kind = ("assistant", "output_text") if number % 2 else ("user", "input_text")
        content = [{"type": kind, "text": f"go {number} " * 200}]
        message = {"type": "message", "role": role, "content": content}
        talk.append({"type": "response_item", "payload": message})
    counts, _ = history(1, 16, 0)
    lines = [head(1), *counts[:-5], *talk, *counts[-5:]]
    codex.append(*(json.dumps({**line, "timestamp": moment(n)}) for n, line in enumerate(lines)))
    return codex


def outputs(command: Command, codex: Codex, name: Path) -> dict[str, str]:
    home = codex.day.parents[3]
    command.environment |= {"CODEX_HOME": str(home), "COLUMNS": "120"}
    commands = {
        "sessions": ("sessions", "--titles", str(home / "sessions")),
        "status": ("status", str(name)),
        "events": ("events", str(name)),
        "replay": ("replay", str(home)),
        "one": ("replay", str(name)),
        "line": ("statusline", ID),
        "named": ("statusline", str(name)),
        "compact": ("compact", "-o", "-", "--window", "8000", str(name)),
    }
    done = {key: command(*arguments) for key, arguments in commands.items()}
    assert {key: each.returncode for key, each in done.items()} == dict.fromkeys(commands, 0), done
    return {key: each.stdout.replace(str(name), "NAME") for key, each in done.items()}


@pytest.mark.extended
def test_commands_give_of_a_compressed_or_archived_rollout_what_the_plain_one_gave(
    command: Command, codex: Codex
) -> None:
    name = codex.place
    plain = outputs(command, codex, name)
    assert "go 0 go 0" in plain["sessions"]
    assert len(plain["replay"].splitlines()) > 20
    codex.compress()
    assert outputs(command, codex, codex.place) == plain
    codex.put_away()
    assert outputs(command, codex, codex.place) == outputs(command, codex, name) == plain


@pytest.mark.extended
def test_a_session_in_both_forms_counts_once(command: Command, codex: Codex) -> None:
    once = command("replay", str(codex.day)).stdout
    codex.place.with_name(codex.place.name + ".zst").write_bytes(
        compressed(codex.place.read_bytes())
    )
    for paths in ([codex.day], [codex.place, codex.day], [f"{codex.place}.zst"]):
        assert command("replay", *map(str, paths)).stdout == once


@pytest.mark.extended
def test_a_damaged_file_is_named_and_what_can_be_read_is_derived(
    command: Command, codex: Codex, tmp_path: Path
) -> None:
    whole = command("replay", str(codex.place)).stdout.splitlines()
    lines = codex.place.read_bytes().splitlines(keepends=True)
    codex.compress()
    good, bad = compressed(b"".join(lines[:-5])), compressed(b"".join(lines[-5:]))
    codex.place.write_bytes(good + bad[: len(bad) // 2])
    done = command("replay", str(codex.day))
    records = done.stdout.splitlines()
    assert (done.returncode, records) == (1, whole[: len(records)])
    assert 0 < len(records) < len(whole)
    size = sum(map(len, lines[:-5]))
    text = f"{codex.place}: the compressed data is cut off after {size:,} bytes of content: only"
    assert done.stderr.startswith(text)
    listed = command("sessions", str(codex.day))
    assert listed.returncode == 1
    assert ID in listed.stdout
    assert text in listed.stderr
    refused = command("compact", str(codex.place), "-o", str(tmp_path / "out.json"))
    assert refused.returncode == 2
    assert text.replace(": only", "") in refused.stderr


def test_other_processes_name_what_they_could_read_in_part_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(deriving, "_FORK_BYTES", 1)
    monkeypatch.setattr(deriving, "_TASK_BYTES", 1)
    sample = sample_sessions(SimulationOptions())
    write_folder(tmp_path, ((each.file, each.value) for each in sample))
    plain = Replay(sources_of([str(tmp_path)]), processes=1)
    records = [record.id for block in plain.records() for record in block]
    for path in list(tmp_path.rglob("*.jsonl")):
        path.with_name(path.name + ".zst").write_bytes(compressed(path.read_bytes()) + b"more")
        path.unlink()
    for processes in (1, 3):
        replay = Replay(sources_of([str(tmp_path)]), processes=processes)
        assert [record.id for block in replay.records() for record in block] == records
        assert replay.unreadable == len(list(tmp_path.rglob("*.zst"))) > 1
        errors = capsys.readouterr().err.splitlines()
        assert len(errors) == replay.unreadable
        assert all("the compressed data is damaged after" in line for line in errors)


@pytest.mark.extended
def test_a_folder_of_compressed_rollouts_has_transcripts(
    command: Command, shared: Path, tmp_path: Path
) -> None:
    (rollout,) = (shared / "field").glob("rollout-*.jsonl.zst")
    (tmp_path / rollout.name).write_bytes(rollout.read_bytes())
    listed = json.loads(command("sessions", "--json", str(tmp_path)).stdout)
    assert [each["chains"]["main"]["used_tokens"] for each in listed] == [30_000]
    named = json.loads(command("replay", "--view", str(tmp_path / rollout.name)).stdout)
    assert named["session_id"] == listed[0]["session_id"]
