"""Compaction for any agent loop, without Kafka: `docs/COMPACTION.md` explains it.

Summarisers that ask a model are in `contextgauge.compaction.summarisers`, the memory tool in
`contextgauge.compaction.memory`, texts for a terminal in `contextgauge.compaction.displays`.
"""

from contextgauge.compaction.compactor import Compactor, Prepared
from contextgauge.compaction.counting import ESTIMATE, Counter, CumulativeTokens
from contextgauge.compaction.events import (
    AutoCompactingEvent,
    CompactionCompleteEvent,
    CompactionFailedEvent,
    ContextWarningEvent,
    EngineEvent,
    Hooks,
    ThresholdUnreachableEvent,
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
from contextgauge.compaction.measuring import ModelCall
from contextgauge.compaction.messages import Message
from contextgauge.compaction.plan import Plan, PlanRejected
from contextgauge.compaction.ports import (
    Summariser,
    SummaryAnswer,
    SummaryError,
    SummaryRequest,
)
from contextgauge.compaction.profiles import Override, Profile
from contextgauge.compaction.recall import recall, recall_tool_schema
from contextgauge.compaction.receipts import Receipt, Step
from contextgauge.compaction.restore import Restore, RestoreFile, restore_texts
from contextgauge.compaction.stored import load_history, store_history
from contextgauge.compaction.writing import CompactionFailed

__all__ = [
    "ESTIMATE",
    "AutoCompactingEvent",
    "CompactionCompleteEvent",
    "CompactionFailed",
    "CompactionFailedEvent",
    "Compactor",
    "ContextWarningEvent",
    "Counter",
    "CumulativeTokens",
    "EngineEvent",
    "ExtractiveSummariser",
    "History",
    "Hooks",
    "Message",
    "ModelCall",
    "Override",
    "Plan",
    "PlanRejected",
    "Prepared",
    "Profile",
    "Receipt",
    "Restore",
    "RestoreFile",
    "Step",
    "Summariser",
    "SummaryAnswer",
    "SummaryError",
    "SummaryRequest",
    "ThresholdUnreachableEvent",
    "detect",
    "load_history",
    "read_answer",
    "read_messages",
    "read_request",
    "recall",
    "recall_tool_schema",
    "restore_texts",
    "store_history",
    "write_messages",
]
