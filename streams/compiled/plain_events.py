"""The plain writer of records: the general one."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streams.compiled import WriteEvent


def event_writer(write: "WriteEvent", *_layout: Any) -> "WriteEvent":  # noqa: ANN401 -- unused
    """Return the general writer."""
    return write
