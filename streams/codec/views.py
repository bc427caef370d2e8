"""Views as bytes and back: JSON documents that carry their version."""

from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from contextgauge.errors import VersionError
from schemas.views import (
    VIEW_VERSION,
    Aggregates,
    Compaction,
    LiveEntry,
    PartitionView,
    SessionView,
)
from streams import codec

_Document = TypeVar("_Document", SessionView, Compaction, LiveEntry, Aggregates, PartitionView)


_adapter = cache(TypeAdapter[Any])
"""Returns what reads a document: made when it is needed, as all of them take 50 ms."""

encode = codec.dumps


def decode(kind: type[_Document], document: bytes) -> _Document:
    """Read a document. Raises VersionError for a version, or a shape, that is not known here."""
    try:
        body = codec.loads(document)
    except ValueError:
        body = None
    version = body.get("version") if isinstance(body, dict) else "none"
    if not isinstance(version, int | None):
        raise VersionError(
            f"a {kind.__name__} document is damaged, no build writes it so: give the project "
            "workers another CONTEXTGAUGE_KEY_PREFIX, and they rebuild the views from the log"
        )
    if version != VIEW_VERSION:
        raise VersionError(
            f"a {kind.__name__} document is of version {version}, this build knows {VIEW_VERSION}: "
            "run the build that wrote it, or give this one a CONTEXTGAUGE_KEY_PREFIX of its own, "
            "and it rebuilds the views from the log"
        )
    try:
        view: _Document = _adapter(kind).validate_python(body)  # type: ignore[arg-type]  # it hashes
    except ValidationError as error:
        fields = ", ".join(str(item["loc"]) for item in error.errors(include_input=False))
        raise VersionError(
            f"a {kind.__name__} document does not have the shape of version {version}: {fields}"
        ) from error
    return view
