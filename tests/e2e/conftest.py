"""What the tests of the whole chain share; one that needs other names has its own."""

import pytest


@pytest.fixture
def settings(kafka: str, redis_url: str, prefix: str) -> dict[str, str]:
    """Names of this test's own on the real services."""
    return {
        "BOOTSTRAP_SERVERS": kafka,
        "REDIS_URL": redis_url,
        "TOPIC_PREFIX": prefix,
        "GROUP_PREFIX": prefix,
        "KEY_PREFIX": prefix,
        "PARTITIONS": "2",
        "SESSION_TIMEOUT_MS": "6000",
    }
