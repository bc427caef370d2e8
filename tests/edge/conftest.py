"""What tests of Kafka's bytes share."""

from collections.abc import Iterator

import pytest

from streams.edge.kafka.fetched_bytes import parts


@pytest.fixture
def our_parts() -> Iterator[None]:
    """Have aiokafka read with our parts, as while a consumer of ours runs."""
    with parts.lent():
        yield
