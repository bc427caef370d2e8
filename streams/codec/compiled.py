"""The compiled reader of usual messages, where the product was compiled."""

from collections.abc import Callable
from typing import Any, Final

ReadUsual = Callable[[bytes], tuple[Any, ...] | None]


def _usual_reader() -> ReadUsual | None:
    """Return the reader; a module that is there and cannot be loaded raises."""
    try:
        from streams.codec.fast_path import read  # noqa: PLC0415
    except ModuleNotFoundError:
        return None
    return read


read_usual: Final = _usual_reader()
"""Returns the essential values of a usual message, None for any other; see `fast_path.pyx`."""
