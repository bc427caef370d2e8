"""What JavaScript makes of texts and JSON values: seed 002 counts in its units.

A text's length is in UTF-16 code units. `stringify` is `JSON.stringify` without indentation:
numbers as JavaScript writes them, keys that are array indexes first, lone surrogates escaped.
"""

import math
import re
from typing import Final

from contextgauge.records import Json

_ESCAPED: Final = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')
_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_LARGEST_INDEX: Final = 2**32 - 2

_LARGEST_EXACT: Final = 2**53
"""Beyond it an integer is rounded to a double, as every JavaScript number is."""

_PLAIN_DIGITS: Final = 21
"""Numbers of more digits before the point are written with an exponent."""

_LEADING_ZEROS: Final = 6
"""Numbers with as many zeros after the point are written with an exponent."""


def utf16_length(text: str) -> int:
    """Return the `length` of a JavaScript string."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def stringify(value: Json) -> str:
    """Return a JSON value as `JSON.stringify` writes it."""
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts)


def _write(value: Json, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(_quoted(value))
    elif value is None:
        parts.append("null")
    elif isinstance(value, bool):
        parts.append("true" if value else "false")
    elif isinstance(value, int | float):
        parts.append(_number(value))
    elif isinstance(value, dict):
        before = "{"
        for key in _keys(value):
            parts.append(f"{before}{_quoted(key)}:")
            _write(value[key], parts)
            before = ","
        parts.append("}" if before == "," else "{}")
    else:
        before = "["
        for item in value:
            parts.append(before)
            _write(item, parts)
            before = ","
        parts.append("]" if before == "," else "[]")


def _quoted(text: str) -> str:
    if not text.isascii() and _PAIR.search(text):
        # Two halves side by side are one character to JavaScript, which it writes as it is.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _ESCAPES.get(character) or f"\\u{ord(character):04x}"


def _keys(value: dict[str, Json]) -> list[str]:
    """Return the keys in JavaScript's order: array indexes by size, then the others as added."""
    indexes = [key for key in value if _INDEX.fullmatch(key) and int(key) <= _LARGEST_INDEX]
    if not indexes:
        return list(value)
    first = set(indexes)
    return sorted(indexes, key=int) + [key for key in value if key not in first]


def _number(value: float) -> str:
    if isinstance(value, int):
        if abs(value) <= _LARGEST_EXACT:
            return str(value)
        try:
            value = float(value)
        except OverflowError:
            return "null"
    if not math.isfinite(value):
        return "null"
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    # The shortest digits that read back as the same number: both languages choose the same.
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).rstrip("0") if fraction.strip("0") else whole
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    return sign + _positioned(digits, point)


def _positioned(digits: str, point: int) -> str:
    """Write digits whose decimal point stands after the first `point` of them."""
    if len(digits) <= point <= _PLAIN_DIGITS:
        return digits + "0" * (point - len(digits))
    if 0 < point <= _PLAIN_DIGITS:
        return f"{digits[:point]}.{digits[point:]}"
    if -_LEADING_ZEROS < point <= 0:
        return "0." + "0" * -point + digits
    exponent = point - 1
    mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}e{'+' if exponent > 0 else '-'}{abs(exponent)}"
