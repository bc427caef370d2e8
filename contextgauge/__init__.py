"""What others import: `Publisher`, and the types of the derived records and of the views.

Each record is a `Record`, a CloudEvents envelope around one of the data classes; `RecordData` is
their closed union. `docs/RULES.md` explains every field and where it comes from,
`docs/LIBRARY.md` how an agent publishes its messages.
"""

from typing import TYPE_CHECKING

from contextgauge.lazy_names import lazy_names

if TYPE_CHECKING:
    from contextgauge.compaction_views import Compaction, CompactionReceipt
    from contextgauge.errors import (
        ClosedError,
        ConfigError,
        ContextgaugeError,
        RetryError,
        UndeliveredError,
    )
    from contextgauge.publisher import (
        BlockingPublisher,
        Fate,
        Publisher,
        PublisherStats,
        Stream,
        WhenFull,
    )
    from contextgauge.records import (
        Category,
        CompactBoundary,
        CompactionComplete,
        CompactionFailed,
        CompactionProgress,
        CompactionStart,
        CompactionSummary,
        CompactionTiming,
        ContextEdit,
        ContextExhausted,
        ContextLimits,
        ContextReading,
        ContextReset,
        ContextWarning,
        PinsChecked,
        Record,
        RecordData,
        SessionInfo,
        ToolUse,
        UserTurn,
    )
    from contextgauge.reported_receipt import ReportedReceipt
    from contextgauge.steering import steer
    from contextgauge.views import ChainView, SessionView

__version__ = "0.1.0"

__all__ = [
    "BlockingPublisher",
    "Category",
    "ChainView",
    "ClosedError",
    "CompactBoundary",
    "Compaction",
    "CompactionComplete",
    "CompactionFailed",
    "CompactionProgress",
    "CompactionReceipt",
    "CompactionStart",
    "CompactionSummary",
    "CompactionTiming",
    "ConfigError",
    "ContextEdit",
    "ContextExhausted",
    "ContextLimits",
    "ContextReading",
    "ContextReset",
    "ContextWarning",
    "ContextgaugeError",
    "Fate",
    "PinsChecked",
    "Publisher",
    "PublisherStats",
    "Record",
    "RecordData",
    "ReportedReceipt",
    "RetryError",
    "SessionInfo",
    "SessionView",
    "Stream",
    "ToolUse",
    "UndeliveredError",
    "UserTurn",
    "WhenFull",
    "__version__",
    "steer",
]

_MODULES = {
    "contextgauge.compaction_views": "Compaction CompactionReceipt",
    "contextgauge.errors": "ClosedError ConfigError ContextgaugeError RetryError UndeliveredError",
    "contextgauge.publisher": "BlockingPublisher Fate Publisher PublisherStats Stream WhenFull",
    "contextgauge.reported_receipt": "ReportedReceipt",
    "contextgauge.records": (
        "Category CompactBoundary CompactionComplete CompactionFailed CompactionProgress "
        "CompactionStart CompactionSummary CompactionTiming ContextEdit ContextExhausted "
        "ContextLimits ContextReading ContextReset ContextWarning PinsChecked Record "
        "RecordData SessionInfo ToolUse UserTurn"
    ),
    "contextgauge.steering": "steer",
    "contextgauge.views": "ChainView SessionView",
}


if not TYPE_CHECKING:  # a type checker would take any name for one that is here
    __getattr__ = lazy_names(globals(), _MODULES)


def __dir__() -> list[str]:
    """Return what the package has, imported yet or not."""
    return sorted(__all__)
