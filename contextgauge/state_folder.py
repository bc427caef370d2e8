"""What publishing must remember on this machine: checkpoints and a secret."""

import os
import re
import secrets
import zlib
from pathlib import Path

from contextgauge import user_folders
from contextgauge.errors import ConfigError

_KEY_BYTES = 32
_OWNER_ONLY = 0o600


def state_folder(setting: str | None) -> Path:
    """Return the folder: the setting's, else the one that the XDG convention names."""
    return Path(user_folders.state_folder(setting))


def checkpoint_file(folder: Path, cluster: str, topic: str) -> Path:
    """Return the place of a topic's checkpoint."""
    name = re.sub(r"[^\w.-]+", "_", f"{cluster}-{topic}", flags=re.ASCII)
    # Long names are cut, so a checksum of the whole name follows.
    return folder / "publish" / f"{name[:150]}-{zlib.crc32(f'{cluster} {topic}'.encode()):08x}.json"


def text_key(folder: Path) -> bytes:
    """Return the secret of `--no-text`, made on first use.

    The same file must give the same messages whenever it is published, so it is stored. Raises
    ConfigError where it can be neither read nor made.
    """
    path = folder / "no-text.key"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        own = path.with_name(f"{path.name}.{os.getpid()}")
        if not path.exists():
            descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
            with os.fdopen(descriptor, "wb") as target:
                target.write(secrets.token_bytes(_KEY_BYTES))
            try:
                os.link(own, path)  # unlike a renaming, this leaves another's key alone
            except FileExistsError:
                pass
            finally:
                own.unlink()
        key = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}; --no-text keeps a secret there. Name another folder with "
            "CONTEXTGAUGE_STATE_FOLDER"
        ) from error
    if len(key) != _KEY_BYTES:
        raise ConfigError(
            f"{path} is damaged: delete it. Messages without a uuid that were sent before, and "
            "are sent again, then count twice"
        )
    return key
