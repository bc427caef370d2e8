"""The file of tokens: a line each, a name and the hash of a token, and then what it is for.

Without a word it reads; `write`: it reads and writes; `publish`: it publishes, and reads nothing.

A token is 32 random bytes, which cannot be guessed, so a plain SHA-256 of it is all that has to be
kept: what makes hashes of passwords slow is of no use here, and would be paid at each request.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from contextgauge.errors import ConfigError
from contextgauge.settings.secrets import read_secret

_SCHEME: Final = "sha256:"
_LINE: Final = re.compile(
    r"([A-Za-z0-9._@-]{1,100})[ \t]+sha256:([0-9a-f]{64})(?:[ \t]+(write|publish))?"
)
NAME: Final = re.compile(r"[A-Za-z0-9._@-]{1,100}")
"""What a reader or publisher may be called: it stands in logs."""

Right: TypeAlias = Literal["read", "write", "publish"]
"""What a token is for. One that writes reads too; one that publishes does nothing else."""

Holder: TypeAlias = Literal["reader", "publisher"]
"""Who has a token: a reader, of whom some may write, or a publisher."""

TOKEN_HEAD: Final = "cg_"  # noqa: S105 -- how every token begins, so that scanners know a leaked one
_TOKEN_BYTES: Final = 32


def new_token() -> str:
    """Return a new token."""
    return TOKEN_HEAD + secrets.token_urlsafe(_TOKEN_BYTES)


def hashed(token: str) -> str:
    """Return what the file keeps of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def line_of(name: str, token: str, right: Right = "read") -> str:
    """Return the line of a token. Raises ConfigError for a name that is none."""
    if not NAME.fullmatch(name):
        holder = "publisher" if right == "publish" else "reader"
        raise ConfigError(
            f"{name!r} is not a valid {holder} name: up to 100 letters, digits, and . _ @ -"
        )
    return f"{name} {_SCHEME}{hashed(token)}{'' if right == 'read' else f' {right}'}"


class TokenFile:
    """The file, reloaded when it changes: a removed token no longer works.

    Of its tokens only those of readers count, or only those of publishers.
    """

    def __init__(self, path: Path, variable: str, holder: Holder = "reader") -> None:
        self._path, self._variable, self._holder = path, variable, holder
        self._seen: tuple[int, int, int] | None = None
        self._names: dict[str, str] = {}
        self._writers: frozenset[str] = frozenset()

    def read(self) -> Mapping[str, str]:
        """Return the names of those who have a token, by its hash. Raises ConfigError."""
        try:
            status = self._path.stat()
        except OSError:
            seen = None
        else:
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        if seen is None or seen != self._seen:
            self._names = self._parsed(read_secret(self._path, self._variable))
            self._seen = seen
        return self._names

    def writers(self) -> frozenset[str]:
        """Return the hashes of the tokens that may write, too. Raises ConfigError."""
        self.read()
        return self._writers

    def _parsed(self, text: str) -> dict[str, str]:
        names, writers = {}, set()
        for number, line in enumerate(text.splitlines(), 1):
            stripped = line.strip()
            if not stripped or stripped.startswith("#"):
                continue
            match = _LINE.fullmatch(stripped)
            if match is None:
                # The line itself is not shown: it may be a token in plain text.
                raise ConfigError(
                    f"{self._variable}={self._path}, line {number}, is not a valid entry: write a "
                    "line that `contextgauge token NAME` prints"
                )
            if (match[3] == "publish") != (self._holder == "publisher"):
                continue
            names[match[2]] = match[1]
            if match[3] == "write":
                writers.add(match[2])
        if not names:
            is_reader = self._holder == "reader"
            raise ConfigError(
                f"{self._variable}={self._path} names no {self._holder}: add a line with "
                f"`contextgauge token NAME{'' if is_reader else ' --publish'}`, or unset it to let "
                f"everybody {'read' if is_reader else 'publish'}"
            )
        self._writers = frozenset(writers)
        return names
