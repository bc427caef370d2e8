"""Lines on which several objects stand, or one behind another whose end was never written.

That is what is left where two processes write to one file, or one is killed while it writes.
"""

import re
from itertools import pairwise
from typing import Final

from streams.edge.files.objects import object_of

_JOINT: Final = re.compile(rb'\{"(?<=[^:,\[\s]\{")[A-Za-z_$]')
"""Where an object begins behind something that no object can stand behind. In a line that is JSON
there is no such place: in a string the quote would be escaped, or end it."""

_SPACED: Final = b'} {"'


def whole_objects(value: bytes) -> list[bytes]:
    """Return the parts of a line: its objects, and what is torn. A line that has one is itself."""
    if _JOINT.search(value) is None and _SPACED not in value:
        return [value]
    starts = {joint.start() for joint in _JOINT.finditer(value)}
    offset = value.find(_SPACED)
    while offset >= 0:
        starts.add(offset + 2)
        offset = value.find(_SPACED, offset + 1)
    places = sorted({0, *starts, len(value)})
    parts = [value[begin:end].strip(b" ") for begin, end in pairwise(places)]
    if object_of(value) is not None or not any(map(object_of, parts)):
        return [value]
    return parts
