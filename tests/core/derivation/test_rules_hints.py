"""R24 and R25: what hints tell of an attempt's trigger, and what hooks never do."""

import pytest

from schemas.records import (
    CompactBoundary,
    CompactionStart,
)
from tests.core.given import (
    SESSION,
    Body,
    Given,
    assistant,
    boundary,
    clear,
    compacting,
    failed,
    init,
    kinds,
    one,
    reset,
    result,
    session,
    side,
    status,
    succeeded,
    system,
    user,
)


def pre_compact(trigger: str, how: str) -> Body:
    payload = {"hook_event_name": "PreCompact", "trigger": trigger, "custom_instructions": ""}
    match how:
        case "frame":
            name = f"PreCompact:{trigger}"
            return system("hook_started", hook_event="PreCompact", hook_name=name)
        case "response":
            name = f"PreCompact:{trigger}"
            return system("hook_response", hook_event="PreCompact", hook_name=name)
        case "input":
            return payload | {"session_id": SESSION}
        case _:
            request = {"subtype": "hook_callback", "callback_id": "c", "input": payload}
            return {"type": "control_request", "request": request, "session_id": SESSION}


@pytest.mark.parametrize("how", ["frame", "response", "input", "callback"])
@pytest.mark.parametrize(
    ("trigger", "reason"), [("manual", "manual"), ("auto", "threshold_exceeded"), ("later", None)]
)
def test_r24_a_pre_compact_hook_sets_the_next_starts_trigger(
    trigger: str, reason: str | None, how: str
) -> None:
    given = session(init(), pre_compact(trigger, how))
    assert one(given.take(compacting()), CompactionStart).trigger_reason == reason


def test_r24_at_the_start_the_trigger_is_usually_unknown() -> None:
    assert one(session().take(compacting()), CompactionStart).trigger_reason is None


@pytest.mark.parametrize(
    "content",
    [
        "/compact",
        "/compact keep the API decisions",
        "<command-name>/compact</command-name>\n<command-message>compact</command-message>",
        [{"type": "text", "text": "/compact"}],
    ],
)
def test_r24_a_compact_command_means_manual(content: object) -> None:
    given = session(user(content))
    assert one(given.take(compacting()), CompactionStart).trigger_reason == "manual"


@pytest.mark.parametrize("content", ["/compactify", "do /compact", "compact", "/clear", [], [5]])
def test_r24_other_texts_give_no_hint(content: object) -> None:
    given = session(user(content))
    assert one(given.take(compacting()), CompactionStart).trigger_reason is None


def test_r24_a_hint_is_used_by_the_next_start_only() -> None:
    given = session(user("/compact"), compacting(), failed())
    assert one(given.take(compacting()), CompactionStart).trigger_reason is None


def test_r24_a_hint_survives_a_heartbeat_and_other_messages() -> None:
    given = session(user("/compact"), user(), init(), assistant("a", read=9), status("requesting"))
    assert one(given.take(compacting()), CompactionStart).trigger_reason == "manual"


@pytest.mark.parametrize("ender", [boundary(), result(), reset(), clear()])
def test_r24_a_hint_is_dropped_at_a_boundary_result_or_reset(ender: Body) -> None:
    given = session(pre_compact("manual", "frame"), ender)
    assert one(given.take(compacting()), CompactionStart).trigger_reason is None


def test_r24_only_a_boundary_or_reset_of_the_main_chain_drops_a_hint() -> None:
    given = session(user("/compact"), side(boundary({"trigger": "auto"})), side(clear()))
    assert one(given.take(compacting()), CompactionStart).trigger_reason == "manual"


def test_r24_a_subagents_command_is_no_hint() -> None:
    given = session(side(user("/compact")))
    assert one(given.take(compacting()), CompactionStart).trigger_reason is None


def test_r24_another_sessions_command_is_no_hint() -> None:
    given = session(user("/compact", session_id="another"))
    assert one(given.take(compacting()), CompactionStart).trigger_reason is None


def test_r24_the_boundarys_trigger_is_authoritative() -> None:
    given = session(user("/compact"), compacting(), succeeded())
    assert one(given.take(boundary({"trigger": "auto"})), CompactBoundary).trigger == "auto"


def test_r24_a_boundary_that_names_no_trigger_has_that_of_its_attempt() -> None:
    given = session(user("/compact"), compacting(), succeeded())
    assert one(given.take(boundary({})), CompactBoundary).trigger == "manual"
    assert one(given.take(boundary({})), CompactBoundary).trigger is None


def test_r24_a_hook_callback_belongs_to_the_streams_session() -> None:
    given = Given()
    payload = {"hook_event_name": "PreCompact", "trigger": "manual", "session_id": "inputs-own"}
    request = {"subtype": "hook_callback", "callback_id": "c", "input": payload}
    given.take({"type": "control_request", "request": request}, hint="stream")
    assert list(given.sessions()) == ["stream"]
    other = {"type": "control_request", "request": request | {"callback_id": "d"}}
    given.take(other)
    assert sorted(given.sessions()) == ["inputs-own", "stream"]


@pytest.mark.parametrize(
    "body",
    [
        {"hook_event_name": "PostCompact", "trigger": "auto", "compact_summary": "x"},
        {"hook_event_name": "SessionStart", "source": "compact"},
        {"hook_event_name": "PreCompact"},
        {"hook_event_name": "PreCompact", "trigger": ["auto"]},
        {"type": "control_request", "request": {"subtype": "interrupt"}},
        {"type": "control_request", "request": {"subtype": "hook_callback"}},
        system("hook_started", hook_event="SessionStart", hook_name="SessionStart:compact"),
        system("hook_started", hook_event="PreCompact"),
    ],
)
def test_r25_other_hooks_give_no_record(body: Body) -> None:
    given = Given()
    assert given.take(body, hint=SESSION) == []
    assert given.sessions() == {}


def test_r25_hooks_never_open_or_close_an_attempt() -> None:
    given = session(pre_compact("auto", "frame"), pre_compact("auto", "response"))
    assert given.session().attempt.phase == "idle"
    given.take(compacting())
    post = {"hook_event_name": "PostCompact", "trigger": "auto", "session_id": SESSION}
    given.take(pre_compact("auto", "frame"), pre_compact("auto", "frame"), post)
    given.take(system("hook_response", hook_event="PostCompact", hook_name="PostCompact:auto"))
    assert given.session().attempt.phase == "open"
    assert kinds(given.records) == ["compaction_start"]
