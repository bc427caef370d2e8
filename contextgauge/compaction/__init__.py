"""Compaction for any agent loop, without Kafka: `docs/COMPACTION.md` explains it.

Summarisers that ask a model are in `contextgauge.compaction.summarisers`, the memory tool in
`contextgauge.compaction.memory`, texts for a terminal in `contextgauge.compaction.displays`.
"""

from typing import TYPE_CHECKING

from contextgauge.lazy_names import lazy_names

if TYPE_CHECKING:
    from contextgauge.compaction.carried.restore import Restore, RestoreFile, restore_texts
    from contextgauge.compaction.compactor import Compactor, Prepared
    from contextgauge.compaction.counting import ESTIMATE, Counter, CumulativeTokens
    from contextgauge.compaction.engine.compaction_receipt import LadderStep, Receipt
    from contextgauge.compaction.engine.extractive import ExtractiveSummariser
    from contextgauge.compaction.engine.linked_messages import results_without_call
    from contextgauge.compaction.engine.plan import Plan, PlanRejectedError
    from contextgauge.compaction.engine.request_size import ModelCall
    from contextgauge.compaction.events import (
        CompactionDone,
        CompactionNotDone,
        CompactionStarting,
        ContextWarned,
        EngineEvent,
        Hooks,
        ThresholdUnreachable,
    )
    from contextgauge.compaction.formats import (
        detect,
        read_answer,
        read_messages,
        read_request,
        write_messages,
    )
    from contextgauge.compaction.history import History
    from contextgauge.compaction.messages import ApiUsage, Message
    from contextgauge.compaction.ports import (
        Summariser,
        SummaryAnswer,
        SummaryError,
        SummaryRequest,
    )
    from contextgauge.compaction.profiles import Override, Profile
    from contextgauge.compaction.store.recall import recall, recall_tool_schema
    from contextgauge.compaction.store.stored_history import load_history, store_history
    from contextgauge.compaction.summary_call import NoSummaryError
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

_MODULES = {
    "contextgauge.compaction.compactor": "Compactor Prepared",
    "contextgauge.compaction.counting": "ESTIMATE Counter CumulativeTokens",
    "contextgauge.compaction.events": (
        "CompactionDone CompactionNotDone CompactionStarting ContextWarned EngineEvent "
        "Hooks ThresholdUnreachable"
    ),
    "contextgauge.compaction.engine.extractive": "ExtractiveSummariser",
    "contextgauge.compaction.formats": (
        "detect read_answer read_messages read_request write_messages"
    ),
    "contextgauge.compaction.history": "History",
    "contextgauge.compaction.engine.linked_messages": "results_without_call",
    "contextgauge.compaction.engine.request_size": "ModelCall",
    "contextgauge.compaction.messages": "ApiUsage Message",
    "contextgauge.compaction.engine.plan": "Plan PlanRejectedError",
    "contextgauge.compaction.ports": "Summariser SummaryAnswer SummaryError SummaryRequest",
    "contextgauge.compaction.profiles": "Override Profile",
    "contextgauge.compaction.store.recall": "recall recall_tool_schema",
    "contextgauge.compaction.engine.compaction_receipt": "LadderStep Receipt",
    "contextgauge.compaction.carried.restore": "Restore RestoreFile restore_texts",
    "contextgauge.compaction.store.stored_history": "load_history store_history",
    "contextgauge.compaction.summary_call": "NoSummaryError",
    "contextgauge.errors": "ConfigError",
}


if not TYPE_CHECKING:  # a type checker would take any name for one that is here
    __getattr__ = lazy_names(globals(), _MODULES)


def __dir__() -> list[str]:
    """Return what the package has, imported yet or not."""
    return sorted(__all__)
