"""Compaction for any agent loop, without Kafka: `docs/COMPACTION.md` explains it.

Summarisers that ask a model are in `contextgauge.compaction.summarisers`, the memory tool in
`contextgauge.compaction.memory`, texts for a terminal in `contextgauge.compaction.displays`.
"""

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
from contextgauge.compaction.recall import recall, recall_tool_schema
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
