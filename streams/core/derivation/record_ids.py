r"""Record ids: UUIDv5 of session, chain, kind and cause; never an offset, a clock or chance.

The name hashed is a compact JSON array in UTF-8, non-ASCII unescaped, a lone surrogate as
`\\uXXXX`: `[session, chain, kind, cause]`, and a last element where one message can give several
records of a kind.
"""

from typing import Final, TypeAlias

from streams import compiled

Distinction: TypeAlias = tuple[str | int | None, ...]
"""What distinguishes records of one kind from one message, where there can be several."""

_record_id: Final = compiled.hashes().record_id


def record_id(session_id: str, chain: str, kind: str, cause: str, extra: Distinction = ()) -> str:
    """Return a record's id."""
    return _record_id(session_id, chain, kind, cause, extra)
