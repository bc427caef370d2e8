"""Claude messages: the Agent SDK's stream and the transcript on disk, in either spelling."""

import re
from typing import Final

from contextgauge.normalise.fields import (
    MAX_NAME,
    count,
    flag,
    items,
    mapping,
    name,
    text,
    truth,
    window,
)
from contextgauge.normalise.limit_signals import (
    AutoCompact,
    ContextUsage,
    ModelReport,
    ModelWindow,
    RuntimeWindows,
    SuffixedModel,
)
from contextgauge.normalise.responses import (
    is_no_response,
    named_window,
    read_response,
    text_of,
)
from contextgauge.normalise.session_facts import init_facts, is_transcript
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
from contextgauge.record_words import ExhaustedReason, Trigger
from contextgauge.records import Category, Json
from contextgauge.reported_receipt import ReportedReceipt
from contextgauge.windows import base_name

MAX_CATEGORIES: Final = 1_000
"""Rows of a context-usage answer; a longer list is none. Real ones have about ten."""

MAX_PIN: Final = 200
MAX_PINS: Final = 20
"""Characters of a lost rule, and lost rules, in a record: enough to know which they are."""

UNCOUNTED: Final = ("<local-command-", "<command-")
"""Beginnings of user lines that are no messages (R23)."""
COMMAND: Final = re.compile(r"(?:<command-name>)?/(clear|compact)(?![\w:-])")
"""The two commands that matter; `/clear` only in its tag (R27), `/compact` also as typed (R24)."""
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
"""Where an agent's result on a `user` line names the model that ran it."""
_EXHAUSTED: Final[tuple[ExhaustedReason, ...]] = (
    "prompt_too_long",
    "blocking_limit",
    "rapid_refill_breaker",
)
_OVER_LIMIT: Final[tuple[ExhaustedReason, ...]] = ("hard_limit", "compaction_window")


def assistant(body: Body) -> tuple[Signal, ...]:
    """Return what an `assistant` frame or line says."""
    message = mapping(body, "message") or {}
    if is_no_response(body, message):
        usage = mapping(body, "context_usage", "contextUsage")
        return () if usage is None else context_usage(usage)
    response = read_response(body, message, output_is_final=is_transcript(body))
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


def message(body: Body) -> tuple[Signal, ...]:
    """Return what a bare API answer says: the message itself, without a frame around it.

    One without a usage is none: OpenAI's output items have the same type.
    """
    if body.get("role") != "assistant" or mapping(body, "usage") is None:
        return ()
    if is_no_response(body, body):
        return ()
    return (read_response(body, body, output_is_final=True, is_whole=True),)


def user(body: Body) -> tuple[Signal, ...]:
    """Return what a `user` frame or line says (R23, R24, R27)."""
    message = body.get("message")
    content = message.get("content") if isinstance(message, dict) else message
    begin = _first_text(content)
    resolved = resolved_model(body.get(TOOL_RESULTS[0], body.get(TOOL_RESULTS[1])))
    signals: list[Signal] = [] if resolved is None else [SuffixedModel(resolved)]
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


def resolved_model(result: Json) -> str | None:
    """Return the model that an agent's result names with a `[1m]`-like suffix (R12)."""
    if not isinstance(result, dict):
        return None
    model = name(result, *RESOLVED_MODEL)
    if model is None or base_name(model)[1] is None or model.split() != [model]:
        return None
    return model


def _first_text(content: object) -> str:
    if isinstance(content, list):
        content = content[0] if content else None
        content = content.get("text") if isinstance(content, dict) else None
    return content if isinstance(content, str) else ""


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


def names_hook_block(error: str) -> bool:
    """Return whether an error says that a hook blocked the compaction (R17)."""
    words = error.lower()
    return "hook" in words and "block" in words


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
    """Return which rules were found after a boundary (R31); one without its figures is nothing."""
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


def auto_compact(body: Body) -> tuple[AutoCompact, ...]:
    """Return the auto-compact facts of a message's `autocompact_state`, if it has one."""
    state = mapping(body, "autocompact_state", "autocompactState")
    return () if state is None else (_auto_compact(state),)


def autocompact_state(body: Body) -> tuple[AutoCompact, ...]:
    """Return the facts of an `autocompact_state`: in its `value`, under its own name, or flat."""
    state = mapping(body, "value", "autocompact_state", "autocompactState")
    return (_auto_compact(body if state is None else state),)


def _auto_compact(state: Body) -> AutoCompact:
    return AutoCompact(
        truth(state, "enabled"),
        count(state, "threshold"),
        window(state, "effective_window", "effectiveWindow"),
        name(state, "source"),
        enforced=truth(state, "enforced") is True,
    )


def context_usage(answer: Body) -> tuple[Signal, ...]:
    """Return what a context-usage answer says of limits (R12); it is no reading (R6)."""
    raw_max = window(answer, "rawMaxTokens", "raw_max_tokens")
    listed = answer.get("categories")
    has_rows = isinstance(listed, list) and len(listed) <= MAX_CATEGORIES
    usage = ContextUsage(
        model=name(answer, "model"),
        total_tokens=window(answer, "totalTokens", "total_tokens"),
        raw_max_tokens=raw_max,
        categories=_categories(answer) if has_rows else None,
        message_breakdown=mapping(answer, "messageBreakdown", "message_breakdown"),
    )
    facts = AutoCompact(
        truth(answer, "isAutoCompactEnabled", "is_auto_compact_enabled"),
        count(answer, "autoCompactThreshold", "auto_compact_threshold"),
        raw_max,
        name(answer, "autocompactSource", "autocompact_source"),
        enforced=None,
    )
    over = mapping(answer, "over_limit", "overLimit") or {}
    tokens_over = count(over, "tokens_over", "tokensOver")
    exhausted = (
        Exhausted(known, tokens_over) for known in _OVER_LIMIT if known == over.get("kind")
    )
    return (facts, usage, *exhausted)


def _categories(answer: Body) -> tuple[Category, ...]:
    return tuple(
        Category(
            id=name(row, "id"),
            name=name(row, "name"),
            kind=name(row, "kind") or _kind_of(row),
            tokens=count(row, "tokens"),
        )
        for row in items(answer, "categories")
    )


def _kind_of(row: Body) -> str | None:
    return "deferred" if flag(row, "isDeferred", "is_deferred") else None


def control_response(body: Body) -> tuple[Signal, ...]:
    """Return what an answered `get_context_usage` says."""
    answer = mapping(mapping(body, "response") or {}, "response") or {}
    if "categories" in answer or "totalTokens" in answer or "total_tokens" in answer:
        return context_usage(answer)
    return ()


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
