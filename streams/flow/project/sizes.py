"""What documents take at most: known before they are written, so that calls can be cut."""

from schemas.records import Record
from schemas.views import Aggregates

GROWTH = 4
"""A view grows by no more than this many times its record's event: a record's text appears in
a view four times at most (a chain's name, of an attempt), with less overhead than the event's."""

_HEARTBEAT_BYTES = 512
"""Of a heartbeat's event without its texts, some 400. It is not written itself, so not encoded."""

_CHARACTER_BYTES = 6
"""A character takes so many in JSON at most: a control character as `\\u0001`."""

RANKS = 4
"""Times that a session's key is in a call in addition to its documents: rankings and indexes."""

_STATS_BYTES = 2 * 1024
"""What one field of the aggregates takes at most without its buckets."""

_BUCKET_BYTES = 32
"""What one bucket takes at most: an edge of 17 digits, its count and their punctuation."""


_VALUE_BYTES = 20
"""What one value takes at most, of 17 digits."""


def most_bytes(stat: Aggregates | None) -> int:
    """Return the bytes that a field of the aggregates takes at most; None: the field leaves."""
    if stat is None:
        return 0
    triggers = (stat.manual, stat.automatic, stat.idle, stat.unknown_trigger)
    counted = [part for each in triggers for part in (each.duration_ms, each.pre_tokens)]
    buckets = sum(len(part.buckets) for part in counted)
    values = sum(len(part.values or ()) for part in counted)
    return _STATS_BYTES + _BUCKET_BYTES * buckets + _VALUE_BYTES * values


def heartbeat_bytes(record: Record) -> int:
    """Return how long a heartbeat's event would be at most."""
    data = record.data
    texts = (data.session_id, data.chain, data.model, data.task_id, data.subagent_type)
    return _HEARTBEAT_BYTES + _CHARACTER_BYTES * sum(len(text) for text in texts if text)
