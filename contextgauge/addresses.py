"""The part of an address that names a session, whatever characters its id holds.

It is the percent-encoded id, so an address can be read. Clients and proxies shorten `.` and `..`,
refuse long addresses, and cannot write half a character: such ids are named by a hash.
"""

import hashlib
import re
from typing import Final
from urllib.parse import quote

_MOST_CHARACTERS: Final = 1_000
"""Of an encoded id: the whole address fits into the 2 000 that every client and proxy takes."""

_UNQUOTED: Final = "!'()*"
"""What a browser's `encodeURIComponent` leaves as it is, besides what is never quoted."""

_HASHED: Final = re.compile(r"~[0-9a-f]{32}")

_SHORTENED: Final = frozenset({"", ".", ".."})
"""Parts of a path that clients leave out or resolve, encoded or not."""


def session_address(session_id: str) -> str:
    """Return what names a session in addresses: `/v1/sessions/{address}`, `?session={address}`."""
    name = session_id.encode("utf-8", "surrogatepass")
    if session_id in _SHORTENED or is_hashed(session_id):
        return hashed_address(name)
    try:
        encoded = quote(session_id, safe=_UNQUOTED)
    except UnicodeEncodeError:
        return hashed_address(name)
    return encoded if len(encoded) <= _MOST_CHARACTERS else hashed_address(name)


def is_hashed(part: str) -> bool:
    """Return whether a part of an address names a session by its hash."""
    return _HASHED.fullmatch(part) is not None


def hashed_address(name: bytes) -> str:
    """Return what names a session by a hash. `name`: its id in UTF-8."""
    return f"~{hashlib.sha256(name).hexdigest()[:32]}"
