"""Where Redis is, and how to connect to it."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from pydantic import Field, SecretStr, field_validator

from contextgauge.settings.forms import PREFIX, SettingsPart, incomplete_pair, set_for_tls

_URL_OPTIONS = frozenset({"db", "protocol", "client_name", "health_check_interval"})
"""Options allowed in the URL's query. The driver's other options are settings here, or would
override them; an unknown one fails at the first connection."""


class RedisSettings(SettingsPart):
    """Where Redis is, and how to connect to it."""

    redis_url: SecretStr | None = Field(
        default=None,
        description="Redis URL: redis://[user:password@]host:port/database, rediss:// for TLS, or "
        "unix://path. If unset, the stack that `contextgauge stack up` started is used.",
    )
    redis_username: str | None = Field(
        default=None,
        min_length=1,
        description="Redis ACL user, if the URL contains none; otherwise the default user.",
    )
    redis_password: SecretStr | None = Field(
        default=None,
        min_length=1,
        description="The user's password, if the URL contains none. Prefer the file.",
    )
    redis_password_file: Path | None = Field(
        default=None,
        description="File that contains the password; a trailing line break is ignored. Read for "
        "every new connection.",
    )
    redis_ca_file: Path | None = Field(
        default=None,
        description="PEM file of the certificate authorities to trust for Redis instead of the "
        "system's, for rediss://.",
    )
    redis_certificate_file: Path | None = Field(
        default=None,
        description="PEM file of the client certificate and its chain, if Redis requires one "
        "(tls-auth-clients yes).",
    )
    redis_key_file: Path | None = Field(
        default=None,
        description="PEM file of the client certificate's key; may be the same file.",
    )
    redis_key_password: SecretStr | None = Field(
        default=None, min_length=1, description="Password of that key, if it is encrypted."
    )
    redis_key_password_file: Path | None = Field(
        default=None, description="File that contains the key's password."
    )
    redis_check_hostname: bool = Field(
        default=True,
        description="Whether Redis's certificate must match its host name. false accepts any "
        "certificate of a trusted authority, with a warning at every start.",
    )

    @field_validator("redis_url")
    @classmethod
    def _check_redis_url(cls, value: SecretStr | None) -> SecretStr | None:
        # The error quotes no part of the value: an unparsable part may belong to the password.
        if value is None:
            return None
        scheme, _, rest = value.get_secret_value().partition("://")
        if scheme not in {"redis", "rediss", "unix"} or not rest:
            raise ValueError("does not begin with redis://, rediss:// or unix://")
        try:
            parts = urlsplit(value.get_secret_value())
            readable = scheme == "unix" or bool(parts.hostname)
            _ = parts.port if scheme != "unix" else None
        except ValueError:
            readable = False
        if not readable:
            raise ValueError(
                "has no host and port that can be read; in a user or a password, write "
                "characters such as / # ? : @ percent-encoded, or set "
                f"{PREFIX}REDIS_PASSWORD instead"
            )
        if scheme != "unix" and not parts.path.removeprefix("/").isdecimal() and parts.path[1:]:
            raise ValueError("does not end in /database, a number")
        other = sorted(set(parse_qs(parts.query, keep_blank_values=True)) - _URL_OPTIONS)
        if other:
            raise ValueError(
                f"has other options than {', '.join(sorted(_URL_OPTIONS))}; for users and TLS "
                f"there are settings that begin with {PREFIX}REDIS_"
            )
        return value


def inconsistencies(settings: RedisSettings) -> Iterator[str]:
    """Yield an error for each Redis setting that contradicts another or has no effect."""
    name = f"{PREFIX}REDIS_"
    url = settings.redis_url.get_secret_value() if settings.redis_url is not None else None
    if url is not None:
        parts = urlsplit(url)
        if parts.username and settings.redis_username is not None:
            yield f"{name}USERNAME is set and {name}URL names a user too: keep one of them"
        if parts.password and settings.redis_password is not None:
            yield f"{name}PASSWORD is set and {name}URL has a password too: keep one of them"
        named = parts.username or settings.redis_username
        if named and not parts.password and settings.redis_password is None:
            yield f"a user of Redis needs a password: set {name}PASSWORD or {name}PASSWORD_FILE"
        if parts.scheme != "rediss":
            for part in set_for_tls(settings, "redis"):
                yield (
                    f"{name}{part} does nothing, as {name}URL begins with {parts.scheme}://: "
                    "write rediss:// for TLS, or unset this"
                )
    yield from incomplete_pair(settings, "redis")
