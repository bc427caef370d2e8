"""`contextgauge control --check` of the compaction service's file: whose text is kept, too."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from streams.cli.app import app

RULE = "[[sessions]]\nautomatic = true\n"
KEPT = '[conversations]\nprojects = ["/srv/shop*", "!/srv/shop/secret"]\n'
MISSING = "the service compacts no session: it needs the section [conversations]"


@pytest.mark.parametrize(
    ("content", "shown", "is_missing"),
    [
        (RULE + KEPT, "text is kept of projects /srv/shop* !/srv/shop/secret, for 7 d", False),
        (RULE, MISSING, True),
        ("[drivers.claude-code]\n" + RULE + 'driver = "claude-code"\n', "claude-code", False),
    ],
)
def test_check_shows_whose_text_is_kept(
    tmp_path: Path, content: str, shown: str, *, is_missing: bool
) -> None:
    file = tmp_path / "compaction.toml"
    file.write_text(content)
    result = CliRunner().invoke(app, ["control", "--check", str(file)])
    assert result.exit_code == 0, result.output
    assert shown in " ".join(result.stdout.split())
    assert (MISSING in " ".join(result.stdout.split())) is is_missing


def test_check_names_what_is_wrong_with_whose_text_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "compaction.toml"
    file.write_text(RULE + "[conversations]\nproject = 7\n")
    result = CliRunner().invoke(app, ["control", "--check", str(file)])
    assert "project is unknown" in str(result.exception)


def test_check_lists_what_is_wrong_in_all_parts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "compaction.toml"
    file.write_text(
        '[summariser]\nprovider = "openai"\nmodel = "m"\nkey_env = "NO_SUCH_KEY"\n'
        "[service]\ncalls = 0\n[[sessions]]\nautomatic = 7\n[conversations]\nproject = 7\n"
    )
    result = CliRunner().invoke(app, ["control", "--check", str(file)])
    faults = str(result.exception).splitlines()
    assert len(faults) == 4
    for place, part in (
        ("compaction.toml:6: calls", "0"),
        ("compaction.toml:8: automatic", "7"),
        ("compaction.toml: ", "project is unknown"),
        ("summariser: key_env: ", "the environment has no NO_SUCH_KEY"),
    ):
        assert any(line.startswith(place) and part in line for line in faults), place


def test_a_summariser_that_is_wrong_itself_is_reported_once(tmp_path: Path) -> None:
    file = tmp_path / "compaction.toml"
    file.write_text('[summariser]\nprovider = "compatible"\nkey_env = "NO_SUCH_KEY"\n')
    result = CliRunner().invoke(app, ["control", "--check", str(file)])
    assert [line.split()[1] for line in str(result.exception).splitlines()] == ["model", "url"]


def test_check_lists_url_and_secret_of_a_target(tmp_path: Path) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text(
        '[[targets]]\nname = "ops"\nurl_env = "NO_SUCH_URL"\nsecret_env = "NO_SUCH_SECRET"\n'
        '[[rules]]\nname = "bad"\nwhen = "failed"\ntargets = ["ops"]\n'
    )
    result = CliRunner().invoke(app, ["control", "--check", str(file)])
    assert [line.split()[4] for line in str(result.exception).splitlines()] == [
        "NO_SUCH_URL,",
        "NO_SUCH_SECRET,",
    ]
