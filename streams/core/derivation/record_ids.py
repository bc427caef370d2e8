r"""Record ids: UUIDv5 of session, chain, kind and cause; never an offset, a clock or chance.

The name hashed is a compact JSON array in UTF-8, non-ASCII unescaped, a lone surrogate as
`\\uXXXX`: `[session, chain, kind, cause]`, and a last element where one message can give several
records of a kind.
"""

import hashlib
from functools import lru_cache
from typing import Final, TypeAlias

from streams.compiled.hashes import hashes

_record_id: Final = None if hashes is None else hashes.record_id

NAMESPACE: Final = bytes.fromhex("9b97b2537226559e8fb49731ba3d34b1")
"""UUIDv5 of `urn:contextgauge:records` among URLs; written out, as importing `uuid` takes time."""

_NAMESPACE_HASH: Final = hashlib.sha1(NAMESPACE, usedforsecurity=False)
_AT_WORK: Final = 4_096
"""Sessions' chains and kinds whose names' beginnings are at hand: a megabyte or two with usual ids,
70 with the longest that there may be."""

_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
"""UUID's variant bits, by the hex digit that they replace the upper half of."""

_ESCAPES: Final = {code: f"\\u{code:04x}" for code in range(0x20)} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    ord("\f"): "\\f",
    ord("\b"): "\\b",
}


Distinction: TypeAlias = tuple[str | int | None, ...]
"""What distinguishes records of one kind from one message, where there can be several."""


def record_id(session_id: str, chain: str, kind: str, cause: str, extra: Distinction = ()) -> str:
    """Return a record's id."""
    if _record_id is not None and not extra:  # pragma: no cover -- compiled
        found = _record_id(NAMESPACE, session_id, chain, kind, cause)
        if found is not None:
            return found
    name = _json(cause)
    for part in extra:
        name = f"{name},{_json(part)}"
    digest = _begun(session_id, chain, kind).copy()
    digest.update(f"{name}]".encode("utf-8", "backslashreplace"))
    code = digest.hexdigest()
    return f"{code[:8]}-{code[8:12]}-5{code[13:16]}-{_VARIANT[code[16]]}{code[17:20]}-{code[20:32]}"


@lru_cache(_AT_WORK)
def _begun(session_id: str, chain: str, kind: str) -> "hashlib._Hash":
    """Return the hash of how all names of a session's chain and kind begin. Only to be copied."""
    digest = _NAMESPACE_HASH.copy()
    begin = f"[{_json(session_id)},{_json(chain)},{_json(kind)},"
    digest.update(begin.encode("utf-8", "backslashreplace"))
    return digest


def _json(part: str | int | None) -> str:
    if part is None:
        return "null"
    if isinstance(part, int):
        return str(part)
    if part.isprintable() and '"' not in part and "\\" not in part:
        return f'"{part}"'
    return f'"{part.translate(_ESCAPES)}"'
