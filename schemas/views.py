"""The views in Redis: the contract of the readers.

Defined in the library, which agents install on its own.
"""

from contextgauge.compaction_views import VIEW_VERSION as VIEW_VERSION
from contextgauge.compaction_views import Compaction as Compaction
from contextgauge.compaction_views import CompactionReceipt as CompactionReceipt
from contextgauge.distributions import BUCKET_EDGES as BUCKET_EDGES
from contextgauge.distributions import FEW_VALUES as FEW_VALUES
from contextgauge.distributions import Distribution as Distribution
from contextgauge.distributions import bucket as bucket
from contextgauge.distributions import few_values as few_values
from contextgauge.views import FORMAT_VERSION as FORMAT_VERSION
from contextgauge.views import GROWTH_DIFFERENCES as GROWTH_DIFFERENCES
from contextgauge.views import HOUR_FIELD as HOUR_FIELD
from contextgauge.views import HOURS_KEPT_MS as HOURS_KEPT_MS
from contextgauge.views import LAST_COMPACTIONS as LAST_COMPACTIONS
from contextgauge.views import LEFT_KEPT_MS as LEFT_KEPT_MS
from contextgauge.views import LIVE_ENTRIES as LIVE_ENTRIES
from contextgauge.views import MAX_CHAINS as MAX_CHAINS
from contextgauge.views import MAX_MODELS as MAX_MODELS
from contextgauge.views import MODEL_FIELD as MODEL_FIELD
from contextgauge.views import OTHER_MODELS_FIELD as OTHER_MODELS_FIELD
from contextgauge.views import PARTITION_FIELD as PARTITION_FIELD
from contextgauge.views import SESSION_IDLE_MS as SESSION_IDLE_MS
from contextgauge.views import STREAM_ENTRIES as STREAM_ENTRIES
from contextgauge.views import TOTAL_FIELD as TOTAL_FIELD
from contextgauge.views import UNKNOWN_HOUR as UNKNOWN_HOUR
from contextgauge.views import UNKNOWN_MODEL_FIELD as UNKNOWN_MODEL_FIELD
from contextgauge.views import Aggregates as Aggregates
from contextgauge.views import AttemptView as AttemptView
from contextgauge.views import Breakdown as Breakdown
from contextgauge.views import ChainView as ChainView
from contextgauge.views import CompactionBrief as CompactionBrief
from contextgauge.views import CompactionOutcome as CompactionOutcome
from contextgauge.views import CompactionsView as CompactionsView
from contextgauge.views import EntryStream as EntryStream
from contextgauge.views import Identity as Identity
from contextgauge.views import LiveEntry as LiveEntry
from contextgauge.views import PartitionView as PartitionView
from contextgauge.views import PendingCompaction as PendingCompaction
from contextgauge.views import SessionView as SessionView
from contextgauge.views import SizeState as SizeState
from contextgauge.views import TriggerAggregates as TriggerAggregates
from contextgauge.views import UntimedCompaction as UntimedCompaction
