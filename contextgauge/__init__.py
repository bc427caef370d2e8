"""What others import: `Publisher`, and the types of the derived records and of the views.

Each record is a `Record`, a CloudEvents envelope around one of the data classes; `RecordData` is
their closed union. `docs/RULES.md` explains every field and where it comes from,
`docs/LIBRARY.md` how an agent publishes its messages.
"""

from typing import TYPE_CHECKING

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

_NAMES = {
    "contextgauge.blocking": ["BlockingPublisher"],
    "contextgauge.errors": [name for name in __all__ if name.endswith("Error")],
    "contextgauge.publisher": ["Fate", "Publisher", "PublisherStats", "Stream", "WhenFull"],
    "contextgauge.views": ["ChainView", "Compaction", "SessionView"],
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
"""Modules are imported with the first use of a name; all other names are in `records`."""


if not TYPE_CHECKING:  # a type checker would take any name for one that is here

    def __getattr__(name: str) -> object:
        """Import what is asked for the first time."""
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415 -- only who asks pays for it

            value: object = version("contextgauge")
        elif name in __all__:
            from importlib import import_module  # noqa: PLC0415 -- as above

            value = getattr(import_module(_MODULES.get(name, "contextgauge.records")), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return what the package has, imported yet or not."""
    return sorted(__all__)
