"""Kafka credentials and TLS: what every client is given to connect with."""

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True, slots=True)
class KafkaSecurity:
    """Protocol, TLS and user. The settings have been checked: they go together."""

    protocol: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = "plaintext"
    ssl_context: "ssl.SSLContext | None" = field(default=None, repr=False)
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def asks_for_user(self) -> bool:
        """Whether a user is proven."""
        return self.protocol.startswith("sasl_")

    @property
    def encrypts(self) -> bool:
        """Whether the connection is over TLS."""
        return not self.protocol.endswith("plaintext")

    def arguments(self) -> dict[str, Any]:
        """Return these as aiokafka takes them."""
        arguments: dict[str, Any] = {"security_protocol": self.protocol.upper()}
        if self.encrypts:
            arguments["ssl_context"] = self.ssl_context
        if self.asks_for_user:
            arguments["sasl_mechanism"] = self.mechanism
            arguments["sasl_plain_username"] = self.username
            arguments["sasl_plain_password"] = self.password
        return arguments


def _without_payloads(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


# For debugging aiokafka logs every request and answer whole: with PLAIN the password is in them,
# and the text of all messages. A filter of the logger holds whatever else is configured.
logging.getLogger("aiokafka.conn").addFilter(_without_payloads)
