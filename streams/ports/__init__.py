"""What the flows ask of the outside world, as Protocols.

Each port has a real adapter and an in-memory twin under `streams/edge`, and one contract suite
in `tests/contract` that both must pass.
"""

from contextgauge.ports import Clock, Headers, NewRecord, Producer
from streams.ports.alerts import (
    AlertMemory,
    Answer,
    Arrival,
    ArrivalHandler,
    RecordStream,
    Webhook,
)
from streams.ports.health import (
    Health,
    PartitionPhase,
    Step,
    WorkerPhase,
)
from streams.ports.log import (
    AssignmentCallback,
    Batch,
    Ends,
    GroupReader,
    Log,
    LogRecord,
    PartitionReader,
    Restored,
    StateStore,
    TransactionalProducer,
)
from streams.ports.telemetry import (
    CounterName,
    GaugeName,
    HistogramName,
    Service,
    Telemetry,
)
from streams.ports.views import (
    ApplyResult,
    Entry,
    Generations,
    LiveBounds,
    PartitionDump,
    PartitionLook,
    Ranking,
    SessionLook,
    SessionSet,
    SessionsLook,
    Told,
    ViewChanges,
    ViewPosition,
    ViewReader,
    ViewStore,
)

__all__ = [
    "AlertMemory",
    "Answer",
    "ApplyResult",
    "Arrival",
    "ArrivalHandler",
    "AssignmentCallback",
    "Batch",
    "Clock",
    "CounterName",
    "Ends",
    "Entry",
    "GaugeName",
    "Generations",
    "GroupReader",
    "Headers",
    "Health",
    "HistogramName",
    "LiveBounds",
    "Log",
    "LogRecord",
    "NewRecord",
    "PartitionDump",
    "PartitionLook",
    "PartitionPhase",
    "PartitionReader",
    "Producer",
    "Ranking",
    "RecordStream",
    "Restored",
    "Service",
    "SessionLook",
    "SessionSet",
    "SessionsLook",
    "StateStore",
    "Step",
    "Telemetry",
    "Told",
    "TransactionalProducer",
    "ViewChanges",
    "ViewPosition",
    "ViewReader",
    "ViewStore",
    "Webhook",
    "WorkerPhase",
]
