"""Bytes to objects and back: JSON, CloudEvents, keys. No IO.

The hot modules of the deriver import from the modules below this package directly.
"""

from typing import TYPE_CHECKING

from contextgauge.json_codec import *  # noqa: F403 -- all that is defined there
from contextgauge.lazy_names import lazy_names
from contextgauge.partitioner import *  # noqa: F403

if TYPE_CHECKING:
    from streams.codec.cloudevents import *  # noqa: F403

_MODULES = {
    "streams.codec.cloudevents": (
        "binary_to_structured event_writer from_binary from_structured header_number header_texts "
        "parse_rfc3339 rfc3339 source source_header to_binary to_structured"
    )
}

if not TYPE_CHECKING:  # pragma: no branch -- a type checker would take any name for one of these
    __getattr__ = lazy_names(globals(), _MODULES)
