"""Secrets come from the environment or from files, and go together with the other settings."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from contextgauge.errors import ConfigError
from contextgauge.settings.forms import PREFIX
from streams.settings import Settings, load_settings

SASL = {
    "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    "KAFKA_SASL_MECHANISM": "scram-sha-512",
    "KAFKA_USERNAME": "me",
}
SECRETS = ("KAFKA_PASSWORD", "KAFKA_KEY_PASSWORD", "REDIS_PASSWORD", "REDIS_KEY_PASSWORD")


def _load(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> Settings:
    for name, value in settings.items():
        monkeypatch.setenv(PREFIX + name, value)
    return load_settings()


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_a_secret_file_may_have_any_line_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str
) -> None:
    file = tmp_path / "password"
    file.write_bytes(f" pä ss{end}".encode())
    chosen = _load(monkeypatch, SASL | {"KAFKA_PASSWORD_FILE": str(file)})
    assert chosen.kafka_password == SecretStr(" pä ss")
    assert chosen.kafka_security_protocol == "sasl_ssl"
    assert chosen.kafka_sasl_mechanism == "SCRAM-SHA-512"


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe", b"x" * 70_000])
def test_a_file_without_a_secret_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, content: bytes | None
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"^{PREFIX}{name}_FILE={file} ") as caught:
        _load(monkeypatch, {f"{name}_FILE": str(file)})
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("secret", ["hunter2", "hunter2/of+two", "/hunter2/three", "hunter2" * 99])
def test_a_secret_in_place_of_a_file_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, secret: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{PREFIX}{name}_FILE cannot be read") as caught:
        _load(monkeypatch, {f"{name}_FILE": secret})
    assert "hunter2" not in str(caught.value)


def test_a_password_in_the_brokers_address_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=f"^{PREFIX}BOOTSTRAP_SERVERS ") as caught:
        _load(monkeypatch, {"BOOTSTRAP_SERVERS": "sasl://me:hunter2@kafka.example:9092"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_has_a_single_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "secret"
    file.write_text("hunter2")
    with pytest.raises(ConfigError, match="both set") as caught:
        _load(monkeypatch, {name: "hunter2", f"{name}_FILE": str(file)})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="_FILE is empty: name a file"):
        _load(monkeypatch, {f"{name}_FILE": ""})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"KAFKA_SECURITY_PROTOCOL": "sasl_ssl"}, "needs CONTEXTGAUGE_KAFKA_SASL_MECHANISM"),
        ({**SASL}, "needs CONTEXTGAUGE_KAFKA_PASSWORD (or CONTEXTGAUGE_KAFKA_PASSWORD_FILE)"),
        ({"KAFKA_SASL_MECHANISM": "PLAIN"}, "set that to sasl_ssl or sasl_plaintext"),
        ({"KAFKA_SECURITY_PROTOCOL": "ssl", "KAFKA_USERNAME": "me"}, "set that to sasl_ssl, or"),
        ({"KAFKA_PASSWORD": "x"}, "does nothing with CONTEXTGAUGE_KAFKA_SECURITY_PROTOCOL"),
        ({"KAFKA_CA_FILE": "ca.pem"}, "set that to ssl, or unset this"),
        ({"KAFKA_CHECK_HOSTNAME": "false"}, "CONTEXTGAUGE_KAFKA_CHECK_HOSTNAME does nothing"),
        (
            {"KAFKA_SECURITY_PROTOCOL": "ssl", "KAFKA_CERTIFICATE_FILE": "me.pem"},
            "CONTEXTGAUGE_KAFKA_CERTIFICATE_FILE needs CONTEXTGAUGE_KAFKA_KEY_FILE",
        ),
        (
            {"KAFKA_SECURITY_PROTOCOL": "ssl", "KAFKA_KEY_FILE": "me.pem"},
            "CONTEXTGAUGE_KAFKA_KEY_FILE needs CONTEXTGAUGE_KAFKA_CERTIFICATE_FILE",
        ),
        (
            {"KAFKA_SECURITY_PROTOCOL": "ssl", "KAFKA_KEY_PASSWORD": "x"},
            "CONTEXTGAUGE_KAFKA_KEY_PASSWORD needs CONTEXTGAUGE_KAFKA_KEY_FILE",
        ),
        ({"KAFKA_SECURITY_PROTOCOL": "tls"}, "plaintext; ssl (TLS)"),
        ({"KAFKA_SASL_MECHANISM": "GSSAPI"}, "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
        (
            {"REDIS_URL": "redis://h:1/0", "REDIS_CA_FILE": "ca.pem"},
            "does nothing, as CONTEXTGAUGE_REDIS_URL begins with redis://",
        ),
        ({"REDIS_URL": "redis://me@h:1/0"}, "a user of Redis needs a password"),
        ({"REDIS_URL": "redis://h:1/0", "REDIS_USERNAME": "me"}, "needs a password"),
        (
            {"REDIS_URL": "redis://me:x@h:1/0", "REDIS_USERNAME": "me"},
            "CONTEXTGAUGE_REDIS_URL names a user too",
        ),
        (
            {"REDIS_URL": "redis://me:x@h:1/0", "REDIS_PASSWORD": "x"},
            "CONTEXTGAUGE_REDIS_URL has a password too",
        ),
        ({"REDIS_CERTIFICATE_FILE": "me.pem"}, "needs CONTEXTGAUGE_REDIS_KEY_FILE"),
        ({"REDIS_URL": "rediss://h:1/0?ssl_cert_reqs=none"}, "has other options than"),
        ({"REDIS_URL": "redis://h:1/0?password=hunter2"}, "has other options than"),
        ({"REDIS_URL": "redis://me:hun/ter2@h:1/0"}, "percent-encoded"),
        ({"REDIS_URL": "redis://h:1/zero"}, "/database, a number"),
    ],
)
def test_contradictory_and_ineffective_settings_are_reported(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(monkeypatch, settings)
    text = str(caught.value)
    assert words in text
    assert "hun" not in text
    assert all(line.startswith(PREFIX) or "CONTEXTGAUGE_" in line for line in text.splitlines())


@pytest.mark.parametrize(
    "addresses", ["a:9092", "a:1,b:2", "[::1]:9093", "[fe80::1]:1,b.example:2", "10.0.0.1:9092"]
)
def test_brokers_are_named_by_host_or_address(
    monkeypatch: pytest.MonkeyPatch, addresses: str
) -> None:
    assert _load(monkeypatch, {"BOOTSTRAP_SERVERS": addresses}).bootstrap_servers == addresses


def test_local_services_ignore_connection_settings_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs = SASL | {"KAFKA_PASSWORD": "x", "REDIS_URL": "rediss://h:1/0", "REDIS_PASSWORD": "x"}
    mine = _load(monkeypatch, theirs).at("127.0.0.1:1", "redis://127.0.0.1:2/0")
    assert (mine.kafka_security_protocol, mine.kafka_password, mine.kafka_username) == (
        "plaintext",
        None,
        None,
    )
    assert (mine.redis_password, mine.redis_url) == (None, SecretStr("redis://127.0.0.1:2/0"))
