"""Every way to connect to Kafka works, and what is wrong is reported at once, with the setting."""

from pathlib import Path

import pytest

from tests.commands import Command
from tests.secure.certificates import KEY_PASSWORD
from tests.secure.services import PASSWORD, Secured

pytestmark = pytest.mark.extended

EXIT_CONFIG = 2


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        ("ssl", ""),
        ("mutual", ""),
        ("sasl_ssl", "PLAIN"),
        ("sasl_ssl", "SCRAM-SHA-256"),
        ("sasl_ssl", "SCRAM-SHA-512"),
        ("sasl_plaintext", "SCRAM-SHA-256"),
    ],
)
def test_every_protocol_and_mechanism_carries_messages(
    secured_kafka: Secured, command: Command, prefix: str, listener: str, mechanism: str
) -> None:
    names = {"TOPIC_PREFIX": prefix, "GROUP_PREFIX": prefix, "PARTITIONS": "1"}
    settings = names | secured_kafka.kafka_settings(listener, "admin", mechanism)
    if listener != "mutual" and not mechanism:
        # Without a name everybody is ANONYMOUS, who is the broker's own user here.
        assert "KAFKA_USERNAME" not in settings
    created = command("topics", "create", **settings)
    assert created.returncode == 0, created.stderr
    lines = command("simulate", "--sample").stdout
    published = command("publish", "-", stdin=lines, **settings)
    assert published.returncode == 0, published.stderr
    assert ("warning" in created.stderr) == (listener == "sasl_plaintext")


def _settings(secured: Secured, listener: str, **changed: str | None) -> dict[str, str]:
    # A prefix of its own: topics without one may be there, from another test.
    settings: dict[str, str | None] = {
        "TOPIC_PREFIX": "absent-",
        **secured.kafka_settings(listener),
        **changed,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _refused(command: Command, settings: dict[str, str]) -> str:
    """Return the one line that is shown: it does not try again until its time is up."""
    done = command("topics", "list", **settings)
    assert done.returncode == EXIT_CONFIG, (done.stdout, done.stderr)
    (line,) = [line for line in done.stderr.splitlines() if "warning" not in line]
    assert PASSWORD not in line
    return line


def test_a_wrong_password_or_user(secured_kafka: Secured, command: Command) -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-512"):
        settings = secured_kafka.kafka_settings("sasl_ssl", "admin", mechanism)
        error = _refused(command, settings | {"KAFKA_PASSWORD": "nonsense"})
        assert "the user admin is refused" in error
        assert "CONTEXTGAUGE_KAFKA_PASSWORD" in error
        assert "nonsense" not in error
    error = _refused(command, settings | {"KAFKA_USERNAME": "nobody"})
    assert "the user nobody is refused" in error


def test_a_mechanism_that_the_listener_lacks(secured_kafka: Secured, command: Command) -> None:
    error = _refused(command, secured_kafka.kafka_settings("sasl_plaintext", "admin", "PLAIN"))
    assert "KAFKA_SASL_MECHANISM=PLAIN is not one of this listener's" in error
    assert error.endswith("SCRAM-SHA-256")


@pytest.mark.parametrize(
    ("listener", "port", "words"),
    [
        ("sasl_ssl", "ssl", "asks for no user: set CONTEXTGAUGE_KAFKA_SECURITY_PROTOCOL to ssl"),
        ("ssl", "sasl_ssl", "asks for a user: set CONTEXTGAUGE_KAFKA_SECURITY_PROTOCOL=sasl_ssl"),
        ("plaintext", "ssl", "speaks TLS: set CONTEXTGAUGE_KAFKA_SECURITY_PROTOCOL=ssl"),
        ("sasl_plaintext", "sasl_ssl", "speaks TLS: set CONTEXTGAUGE_KAFKA_SECURITY_PROTOCOL=sasl"),
        ("ssl", "plaintext", "no TLS: set CONTEXTGAUGE_KAFKA_SECURITY_PROTOCOL=plaintext"),
        ("sasl_ssl", "sasl_plaintext", "no TLS: set CONTEXTGAUGE_KAFKA_SECURITY_PROTOCOL=sasl_p"),
        (
            "plaintext",
            "sasl_plaintext",
            "asks for a user: set CONTEXTGAUGE_KAFKA_SECURITY_PROTOCOL=sasl_plaintext",
        ),
    ],
)
def test_another_protocol_than_the_listeners(
    secured_kafka: Secured, command: Command, listener: str, port: str, words: str
) -> None:
    address = f"localhost:{secured_kafka.ports[port]}"
    settings = _settings(secured_kafka, listener, BOOTSTRAP_SERVERS=address)
    if listener == "sasl_plaintext":
        settings["KAFKA_SASL_MECHANISM"] = "SCRAM-SHA-256"
    assert words in _refused(command, settings)


@pytest.mark.parametrize("known", ["another authority", "the system's"])
def test_a_broker_of_an_unknown_authority(
    secured_kafka: Secured, command: Command, known: str
) -> None:
    ca_file = str(secured_kafka.other.file) if known == "another authority" else None
    error = _refused(command, _settings(secured_kafka, "ssl", KAFKA_CA_FILE=ca_file))
    assert "signed by no authority that is trusted here" in error
    assert "CONTEXTGAUGE_KAFKA_CA_FILE" in error


def test_a_broker_of_another_name(secured_kafka: Secured, command: Command) -> None:
    address = f"127.0.0.1:{secured_kafka.ports['ssl']}"
    settings = _settings(secured_kafka, "ssl", BOOTSTRAP_SERVERS=address)
    assert "certificate is not for 127.0.0.1" in _refused(command, settings)
    # Taken all the same where one says so, but not silently.
    done = command("topics", "list", **settings, KAFKA_CHECK_HOSTNAME="false")
    assert "missing" in done.stdout
    assert done.stderr.count("warning: CONTEXTGAUGE_KAFKA_CHECK_HOSTNAME=false") == 1
    error = _refused(
        command,
        settings
        | {"KAFKA_CHECK_HOSTNAME": "false"}
        | {"KAFKA_CA_FILE": str(secured_kafka.other.file)},
    )
    assert "no authority" in error


def test_a_broker_that_advertises_another_name(secured_kafka: Secured, command: Command) -> None:
    error = _refused(command, _settings(secured_kafka, "misnamed"))
    assert "127.0.0.1" in error
    assert "as its brokers call themselves" in error


def test_a_client_certificate_that_the_broker_requires(
    secured_kafka: Secured, command: Command, tmp_path: Path
) -> None:
    nobody = {"KAFKA_CERTIFICATE_FILE": None, "KAFKA_KEY_FILE": None}
    stranger = {
        "KAFKA_CERTIFICATE_FILE": str(secured_kafka.stranger.certificate),
        "KAFKA_KEY_FILE": str(secured_kafka.stranger.key),
    }
    for who in (nobody, stranger):
        error = _refused(command, _settings(secured_kafka, "mutual", **who))
        assert "asks for a client's certificate that it trusts" in error
        assert "CONTEXTGAUGE_KAFKA_CERTIFICATE_FILE" in error
    key = str(secured_kafka.authority.encrypt(secured_kafka.client.key))
    encrypted = _settings(secured_kafka, "mutual", KAFKA_KEY_FILE=key)
    assert "CONTEXTGAUGE_KAFKA_KEY_PASSWORD" in _refused(command, encrypted)
    wrong = _refused(command, encrypted | {"KAFKA_KEY_PASSWORD": "nonsense"})
    assert "CONTEXTGAUGE_KAFKA_KEY_PASSWORD" in wrong
    secret = tmp_path / "secret"
    secret.write_text(f"{KEY_PASSWORD}\n")
    opened = command("topics", "list", **encrypted, KAFKA_KEY_PASSWORD_FILE=str(secret))
    assert "missing" in opened.stdout, opened.stderr


def test_invalid_certificate_and_key_files(
    secured_kafka: Secured, command: Command, tmp_path: Path
) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    missing = str(tmp_path / "missing.pem")
    client = secured_kafka.client
    for changed, value in (
        ({"KAFKA_CA_FILE": missing}, "KAFKA_CA_FILE"),
        ({"KAFKA_CA_FILE": str(nonsense)}, "holds no certificate in PEM form"),
        ({"KAFKA_CERTIFICATE_FILE": missing}, "CERTIFICATE_FILE"),
        ({"KAFKA_KEY_FILE": missing}, "KEY_FILE"),
        ({"KAFKA_KEY_FILE": str(nonsense)}, "are both in PEM form"),
        ({"KAFKA_KEY_FILE": str(secured_kafka.stranger.key)}, "do not belong together"),
    ):
        line = _refused(command, _settings(secured_kafka, "mutual", **changed))
        assert value in line
        assert "CONTEXTGAUGE_KAFKA_" in line
    assert client.key.exists()


def test_an_unavailable_broker_is_not_a_config_error(
    secured_kafka: Secured, command: Command
) -> None:
    settings = _settings(secured_kafka, "sasl_ssl", BOOTSTRAP_SERVERS="localhost:1")
    done = command("topics", "list", **settings)
    assert done.returncode not in (0, EXIT_CONFIG)
    assert "Is it running?" in done.stderr
