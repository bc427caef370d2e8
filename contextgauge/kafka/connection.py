"""From settings to a connection: addresses, users, TLS."""

import functools
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from contextgauge.errors import ConfigError
from contextgauge.kafka.security import KafkaSecurity
from contextgauge.settings.forms import PREFIX, SettingsPart
from contextgauge.settings.kafka import KafkaSettings

if TYPE_CHECKING:
    import ssl

    from contextgauge.tls_files import TlsFiles


class UnsafeConnectionWarning(UserWarning):
    """The settings allow a connection that others could listen to or answer."""


def bootstrap_servers(settings: KafkaSettings) -> str:
    """Return the brokers' addresses. Raises ConfigError where none is set.

    There is no default: an address that was not set may be another's service, which must not get
    transcripts.
    """
    if settings.bootstrap_servers is None:
        raise ConfigError(unset("Kafka", "bootstrap_servers"))
    return settings.bootstrap_servers


def unset(service: str, field: str) -> str:
    """Return the message for an address that is not set."""
    return (
        f"no {service} is named: start one with `contextgauge stack up`, "
        f"or set {PREFIX}{field.upper()}"
    )


def kafka_security(settings: KafkaSettings) -> KafkaSecurity:
    """Return credentials and TLS for Kafka. Raises ConfigError for files that cannot be used."""
    protocol = settings.kafka_security_protocol
    encrypted = not protocol.endswith("plaintext")
    if protocol == "sasl_plaintext":
        warnings.warn(
            f"{PREFIX}KAFKA_SECURITY_PROTOCOL=sasl_plaintext: anyone who can listen on the network "
            "can read the messages, and with PLAIN the password; sasl_ssl encrypts",
            UnsafeConnectionWarning,
            stacklevel=2,
        )
    return KafkaSecurity(
        protocol=protocol,
        ssl_context=tls_context(tls_files(settings, "kafka")) if encrypted else None,
        mechanism=settings.kafka_sasl_mechanism,
        username=settings.kafka_username,
        password=revealed(settings.kafka_password),
    )


def tls_files(settings: SettingsPart, service: str) -> "TlsFiles":
    """Return the TLS files of a service's settings, `kafka` or `redis`."""
    from contextgauge.tls_files import TlsFiles  # noqa: PLC0415 -- loads ssl

    def file(name: str) -> str | None:
        path: Path | None = getattr(settings, f"{service}_{name}")
        return None if path is None else str(path)

    return TlsFiles(
        variables=f"{PREFIX}{service.upper()}_",
        ca_file=file("ca_file"),
        certificate_file=file("certificate_file"),
        key_file=file("key_file"),
        key_password=revealed(getattr(settings, f"{service}_key_password")),
        check_hostname=getattr(settings, f"{service}_check_hostname"),
    )


@functools.cache
def tls_context(files: "TlsFiles") -> "ssl.SSLContext":
    """Return the context of these files, read once. Raises ConfigError."""
    if not files.check_hostname:
        warnings.warn(
            f"{files.variables}CHECK_HOSTNAME=false: any server whose certificate the same "
            "authority signed is taken for the right one",
            UnsafeConnectionWarning,
            stacklevel=2,
        )
    from contextgauge.tls_files import context_of  # noqa: PLC0415 -- as above

    return context_of(files)


def revealed(secret: SecretStr | None) -> str | None:
    """Return a secret's value."""
    return None if secret is None else secret.get_secret_value()
