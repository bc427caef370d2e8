"""What the readers' tests share."""

import pytest

from schemas.records import Record
from streams.serve.feed import feed as feed_module
from streams.serve.views import snapshot
from tests.serve.kit import sample_records


@pytest.fixture(scope="package")
def records() -> list[Record]:
    """All records of the simulator's sample: not to be changed."""
    return sample_records()


@pytest.fixture
def fast_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the feed look again at once."""
    monkeypatch.setattr(snapshot, "_CACHED_S", 0.0)
    monkeypatch.setattr(feed_module, "_WAIT_S", 0.02)
    monkeypatch.setattr(feed_module, "_RETRY_S", 0.01)
