"""Settings files of runtimes: what is added is written, and taken out again without a trace."""

import json
import stat
from pathlib import Path

import pytest

from contextgauge.errors import ConfigError
from streams.edge.files.settings_document import SettingsDocument

OWN = '{\n    "model": "opus",\n    "statusLine": {"type": "command", "command": "mine"},\n "x": 1}'
TOML = '# mine\nmodel = "x"  # yes\n\n[tui]\na = 1\n'


def add(path: Path, name: str = "added") -> SettingsDocument:
    """Add a setting."""
    document = SettingsDocument(path)
    has_former = "added" in document.settings
    document.settings[name] = {"command": "ours"}
    text = document.with_settings(document.settings)
    document.write(text, keep_former=True, has_former=has_former)
    return document


def take_out(path: Path, name: str = "added") -> None:
    """Take it out."""
    document = SettingsDocument(path)
    del document.settings[name]
    text = document.restored(document.settings)
    document.write(text, keep_former=False, has_former=True)


def test_everything_else_stays_and_the_file_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(OWN)
    path.chmod(0o600)
    document = add(path)
    settings = json.loads(path.read_text())
    assert settings == json.loads(OWN) | {"added": {"command": "ours"}}
    assert list(settings) == ["model", "statusLine", "x", "added"]
    assert path.read_text().startswith('{\n    "model"')
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert document.backup.read_text() == OWN
    assert stat.S_IMODE(document.backup.stat().st_mode) == 0o600
    take_out(path)
    assert path.read_text() == OWN
    assert [each.name for each in tmp_path.iterdir()] == ["settings.json"]


def test_comments_and_order_of_toml_stay(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(TOML)
    add(path)
    assert path.read_text().startswith(TOML)
    path.write_text(path.read_text().replace("a = 1", "a = 2 # newer"))
    take_out(path)
    assert path.read_text().rstrip() == TOML.replace("a = 1", "a = 2 # newer").rstrip()


def test_what_was_changed_in_between_stays(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(OWN)
    add(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"x": 2, "y": "ü"}))
    take_out(path)
    assert json.loads(path.read_text()) == json.loads(OWN) | {"x": 2, "y": "ü"}


def test_a_second_addition_keeps_the_first_copy(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(OWN)
    add(path)
    document = SettingsDocument(path)
    document.settings["added"] = 2
    document.write(document.with_settings(document.settings), keep_former=True, has_former=True)
    take_out(path)
    assert path.read_text() == OWN


def test_a_file_that_was_not_there_is_gone_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.json"
    add(path)
    assert json.loads(path.read_text()) == {"added": {"command": "ours"}}
    take_out(path)
    assert not path.exists()


@pytest.mark.parametrize("text", ['{"a": "\\ud800 \\u001b"}', '{"\\udfff": "ü \\ud83d\\ude00"}'])
def test_half_characters_stay_what_they_are(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    add(path)
    installed = json.loads(path.read_bytes().decode())
    del installed["added"]
    assert installed == json.loads(text)
    take_out(path)
    assert path.read_text() == text


def test_a_number_that_json_has_no_word_for_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"f": 1e999}')
    with pytest.raises(ConfigError, match="a number is too large: nothing was changed"):
        add(path)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [
        ("settings.json", '{"f": 1e999}')
    ]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.json"
    target.write_text("{}")
    link = tmp_path / "settings.json"
    link.symlink_to(target)
    add(link)
    assert link.is_symlink()
    assert json.loads(target.read_text())["added"]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("settings.json", "{", "is not valid JSON"),
        ("settings.json", "[1]", "not a JSON object"),
        ("settings.json", "// comment\n{}", "is not valid JSON"),
        ("settings.json", '{"a": {"b": 1, "b": 2}}', "'b' is in one object twice"),
        ("config.toml", "[a", "is not valid TOML"),
        ("config.toml", "a = 1\na = 2", "is not valid TOML"),
    ],
)
def test_a_file_that_is_not_understood_is_not_changed(
    tmp_path: Path, name: str, text: str, why: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"(?s){name}.*{why}.*nothing was changed"):
        SettingsDocument(path)
    assert path.read_text() == text


def test_the_change_is_shown_as_a_diff(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{\n  "a": 1\n}\n')
    document = SettingsDocument(path)
    document.settings["b"] = 2
    lines = document.diff(document.with_settings(document.settings))
    assert lines[:2] == [f"--- {path}", f"+++ {path}"]
    assert lines[3:] == [" {", '-  "a": 1', '+  "a": 1,', '+  "b": 2', " }"]
    assert SettingsDocument(tmp_path / "new.json").diff(b"{}\n")[0] == "--- /dev/null"
