"""What is set where a session runs goes with its lines as they are written, and only then."""

import json
from pathlib import Path
from typing import Any

from streams.edge.files.live_settings import LiveSettings
from streams.edge.files.runtime_settings import SettingsReader
from tests.edge.follower_kit import Bench, add


def said(number: int, **fields: Any) -> str:
    line = {"sessionId": "s", "uuid": f"{number:09d}", "type": "user", "version": "2.1.300"}
    message = {"role": "user", "content": "x"}
    return json.dumps(line | {"cwd": "/srv", "isSidechain": False, "message": message} | fields)


class Settings:
    """Claude Code's settings in a home folder, and a follower whose lines get them."""

    def __init__(self, home: Path) -> None:
        self.file = home / ".claude" / "settings.json"
        self.file.parent.mkdir()
        self.transcript = home / "s.jsonl"
        add(self.transcript, said(1))
        self.bench = Bench([str(self.transcript)])
        self.reader = SettingsReader({"HOME": str(home)}, str(home))
        self.settings = LiveSettings(self.reader, self.bench.clock)

    def set(self, window: int) -> None:
        self.file.write_text(json.dumps({"autoCompactWindow": window}))

    def published(self) -> list[Any]:
        """Return of each line what its header has, None of one without."""
        pieces = self.settings.added(iter(self.bench.pieces()))
        return [
            None if line.settings is None else json.loads(line.settings)
            for piece in pieces
            for line in piece.lines
        ]


def window(value: int) -> dict[str, Any]:
    return {"window": {"value": value, "source": "~/.claude/settings.json"}}


def test_the_first_new_line_has_the_settings_and_history_has_none(tmp_path: Path) -> None:
    machine = Settings(tmp_path)
    machine.set(150_000)
    assert machine.published() == [None]
    add(machine.transcript, said(2), said(3))
    assert machine.published() == [window(150_000), None]
    add(machine.transcript, said(4))
    assert machine.published() == [None]


def test_changed_settings_are_published_with_a_later_line(tmp_path: Path) -> None:
    machine = Settings(tmp_path)
    machine.published()
    add(machine.transcript, said(2))
    assert machine.published() == [{}]
    machine.set(150_000)
    machine.bench.clock.at_s += 10
    add(machine.transcript, said(3), said(4))
    machine.bench.pieces()  # between two looks too far apart: not seen as it was written
    add(machine.transcript, said(5), said(6))
    assert machine.published() == [window(150_000), None]
    machine.file.unlink()
    machine.bench.clock.at_s += 4
    machine.bench.pieces()
    machine.bench.clock.at_s += 4
    machine.bench.pieces()
    add(machine.transcript, said(7))
    assert machine.published() == [{}]


def test_lines_that_name_no_folder_or_are_no_json_wait_for_one_that_does(tmp_path: Path) -> None:
    machine = Settings(tmp_path)
    machine.set(150_000)
    machine.published()
    nameless = json.dumps({"type": "summary", "sessionId": "s", "summary": '"cwd"'})
    add(machine.transcript, nameless, '{"cwd": nonsense', said(2, cwd=None), said(3))
    assert machine.published() == [None, None, None, window(150_000)]
