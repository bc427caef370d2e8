from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from contextgauge.ports import NewRecord
from schemas.records import Record, RecordData

Header: TypeAlias = tuple[str, bytes | None]

class EventWriter:
    def __init__(
        self,
        new_record: type[NewRecord],
        topic: str,
        partition: int,
        fields: Callable[[type[RecordData]], Iterable[tuple[str, bool]]],
        first: tuple[Header, ...],
        types: Mapping[str, Header],
        last: tuple[Header, ...],
        source_of: Callable[[str], Header],
        rules_of: Callable[[str], Header],
    ) -> None: ...
    def write(
        self,
        record: Record,
        key: bytes,
        offset: int,
        timestamp_ms: int,
        origin: tuple[Header, ...],
        /,
    ) -> NewRecord | None: ...
