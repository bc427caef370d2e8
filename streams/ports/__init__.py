"""The pipeline's interfaces to the outside world, as Protocols, and the health that a worker notes.

`Log`, `RecordStream`, `AlertMemory` and `ViewStore` each have a real adapter under `streams/edge`
and an in-memory twin there or in `tests/doubles`; both pass the same suite in `tests/contract`.

An interface is imported when it is asked for: a command needs few of them.
"""

from typing import TYPE_CHECKING

from contextgauge.lazy_names import lazy_names

if TYPE_CHECKING:
    from contextgauge.ports import Clock as Clock
    from contextgauge.ports import Headers as Headers
    from contextgauge.ports import NewRecord as NewRecord
    from contextgauge.ports import Producer as Producer
    from streams.ports.alerts import AlertMemory as AlertMemory
    from streams.ports.alerts import ReceivedRecord as ReceivedRecord
    from streams.ports.alerts import RecordHandler as RecordHandler
    from streams.ports.alerts import RecordStream as RecordStream
    from streams.ports.alerts import Webhook as Webhook
    from streams.ports.alerts import WebhookResult as WebhookResult
    from streams.ports.clients import started as started
    from streams.ports.control import CommandSink as CommandSink
    from streams.ports.control import ControlReader as ControlReader
    from streams.ports.control import ControlStore as ControlStore
    from streams.ports.control import Driver as Driver
    from streams.ports.control import DriverResult as DriverResult
    from streams.ports.conversations import Asked as Asked
    from streams.ports.conversations import AskedContexts as AskedContexts
    from streams.ports.conversations import ConversationReader as ConversationReader
    from streams.ports.health import Health as Health
    from streams.ports.health import PartitionPhase as PartitionPhase
    from streams.ports.health import Service as Service
    from streams.ports.health import StepTimer as StepTimer
    from streams.ports.health import WorkerPhase as WorkerPhase
    from streams.ports.local import DerivedFiles as DerivedFiles
    from streams.ports.local import HookedBy as HookedBy
    from streams.ports.local import HookMessage as HookMessage
    from streams.ports.local import LocalChanges as LocalChanges
    from streams.ports.local import LocalStore as LocalStore
    from streams.ports.local import OtherProcesses as OtherProcesses
    from streams.ports.local import ReadingProgress as ReadingProgress
    from streams.ports.local import TranscriptPiece as TranscriptPiece
    from streams.ports.local import TranscriptReader as TranscriptReader
    from streams.ports.local import Visits as Visits
    from streams.ports.log import NO_ID as NO_ID
    from streams.ports.log import SCATTERED as SCATTERED
    from streams.ports.log import Approval as Approval
    from streams.ports.log import AssignmentCallback as AssignmentCallback
    from streams.ports.log import Batch as Batch
    from streams.ports.log import Ends as Ends
    from streams.ports.log import GroupReader as GroupReader
    from streams.ports.log import LineBatch as LineBatch
    from streams.ports.log import Log as Log
    from streams.ports.log import LogPlace as LogPlace
    from streams.ports.log import LogRecord as LogRecord
    from streams.ports.log import PartitionReader as PartitionReader
    from streams.ports.log import TransactionalProducer as TransactionalProducer
    from streams.ports.log import UnreadableBatch as UnreadableBatch
    from streams.ports.log import UnreadableBatchError as UnreadableBatchError
    from streams.ports.log import UnreadableReason as UnreadableReason
    from streams.ports.log import id_text as id_text
    from streams.ports.telemetry import Telemetry as Telemetry
    from streams.ports.values import ValueStore as ValueStore
    from streams.ports.view_store import ApplyResult as ApplyResult
    from streams.ports.view_store import Entry as Entry
    from streams.ports.view_store import Generations as Generations
    from streams.ports.view_store import HeldCheck as HeldCheck
    from streams.ports.view_store import LiveBounds as LiveBounds
    from streams.ports.view_store import PartitionDocuments as PartitionDocuments
    from streams.ports.view_store import PartitionDump as PartitionDump
    from streams.ports.view_store import ProjectorHeartbeat as ProjectorHeartbeat
    from streams.ports.view_store import Ranking as Ranking
    from streams.ports.view_store import SessionDocuments as SessionDocuments
    from streams.ports.view_store import ViewChanges as ViewChanges
    from streams.ports.view_store import ViewPosition as ViewPosition
    from streams.ports.view_store import ViewReader as ViewReader
    from streams.ports.view_store import ViewStore as ViewStore

_MODULES = {
    "contextgauge.ports": ("Clock Headers NewRecord Producer"),
    "streams.ports.alerts": (
        "AlertMemory ReceivedRecord RecordHandler RecordStream Webhook WebhookResult"
    ),
    "streams.ports.clients": ("started"),
    "streams.ports.control": ("CommandSink ControlReader ControlStore Driver DriverResult"),
    "streams.ports.conversations": ("Asked AskedContexts ConversationReader"),
    "streams.ports.health": ("Health PartitionPhase Service StepTimer WorkerPhase"),
    "streams.ports.local": (
        "HookedBy HookMessage DerivedFiles LocalChanges LocalStore OtherProcesses ReadingProgress "
        "TranscriptPiece TranscriptReader Visits"
    ),
    "streams.ports.log": (
        "NO_ID SCATTERED Approval AssignmentCallback Batch Ends GroupReader LineBatch "
        "Log LogPlace LogRecord PartitionReader TransactionalProducer UnreadableBatch "
        "UnreadableBatchError UnreadableReason id_text"
    ),
    "streams.ports.telemetry": ("Telemetry"),
    "streams.ports.values": ("ValueStore"),
    "streams.ports.view_store": (
        "ApplyResult Entry Generations HeldCheck LiveBounds PartitionDump "
        "PartitionDocuments ProjectorHeartbeat Ranking SessionDocuments "
        "ViewChanges ViewPosition ViewReader ViewStore"
    ),
}


if not TYPE_CHECKING:  # a type checker would take any name for one that is here
    __getattr__ = lazy_names(globals(), _MODULES)
