"""What several settings have in common: the prefix of their variables, and forms of values."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings

PREFIX = "CONTEXTGAUGE_"

FOR_EVER = -1
"""A retention of this many days keeps for ever."""

KAFKA_NAME = r"^[a-zA-Z0-9._-]*$"
"""What Kafka allows in the name of a topic."""

Days = Annotated[int, Field(ge=FOR_EVER, le=36_500)]


def set_for_tls(chosen: BaseSettings, service: str) -> list[str]:
    """Return the settings of a service that only TLS has a use for and that are set."""
    parts = ("ca_file", "certificate_file", "key_file", "key_password")
    found = [part.upper() for part in parts if getattr(chosen, f"{service}_{part}") is not None]
    if not getattr(chosen, f"{service}_check_hostname"):
        found.append("CHECK_HOSTNAME")
    return found


def incomplete_pair(chosen: BaseSettings, service: str) -> Iterator[str]:
    """Yield what is missing of a client's certificate, its key and the key's password."""
    name = f"{PREFIX}{service.upper()}_"
    found = set(set_for_tls(chosen, service))
    if "CERTIFICATE_FILE" in found and "KEY_FILE" not in found:
        yield (
            f"{name}CERTIFICATE_FILE needs {name}KEY_FILE: set it, to the same file if that "
            "holds both"
        )
    if "KEY_FILE" in found and "CERTIFICATE_FILE" not in found:
        yield f"{name}KEY_FILE needs {name}CERTIFICATE_FILE: set it, or unset this"
    if "KEY_PASSWORD" in found and "KEY_FILE" not in found:
        yield f"{name}KEY_PASSWORD needs {name}KEY_FILE: set it, or unset this"
