"""Files of alert rules: faults by their lines, secrets from elsewhere and never shown."""

from dataclasses import replace
from pathlib import Path

import pytest

from contextgauge.errors import ConfigError
from streams.edge.alerts.rules_file import addresses, read_plan
from streams.edge.files.toml_file import line_of

GOOD = """\
[[targets]]
name = "ops"
url_env = "OPS_URL"
secret_file = "{folder}/secret"

[[rules]]
name = "full"
when = "pressure"
at_percent = 80
targets = ["ops"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "alerts.toml"
    path.write_text(GOOD.format(folder=tmp_path))
    (tmp_path / "secret").write_text("s3cret\n")
    return path


def alerts_in(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as error:
        read_plan(path)
    return str(error.value).splitlines()


def test_a_plan_and_its_addresses_are_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS_URL", "https://hooks.example/token")
    address = addresses(read_plan(file))["ops"]
    assert (address.url, address.key) == ("https://hooks.example/token", b"s3cret")
    assert "token" not in repr(address)
    assert "s3cret" not in repr(address)


def test_faults_are_reported_by_line(file: Path) -> None:
    text = file.read_text().replace("at_percent = 80", 'at_percent = "80"')
    file.write_text(text.replace('targets = ["ops"]', "") + '\n[[rules]]\nname = "x"\n')
    assert alerts_in(file) == [
        "alerts.toml:9: at_percent is '80': give a whole number, 1 to 100",
        "alerts.toml:6: targets is missing: name one or more of ops",
        (
            "alerts.toml:12: when is missing: it is one of pressure, failed, stalled, thrash, "
            "exhausted, rules_lost"
        ),
        "alerts.toml:12: targets is missing: name one or more of ops",
    ]


def test_invalid_toml_is_reported_with_its_line(file: Path) -> None:
    file.write_text('[[rules]]\nname = "x\n')
    (line,) = alerts_in(file)
    assert "is not valid TOML" in line
    assert "at line 2" in line


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff", "is not UTF-8 text"),
        (b"#" * 1_100_000, "is too long"),
        (b"", "targets is missing"),
    ],
)
def test_an_invalid_rules_file_is_reported(file: Path, content: bytes, said: str) -> None:
    file.write_bytes(content)
    assert said in alerts_in(file)[0]


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    (line,) = alerts_in(tmp_path / "none.toml")
    assert line.endswith(
        "none.toml cannot be read (No such file or directory): name the file of alert rules"
    )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (None, "target 'ops': url_env names OPS_URL, which is not set: set it"),
        ("hooks.example/s3cret-token", "target 'ops': its url is not a valid webhook address"),
        ("https://host:port/s3cret-token", "target 'ops': its url is not a valid webhook address"),
    ],
)
def test_an_invalid_address_is_reported_and_not_shown(
    file: Path, monkeypatch: pytest.MonkeyPatch, url: str | None, said: str
) -> None:
    monkeypatch.delenv("OPS_URL", raising=False)
    if url is not None:
        monkeypatch.setenv("OPS_URL", url)
    with pytest.raises(ConfigError) as error:
        addresses(read_plan(file))
    assert said in str(error.value)
    assert "s3cret" not in str(error.value)


def test_a_secret_file_that_cannot_be_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS_URL", "https://hooks.example/token")
    (file.parent / "secret").unlink()
    with pytest.raises(ConfigError, match=r"secret_file.*cannot be read"):
        addresses(read_plan(file))


def test_lines_of_tables_written_inline() -> None:
    text = 'max_age = "1h"\nrules = [{name = "x"}]\n'
    assert line_of(text, ("rules", 0, "name")) == 2
    assert line_of(text, ("max_age",)) == 1
    assert line_of(text, ("targets",)) is None


def test_secrets_and_authorities_are_checked_before_anything_is_sent(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = read_plan(file)
    for variable in ("OPS_SECRET", "SLACK_URL"):
        monkeypatch.setenv(variable, "https://hooks.example/x")
    ops = replace(plan.targets[0], url="https://hooks.example/x", url_env=None, url_file=None)
    good = replace(ops, secret_env=None, secret_file=None)
    monkeypatch.setenv("A_SECRET", "whsec_*")
    for bad, said in (
        (replace(good, secret_env="A_SECRET"), "Base64"),  # noqa: S106 -- a variable's name
        (replace(good, ca_file=str(file)), "target"),
    ):
        with pytest.raises(ConfigError, match=said):
            addresses(replace(plan, targets=(bad,)))
