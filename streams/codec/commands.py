"""Entries of `context.commands` as CloudEvents 1.0 in binary mode, and back."""

from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from contextgauge.errors import VersionError
from contextgauge.json_codec import dumps, loads
from contextgauge.ports import Headers
from schemas.commands import COMMAND_CLASS_BY_KIND, COMMAND_VERSION, CommandEntry
from schemas.records import SPEC_VERSION
from streams.codec.cloudevents import header_texts, parse_rfc3339, rfc3339

SOURCE: Final = "/control"
TYPES: Final = {
    kind: f"contextgauge.command.{kind}.v{COMMAND_VERSION}" for kind in COMMAND_CLASS_BY_KIND
}
"""The CloudEvents types by kind."""
_KINDS: Final = {name: kind for kind, name in TYPES.items()}

KNOWN_TYPES: Final = frozenset(name.encode() for name in _KINDS)
"""Types that this build reads, as they are in the header."""


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(COMMAND_CLASS_BY_KIND[kind])


def write_entry(entry: CommandEntry) -> tuple[Headers, bytes]:
    """Return the headers and the value of an entry."""
    headers: Headers = (
        ("ce_specversion", SPEC_VERSION.encode()),
        ("ce_id", entry.id.encode()),
        ("ce_source", SOURCE.encode()),
        ("ce_type", TYPES[entry.data.kind].encode()),
        ("ce_time", rfc3339(entry.time_ms).encode()),
        ("content-type", b"application/json"),
    )
    return headers, dumps(entry.data)


def read_entry(headers: Headers, value: bytes) -> CommandEntry:
    """Read an entry. Raises VersionError for what this build cannot read."""
    attributes = header_texts(headers)
    try:
        own_id, own_type = attributes["ce_id"], attributes["ce_type"]
        kind = _KINDS.get(own_type)
        if kind is None:
            raise VersionError(
                f"the command entry {own_id} is of type {own_type!r}; this build reads version "
                f"{COMMAND_VERSION}: upgrade contextgauge"
            )
        data = _adapter(kind).validate_python(loads(value))
        return CommandEntry(own_id, parse_rfc3339(attributes["ce_time"]), data)
    except KeyError as error:
        raise VersionError(f"not an entry of contextgauge: no header {error}") from error
    except ValidationError as error:
        # Not the error itself: it quotes the value, which may be a person's words.
        wrong = ", ".join(".".join(map(str, item["loc"])) for item in error.errors())
        raise VersionError(f"the command entry {own_id} is not valid: {wrong}") from None
    except ValueError as error:
        raise VersionError(f"not an entry of contextgauge: {error}") from error
