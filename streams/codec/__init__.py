"""Bytes to objects and back: JSON, CloudEvents, keys. No IO.

The hot modules of the deriver import from the modules below this package directly.
"""

from contextgauge.json_codec import *  # noqa: F403 -- all that is defined there
from contextgauge.partitioner import *  # noqa: F403
from streams.codec.cloudevents import *  # noqa: F403
