"""Sessions' documents that stay torn, or are too large: reported once, and not read again."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from streams.edge.files import joined
from streams.edge.files.content import HELD_LINE_BYTES
from streams.edge.files.failures import READ_AGAIN, SETTLED_S
from tests.commands import Command
from tests.edge.test_local_transcripts import Reading
from tests.runtimes.documents_kit import Publishing, write
from tests.runtimes.test_cline_sessions import FOLDER, LISTED, MAIN, MANIFEST, SESSION, messages

OTHER = "1793534400001_other"
OTHER_MAIN = f".cline/data/sessions/{OTHER}/{OTHER}.messages.json"

Spoil = Callable[[Path], None]


def tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def tear_in_its_place(path: Path) -> None:
    """Put another file there, as runtimes do."""
    torn = path.with_suffix(".tmp")
    torn.write_bytes(path.read_bytes()[:-100])
    torn.replace(path)


def tear_a_part(path: Path) -> None:
    (path.parent / f"{SESSION}.json").write_text('{"version": 1, ')


def enlarge(path: Path) -> None:
    os.truncate(path, HELD_LINE_BYTES + 1)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is read of documents, each time."""
    names: list[str] = []

    def noting(path: str, mode: str) -> IO[bytes]:
        names.append(Path(path).name)
        return open(path, mode)  # noqa: PTH123 -- in the place of the other

    monkeypatch.setattr(joined, "open", noting, raising=False)
    return names


@pytest.mark.extended
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (tear, f"{SESSION}.messages.json holds no whole JSON object"),
        (tear_in_its_place, f"{SESSION}.messages.json holds no whole JSON object"),
        (tear_a_part, f"{SESSION}.json holds no whole JSON object"),
        (enlarge, "up to 268,435,456 bytes"),
    ],
)
@pytest.mark.parametrize("is_known", [False, True], ids=["from the start", "once it was read"])
def test_a_follower_reports_it_once_and_reads_it_again_once_it_is_another_one(
    tmp_path: Path, parsed: list[str], spoil: Spoil, reason: str, is_known: bool
) -> None:
    write(tmp_path, {MAIN: messages(*LISTED[:2]), f"{FOLDER}/{SESSION}.json": MANIFEST})
    publishing = Publishing(tmp_path)
    if is_known:
        assert len(publishing.sent()) == 3
    spoil(tmp_path / MAIN)
    look = publishing.bench.lines
    assert [*look(), *look()] == []
    assert len(publishing.reported) == (spoil is enlarge)
    parsed.clear()
    publishing.bench.clock.at_s += SETTLED_S
    assert [*look(), *look(), *look()] == []
    assert parsed == []
    (text,) = publishing.reported
    assert text.startswith(f"{tmp_path / MAIN}: ")
    assert reason in text
    assert publishing.bench.follower.unreadable == 1
    write(tmp_path, {f"{FOLDER}/{SESSION}.json": MANIFEST, MAIN: messages(*LISTED)})
    assert len(publishing.sent()) == (2 if is_known else 5)
    assert publishing.reported[1:] == [f"{tmp_path / MAIN}: {READ_AGAIN}"]
    assert publishing.bench.follower.unreadable == 0


@pytest.mark.parametrize("spoil", [tear, tear_in_its_place, tear_a_part, enlarge])
def test_a_local_reading_does_so_too(tmp_path: Path, parsed: list[str], spoil: Spoil) -> None:
    write(tmp_path, {MAIN: messages(*LISTED[:2]), f"{FOLDER}/{SESSION}.json": MANIFEST})
    spoil(tmp_path / MAIN)
    reading = Reading(tmp_path)
    reading.clock.at_s = (tmp_path / MAIN).stat().st_mtime
    assert reading.lines() == []
    assert len(reading.events) == (spoil is enlarge)
    parsed.clear()
    for _ in range(3):
        reading.clock.at_s += 100
        assert reading.lines() == []
    assert (len(reading.events), parsed) == (1, [])
    write(tmp_path, {MAIN: messages(*LISTED), f"{FOLDER}/{SESSION}.json": MANIFEST})
    assert len(reading.lines()) == 5
    assert reading.events[1:] == [f"{tmp_path / MAIN}: {READ_AGAIN}"]


@pytest.mark.extended
@pytest.mark.parametrize("spoil", [tear, enlarge])
def test_the_commands_name_it_and_show_the_others(
    tmp_path: Path, command: Command, spoil: Spoil
) -> None:
    write(tmp_path, {MAIN: messages(*LISTED), OTHER_MAIN: messages(*LISTED, session=OTHER)})
    spoil(tmp_path / MAIN)
    listed = command("sessions", "--json", str(tmp_path))
    assert [each["session_id"] for each in json.loads(listed.stdout)] == [OTHER]
    one = command("status", str(tmp_path / MAIN))
    command.environment = {"HOME": str(tmp_path)}
    report = json.loads(command("doctor", "--json").stdout)
    (here,) = [each for each in report["checks"] if each["id"] == "transcripts.readable"]
    assert (here["severity"], here["subject"]) == ("warning", str(tmp_path / MAIN))
    for done in (listed, one):
        assert done.returncode == 1
        assert f"{tmp_path / MAIN}: {SESSION}.messages.json h" in done.stderr
    assert "cannot be read: see above" in one.stderr
