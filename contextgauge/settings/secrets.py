"""Secrets from files, as Docker and Kubernetes mount them."""

from pathlib import Path

from contextgauge.errors import ConfigError

_MOST_BYTES = 64 * 1024
"""No password is longer; a wrong path may well name something that is, or that never ends."""


def read_secret(path: Path, variable: str) -> str:
    """Return the file's text without the line end that editors leave behind it.

    Raises ConfigError, which names the variable and the file, never what is in it; nor a name that
    is no place of this machine, as it may be the secret itself, put into the wrong variable.
    """
    named = f"{variable}={path}" if _is_place(path) else variable
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"{named} cannot be read ({error.strerror}): name a file that this process may read"
        ) from None
    if len(content) > _MOST_BYTES:
        raise ConfigError(f"{named} is too long for a secret: name the right file")
    try:
        secret = content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{named} is not UTF-8 text: name the right file") from None
    if not secret:
        raise ConfigError(f"{named} is empty: write the secret into it")
    return secret


def _is_place(path: Path) -> bool:
    try:
        return path.exists() or (len(path.parts) > 1 and path.parent.is_dir())
    except OSError:
        return False
