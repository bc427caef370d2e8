"""The parts of aiokafka that ours stand for while a consumer runs."""

import aiokafka
import pytest
from aiokafka.consumer import fetcher
from aiokafka.record import default_records

from contextgauge.errors import ConfigError
from streams.edge.kafka.fetched_bytes import FetchedBytes, parts


def test_aiokafkas_own_parts_are_back_after_the_last_consumer() -> None:
    before = fetcher.MemoryRecords, default_records.zstd_decode
    parts.take()
    parts.take()
    parts.leave()
    assert fetcher.MemoryRecords is FetchedBytes
    assert default_records.zstd_decode is not before[1]
    parts.leave()
    assert (fetcher.MemoryRecords, default_records.zstd_decode) == before


def test_an_untested_aiokafka_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fetcher.MemoryRecords
    monkeypatch.setattr(aiokafka, "__version__", "0.15.1")
    with pytest.raises(ConfigError, match=r"aiokafka 0\.15\.1 was not tested"):
        parts.take()
    assert fetcher.MemoryRecords is before
