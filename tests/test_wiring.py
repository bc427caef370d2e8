"""The settings reach what is built from them."""

import pytest

from streams import wiring
from streams.settings import Settings


@pytest.mark.parametrize("timeout_ms", [1_000, 10_000, 900_000])
def test_the_commit_timeout_exceeds_the_transaction_timeout(timeout_ms: int) -> None:
    options = wiring.kafka_options(
        Settings(bootstrap_servers="127.0.0.1:1", transaction_timeout_ms=timeout_ms)
    )
    assert options.transaction_timeout_ms == timeout_ms
    assert options.commit_timeout_s == timeout_ms / 1_000 + 10
