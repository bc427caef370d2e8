"""The section of the operator's file that says whose text is kept."""

from pathlib import Path

import pytest

from contextgauge.errors import ConfigError
from contextgauge.units import DAY_MS, MIB
from streams.edge.control.kept_conversations import read_kept


def written(folder: Path, text: str) -> Path:
    file = folder / "compaction.toml"
    file.write_text(text)
    return file


def test_a_session_must_fit_all_patterns(tmp_path: Path) -> None:
    policy = read_kept(
        written(tmp_path, '[conversations]\nagents = "ann"\nprojects = ["/shop*", "!*/secret"]\n')
    )
    assert policy.fit("s", "ann", "/shop/a")
    assert not policy.fit("s", "bob", "/shop/a")
    assert not policy.fit("s", "ann", "/shop/secret")
    assert not policy.fit("s", None, "/shop")
    assert (policy.idle_ms, policy.max_bytes, policy.max_messages) == (7 * DAY_MS, 8 * MIB, 20_000)


def test_a_list_that_is_empty_selects_by_nothing(tmp_path: Path) -> None:
    kept = read_kept(written(tmp_path, '[conversations]\nagents = []\nsessions = ["a*"]\n'))
    assert kept.fit("ab", None, None)
    assert not kept.fit("b", None, None)


def test_bounds_can_be_set(tmp_path: Path) -> None:
    policy = read_kept(
        written(
            tmp_path,
            '[conversations]\nsessions = ["*"]\nidle_days = 1\nmax_mib = 2\nmax_messages = 500\n',
        )
    )
    assert (policy.idle_ms, policy.max_bytes, policy.max_messages) == (DAY_MS, 2 * MIB, 500)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no section"),
        ("conversations = 1\n", "is not a table"),
        ("[conversations]\n", "names no session"),
        ("[conversations]\nsession = 'a'\n", "toml:2: session is not known here .*'sessions'"),
        ("[conversations]\nsessions = [1]\n", "not a list of strings"),
        ("[conversations]\nsessions = '*'\nidle_days = 0\n", "1 to 365"),
        ("[conversations\n", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_kept(written(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="CONTEXTGAUGE_COMPACTION_FILE"):
        read_kept(tmp_path / "none.toml")
