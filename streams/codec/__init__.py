"""Bytes to objects and back: JSON, CloudEvents, keys. No IO.

The hot modules of the deriver import from the modules below this package directly.
"""

from contextgauge.json_codec import (
    decode,
    decode_exactly,
    decode_fast,
    dumps,
    dumps_indented,
    loads,
    utf8,
)
from contextgauge.partitioner import key_bytes
from streams.codec.cloudevents import (
    from_binary,
    from_structured,
    parse_rfc3339,
    rfc3339,
    source,
    to_binary,
    to_structured,
)

__all__ = [
    "decode",
    "decode_exactly",
    "decode_fast",
    "dumps",
    "dumps_indented",
    "from_binary",
    "from_structured",
    "key_bytes",
    "loads",
    "parse_rfc3339",
    "rfc3339",
    "source",
    "to_binary",
    "to_structured",
    "utf8",
]
