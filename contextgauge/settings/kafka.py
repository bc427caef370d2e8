"""Where Kafka is, and how to connect to it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field, SecretStr, field_validator

from contextgauge.settings.forms import PREFIX, SettingsPart, incomplete_pair, set_for_tls

SecurityProtocol: TypeAlias = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]
SaslMechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

_ADDRESS = r"(?:[^\s,:\[\]]+|\[[0-9a-fA-F:.]+\]):\d{1,5}"


class KafkaSettings(SettingsPart):
    """Where Kafka is, and how to connect to it: the names are Kafka's own."""

    bootstrap_servers: str | None = Field(
        default=None,
        pattern=rf"^{_ADDRESS}(,{_ADDRESS})*$",
        description="Initial Kafka brokers: host:port, separated by commas; [address]:port for "
        "IPv6. If unset, the stack that `contextgauge stack up` started is used; there is no other "
        "default.",
    )
    kafka_security_protocol: SecurityProtocol = Field(
        default="plaintext",
        description="How to connect to Kafka: plaintext; ssl (TLS); sasl_plaintext (a user, no "
        "encryption: for private networks only); sasl_ssl (a user, over TLS).",
    )
    kafka_sasl_mechanism: SaslMechanism | None = Field(
        default=None,
        description="How the user authenticates, for sasl_plaintext and sasl_ssl: PLAIN, "
        "SCRAM-SHA-256 or SCRAM-SHA-512.",
    )
    kafka_username: str | None = Field(
        default=None,
        min_length=1,
        description="User (for some services, the API key) for sasl_plaintext and sasl_ssl.",
    )
    kafka_password: SecretStr | None = Field(
        default=None,
        min_length=1,
        description="The user's password (the API secret). Prefer the file.",
    )
    kafka_password_file: Path | None = Field(
        default=None,
        description="File that contains the password, as Docker and Kubernetes mount secrets; a "
        "trailing line break is ignored. Read when the process starts.",
    )
    kafka_ca_file: Path | None = Field(
        default=None,
        description="PEM file of the certificate authorities to trust for brokers instead of the "
        "system's, for ssl and sasl_ssl.",
    )
    kafka_certificate_file: Path | None = Field(
        default=None,
        description="PEM file of the client certificate and its chain, if the brokers require one "
        "(mutual TLS).",
    )
    kafka_key_file: Path | None = Field(
        default=None,
        description="PEM file of the client certificate's key; may be the same file.",
    )
    kafka_key_password: SecretStr | None = Field(
        default=None, min_length=1, description="Password of that key, if it is encrypted."
    )
    kafka_key_password_file: Path | None = Field(
        default=None, description="File that contains the key's password."
    )
    kafka_check_hostname: bool = Field(
        default=True,
        description="Whether a broker's certificate must match its host name. false accepts any "
        "certificate of a trusted authority, with a warning at every start.",
    )

    @field_validator("kafka_security_protocol", mode="before")
    @classmethod
    def _as_kafka_spells_it(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("kafka_sasl_mechanism", mode="before")
    @classmethod
    def _in_capitals(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value


def inconsistencies(settings: KafkaSettings) -> Iterator[str]:
    """Yield an error for each Kafka setting that contradicts another or has no effect."""
    name = f"{PREFIX}KAFKA_"
    protocol = settings.kafka_security_protocol
    user = {
        "SASL_MECHANISM": settings.kafka_sasl_mechanism,
        "USERNAME": settings.kafka_username,
        "PASSWORD": settings.kafka_password,
    }
    if protocol.startswith("sasl_"):
        for part, value in user.items():
            if value is None:
                of_file = f" (or {name}{part}_FILE)" if part == "PASSWORD" else ""
                yield f"{name}SECURITY_PROTOCOL={protocol} needs {name}{part}{of_file}: set it"
    else:
        needed = "sasl_ssl" if protocol == "ssl" else "sasl_ssl or sasl_plaintext"
        for part, value in user.items():
            if value is not None:
                yield (
                    f"{name}{part} does nothing with {name}SECURITY_PROTOCOL={protocol}: set that "
                    f"to {needed}, or unset this"
                )
    if protocol.endswith("plaintext"):
        needed = "sasl_ssl" if protocol.startswith("sasl") else "ssl"
        for part in set_for_tls(settings, "kafka"):
            yield (
                f"{name}{part} does nothing with {name}SECURITY_PROTOCOL={protocol}: set that to "
                f"{needed}, or unset this"
            )
    else:
        yield from incomplete_pair(settings, "kafka")
