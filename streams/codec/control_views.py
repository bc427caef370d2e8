"""What the control plane knows of a session, as bytes and back."""

from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from contextgauge.errors import VersionError
from contextgauge.json_codec import dumps, loads
from schemas.commands import ControlView

CONTROL_VIEW_VERSION: Final = 1


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(ControlView)


def write_view(view: ControlView) -> bytes:
    """Return a view's document."""
    return dumps({"version": CONTROL_VIEW_VERSION, "view": view})


def read_view(document: bytes) -> ControlView:
    """Read a document. Raises VersionError for a version that this build cannot read."""
    try:
        body = loads(document)
    except ValueError:
        body = None
    version = body.get("version") if isinstance(body, dict) else None
    version = version if isinstance(version, int) else None
    if version != CONTROL_VIEW_VERSION:
        raise VersionError(
            f"a view of the control plane is of version {version}, this build reads "
            f"{CONTROL_VIEW_VERSION}: run the build that wrote it, or restart the control workers"
        )
    try:
        view: ControlView = _adapter().validate_python(body["view"])
    except (KeyError, ValidationError) as error:
        raise VersionError("a view of the control plane has another shape") from error
    return view
