"""`contextgauge control --check` of the compaction service's file: whose text is kept, too."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from contextgauge.normalise.runtimes import RUNTIMES
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
    assert "project is not known here" in str(result.exception)


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
        ("compaction.toml:", "project is not known here"),
        ("summariser: key_env: ", "the environment has no NO_SUCH_KEY"),
    ):
        assert any(line.startswith(place) and part in line for line in faults), place


def test_a_summariser_that_is_wrong_itself_is_reported_once(tmp_path: Path) -> None:
    file = tmp_path / "compaction.toml"
    file.write_text('[summariser]\nprovider = "compatible"\nkey_env = "NO_SUCH_KEY"\n')
    result = CliRunner().invoke(app, ["control", "--check", str(file)])
    assert [line.split()[1] for line in str(result.exception).splitlines()] == [
        "model",
        "url",
        "key_env:",
    ]


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


def test_check_lists_what_is_wrong_with_drivers_and_sizes_too(tmp_path: Path) -> None:
    file = tmp_path / "compaction.toml"
    file.write_text(
        '[summariser]\nprovider = "openai"\nkey_env = "NO_SUCH_KEY"\nurl = "here"\n'
        '[drivers.codex]\nurl = "http://x"\ntimeout_s = 0\ntoken_env = "NO_SUCH_TOKEN"\n'
        "color = 1\ncolour = 2\n[drivers.opencoed]\n[drivers.opencode]\nmodel = 7\n"
        'ca_file = "/nowhere"\n[[sessions]]\n'
        'compact_to = "90%"\ncompact_at = "80%"\nhard_at = "70%"\ndriver = "codx"\n'
    )
    result = CliRunner().invoke(app, ["control", "--check", str(file)])
    faults = str(result.exception).splitlines()
    places = (
        "compaction.toml:1: model is missing",
        "compaction.toml:4: url is not an address",
        "summariser: key_env: the environment has no NO_SUCH_KEY",
        "[drivers.codex]: url is not valid",
        "[drivers.codex]: timeout_s is 0: give",
        "[drivers.codex]: token_env names NO_SUCH_TOKEN",
        "[drivers.codex]: color is not known here",
        "[drivers.codex]: colour is not known here",
        "[drivers.opencoed] is unknown",
        "[drivers.opencode]: model is not a string",
        "[drivers.opencode]: CA_FILE",
        "compaction.toml:16: compact_to 90% is above compact_at 80%",
        "compaction.toml:17: compact_at 80% is above hard_at 70%",
        "compaction.toml:19: driver is 'codx'",
    )
    for place in places:
        assert any(line.startswith(place) for line in faults), (place, faults)
    assert len(faults) == len(places)


def test_check_of_alert_rules_lists_secrets_that_are_missing_too(tmp_path: Path) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text(
        '[[targets]]\nname = "ops"\nurl_env = "NO_URL"\nsecret_env = "NO_SECRET"\n'
        '[[targets]]\nname = "none"\n'
        '[[rules]]\nname = "full"\nwhen = "pressure"\nat_percent = 900\ntargets = ["ops"]\n'
    )
    result = CliRunner().invoke(app, ["control", "--check", str(file)])
    places = (
        "alerts.toml:5: url is missing",
        "alerts.toml:10: at_percent is 900",
        "target 'ops': url_env names NO_URL",
        "target 'ops': secret_env names NO_SECRET",
    )
    faults = str(result.exception).splitlines()
    for place in places:
        assert any(line.startswith(place) for line in faults), (place, faults)
    assert len(faults) == len(places)


def test_check_says_what_the_service_does_not_compact(tmp_path: Path) -> None:
    file = tmp_path / "compaction.toml"
    file.write_text(RULE + KEPT)
    shown = " ".join(CliRunner().invoke(app, ["control", "--check", str(file)]).stdout.split())
    labels = sorted(each.label for each in RUNTIMES if each.compacts_itself)
    assert f"{labels[-2]} and {labels[-1]} compact themselves" in shown
    file.write_text("[drivers.claude-code]\n" + RULE + 'driver = "claude-code"\n' + KEPT)
    shown = " ".join(CliRunner().invoke(app, ["control", "--check", str(file)]).stdout.split())
    assert "compact themselves" not in shown


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        (RULE, "automatic, at 85%"),
        (RULE + 'profile = "seed-004"\n', "automatic, at 90%, profile seed-004"),
        (RULE + 'profile = "seed-002"\n', "automatic, at 80% of all but 11,000 tokens, profile"),
        (RULE + 'profile = "seed-002"\ncompact_at = "70%"\n', "automatic, at 70%, profile"),
    ],
)
def test_check_shows_when_a_rule_compacts(tmp_path: Path, rule: str, shown: str) -> None:
    file = tmp_path / "compaction.toml"
    file.write_text(rule + KEPT)
    output = CliRunner().invoke(app, ["control", "--check", str(file)]).stdout
    assert f"all sessions: {shown}" in " ".join(output.split())
