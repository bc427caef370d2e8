"""Which file or variable a runtime's setting of automatic compaction is read from."""

import json
from pathlib import Path
from typing import Any

import pytest

from contextgauge.runtime_settings import RuntimeSettings, Sourced
from streams.edge.files.runtime_settings import SettingsReader

VARIABLE = "CLAUDE_CODE_AUTO_COMPACT_WINDOW"


class Machine:
    """A home, a project in it and the machine's own folder, all below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home" / "u"
        self.project = self.home / "p"
        self.inner = self.project / "src" / "deep"
        self.inner.mkdir(parents=True)
        self.environment = {"HOME": str(self.home)}

    def write(self, path: str, content: object) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        file.write_text(text, "utf-8")

    def reader(self) -> SettingsReader:
        return SettingsReader(self.environment, str(self.root))

    def claude(self, folder: Path | None = None) -> RuntimeSettings:
        read = self.reader().settings("claude-code", str(folder or self.project))
        return read or RuntimeSettings("claude-code")

    def codex(self, folder: Path | None = None) -> RuntimeSettings:
        read = self.reader().settings("codex", str(folder or self.project))
        return read or RuntimeSettings("codex")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr("sys.platform", "linux")
    return Machine(tmp_path)


USER = "home/u/.claude/settings.json"
PROJECT = "home/u/p/.claude/settings.json"
LOCAL = "home/u/p/.claude/settings.local.json"
MANAGED = "etc/claude-code/managed-settings.json"


def test_nothing_set_gives_nothing(machine: Machine) -> None:
    assert machine.reader().settings("claude-code", str(machine.project)) is None
    assert machine.reader().settings("codex", None) is None
    assert machine.reader().settings("gemini", None) is None
    assert machine.reader().settings(None, None) is None


def test_the_first_place_of_claude_code_wins(machine: Machine) -> None:
    places = [
        (USER, 300_000, "~/.claude/settings.json"),
        (PROJECT, 400_000, "~/p/.claude/settings.json"),
        (LOCAL, 500_000, "~/p/.claude/settings.local.json"),
        (MANAGED, 600_000, str(machine.root / MANAGED)),
        ("etc/claude-code/managed-settings.d/20-b.json", 700_000, None),
    ]
    for path, tokens, source in places:
        machine.write(path, {"autoCompactWindow": tokens})
        read = machine.claude()
        assert read.window == Sourced(tokens, source or str(machine.root / path))
        assert not read.has_variable
    machine.write("etc/claude-code/managed-settings.d/10-a.json", {"autoCompactWindow": 800_000})
    machine.write("etc/claude-code/managed-settings.d/.hidden.json", {"autoCompactWindow": 900_000})
    assert machine.claude().window == Sourced(
        700_000, str(machine.root / "etc/claude-code/managed-settings.d/20-b.json")
    )


def test_a_variable_comes_before_every_window_of_a_file(machine: Machine) -> None:
    machine.write(MANAGED, {"autoCompactWindow": 600_000})
    machine.write(USER, {"env": {VARIABLE: "300000"}})
    read = machine.claude()
    assert (read.window, read.has_variable) == (
        Sourced(300_000, f"{VARIABLE} of ~/.claude/settings.json"),
        True,
    )
    machine.write(LOCAL, {"env": {VARIABLE: 350_000}})
    assert machine.claude().window == Sourced(
        350_000, f"{VARIABLE} of ~/p/.claude/settings.local.json"
    )
    machine.environment[VARIABLE] = "50000"
    assert machine.claude().window == Sourced(100_000, VARIABLE)
    machine.write(MANAGED, {"env": {VARIABLE: "999000"}})
    assert machine.claude().window == Sourced(999_000, f"{VARIABLE} of {machine.root / MANAGED}")


def test_the_project_is_the_nearest_folder_with_settings_and_never_the_users_own(
    machine: Machine,
) -> None:
    machine.write(USER, {"autoCompactWindow": 300_000})
    machine.write(PROJECT, {"autoCompactWindow": 400_000})
    assert machine.claude(machine.inner).window == Sourced(400_000, "~/p/.claude/settings.json")
    assert machine.claude(machine.home).window == Sourced(300_000, "~/.claude/settings.json")
    reader = machine.reader()
    for folder in (None, "relative", "/nowhere/at/all"):
        read = reader.settings("claude-code", folder)
        assert read is not None
        assert read.window == Sourced(300_000, "~/.claude/settings.json")


def test_another_folder_of_the_user_is_named_by_its_variable(machine: Machine) -> None:
    machine.environment["CLAUDE_CONFIG_DIR"] = str(machine.root / "elsewhere")
    machine.write("elsewhere/settings.json", {"autoCompactWindow": 300_000})
    machine.write("elsewhere/.claude.json", {"autoCompactEnabled": False})
    read = machine.claude()
    assert read.window == Sourced(300_000, str(machine.root / "elsewhere/settings.json"))
    assert read.enabled == Sourced(value=False, source=str(machine.root / "elsewhere/.claude.json"))


def test_windows_by_model_are_read_by_their_names_without_a_suffix(machine: Machine) -> None:
    machine.write(USER, {"modelSettings": {"Opus[1m]": {"autoCompactWindow": 300_000}}})
    models: dict[str, Any] = {"opus": {"autoCompactWindow": 400_000}, "haiku": 1, "sonnet": {}}
    machine.write(LOCAL, {"modelSettings": models})
    source = "~/p/.claude/settings.local.json"
    assert machine.claude().windows == (("opus", Sourced(400_000, source)),)


@pytest.mark.parametrize("name", ["DISABLE_AUTO_COMPACT", "DISABLE_COMPACT"])
def test_a_variable_switches_automatic_compaction_off(machine: Machine, name: str) -> None:
    machine.write(USER, {"autoCompactEnabled": True})
    assert machine.claude().enabled == Sourced(value=True, source="~/.claude/settings.json")
    for text, enabled in (("", True), ("0", True), ("false", True), ("1", False), ("True", False)):
        machine.environment[name] = text
        read = machine.claude().enabled
        assert read is not None
        assert read.value is enabled
        assert read.source == ("~/.claude/settings.json" if text == "" else name) or enabled


def test_percentages_and_standard_windows_are_read_from_variables(machine: Machine) -> None:
    machine.environment["CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"] = "62.5"
    machine.environment["CLAUDE_CODE_DISABLE_1M_CONTEXT"] = "1"
    read = machine.claude()
    assert read.percent == Sourced(62.5, "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")
    assert read.largest_window == Sourced(200_000, "CLAUDE_CODE_DISABLE_1M_CONTEXT")
    machine.environment["CLAUDE_CODE_DISABLE_1M_CONTEXT"] = "0"
    for text in ("0", "101", "many", "nan"):
        machine.environment["CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"] = text
        assert machine.reader().settings("claude-code", None) is None


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        {"autoCompactWindow": "300000", "autoCompactEnabled": 1, "modelSettings": [], "env": []},
        {"autoCompactWindow": 1, "env": {VARIABLE: "many"}},
        {"env": {VARIABLE: "9" * 5_000}},
        {"env": {VARIABLE: None}},
    ],
)
def test_what_cannot_be_read_counts_as_not_set(machine: Machine, content: object) -> None:
    machine.write(USER, content)
    assert machine.reader().settings("claude-code", str(machine.project)) is None


CODEX = "home/u/.codex/config.toml"


def test_the_first_place_of_codex_wins_and_a_profile_before_what_is_for_all(
    machine: Machine,
) -> None:
    machine.write("etc/codex/config.toml", "model_auto_compact_token_limit = 100\n")
    assert machine.codex().limit == Sourced(100, str(machine.root / "etc/codex/config.toml"))
    text = "model_auto_compact_token_limit = 200\nmodel_context_window = 400\n"
    machine.write(CODEX, text)
    read = machine.codex()
    assert read.limit == Sourced(200, "~/.codex/config.toml")
    assert read.context_window == Sourced(400, "~/.codex/config.toml")
    assert not read.is_partial
    profile = "[profiles.long]\nmodel_auto_compact_token_limit = 300\n"
    machine.write(CODEX, f'profile = "long"\n{text}{profile}')
    read = machine.codex()
    assert read.limit == Sourced(300, "profile long of ~/.codex/config.toml")
    assert read.context_window == Sourced(400, "~/.codex/config.toml")
    machine.write("home/u/p/.codex/config.toml", "model_auto_compact_token_limit = 500\n")
    assert machine.codex(machine.inner).limit == Sourced(500, "~/p/.codex/config.toml")
    machine.write("etc/codex/managed_config.toml", "model_auto_compact_token_limit = 600\n")
    assert machine.codex().limit == Sourced(
        600, str(machine.root / "etc/codex/managed_config.toml")
    )


def test_codex_counts_a_part_where_its_scope_says_so(machine: Machine) -> None:
    machine.environment["CODEX_HOME"] = str(machine.root / "codex")
    scope = 'model_auto_compact_token_limit_scope = "{}"\nmodel_auto_compact_token_limit = 9\n'
    machine.write("codex/config.toml", scope.format("body_after_prefix"))
    assert machine.codex().is_partial
    machine.write("codex/config.toml", scope.format("total"))
    assert not machine.codex().is_partial


@pytest.mark.parametrize("text", ["model_context_window = -1", "model_context_window =", "\xff"])
def test_a_broken_file_of_codex_counts_as_not_set(machine: Machine, text: str) -> None:
    machine.write(CODEX, text)
    (machine.root / CODEX).write_bytes(text.encode("latin-1"))
    assert machine.reader().settings("codex", None) is None


def test_files_are_read_once_until_they_are_to_be_looked_at_again(machine: Machine) -> None:
    reader = machine.reader()
    assert reader.settings("claude-code", None) is None
    machine.write(USER, {"autoCompactWindow": 300_000})
    assert reader.settings("claude-code", None) is None
    reader.forget()
    assert reader.settings("claude-code", None) is not None


def test_the_settings_of_every_home_of_a_runtime_are_read(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.write("home/u/.config/claude/settings.json", {"autoCompactWindow": 150_000})
    assert machine.claude().window == Sourced(150_000, "~/.config/claude/settings.json")
    machine.write("one/settings.json", {})
    machine.write("two/settings.json", {"autoCompactWindow": 250_000})
    machine.environment["CLAUDE_CONFIG_DIR"] = f"{tmp_path / 'one'},{tmp_path / 'two'}"
    assert machine.claude().window == Sourced(250_000, str(tmp_path / "two" / "settings.json"))
