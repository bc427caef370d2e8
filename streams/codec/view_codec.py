"""Views as bytes and back: JSON documents that carry their version."""

from typing import TypeVar

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
from streams.codec.shapes import ShapeError, reader

_Document = TypeVar("_Document", SessionView, Compaction, LiveEntry, Aggregates, PartitionView)


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
        view: _Document = reader(kind)(body)  # type: ignore[arg-type]  # it hashes
    except ShapeError as error:
        field = ".".join(reversed(error.place))
        raise VersionError(
            f"a {kind.__name__} document does not have the shape of version {version}: {field}"
        ) from error
    return view
