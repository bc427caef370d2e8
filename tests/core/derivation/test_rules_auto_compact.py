"""R12: who decides on auto-compaction, and what an answer adds to it."""

import json

import pytest

from contextgauge.normalise.signals import InputMessage
from schemas.records import (
    ContextLimits,
)
from tests.core.given import (
    ANSWER,
    SESSION,
    Body,
    any_message,
    assistant,
    init,
    nested,
    one,
    session,
    usage_answer,
)

ENFORCED: Body = {
    "enabled": True,
    "effective_window": 80_000,
    "threshold": 48_000,
    "enforced": True,
    "source": "settings",
}


def auto_compact(record: ContextLimits) -> tuple[bool | None, int | None, int | None, str | None]:
    return (
        record.auto_compact_enabled,
        record.auto_compact_threshold,
        record.effective_window,
        record.auto_compact_source,
    )


def test_r12_an_enforced_state_is_not_changed_by_answers() -> None:
    given = session(init())
    enforced = one(given.take(any_message("autocompact_state", value=ENFORCED)), ContextLimits)
    assert auto_compact(enforced) == (True, 48_000, 80_000, "settings")
    answer = ANSWER | {"autoCompactThreshold": 67_000, "autocompactSource": "auto"}
    answered = one(given.take(usage_answer(**answer), hint=SESSION), ContextLimits)
    assert auto_compact(answered) == (True, 48_000, 80_000, "settings")
    assert (answered.total_tokens, answered.window) == (122_300, 180_000)
    frame = assistant("x", model="<synthetic>", context_usage=answer | {"totalTokens": 5})
    assert auto_compact(one(given.take(frame), ContextLimits)) == (True, 48_000, 80_000, "settings")


def test_r12_a_state_that_is_not_enforced_may_be_changed_by_answers() -> None:
    given = session(init(), any_message("autocompact_state", value=ENFORCED))
    given.take(any_message("autocompact_state", value={"threshold": 50_000}))
    answer = ANSWER | {"autocompactSource": "model-default"}
    answered = one(given.take(usage_answer(**answer), hint=SESSION), ContextLimits)
    assert auto_compact(answered) == (True, 167_000, 180_000, "model-default")


def test_r12_an_answer_reports_its_message_breakdown_unchanged() -> None:
    breakdown = {"toolCallTokens": 9, "toolCallsByType": [{"name": "Read", "callTokens": 9}]}
    given = session(init(), {**usage_answer(**ANSWER), "session_id": SESSION})
    answered = one(
        given.take(usage_answer(**ANSWER, messageBreakdown=breakdown), hint=SESSION), ContextLimits
    )
    assert answered.message_breakdown == breakdown


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"name": "System tools (deferred)", "tokens": 9, "isDeferred": True}, "deferred"),
        ({"name": "Tools", "tokens": 9, "is_deferred": True}, "deferred"),
        ({"name": "MCP tools", "tokens": 9, "isDeferred": True, "kind": "used"}, "used"),
        ({"name": "Messages", "tokens": 9, "isDeferred": False}, None),
    ],
)
def test_r12_a_deferred_category_without_a_kind_is_of_kind_deferred(
    row: Body, kind: str | None
) -> None:
    answer = usage_answer(**(ANSWER | {"categories": [row]}))
    (category,) = one(session(init()).take(answer, hint=SESSION), ContextLimits).categories or ()
    assert category.kind == kind


def test_r12_a_breakdown_may_be_as_deep_as_a_message() -> None:
    answer = json.dumps(usage_answer(totalTokens=5, messageBreakdown={})).encode()
    value = answer.replace(b"{}", nested(1_024 - 3))
    taken = session(init()).deriver.derive(InputMessage(value, SESSION))
    assert one(taken.records, ContextLimits).total_tokens == 5
