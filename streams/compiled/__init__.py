"""What is there only where the product was compiled: readers and writers of the usual."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from streams.compiled.record_batches import FetchedRecords

Usual: TypeAlias = tuple[Any, ...]
"""The essential values of a usual message; see `fast_path.pyx`."""

ReadUsual: TypeAlias = Callable[[bytes], Usual | None]
ReadRecord: TypeAlias = Callable[["FetchedRecords", int, int], Usual | None]


def _compiled(name: str) -> Any:  # noqa: ANN401 -- a module
    """Return a compiled module, None without it; one that is there and cannot be loaded raises."""
    full_name = f"streams.compiled.{name}"
    try:
        return import_module(full_name)
    except ModuleNotFoundError as error:
        if error.name != full_name:
            raise
        return None


_fast_path: Final = _compiled("fast_path")

read_usual: Final[ReadUsual | None] = None if _fast_path is None else _fast_path.read
"""Returns the essential values of a usual message, None for any other."""

read_record: Final[ReadRecord | None] = None if _fast_path is None else _fast_path.read_record
"""Does so for the message of a fetched record, in place."""

record_batches: Final = _compiled("record_batches")
"""Fetched batches as `FetchedRecords`; see `record_batches.pyx`."""

event_writer: Final = _compiled("event_writer")
"""Writes records as `cloudevents.to_binary` does; see `event_writer.pyx`."""
