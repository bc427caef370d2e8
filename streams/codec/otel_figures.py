"""Records as figures of OpenTelemetry's instruments, with attributes of closed sets only."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

from schemas.records import Record
from streams.codec.otel_events import (
    OUTCOME,
    REASON,
    RUNTIME,
    THRESHOLD,
    TRIGGER,
    UTILIZATION,
    attributes_of,
)
from streams.ports.otel import Attribute, Figure

LIVE_MS: Final = 900_000
"""A record counts if it was no older when it came to Kafka: a figure's time is that of its export,
so what is published of days ago would look like a rush of now."""


class Instrument(NamedTuple):
    """An instrument: its unit, what it is of, its attributes besides the runtime, its buckets.

    `kinds` are the records that it is of. A counter counts them, a histogram takes the attribute of
    its own name that their events have.
    """

    kind: Literal["counter", "histogram"]
    unit: str
    description: str
    kinds: tuple[str, ...]
    attributes: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


_SECONDS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""From the smallest summary to one that hangs."""
_TOKENS: Final = (5e3, 1e4, 2e4, 5e4, 1e5, 1.5e5, 2e5, 3e5, 5e5, 1e6, 2e6)
"""Around the windows that models have."""
_FRACTIONS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)

INSTRUMENTS: Final[Mapping[str, Instrument]] = {
    UTILIZATION: Instrument(
        "histogram",
        "1",
        "Share of the window in use, at each response",
        ("context_reading",),
        buckets=_FRACTIONS,
    ),
    "contextgauge.context.warnings": Instrument(
        "counter",
        "{warning}",
        "Readings that crossed a threshold",
        ("context_warning",),
        (THRESHOLD,),
    ),
    "contextgauge.context.exhaustions": Instrument(
        "counter", "{turn}", "Turns that ended for lack of room", ("context_exhausted",), (REASON,)
    ),
    "contextgauge.compaction.starts": Instrument(
        "counter", "{compaction}", "Compactions that were started", ("compaction_start",)
    ),
    "contextgauge.compaction.boundaries": Instrument(
        "counter", "{compaction}", "Compactions that succeeded", ("compact_boundary",), (TRIGGER,)
    ),
    "contextgauge.compaction.failures": Instrument(
        "counter",
        "{compaction}",
        "Compactions that ended without success",
        ("compaction_failed",),
        (OUTCOME,),
    ),
    "contextgauge.compaction.duration": Instrument(
        "histogram",
        "s",
        "Duration of compactions",
        ("compact_boundary", "compaction_timing"),
        (TRIGGER,),
        _SECONDS,
    ),
    "contextgauge.compaction.tokens_before": Instrument(
        "histogram",
        "{token}",
        "Size of the context before a compaction",
        ("compact_boundary",),
        (TRIGGER,),
        _TOKENS,
    ),
    "contextgauge.compaction.tokens_after": Instrument(
        "histogram",
        "{token}",
        "Size of the context after a compaction, as the next response reports it",
        ("compaction_complete",),
        (TRIGGER,),
        _TOKENS,
    ),
}


def figures_of(record: Record, runtime: str | None, logged_ms: int) -> Iterator[Figure]:
    """Yield the figures of a record. One without a time, an old or a copied one has none.

    `runtime` and `logged_ms` as of `event_of`. An attribute that is not known is left out.
    """
    if record.data.inherited or record.time_ms is None or record.time_ms < logged_ms - LIVE_MS:
        return
    instruments = [item for item in INSTRUMENTS.items() if record.kind in item[1].kinds]
    if not instruments:
        return
    of_event = attributes_of(record, runtime)
    for name, instrument in instruments:
        value: Attribute | None = 1 if instrument.kind == "counter" else of_event.get(name)
        # What was summarised in the background made no one wait.
        if name.endswith(".duration") and of_event.get(f"{name}_source") == "precomputed":
            continue
        if isinstance(value, int | float):
            names = (RUNTIME, *instrument.attributes)
            known = {each: of_event[each] for each in names if each in of_event}
            yield Figure(name, value, known)
