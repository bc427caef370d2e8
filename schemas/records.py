"""The derived records, the values on `context.events`: the contract of everything downstream.

Defined in the library, which agents install on its own.
"""

from contextgauge.record_words import DurationSource as DurationSource
from contextgauge.record_words import ExhaustedReason as ExhaustedReason
from contextgauge.record_words import Outcome as Outcome
from contextgauge.record_words import Runtime as Runtime
from contextgauge.record_words import TokenSource as TokenSource
from contextgauge.record_words import Trigger as Trigger
from contextgauge.record_words import TriggerReason as TriggerReason
from contextgauge.record_words import WindowSource as WindowSource
from contextgauge.records import DATA_CLASS_BY_KIND as DATA_CLASS_BY_KIND
from contextgauge.records import DATA_CLASSES as DATA_CLASSES
from contextgauge.records import MAIN_CHAIN as MAIN_CHAIN
from contextgauge.records import SCHEMA_VERSION as SCHEMA_VERSION
from contextgauge.records import SPEC_VERSION as SPEC_VERSION
from contextgauge.records import Category as Category
from contextgauge.records import Common as Common
from contextgauge.records import CompactBoundary as CompactBoundary
from contextgauge.records import CompactionComplete as CompactionComplete
from contextgauge.records import CompactionFailed as CompactionFailed
from contextgauge.records import CompactionProgress as CompactionProgress
from contextgauge.records import CompactionStart as CompactionStart
from contextgauge.records import CompactionSummary as CompactionSummary
from contextgauge.records import CompactionTiming as CompactionTiming
from contextgauge.records import ContextEdit as ContextEdit
from contextgauge.records import ContextExhausted as ContextExhausted
from contextgauge.records import ContextLimits as ContextLimits
from contextgauge.records import ContextReading as ContextReading
from contextgauge.records import ContextReset as ContextReset
from contextgauge.records import ContextWarning as ContextWarning
from contextgauge.records import Json as Json
from contextgauge.records import Kind as Kind
from contextgauge.records import PinsChecked as PinsChecked
from contextgauge.records import Record as Record
from contextgauge.records import RecordData as RecordData
from contextgauge.records import SessionInfo as SessionInfo
from contextgauge.records import ToolUse as ToolUse
from contextgauge.records import UserTurn as UserTurn
from contextgauge.records import event_type as event_type
from contextgauge.reported_receipt import ReportedReceipt as ReportedReceipt
