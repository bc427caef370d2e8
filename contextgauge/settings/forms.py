"""Shared by several settings: the prefix of the variables, types and checks of values."""

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

PREFIX = "CONTEXTGAUGE_"

FOR_EVER = -1
"""A retention of this many days is unlimited."""

KAFKA_NAME = r"^[a-zA-Z0-9._-]*$"
"""Characters that Kafka allows in a topic name."""


class SettingsPart(BaseModel):
    """Some of the settings. A model has several, and only that one is ever built."""

    model_config = ConfigDict(defer_build=True)


def set_for_tls(settings: SettingsPart, service: str) -> list[str]:
    """Return the settings of a service that are set and apply only to TLS."""
    parts = ("ca_file", "certificate_file", "key_file", "key_password")
    set_parts = [
        part.upper() for part in parts if getattr(settings, f"{service}_{part}") is not None
    ]
    if not getattr(settings, f"{service}_check_hostname"):
        set_parts.append("CHECK_HOSTNAME")
    return set_parts


def incomplete_pair(settings: SettingsPart, service: str) -> Iterator[str]:
    """Yield an error for each missing part of client certificate, key and key password."""
    name = f"{PREFIX}{service.upper()}_"
    set_parts = set(set_for_tls(settings, service))
    if "CERTIFICATE_FILE" in set_parts and "KEY_FILE" not in set_parts:
        yield (
            f"{name}CERTIFICATE_FILE needs {name}KEY_FILE: set it, to the same file if that "
            "holds both"
        )
    if "KEY_FILE" in set_parts and "CERTIFICATE_FILE" not in set_parts:
        yield f"{name}KEY_FILE needs {name}CERTIFICATE_FILE: set it, or unset this"
    if "KEY_PASSWORD" in set_parts and "KEY_FILE" not in set_parts:
        yield f"{name}KEY_PASSWORD needs {name}KEY_FILE: set it, or unset this"
