"""The beginning of a session's id in place of the whole, as people type it."""

from collections.abc import Iterable
from typing import Final

WHOLE_ID: Final = 36
"""Characters of the ids that runtimes give; anything shorter may be the beginning of one."""

_SHOWN: Final = 5
"""Sessions that an error names where the beginning of an id fits several."""


def several_begin_with(beginning: str, session_ids: Iterable[str]) -> str:
    """Return the error where the beginning of an id fits several sessions: it names the first."""
    names = sorted(session_ids)
    more = ", …" if len(names) > _SHOWN else ""
    return (
        f"{len(names)} sessions begin with {beginning!r}: give more of the id "
        f"({', '.join(names[:_SHOWN])}{more})"
    )
