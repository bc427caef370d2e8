"""The sessions of a runtime's database, by the commands that take files and folders."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import Command
from tests.runtimes.opencode_database import OpencodeDatabase

pytestmark = pytest.mark.extended


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A runtime's folder, while the runtime has its database open."""
    home = tmp_path / "opencode"
    home.mkdir()
    written = OpencodeDatabase(home / "opencode.db")
    for name in ("ses_1", "ses_2"):
        written.session(name)
        written.prompt(name, f"Fix the parser of {name}")
        written.answer(name, fresh=1_000, read=90_000)
    asked = written.message("ses_1", "user")
    written.part("ses_1", asked, "compaction", auto=True)
    written.answer("ses_1", fresh=91_000, summary=True, parentID=asked)
    written.answer("ses_1", fresh=7_000)
    yield home
    written.close()


def test_all_sessions_of_a_database_are_listed_with_their_titles(
    command: Command, folder: Path
) -> None:
    listed = json.loads(command("sessions", str(folder), "--json").stdout)
    shown = {each["session_id"]: each["chains"]["main"]["used_tokens"] for each in listed}
    assert shown == {"ses_1": 7_000, "ses_2": 91_000}
    for path in (folder, folder / "opencode.db"):
        table = command("sessions", str(path), "--titles").stdout
        assert table.count("Parser") == 2


def test_one_session_of_a_database_is_shown(command: Command, folder: Path) -> None:
    path = str(folder / "opencode.db")
    assert (
        "2 sessions: name the file of one, or add `--session ID`" in command("status", path).stderr
    )
    box = command("status", path, "--session", "ses_1").stdout
    assert "1 auto" in box
    events = command("events", path, "--session", "ses_1", "--json").stdout.splitlines()
    kinds = [json.loads(line)["type"] for line in events]
    assert any(kind.endswith("compact_boundary.v1") for kind in kinds)
