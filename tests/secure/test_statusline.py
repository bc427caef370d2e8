"""The status line's look at Redis over TLS, with a client's certificate and as a reader."""

import secrets

import pytest

from schemas.views import FORMAT_VERSION
from streams.edge.files.plain_settings import StatusLineSettings, read_settings
from streams.edge.redis.single_view import ViewUnavailableError, read_view
from tests.secure.documented import redis_acl
from tests.secure.services import PASSWORD, Secured

LIMIT_S = 10.0


def _settings(settings: dict[str, str]) -> tuple[StatusLineSettings, str]:
    found, wrong = read_settings({f"CONTEXTGAUGE_{name}": text for name, text in settings.items()})
    assert wrong == []
    assert found.redis_url is not None
    return found, found.redis_url


def _asked(settings: dict[str, str]) -> str:
    """Return why there is no view: a Redis that answers has none of these keys."""
    with pytest.raises(ViewUnavailableError) as refused:
        read_view(*_settings(settings), "s", LIMIT_S)
    assert PASSWORD not in str(refused.value)
    return str(refused.value)


def test_tls_a_client_certificate_and_a_readers_rights(secured_redis: Secured) -> None:
    prefix = f"status-line-{secrets.token_hex(4)}"
    settings = secured_redis.redis_settings() | {"KEY_PREFIX": prefix}
    there = "there is no projection in Redis yet"
    assert _asked(settings) == there
    mutual = f"rediss://localhost:{secured_redis.ports['redis_mutual']}/0"
    own = {
        "REDIS_CERTIFICATE_FILE": str(secured_redis.client.certificate),
        "REDIS_KEY_FILE": str(secured_redis.client.key),
    }
    assert _asked(settings | own | {"REDIS_URL": mutual}) == there
    assert _asked(settings | {"REDIS_URL": mutual}) != there
    strangers = {"REDIS_CA_FILE": str(secured_redis.other.file)}
    assert "SSLCertVerificationError" in _asked(settings | strangers)

    name = f"reader-{secrets.token_hex(4)}"
    client = secured_redis.redis()
    rules = redis_acl("reader", prefix, PASSWORD)
    client.execute_command("ACL", "SETUSER", name, *rules)  # type: ignore[no-untyped-call]
    client.set(f"{prefix}:active", 1)
    client.hset(f"{prefix}:{{1:0}}:pos", items=["format", FORMAT_VERSION, "partitions", 1])
    client.set(f"{prefix}:{{1:0}}:s:s", "{}")
    reader = settings | {"REDIS_USERNAME": name, "REDIS_PASSWORD": PASSWORD}
    assert read_view(*_settings(reader), "s", LIMIT_S).document == b"{}"
