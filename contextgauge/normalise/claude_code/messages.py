"""Claude messages: the Agent SDK's stream and the transcript on disk, in either spelling."""

from typing import Final

from contextgauge.normalise.adapter import Reader
from contextgauge.normalise.claude_code.limits import (
    auto_compact,
    autocompact_state,
    context_usage,
)
from contextgauge.normalise.claude_code.texts import (
    COMMAND,
    UNCOUNTED,
    first_text,
    names_hook_block,
)
from contextgauge.normalise.fields import (
    MAX_NAME,
    count,
    flag,
    mapping,
    name,
    text,
    truth,
    window,
)
from contextgauge.normalise.limit_signals import (
    ModelReport,
    ModelWindow,
    RuntimeWindows,
    SubagentResult,
)
from contextgauge.normalise.responses import (
    is_no_response,
    named_window,
    read_response,
    text_of,
)
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    CompactionRefused,
    CompactionStatus,
    Exhausted,
    MicroCompaction,
    OwnCall,
    PinCheck,
    Reset,
    Response,
    Signal,
    TriggerHint,
    TurnEnded,
    UserLine,
)
from contextgauge.normalise.spellings import is_telemetry, is_transcript
from contextgauge.record_words import ExhaustedReason, Trigger
from contextgauge.records import Json
from contextgauge.reported_receipt import ReportedReceipt
from contextgauge.windows import base_name

MAX_PIN: Final = 200
MAX_PINS: Final = 20
"""Characters of a lost turn, and lost turns, in a record: enough to know which they are."""

_TRIGGERS: Final[tuple[Trigger, ...]] = ("manual", "auto", "idle")
_HINTS: Final[tuple[Trigger, ...]] = ("manual", "auto")
_MARKUP: Final = ("<", "/")
"""A user's line that begins otherwise is no command, and no command's output."""
_MARKS: Final = frozenset(
    {"isCompactSummary", "is_compact_summary", "isSynthetic", "is_synthetic"}
).union(("isMeta", "is_meta", "isReplay", "is_replay"))
COUNTED_LINE: Final = (UserLine(True, None, None, None),)  # noqa: FBT003 -- as the field says
TOOL_RESULTS: Final = ("toolUseResult", "tool_use_result")
RESOLVED_MODEL: Final = ("resolvedModel", "resolved_model")
AGENT_ID: Final = ("agentId", "agent_id")
AGENT_TYPE: Final = ("agentType", "agent_type")
"""Where an agent's result on a `user` line names the model that ran it, the agent and its type."""
_EXHAUSTED: Final[tuple[ExhaustedReason, ...]] = (
    "prompt_too_long",
    "blocking_limit",
    "rapid_refill_breaker",
)


def assistant(body: Body) -> tuple[Signal, ...]:
    """Return what an `assistant` frame or line says."""
    message = mapping(body, "message") or {}
    if is_no_response(body, message):
        usage = mapping(body, "context_usage", "contextUsage")
        return () if usage is None else context_usage(usage)
    is_whole = is_telemetry(body)  # of which no further line comes
    is_final = is_whole or is_transcript(body)
    response = read_response(body, message, output_is_final=is_final, is_whole=is_whole)
    return (*named_window(body, message, response), response)


def own_call(call: str, body: Body) -> tuple[OwnCall, ...]:
    """Return what a line of a compaction's own call says: the prompt began it, the answer ends it.

    Lines before the prompt are the runtime's own, marked as such.
    """
    if body.get("type") == "user":
        return () if flag(body, "isMeta", "is_meta") else (OwnCall(call),)
    answers = assistant(body) if body.get("type") == "assistant" else ()
    is_final = text(mapping(body, "message") or {}, "stop_reason", "stopReason") is not None
    return tuple(
        OwnCall(call, each.key, each.usage, each.output, is_final)
        for each in answers
        if isinstance(each, Response) and each.usage is not None
    )


def user(body: Body) -> tuple[Signal, ...]:
    """Return what a `user` frame or line says (R23, R24, R27)."""
    message = body.get("message")
    content = message.get("content") if isinstance(message, dict) else message
    begin = first_text(content)
    signals = _subagent_result(body.get(TOOL_RESULTS[0], body.get(TOOL_RESULTS[1])))
    if not begin.startswith(_MARKUP) and body.keys().isdisjoint(_MARKS):
        return (*signals, *COUNTED_LINE) if signals else COUNTED_LINE
    command = COMMAND.match(begin)
    if command is not None and command[1] == "compact":
        signals.append(TriggerHint("manual"))
    if command is not None and command[1] == "clear" and begin.startswith("<"):
        signals.append(Reset("clear"))
    compacted = flag(body, "isCompactSummary", "is_compact_summary")
    synthetic = flag(body, "isSynthetic", "is_synthetic")
    counted = not (
        compacted
        or synthetic
        or flag(body, "isMeta", "is_meta")
        or flag(body, "isReplay", "is_replay")
        or begin.startswith(UNCOUNTED)
    )
    if compacted:
        signals.append(UserLine(counted, "compact_summary", name(body, "uuid"), text_of(content)))
    elif synthetic:
        signals.append(UserLine(counted, "synthetic", name(body, "uuid"), text_of(content)))
    elif counted:
        signals.append(UserLine(counted, None, None, None))
    return tuple(signals)


def system(body: Body) -> tuple[Signal, ...]:
    """Read a `system` message by its subtype; one without a subtype may be an early `status`."""
    reader = _SUBTYPES.get(text(body, "subtype") or "status")
    return () if reader is None else reader(body)


def _subagent_result(result: Json) -> list[Signal]:
    if not isinstance(result, dict):
        return []
    resolved = resolved_model(result)
    agent_id, agent_type = name(result, *AGENT_ID), name(result, *AGENT_TYPE)
    if agent_id is None or agent_type is None:
        return [] if resolved is None else [SubagentResult(resolved, None, None)]
    return [SubagentResult(resolved, agent_id, agent_type)]


def resolved_model(result: dict[str, Json]) -> str | None:
    """Return the model that an agent's result names with a `[1m]`-like suffix (R12)."""
    model = name(result, *RESOLVED_MODEL)
    if model is None or base_name(model)[1] is None or model.split() != [model]:
        return None
    return model


def result(body: Body) -> tuple[Signal, ...]:
    """Return what a `result` says: a turn's end, windows by model, perhaps exhaustion."""
    signals: list[Signal] = [TurnEnded()]
    usage = mapping(body, "modelUsage", "model_usage") or {}
    entries = tuple(
        ModelWindow(model, name(entry, "canonicalModel", "canonical_model"), tokens)
        for model, entry in usage.items()
        if isinstance(entry, dict)
        and len(model) <= MAX_NAME
        and (tokens := window(entry, "contextWindow", "context_window")) is not None
    )
    if entries:
        signals.append(RuntimeWindows(entries))
    signals.extend(auto_compact(body))
    reason = body.get("terminal_reason", body.get("terminalReason"))
    signals.extend(Exhausted(known) for known in _EXHAUSTED if known == reason)
    return tuple(signals)


def init(body: Body) -> tuple[Signal, ...]:
    """Return what `system/init` says: facts of the session, its model, its auto-compaction."""
    # It looks the runtime up among all, whose adapters are joined after this module is imported.
    from contextgauge.normalise.session_facts import init_facts  # noqa: PLC0415

    return (*init_facts(body), *auto_compact(body))


def status(body: Body) -> tuple[Signal, ...]:
    """Return what `system/status` says; a null status and an absent one differ (R14 to R17)."""
    if body.get("status") == "compacting":
        own = mapping(body, "contextgauge") or {}
        return (CompactionStatus("COMPACTING", is_background=truth(own, "background") is True),)
    if body.get("status", "") is not None:
        return ()
    outcome = body.get("compact_result", body.get("compactResult"))
    if outcome == "success":
        return (CompactionStatus("SUCCESS"),)
    if outcome == "failed":
        error = text(body, "compact_error", "compactError")
        return (CompactionRefused(error, names_hook_block(error or "")),)
    return (CompactionStatus("CLEARED"),)


def compact_boundary(body: Body) -> tuple[Signal, ...]:
    """Return the boundary that a `compact_boundary` is (R19 to R22)."""
    metadata = mapping(body, "compact_metadata", "compactMetadata") or {}
    trigger = next((known for known in _TRIGGERS if known == metadata.get("trigger")), None)
    preserved = mapping(metadata, "preserved_messages", "preservedMessages") or {}
    segment = mapping(metadata, "preserved_segment", "preservedSegment") or {}
    boundary = Boundary(
        trigger=trigger,
        pre_tokens=count(metadata, "pre_tokens", "preTokens"),
        post_tokens=count(metadata, "post_tokens", "postTokens"),
        duration_ms=count(metadata, "duration_ms", "durationMs"),
        anchor=name(preserved, "anchor_uuid", "anchorUuid")
        or name(segment, "anchor_uuid", "anchorUuid"),
        metadata=metadata,
        summary=None,
        precomputed=truth(metadata, "precomputed") is True,
    )
    own = mapping(metadata, "contextgauge")
    if own is not None:
        edit_left_out = {key: value for key, value in own.items() if key != "edit"}
        boundary = boundary._replace(
            metadata={**metadata, "contextgauge": edit_left_out},
            receipt=_receipt(own),
            during_call=truth(own, "during_call") is True,
        )
    return (boundary,)


def _receipt(own: Body) -> ReportedReceipt:
    """Return what the service reports of its own compaction."""
    engine = mapping(own, "receipt") or {}
    return ReportedReceipt(
        command_id=name(own, "command_id"),
        command_attempt=count(own, "attempt"),
        reason=name(own, "reason"),
        cause_id=name(own, "cause_id"),
        summary_input_tokens=count(engine, "summary_input_tokens"),
        summary_cache_read_tokens=count(engine, "summary_cache_read_tokens"),
        summary_output_tokens=count(engine, "summary_output_tokens"),
        messages_archived=count(engine, "messages_archived"),
        pins_carried=count(engine, "pins"),
    )


def pins_checked(body: Body) -> tuple[Signal, ...]:
    """Return which turns were found after a boundary (R31); one without its figures is nothing."""
    boundary_id, kept = name(body, "boundary_id"), count(body, "kept")
    lost = body.get("lost")
    if boundary_id is None or kept is None or not isinstance(lost, list):
        return ()
    texts = [text[:MAX_PIN] for text in lost if isinstance(text, str) and text]
    number = count(body, "lost_count")
    number = len(lost) if number is None else number
    return (PinCheck(boundary_id, kept, number, tuple(texts[: min(number, MAX_PINS)])),)


def microcompact_boundary(body: Body) -> tuple[Signal, ...]:
    """Return the context edit that a micro-compaction is (R26)."""
    metadata = mapping(body, "microcompactMetadata", "microcompact_metadata")
    saved = None if metadata is None else count(metadata, "tokensSaved", "tokens_saved")
    return (MicroCompaction(metadata, saved),)


def model_fallback(body: Body) -> tuple[Signal, ...]:
    """Return the model that a refusal fell back to, unless for one request only (R12)."""
    if body.get("scope") == "local":
        return ()
    model = name(body, "fallback_model", "fallbackModel")
    return () if model is None else (ModelReport(model, is_init=False),)


def control_request(body: Body) -> tuple[Signal, ...]:
    """Return what a hook callback's input says (R24)."""
    request = mapping(body, "request") or {}
    if request.get("subtype") != "hook_callback":
        return ()
    return hook_input(mapping(request, "input") or {})


def hook_input(body: Body) -> tuple[Signal, ...]:
    """Return the hint that a `PreCompact` hook's input is (R24); others say nothing (R25)."""
    if text(body, "hook_event_name", "hookEventName") != "PreCompact":
        return ()
    return _hint(body.get("trigger"))


def hook_frame(body: Body) -> tuple[Signal, ...]:
    """Return the hint that a `PreCompact` hook frame is: its name ends in the trigger."""
    if text(body, "hook_event", "hookEvent") != "PreCompact":
        return ()
    return _hint((text(body, "hook_name", "hookName") or "").rpartition(":")[2])


def _hint(trigger: object) -> tuple[Signal, ...]:
    return tuple(TriggerHint(known) for known in _HINTS if known == trigger)


def conversation_reset(body: Body) -> tuple[Signal, ...]:
    """Return the reset that a `conversation_reset` is (R27)."""
    return (Reset(text(body, "trigger") or "clear"),)


_SUBTYPES: Final[dict[str, Reader]] = {
    "init": init,
    "status": status,
    "compact_boundary": compact_boundary,
    "microcompact_boundary": microcompact_boundary,
    "pins_checked": pins_checked,
    "model_refusal_fallback": model_fallback,
    "autocompact_state": autocompact_state,
    "hook_started": hook_frame,
    "hook_response": hook_frame,
    "conversation_reset": conversation_reset,
}
