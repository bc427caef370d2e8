"""The key that a webhook's secret stands for; apart from the calls, as aiohttp takes its time."""

import base64
import binascii

from contextgauge.errors import ConfigError

_SECRET_PREFIX = "whsec_"  # noqa: S105 -- how a secret begins, and no secret


def key_of(secret: str) -> bytes:
    """Return a secret's bytes: of the Base64 behind `whsec_`, else of the text itself.

    Raises ConfigError.
    """
    try:
        if secret.startswith(_SECRET_PREFIX):
            key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
        else:
            key = secret.encode()
    except (binascii.Error, ValueError):
        raise ConfigError(
            f"a secret that begins with {_SECRET_PREFIX} goes on in Base64, and this one does not"
        ) from None
    if not key:
        raise ConfigError("a secret is empty, which proves nothing: write one, or name none")
    return key
