"""About how many bytes a value takes as JSON, without writing it."""

from typing import Final

from schemas.records import Json

_NUMBER_BYTES: Final = 12
_QUOTES: Final = 3
"""A string's or a bracket's pair, and the comma or colon after it."""


def json_bytes(value: Json) -> int:
    """Return about the bytes of a value as JSON, however deeply it is nested."""
    total, rest = 0, [value]
    while rest:
        part = rest.pop()
        if isinstance(part, str):
            total += len(part.encode("utf-8", "surrogatepass")) + _QUOTES
        elif isinstance(part, list):
            total += _QUOTES
            rest += part
        elif isinstance(part, dict):
            total += _QUOTES
            rest += part
            rest += part.values()
        else:
            total += _NUMBER_BYTES
    return total
