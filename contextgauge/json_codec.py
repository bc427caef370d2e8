r"""JSON: the bytes of messages and documents to objects, and back.

The fast parser refuses some of what Python's standard parser reads (lone surrogates, numbers out
of its range), so what it refuses is read again by the standard one (R5). On output a lone
surrogate is written as `\uXXXX`, and NaN and infinities, which are not JSON, as null.
"""

import json
import math
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any, Final, TypeAlias

import orjson

from contextgauge.frozen import fields_of
from contextgauge.messages import MAX_DEPTH, MESSAGE_LIMIT_BYTES, DeadLetter
from contextgauge.units import MIB

_STANDARD_RECURSION: Final = 4 * MAX_DEPTH
"""Interpreter recursion for the standard parser: room for MAX_DEPTH and the frames below it."""

_COMPACTION, _EDITS = b"ompact", b"pplied"
"""In lines of which a record may take a part as it came: metadata, a block, an edit."""

LONG_NUMBER: Final = re.compile(rb"-[0-9]{19}|[0-9]{20}")
"""A number that the fast parser may round to a float."""


Encoded: TypeAlias = orjson.Fragment
"""A part of a document that is JSON already: `dumps` writes it as it is."""

_RECURSION = threading.RLock()
"""Held while the interpreter's limit is another: it is one for all threads."""


def utf8(text: str) -> bytes:
    r"""Encode for output: a lone surrogate becomes `\uXXXX`."""
    return text.encode("utf-8", "backslashreplace")


def decode(value: bytes, limit: int = MESSAGE_LIMIT_BYTES) -> dict[str, Any] | DeadLetter:
    """Parse one message, or return why it is a dead letter (R5). Never raises."""
    body = decode_fast(value, limit)
    if isinstance(body, dict) and (_COMPACTION in value or _EDITS in value):
        return decode_exactly(value) or body
    return body


def decode_exactly(value: bytes) -> dict[str, Any] | None:
    """Parse a message that has long numbers, to their last digit; None where it has none."""
    exact = _decode_standard(value) if LONG_NUMBER.search(value) else None
    return exact if isinstance(exact, dict) else None


def decode_fast(value: bytes, limit: int = MESSAGE_LIMIT_BYTES) -> dict[str, Any] | DeadLetter:
    """Parse as `decode` does, but round what has more digits than a number of the machine's."""
    if len(value) > limit:
        return DeadLetter(
            "too_large",
            f"{len(value)} bytes; the limit is {limit} ({limit / MIB:.0f} MiB): "
            "publish it with `contextgauge publish`, which shortens such lines",
        )
    try:
        body = orjson.loads(value)
    except orjson.JSONDecodeError:
        body = _decode_standard(value)
    if isinstance(body, dict) or isinstance(body, DeadLetter):  # noqa: SIM101 -- a union is rebuilt each time
        return body
    return DeadLetter("not_object", f"a JSON {_json_type(body)}, not an object")


def _decode_standard(value: bytes) -> Any:
    if value.startswith(b"\xef\xbb\xbf"):
        return DeadLetter("byte_order_mark", "begins with a byte order mark: write without one")
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as error:
        return DeadLetter("not_utf8", f"byte {error.start} is not UTF-8")
    try:
        with _room_for_depth():
            body = json.loads(text)
    except RecursionError:
        return _too_deep()
    except ValueError as error:
        return DeadLetter("not_json", str(error))
    return _too_deep() if _depth_exceeds(body, MAX_DEPTH) else body


def _too_deep() -> DeadLetter:
    return DeadLetter("too_deep", f"nested deeper than {MAX_DEPTH}")


def _depth_exceeds(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    return {bool: "boolean", int: "number", float: "number", str: "string"}.get(
        type(value), "array"
    )


def loads(value: bytes | str) -> Any:
    """Parse JSON that this project wrote. Raises ValueError."""
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return loads_exactly(value)


def loads_exactly(value: bytes | str) -> Any:
    """Parse JSON that this project wrote, numbers of any length to their last digit."""
    # What lies MAX_DEPTH deep in a message lies a little deeper in an event around it.
    try:
        with _room_for_depth():
            return json.loads(value)
    except RecursionError:
        raise ValueError("nested too deep") from None


def dumps(value: Any) -> bytes:
    """Write compact JSON; dataclasses become objects. Total over what records and views hold."""
    try:
        # By itself, orjson takes a third longer for dataclasses with slots.
        return orjson.dumps(value, fields_of, orjson.OPT_PASSTHROUGH_DATACLASS)
    except TypeError:
        return _dumps_standard(value)


def dumps_indented(value: Any) -> bytes:
    """Write JSON for people, with a line end: for files in the repository."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _dumps_standard(value: Any) -> bytes:
    with _room_for_depth():
        text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return utf8(text)


@contextmanager
def _room_for_depth() -> Iterator[None]:
    """Let the standard parser and writer go as deep as messages may."""
    with _RECURSION:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, _STANDARD_RECURSION))
        try:
            yield
        finally:
            sys.setrecursionlimit(before)


def _plain(value: Any) -> Any:
    """Return the value with dataclasses as objects and non-finite numbers as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Encoded):
        return loads_exactly(orjson.dumps(value))
    if is_dataclass(value):
        return {name: _plain(item) for name, item in fields_of(value).items()}
    return value
