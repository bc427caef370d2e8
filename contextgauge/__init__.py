"""What others import: `Publisher`, and the types of the derived records and of the views.

Each record is a `Record`, a CloudEvents envelope around one of the data classes; `RecordData` is
their closed union. `docs/RULES.md` explains every field and where it comes from,
`docs/LIBRARY.md` how an agent publishes its messages.
"""

from typing import TYPE_CHECKING

from contextgauge.records import (
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
from contextgauge.views import ChainView, Compaction, SessionView

if TYPE_CHECKING:
    from contextgauge.blocking import BlockingPublisher
    from contextgauge.errors import (
        ClosedError,
        ConfigError,
        ContextgaugeError,
        RetryError,
        UndeliveredError,
    )
    from contextgauge.publisher import Fate, Publisher, PublisherStats, Stream, WhenFull

    __version__: str

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
    "CompactionStart",
    "CompactionSummary",
    "ConfigError",
    "ContextEdit",
    "ContextExhausted",
    "ContextLimits",
    "ContextReading",
    "ContextReset",
    "ContextWarning",
    "ContextgaugeError",
    "Fate",
    "Publisher",
    "PublisherStats",
    "Record",
    "RecordData",
    "RetryError",
    "SessionInfo",
    "SessionView",
    "Stream",
    "UndeliveredError",
    "WhenFull",
    "__version__",
]

_LATE = {
    "BlockingPublisher": "contextgauge.blocking",
    "ClosedError": "contextgauge.errors",
    "ConfigError": "contextgauge.errors",
    "ContextgaugeError": "contextgauge.errors",
    "Fate": "contextgauge.publisher",
    "Publisher": "contextgauge.publisher",
    "PublisherStats": "contextgauge.publisher",
    "RetryError": "contextgauge.errors",
    "Stream": "contextgauge.publisher",
    "UndeliveredError": "contextgauge.errors",
    "WhenFull": "contextgauge.publisher",
}
"""Imported when first asked for: who reads records needs no Kafka client."""


if not TYPE_CHECKING:  # a type checker would take any name for one that is here

    def __getattr__(name: str) -> object:
        """Import what is asked for the first time."""
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415 -- only who asks pays for it

            value: object = version("contextgauge")
        elif name in _LATE:
            from importlib import import_module  # noqa: PLC0415 -- as above

            value = getattr(import_module(_LATE[name]), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return what the package has, imported yet or not."""
    return sorted(__all__)
