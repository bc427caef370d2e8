"""What the command line's tests share."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.install_kit import CONFIG, SETTINGS
from tests.commands import Command


@pytest.fixture
def hangup() -> Iterator[None]:
    """Heed SIGHUP in this process, which `nohup` makes tests ignore."""
    former = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, former)


@pytest.fixture
def home(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder whose runtimes have settings."""
    names = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME")
    command.environment |= {"HOME": str(tmp_path), **dict.fromkeys(names, "")}
    for name, value in command.environment.items():
        monkeypatch.setenv(name, value)
    for path in (".claude/settings.json", ".gemini/settings.json", ".claude.json"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(json.dumps(SETTINGS, indent=4))
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text(CONFIG)
    return tmp_path
