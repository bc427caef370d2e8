"""The checkpoint: whole or not there, one publisher's, one topic's; and the secret beside it."""

import json
import stat
from pathlib import Path

import pytest

from contextgauge.errors import ConfigError
from contextgauge.state_folder import checkpoint_file, state_folder, text_key
from streams.edge.files.checkpoint import Checkpoint, CheckpointContent, CheckpointTarget
from streams.edge.files.positions import Position

TARGET = CheckpointTarget("cluster", "agent.messages")
DAY_S = 86_400
NOW_S = 1_000 * DAY_S


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "checkpoint.json"


def position(path: Path, seen_s: int = NOW_S) -> Position:
    return Position(str(path), 1, 2, 30, 4, 5, "aa", "stream", "s\udc80", 6, seen_s)


def load(path: Path, target: CheckpointTarget = TARGET) -> CheckpointContent:
    with Checkpoint(path, target) as checkpoint:
        return checkpoint.load(NOW_S)


def save(path: Path, *positions: Position) -> None:
    with Checkpoint(path, TARGET) as checkpoint:
        checkpoint.save(positions, {3: 7})


def test_a_saved_checkpoint_is_loaded_and_leaves_no_other_files(path: Path) -> None:
    assert load(path) == CheckpointContent([], {})
    saved = position(path)
    save(path, saved)
    assert load(path) == CheckpointContent([saved], {3: 7})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    names = sorted(each.name for each in path.parent.iterdir())
    assert names == ["checkpoint.json", "checkpoint.json.lock"]


def test_a_save_that_fails_leaves_the_former_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(path, position(path))
    monkeypatch.setattr("os.fsync", _full)
    with pytest.raises(ConfigError, match="cannot be written: No space left"):
        save(path)
    monkeypatch.undo()
    assert len(load(path).positions) == 1


def _full(_descriptor: int) -> None:
    raise OSError(28, "No space left on device")


def test_files_missing_for_long_are_forgotten(path: Path) -> None:
    gone, long_gone = path.with_name("gone"), path.with_name("long-gone")
    old = NOW_S - 91 * DAY_S
    existing = path.with_name("kept")
    path.parent.mkdir()
    existing.touch()
    there = position(existing, old)._replace(inode=existing.stat().st_ino)
    save(path, position(gone, NOW_S - 89 * DAY_S), position(long_gone, old), there)
    assert [loaded.path for loaded in load(path).positions] == [str(gone), str(existing)]


def test_a_second_publisher_is_refused_with_a_remedy(path: Path) -> None:
    with Checkpoint(path, TARGET), pytest.raises(ConfigError, match=r"another .*--checkpoint FILE"):
        load(path)
    assert load(path).positions == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"format":1,"cluster":"cluster","topic":"agent.messages","files":[{}],"offsets":{}}',
        '{"format":1,"cluster":"cluster","topic":"agent.messages","files":[],"offsets":{"a":1}}',
    ],
)
def test_a_damaged_checkpoint_raises_a_config_error(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(ConfigError, match="damaged: delete it"):
        load(path)


@pytest.mark.parametrize(("field", "wrong"), [("offset", -1), ("kind", "x"), ("hint", 3)])
def test_an_invalid_position_is_damage(path: Path, field: str, wrong: object) -> None:
    save(path, position(path))
    content = json.loads(path.read_bytes())
    content["files"][0][field] = wrong
    path.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="damaged"):
        load(path)


def test_a_checkpoint_of_another_cluster_topic_or_version_is_refused(path: Path) -> None:
    save(path)
    with pytest.raises(ConfigError, match=r"the cluster cluster, not for agent\.messages of other"):
        load(path, CheckpointTarget("other", "agent.messages"))
    with pytest.raises(ConfigError, match=r"agent\.messages of the cluster cluster, not for other"):
        load(path, CheckpointTarget("cluster", "other"))
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"format": 2}))
    with pytest.raises(ConfigError, match="another version"):
        load(path)


def test_an_unwritable_path_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        load(tmp_path / "file" / "checkpoint.json")


def test_the_state_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    assert state_folder(None) == tmp_path / ".local" / "state" / "contextgauge"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "x"))
    assert state_folder(None) == tmp_path / "x" / "contextgauge"
    assert state_folder("~/mine") == tmp_path / "mine"


def test_each_topic_of_each_cluster_has_a_file(tmp_path: Path) -> None:
    names = {
        checkpoint_file(tmp_path, cluster, topic)
        for cluster, topic in [
            ("a", "b-c"),
            ("a-b", "c"),
            ("a/b", "c"),
            ("a", "b"),
            ("x" * 300, ""),
        ]
    }
    assert len(names) == 5
    assert all(name.parent == tmp_path / "publish" and len(name.name) < 200 for name in names)


def test_the_secret_is_made_once_and_only_the_owner_reads_it(tmp_path: Path) -> None:
    key = text_key(tmp_path / "state")
    assert len(key) == 32
    assert text_key(tmp_path / "state") == key
    assert text_key(tmp_path / "other") != key
    path = tmp_path / "state" / "no-text.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["no-text.key"]
    path.write_bytes(b"short")
    with pytest.raises(ConfigError, match="damaged"):
        text_key(tmp_path / "state")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="CONTEXTGAUGE_STATE_FOLDER"):
        text_key(tmp_path / "file")
