"""Lines of a session, and the service's compactions of it."""

from contextgauge.compaction.engine.compaction_receipt import Receipt
from contextgauge.compaction.engine.plan import Plan, plan_of
from contextgauge.compaction.history import Edit
from contextgauge.compaction.messages import ContextCompaction, Message
from contextgauge.compaction.profiles import Window
from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.compaction.store.stored_history import store_edit
from contextgauge.records import Json
from streams.core.conversation.fold import ConversationFold

RECEIPT = Receipt(
    trigger="manual",
    tokens_before=100,
    tokens_after=10,
    basis="estimated",
    window=Window(200_000, "given"),
    target_tokens=50,
    steps=(),
    number=1,
)


def said(role: str, text: Json, **more: Json) -> dict[str, Json]:
    return {"type": role, "session_id": "s", "message": {"role": role, "content": text}, **more}


def fold_of(*lines: dict[str, Json]) -> ConversationFold:
    fold = ConversationFold()
    for offset, line in enumerate(lines):
        fold.add(line, offset)
    return fold


def texts(fold: ConversationFold) -> list[str]:
    return [shown(each) for each in fold.result.history.active]


def state_of(fold: ConversationFold) -> str:
    return fold.result.state


def shown(message: Message) -> str:
    marker = message.compaction
    return message.text if marker is None else f"[{marker.number}] {marker.summary}"


def boundary(**metadata: Json) -> dict[str, Json]:
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b",
        "compact_metadata": {"trigger": "auto", "pre_tokens": 9, **metadata},
    }


def service_boundary(plan: Plan, conversation: SessionConversation) -> dict[str, Json]:
    history = conversation.history
    edit = store_edit(Edit(plan.covers, plan.replacement, plan.receipt), history)
    own: Json = {
        "command_id": "c",
        "attempt": 1,
        "plan": {
            "covers": plan.covers,
            "last_id": plan.last_id,
            "prefix_hash": plan.prefix_hash,
        },
        "edit": edit,
        "receipt": {},
    }
    return boundary(contextgauge=own)


def a_plan(conversation: SessionConversation, covers: int, receipt: Receipt = RECEIPT) -> Plan:
    marker = ContextCompaction(1, 0, "So far.", covers, 100, prose="So far.")
    covered = conversation.history.active[:covers]
    return plan_of(covered, (Message("user", (marker,)),), receipt)
