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
