"""What the raw loops send in a record's stead: as many bytes, under headers as long."""

HEADERS = [
    ("ce_specversion", b"1.0"),
    ("ce_id", b"00000000-0000-5000-8000-000000000000"),
    ("ce_source", b"/sessions/00000000-0000-4000-8000-000000000000"),
    ("ce_type", b"contextgauge.context_reading.v1"),
    ("ce_subject", b"main"),
    ("ce_sequence", b"100"),
    ("ce_rules", b"2-00000000"),
    ("content-type", b"application/json"),
    ("ce_time", b"2026-01-01T00:00:00.000Z"),
    ("src_topic", b"bench.agent.messages"),
    ("src_partition", b"0"),
    ("src_offset", b"100000"),
    ("src_timestamp", b"1767225600000"),
]


def filler(size: int) -> bytes:
    """Return a JSON object of so many bytes."""
    return b'{"filler":"' + b"x" * max(size - 13, 0) + b'"}'
