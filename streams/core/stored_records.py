"""Which part of a session's records the views hold: so many of its readings, and of the others."""

from collections.abc import Sequence

from schemas.records import ContextReading, Record
from schemas.views import STREAM_ENTRIES


def whole_from(records: Sequence[Record]) -> int:
    """Return the sequence from which all records of a session are there; 0: all of them are.

    What is there of an earlier time lacks either its readings or all else.
    """
    begin = 0
    for is_reading in (True, False):
        own = [each for each in records if isinstance(each.data, ContextReading) is is_reading]
        if len(own) >= STREAM_ENTRIES:
            begin = max(begin, own[0].sequence)
    return begin
