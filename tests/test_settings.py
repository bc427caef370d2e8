"""Every setting is checked when it is read, and an error says which variable and what to do."""

import pytest

from contextgauge.errors import ConfigError
from contextgauge.settings.forms import PREFIX
from schemas.topics import CONTEXT_EVENTS, CONTEXT_STATE, DAY_MS, DEAD_LETTERS, MIB, TOPICS
from streams import wiring
from streams.core.derivation.rules_config import DEFAULT_THRESHOLDS
from streams.core.until_compaction import Threshold
from streams.settings import Settings, load_settings


def _set(monkeypatch: pytest.MonkeyPatch, **values: str) -> Settings:
    for name, value in values.items():
        monkeypatch.setenv(PREFIX + name, value)
    return load_settings()


def test_defaults_are_those_of_the_contracts() -> None:
    chosen = load_settings()
    assert [chosen.topic(topic) for topic in TOPICS] == list(TOPICS)
    assert chosen.warning_thresholds == DEFAULT_THRESHOLDS
    assert chosen.key_prefix == "cg"
    assert chosen.metrics_port == 0


def test_no_address_is_guessed() -> None:
    chosen = load_settings()
    assert (chosen.bootstrap_servers, chosen.redis_url) == (None, None)


def test_every_setting_has_a_description() -> None:
    assert all(field.description for field in Settings.model_fields.values())


def test_settings_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = _set(
        monkeypatch,
        WINDOWS='{"my-model": 128000}',
        COMPACTION_THRESHOLDS='{"my-model": 100000, "claude": "83.5%"}',
        WARNING_THRESHOLDS="80, 90",
        TOPIC_PREFIX="team.",
        EVENTS_RETENTION_DAYS="400",
        MESSAGE_LIMIT_BYTES=str(20 * MIB),
    )
    assert chosen.windows == {"my-model": 128_000}
    assert chosen.compaction_thresholds == {
        "my-model": Threshold(tokens=100_000),
        "claude": Threshold(percent=83.5),
    }
    assert chosen.warning_thresholds == (80, 90)
    events = chosen.topic(CONTEXT_EVENTS)
    assert (events.name, events.retention_ms) == ("team.context.events", 400 * DAY_MS)
    assert events.max_message_bytes == 21 * MIB
    assert chosen.topic(DEAD_LETTERS).max_message_bytes == 22 * MIB
    assert chosen.topic(CONTEXT_STATE).retention_ms == -1


def test_thresholds_may_be_a_json_list(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _set(monkeypatch, WARNING_THRESHOLDS="[50,75]").warning_thresholds == (50, 75)


def test_discovered_addresses_apply_only_to_unset_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTGAUGE_REDIS_URL", "redis://mine:6379/0")
    chosen = load_settings(
        {"bootstrap_servers": "127.0.0.1:4711", "redis_url": "redis://127.0.0.1:4712/0"}
    )
    assert chosen.bootstrap_servers == "127.0.0.1:4711"
    assert wiring.redis_url(chosen) == "redis://mine:6379/0"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PARTITIONS", "0", "1 to 10 000"),
        ("PARTITIONS", "many", "valid integer"),
        ("BOOTSTRAP_SERVERS", "localhost", "host:port"),
        ("BOOTSTRAP_SERVERS", "a:1,,b:2", "host:port"),
        ("REDIS_URL", "http://localhost", "redis://"),
        ("REDIS_URL", "redis://h:99999/0", "ort"),
        ("TOPIC_PREFIX", "a b", "letters, digits"),
        ("KEY_PREFIX", "{x}", "letters, digits"),
        ("WINDOWS", "{", "not JSON"),
        ("WINDOWS", "[]", "not a JSON object"),
        ("WINDOWS", '{"m": 0}', "window of 0 tokens"),
        ("WINDOWS", '{"m": "wide"}', "valid integer"),
        ("COMPACTION_THRESHOLDS", "{", "not JSON"),
        ("COMPACTION_THRESHOLDS", "[]", "not a JSON object"),
        ("COMPACTION_THRESHOLDS", '{"m": 0}', "tokens above 0 or a percentage"),
        ("COMPACTION_THRESHOLDS", '{"m": "101%"}', "tokens above 0 or a percentage"),
        ("COMPACTION_THRESHOLDS", '{"m": "wide"}', "tokens above 0 or a percentage"),
        ("WARNING_THRESHOLDS", "90,80", "does not ascend"),
        ("WARNING_THRESHOLDS", "0,10", "does not ascend from above 0"),
        ("WARNING_THRESHOLDS", "", "at least 1 item"),
        ("WARNING_THRESHOLDS", "80%", "valid integer"),
        ("METRICS_PORT", "70000", "65535"),
        ("EVENTS_RETENTION_DAYS", "0", "at once"),
        ("LOG_LEVEL", "loud", "'debug'"),
    ],
)
def test_a_wrong_value_is_reported_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    with pytest.raises(ConfigError, match="unset it for the default") as caught:
        _set(monkeypatch, **{name: value})
    text = str(caught.value)
    assert text.startswith(PREFIX + name)
    assert words in text
    assert "\n" not in text


def test_all_wrong_values_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError) as caught:
        _set(monkeypatch, PARTITIONS="0", LOG_FORMAT="xml")
    assert len(str(caught.value).splitlines()) == 2


def test_a_misspelled_setting_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="did you mean CONTEXTGAUGE_PARTITIONS"):
        _set(monkeypatch, PARTITION="8")
    monkeypatch.delenv("CONTEXTGAUGE_PARTITION")
    with pytest.raises(ConfigError, match="CONTEXTGAUGE_XYZ is not a setting: unset it"):
        _set(monkeypatch, XYZ="1")


def test_the_compile_setting_is_accepted_and_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _set(monkeypatch, COMPILE="1") == _set(monkeypatch)


def test_a_password_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError) as caught:
        _set(monkeypatch, REDIS_URL="http://user:hunter2@host")
    assert "hunter2" not in str(caught.value)
