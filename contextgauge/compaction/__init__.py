"""Compaction for any agent loop, without Kafka: `docs/COMPACTION.md` explains it.

Summarisers that ask a model are in `contextgauge.compaction.summarisers`, the memory tool in
`contextgauge.compaction.memory`, texts for a terminal in `contextgauge.compaction.displays`.
"""

from typing import TYPE_CHECKING

from contextgauge.lazy_names import lazy_names

if TYPE_CHECKING:
    from contextgauge.compaction.compactor import Compactor, Prepared
    from contextgauge.compaction.counting import ESTIMATE, Counter, CumulativeTokens
    from contextgauge.compaction.events import (
        CompactionDone,
        CompactionNotDone,
        CompactionStarting,
        ContextWarned,
        EngineEvent,
        Hooks,
        ThresholdUnreachable,
    )
    from contextgauge.compaction.extractive import ExtractiveSummariser
    from contextgauge.compaction.formats import (
        detect,
        read_answer,
        read_messages,
        read_request,
        write_messages,
    )
    from contextgauge.compaction.history import History
    from contextgauge.compaction.links import results_without_call
    from contextgauge.compaction.measuring import ModelCall
    from contextgauge.compaction.messages import ApiUsage, Message
    from contextgauge.compaction.plan import Plan, PlanRejectedError
    from contextgauge.compaction.ports import (
        Summariser,
        SummaryAnswer,
        SummaryError,
        SummaryRequest,
    )
    from contextgauge.compaction.profiles import Override, Profile
    from contextgauge.compaction.recalling import recall, recall_tool_schema
    from contextgauge.compaction.receipts import LadderStep, Receipt
    from contextgauge.compaction.restore import Restore, RestoreFile, restore_texts
    from contextgauge.compaction.stored import load_history, store_history
    from contextgauge.compaction.writing import NoSummaryError
    from contextgauge.errors import ConfigError

__all__ = [
    "ESTIMATE",
    "ApiUsage",
    "CompactionDone",
    "CompactionNotDone",
    "CompactionStarting",
    "Compactor",
    "ConfigError",
    "ContextWarned",
    "Counter",
    "CumulativeTokens",
    "EngineEvent",
    "ExtractiveSummariser",
    "History",
    "Hooks",
    "LadderStep",
    "Message",
    "ModelCall",
    "NoSummaryError",
    "Override",
    "Plan",
    "PlanRejectedError",
    "Prepared",
    "Profile",
    "Receipt",
    "Restore",
    "RestoreFile",
    "Summariser",
    "SummaryAnswer",
    "SummaryError",
    "SummaryRequest",
    "ThresholdUnreachable",
    "detect",
    "load_history",
    "read_answer",
    "read_messages",
    "read_request",
    "recall",
    "recall_tool_schema",
    "restore_texts",
    "results_without_call",
    "store_history",
    "write_messages",
]

_MODULES = (
    "contextgauge.errors",
    "contextgauge.compaction.messages",
    "contextgauge.compaction.ports",
    "contextgauge.compaction.profiles",
    "contextgauge.compaction.counting",
    "contextgauge.compaction.events",
    "contextgauge.compaction.links",
    "contextgauge.compaction.measuring",
    "contextgauge.compaction.plan",
    "contextgauge.compaction.receipts",
    "contextgauge.compaction.formats",
    "contextgauge.compaction.history",
    "contextgauge.compaction.extractive",
    "contextgauge.compaction.recalling",
    "contextgauge.compaction.restore",
    "contextgauge.compaction.stored",
    "contextgauge.compaction.writing",
    "contextgauge.compaction.compactor",
)

if not TYPE_CHECKING:  # a type checker would take any name for one that is here
    __getattr__ = lazy_names(__name__, __all__, _MODULES)


def __dir__() -> list[str]:
    """Return what the package has, imported yet or not."""
    return sorted(__all__)
