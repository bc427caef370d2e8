"""The plain hashes, by `hashlib`'s objects."""

import hashlib
import struct
from functools import lru_cache
from typing import Final, TypeAlias

HASH_BYTES: Final = 8
"""Bytes stored of a cause: 2**64 values make a false repeat in 262 144 practically impossible."""

_EMPTY_HASH: Final = hashlib.blake2b(digest_size=HASH_BYTES)
"""Only to be copied, which takes three quarters of the time of making another."""

_COUNTS: Final = struct.Struct("<QQQ")

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


def text_hash(prefix: bytes, text: str) -> bytes:
    """Return the hash of a text behind a prefix."""
    digest = _EMPTY_HASH.copy()
    digest.update(prefix + text.encode("utf-8", "surrogatepass"))
    return digest.digest()


def counts_hash(input_: int, creation: int, read: int) -> bytes:
    """Return the hash of three counts."""
    digest = _EMPTY_HASH.copy()
    digest.update(_COUNTS.pack(input_, creation, read))
    return digest.digest()


def is_absent(tail: bytes, segments: tuple[tuple[bytes, bytes], ...], cause: bytes) -> bool:
    """Return whether a hash is neither in the tail nor in a segment, of hashes and a filter."""
    if _has(tail, cause):
        return False
    number = cause[-1] << 8 | cause[-2]
    index, bit = number >> 3, 1 << (number & 7)
    for ordered, marks in segments:
        if marks and not marks[index & len(marks) - 1] & bit:
            continue
        if _has(ordered, cause):
            return False
    return True


def last_place(entries: bytes, entry_bytes: int, key: bytes) -> int:
    """Return where the last of the entries that begin with a key begins; -1 without one."""
    offset = entries.rfind(key)
    while offset >= 0 and offset % entry_bytes:
        offset = entries.rfind(key, 0, offset + len(key) - 1)
    return offset


def record_id(session_id: str, chain: str, kind: str, cause: str, extra: Distinction = ()) -> str:
    """Return a record's id, by `record_ids`."""
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


def _has(hashes: bytes, cause: bytes) -> bool:
    """Return whether a hash is among others, each at a multiple of its size."""
    offset = hashes.find(cause)
    while offset > 0 and offset % HASH_BYTES:
        offset = hashes.find(cause, offset + 1)
    return offset >= 0
