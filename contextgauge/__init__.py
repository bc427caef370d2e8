"""What others import: the types of the derived records and of the views.

Each record is a `Record`, a CloudEvents envelope around one of the data classes; `RecordData` is
their closed union. `docs/RULES.md` tells what every field means and where it comes from.
"""

from importlib.metadata import version

from schemas.records import (
    Category,
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionProgress,
    CompactionStart,
    CompactionSummary,
    ContextEdit,
    ContextExhausted,
    ContextLimits,
    ContextReading,
    ContextReset,
    ContextWarning,
    Record,
    RecordData,
    SessionInfo,
)
from schemas.views import ChainView, Compaction, SessionView

__version__ = version("contextgauge")

__all__ = [
    "Category",
    "ChainView",
    "CompactBoundary",
    "Compaction",
    "CompactionComplete",
    "CompactionFailed",
    "CompactionProgress",
    "CompactionStart",
    "CompactionSummary",
    "ContextEdit",
    "ContextExhausted",
    "ContextLimits",
    "ContextReading",
    "ContextReset",
    "ContextWarning",
    "Record",
    "RecordData",
    "SessionInfo",
    "SessionView",
    "__version__",
]
