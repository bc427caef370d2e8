from typing import Any

from streams.compiled.record_batches import FetchedRecords

def read(value: bytes, /) -> tuple[Any, ...] | None: ...
def read_record(
    records: FetchedRecords, index: int, limit_bytes: int, /
) -> tuple[Any, ...] | None: ...
