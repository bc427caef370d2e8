"""Compaction for any agent loop, without Kafka: `docs/COMPACTION.md` explains it.

Summarisers that ask a model are in `contextgauge.compaction.summarisers`, the memory tool in
`contextgauge.compaction.memory`, texts for a terminal in `contextgauge.compaction.displays`.
"""

from typing import TYPE_CHECKING

from contextgauge.lazy_names import lazy_names

if TYPE_CHECKING:
    from contextgauge.compaction.carried.restore import Restore as Restore
    from contextgauge.compaction.carried.restore import RestoreFile as RestoreFile
    from contextgauge.compaction.carried.restore import restore_texts as restore_texts
    from contextgauge.compaction.compactor import Compactor as Compactor
    from contextgauge.compaction.compactor import Prepared as Prepared
    from contextgauge.compaction.counting import ESTIMATE as ESTIMATE
    from contextgauge.compaction.counting import Counter as Counter
    from contextgauge.compaction.counting import CumulativeTokens as CumulativeTokens
    from contextgauge.compaction.engine.compaction_receipt import LadderStep as LadderStep
    from contextgauge.compaction.engine.compaction_receipt import Receipt as Receipt
    from contextgauge.compaction.engine.extractive import (
        ExtractiveSummariser as ExtractiveSummariser,
    )
    from contextgauge.compaction.engine.linked_messages import (
        results_without_call as results_without_call,
    )
    from contextgauge.compaction.engine.plan import Plan as Plan
    from contextgauge.compaction.engine.plan import PlanRejectedError as PlanRejectedError
    from contextgauge.compaction.engine.request_size import ModelCall as ModelCall
    from contextgauge.compaction.events import CompactionDone as CompactionDone
    from contextgauge.compaction.events import CompactionNotDone as CompactionNotDone
    from contextgauge.compaction.events import CompactionStarting as CompactionStarting
    from contextgauge.compaction.events import ContextWarned as ContextWarned
    from contextgauge.compaction.events import EngineEvent as EngineEvent
    from contextgauge.compaction.events import Hooks as Hooks
    from contextgauge.compaction.events import ThresholdUnreachable as ThresholdUnreachable
    from contextgauge.compaction.formats import detect as detect
    from contextgauge.compaction.formats import read_answer as read_answer
    from contextgauge.compaction.formats import read_messages as read_messages
    from contextgauge.compaction.formats import read_request as read_request
    from contextgauge.compaction.formats import write_messages as write_messages
    from contextgauge.compaction.history import History as History
    from contextgauge.compaction.messages import ApiUsage as ApiUsage
    from contextgauge.compaction.messages import Message as Message
    from contextgauge.compaction.ports import Summariser as Summariser
    from contextgauge.compaction.ports import SummaryAnswer as SummaryAnswer
    from contextgauge.compaction.ports import SummaryError as SummaryError
    from contextgauge.compaction.ports import SummaryRequest as SummaryRequest
    from contextgauge.compaction.profiles import Override as Override
    from contextgauge.compaction.profiles import Profile as Profile
    from contextgauge.compaction.stateless import compact as compact
    from contextgauge.compaction.store.recall import recall as recall
    from contextgauge.compaction.store.recall import recall_tool_schema as recall_tool_schema
    from contextgauge.compaction.store.stored_history import load_history as load_history
    from contextgauge.compaction.store.stored_history import store_history as store_history
    from contextgauge.compaction.summary_call import NoSummaryError as NoSummaryError
    from contextgauge.errors import ConfigError as ConfigError

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
    "contextgauge.compaction.stateless": "compact",
    "contextgauge.compaction.store.recall": "recall recall_tool_schema",
    "contextgauge.compaction.engine.compaction_receipt": "LadderStep Receipt",
    "contextgauge.compaction.carried.restore": "Restore RestoreFile restore_texts",
    "contextgauge.compaction.store.stored_history": "load_history store_history",
    "contextgauge.compaction.summary_call": "NoSummaryError",
    "contextgauge.errors": "ConfigError",
}


if not TYPE_CHECKING:  # a type checker would take any name for one that is here
    __all__ = [name for names in _MODULES.values() for name in names.split()]
    __getattr__ = lazy_names(globals(), _MODULES)

    def __dir__() -> list[str]:
        """Return what the package has, imported yet or not."""
        return sorted(__all__)
