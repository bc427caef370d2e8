"""The one session that is meant by an id or its beginning, among those that there are."""

from collections.abc import Iterable

from contextgauge.errors import StopError
from streams.cli.screen.figures import safe
from streams.core.session_ids import several_begin_with


def only_id(name: str, session_ids: Iterable[str]) -> str | None:
    """Return the id that is this, else the one that begins so, None where none does.

    Raises StopError for several, with their ids, and for an empty name.
    """
    if not name:
        raise StopError("an empty name: give the session's ID, or the beginning of it")
    fitting = {each for each in session_ids if each.startswith(name)}
    if name in fitting:
        return name
    if len(fitting) > 1:
        raise StopError(safe(several_begin_with(name, fitting)))
    return next(iter(fitting), None)
