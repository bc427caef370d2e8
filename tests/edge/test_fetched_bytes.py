"""The place in aiokafka that batches of ours take while a consumer runs."""

import aiokafka
import pytest
from aiokafka.consumer import fetcher

from contextgauge.errors import ConfigError
from streams.edge.kafka.fetched_bytes import FetchedBytes, place


def test_aiokafkas_own_reader_is_back_after_the_last_consumer() -> None:
    before = fetcher.MemoryRecords
    place.take()
    place.take()
    place.leave()
    assert fetcher.MemoryRecords is FetchedBytes
    place.leave()
    assert fetcher.MemoryRecords is before


def test_an_untested_aiokafka_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiokafka, "__version__", "0.15.1")
    with pytest.raises(ConfigError, match=r"aiokafka 0\.15\.1 was not tested"):
        place.take()
