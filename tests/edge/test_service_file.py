"""The compaction service's file: what it asks for, and every fault with its line."""

import tomllib
from pathlib import Path

import pytest

from contextgauge.compaction.engine.trigger import limits_of
from contextgauge.compaction.profiles import PROFILES, Window
from contextgauge.errors import ConfigError
from streams.core.control.check import ServicePlan, outside_needs, profile_of
from streams.core.control.service import SummariserPlan
from streams.core.control.thresholds import SessionThresholds, Subject, ThresholdBook
from streams.core.until_compaction import Threshold
from streams.edge.control.service_file import read_service, summariser_of

WHOLE = """
[service]
max_age = "5m"
calls = 2
deadline = "20m"

[summariser]
provider = "anthropic"
model = "claude-haiku-4-5"
key_env = "SUMMARISER_KEY"

[drivers.opencode]
url = "http://127.0.0.1:4096"

[conversations]
whatever = "another part reads it"

[[sessions]]
automatic = true
compact_at = "80%"
compact_to = 60000
hard_at = "92.5%"

[[sessions]]
agents = ["reviewer", "tester-*"]
driver = "opencode"

[[sessions]]
projects = "secret"
automatic = false
profile = "seed-004"
"""


def read(path: Path, text: str) -> ServicePlan:
    path.write_text(text)
    return read_service(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "compaction.toml"


def test_a_whole_file(path: Path) -> None:
    plan = read(path, WHOLE)
    assert (plan.max_age_ms, plan.calls, plan.deadline_ms) == (300_000, 2, 1_200_000)
    assert plan.summariser == SummariserPlan(
        provider="anthropic", model="claude-haiku-4-5", key_env="SUMMARISER_KEY"
    )
    book = ThresholdBook(plan.rules)
    thresholds = book.of(Subject("s", "reviewer", "/repos/app", "claude-sonnet-5"))
    assert thresholds == SessionThresholds(
        automatic=True,
        compact_at=Threshold(percent=80.0),
        compact_to=Threshold(tokens=60_000),
        hard_at=Threshold(percent=92.5),
        driver="opencode",
    )
    secret = book.of(Subject("s", None, "/repos/secret"))
    assert (secret.automatic, secret.profile) == (False, "seed-004")


def test_an_empty_file_compacts_no_session(path: Path) -> None:
    plan = read(path, "")
    assert plan == ServicePlan()
    assert not ThresholdBook(plan.rules).may_be_automatic
    assert (plan.max_age_ms, plan.calls) == (600_000, 4)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[service]\nmax_age = 5", 'toml:2: max_age is 5: give a time such as "90s"'),
        ("[service]\ncalls = 0", "toml:2: calls is 0: give a whole number, 1 to 256"),
        ("[service]\n\ncall = 2", "toml:3: call is not known here .did you mean 'calls'"),
        ("service = 3", r"toml:1: service is not a table: write it as \[service\]"),
        ("[other]", "toml: other is not known here"),
        ('[summariser]\nprovider = "antropic"', "toml:2: provider is 'antropic' .did you mean"),
        ('[summariser]\nprovider = "openai"', "toml:1: model is missing"),
        ('[summariser]\nprovider = "compatible"\nmodel = "m"', "toml:1: url is missing"),
        ('[summariser]\nmodel = "m"', "toml:2: model is for a model: name its provider"),
        ('[summariser]\nredact = "no"', "toml:2: redact is 'no': write true or false"),
        ('[[sessions]]\ncompact_at = "lots"', "toml:2: compact_at 'lots' is not a size"),
        (
            '[[sessions]]\n\n[[sessions]]\ncompact_at = "50%"\ncompact_to = "60%"',
            "toml:5: compact_to 60% is above compact_at 50%",
        ),
        ('[[sessions]]\ndriver = "codex"', "toml:2: driver is 'codex': it is service, or a"),
        ('[[sessions]]\naddress = "http://a"', "toml:2: address is not known here"),
        ('[[sessions]]\nprofile = "x"', "toml:2: profile is 'x': it is one of default"),
        (
            '[summariser]\nprovider = "compatible"\nmodel = "m"\nurl = "ftp://a"',
            "toml:4: url is not an address",
        ),
        (
            '[summariser]\nprovider = "compatible"\nmodel = "m"\nurl = "http://a:b"',
            "toml:4: url is not an address",
        ),
        ("[[sessions]]\nautomatic = 1", "toml:2: automatic is 1: write true or false"),
    ],
)
def test_a_fault_is_named_with_its_line(path: Path, text: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        read(path, text)


def test_the_key_is_in_the_environment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = read(path, WHOLE).summariser
    monkeypatch.delenv("SUMMARISER_KEY", raising=False)
    with pytest.raises(ConfigError, match="key_env: the environment has no SUMMARISER_KEY"):
        summariser_of(plan)
    monkeypatch.setenv("SUMMARISER_KEY", "k")
    assert summariser_of(plan) is not None
    assert summariser_of(SummariserPlan()) is None


def test_a_profile_takes_the_sizes_of_the_session() -> None:
    thresholds = SessionThresholds(compact_at=Threshold(tokens=120_000), profile="seed-004")
    profile = profile_of(thresholds, 200_000)
    assert (profile.name, profile.compact_to) == ("seed-004", 0.5)
    assert profile.compact_at == pytest.approx(0.6)
    assert (profile_of(thresholds, 0).compact_at, profile_of(thresholds, 0).compact_to) == (
        0.9,
        0.5,
    )
    assert profile_of(SessionThresholds(), 0).compact_at == 0.85
    assert profile.clear_at_tokens == PROFILES["seed-004"].clear_at_tokens


@pytest.mark.parametrize("name", ["default", "seed-001", "seed-002", "seed-004"])
@pytest.mark.parametrize("window", [8_192, 128_000, 200_000, 1_000_000])
def test_the_engine_compacts_where_the_decision_does(name: str, window: int) -> None:
    thresholds = SessionThresholds(profile=name)
    limits = limits_of(profile_of(thresholds, window), Window(window, "given"), 4_096)
    sizes = thresholds.sizes(window)
    assert sizes is not None
    assert (limits.compact_at_tokens, limits.compact_to_tokens) == sizes[:2]


@pytest.mark.parametrize("name", ["default", "seed-001", "seed-002", "seed-004"])
@pytest.mark.parametrize(
    ("size", "tokens"), [(Threshold(percent=50), 3_000), (Threshold(tokens=2_000), 2_000)]
)
def test_sizes_of_the_service_are_of_the_whole_window(
    name: str, size: Threshold, tokens: int
) -> None:
    thresholds = SessionThresholds(compact_to=size, profile=name)
    limits = limits_of(profile_of(thresholds, 6_000), Window(6_000, "given"), 4_096)
    assert limits.usable_tokens == 6_000
    assert limits.compact_to_tokens == tokens


def test_what_is_needed_of_the_machine_is_known_whatever_is_wrong_elsewhere() -> None:
    content = tomllib.loads(WHOLE.replace("calls = 2", "calls = 0"))
    needs, faults = outside_needs(content)
    assert (needs.is_sound, list(needs.drivers), faults) == (True, ["opencode"], [])
    assert needs.summariser.model == "claude-haiku-4-5"
