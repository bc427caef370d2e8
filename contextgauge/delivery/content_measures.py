"""What a message says of texts that it lacks: their sizes and hashes, measured before (R35)."""

from contextgauge.normalise.signals import Body
from contextgauge.records import Json


def measured(body: Body, key: bytes = b"") -> dict[str, Json]:
    """Return the field to add to a message; none where there is nothing to measure."""
    # Most publishers send all: they do without the readers of conversations.
    from contextgauge.compaction.reading.content_facts import (  # noqa: PLC0415 -- see above
        CONTENT_FIELD,
        content_facts,
        content_field,
    )

    facts = content_facts(body, key)
    return {CONTENT_FIELD: content_field(facts)} if facts else {}
