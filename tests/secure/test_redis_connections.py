"""Redis over TLS and with users: what works, and what is wrong reported with the setting."""

import secrets
from pathlib import Path

import pytest

from tests.commands import Command
from tests.secure.services import PASSWORD, Secured, url_with

pytestmark = pytest.mark.extended

EXIT_CONFIG = 2


def _refused(command: Command, settings: dict[str, str]) -> str:
    done = command("sessions", **settings)
    assert done.returncode == EXIT_CONFIG, (done.stdout, done.stderr)
    (line,) = done.stderr.splitlines()
    assert PASSWORD not in line
    return line


def _works(command: Command, settings: dict[str, str]) -> None:
    done = command("sessions", **settings)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def user(secured_redis: Secured) -> str:
    """A user who may do everything, known by a password only."""
    name = f"user-{secrets.token_hex(4)}"
    secured_redis.redis().acl_setuser(
        name, enabled=True, passwords=[f"+{PASSWORD}"], keys=["*"], categories=["+@all"]
    )
    return name


def test_tls_with_and_without_a_client_certificate(
    secured_redis: Secured, command: Command
) -> None:
    settings = secured_redis.redis_settings()
    _works(command, settings)
    mutual = f"rediss://localhost:{secured_redis.ports['redis_mutual']}/0"
    own = {
        "REDIS_CERTIFICATE_FILE": str(secured_redis.client.certificate),
        "REDIS_KEY_FILE": str(secured_redis.client.key),
    }
    _works(command, settings | own | {"REDIS_URL": mutual})
    error = _refused(command, settings | {"REDIS_URL": mutual})
    assert "CONTEXTGAUGE_REDIS_CERTIFICATE_FILE" in error
    strange = {
        "REDIS_CERTIFICATE_FILE": str(secured_redis.stranger.certificate),
        "REDIS_KEY_FILE": str(secured_redis.stranger.key),
    }
    error = _refused(command, settings | strange | {"REDIS_URL": mutual})
    assert "CONTEXTGAUGE_REDIS_CERTIFICATE_FILE" in error


def test_users_in_the_url_and_apart(
    secured_redis: Secured, command: Command, user: str, tmp_path: Path
) -> None:
    settings = secured_redis.redis_settings()
    url = settings["REDIS_URL"]
    secret = tmp_path / "password"
    secret.write_text(f"{PASSWORD}\n")
    _works(command, settings | {"REDIS_URL": url_with(url, user, PASSWORD)})
    _works(command, settings | {"REDIS_USERNAME": user, "REDIS_PASSWORD": PASSWORD})
    _works(command, settings | {"REDIS_USERNAME": user, "REDIS_PASSWORD_FILE": str(secret)})
    named = {"REDIS_URL": url.replace("://", f"://{user}@")}
    _works(command, settings | named | {"REDIS_PASSWORD": PASSWORD})
    error = _refused(command, settings | {"REDIS_USERNAME": user, "REDIS_PASSWORD": "nonsense"})
    assert "CONTEXTGAUGE_REDIS_PASSWORD" in error
    assert "nonsense" not in error


def test_another_server_and_another_authority(secured_redis: Secured, command: Command) -> None:
    settings = secured_redis.redis_settings()
    error = _refused(command, settings | {"REDIS_CA_FILE": str(secured_redis.other.file)})
    assert "set CONTEXTGAUGE_REDIS_CA_FILE" in error
    elsewhere = {"REDIS_URL": settings["REDIS_URL"].replace("localhost", "127.0.0.1")}
    assert "certificate is not for" in _refused(command, settings | elsewhere)
    done = command("sessions", **(settings | elsewhere), REDIS_CHECK_HOSTNAME="false")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning: CONTEXTGAUGE_REDIS_CHECK_HOSTNAME=false") == 1


def test_a_tls_mismatch_is_reported_with_the_correct_scheme(
    secured_redis: Secured, command: Command
) -> None:
    settings = secured_redis.redis_settings()
    plain = f"localhost:{secured_redis.ports['redis_plain']}/0"
    error = _refused(command, settings | {"REDIS_URL": f"rediss://{plain}"})
    assert "does not speak TLS: write redis://" in error
    error = _refused(command, {"REDIS_URL": settings["REDIS_URL"].replace("rediss", "redis")})
    assert "speaks TLS: write rediss://" in error


def test_system_authorities_are_not_trusted_if_one_is_given(
    secured_redis: Secured, command: Command
) -> None:
    command.environment["SSL_CERT_FILE"] = str(secured_redis.authority.file)
    settings = secured_redis.redis_settings()
    _works(command, {"REDIS_URL": settings["REDIS_URL"]})
    other = {"REDIS_CA_FILE": str(secured_redis.other.file)}
    assert "no authority" in _refused(command, settings | other)


@pytest.mark.parametrize("unknown", ["HELLO", "AUTH"])
def test_an_unknown_command_error_of_redis_does_not_leak_the_password(
    secured_redis: Secured, command: Command, unknown: str
) -> None:
    """It names the arguments, the password among them; old ones and proxies lack HELLO."""
    url = secured_redis.start_redis_without(unknown)
    protocol = "2" if unknown == "AUTH" else "3"
    settings = {"REDIS_URL": f"{url_with(url, 'admin', PASSWORD)}?protocol={protocol}"}
    done = command("sessions", **settings)
    assert done.returncode != 0
    assert f"unknown command '{unknown}'" in done.stderr
    assert PASSWORD not in done.stderr
    looked = command("doctor", "--json", **settings)
    assert f"unknown command '{unknown}'" in looked.stdout
    assert PASSWORD not in looked.stdout + looked.stderr
    if unknown == "HELLO":
        assert "?protocol=2" in done.stderr
        _works(command, {"REDIS_URL": f"{url_with(url, 'admin', PASSWORD)}?protocol=2"})
