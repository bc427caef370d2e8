"""Codex: rollouts, the app server's notifications and `codex exec --json` (R7, R9, R12, R23, R29).

A rollout's readings come from `token_count`, its users from `response_item`. A `token_usage_record`
is a compaction's own call or repeats a `token_count`: it is ignored, like every type that is not
here. `codex exec --json` reports one usage per turn, the sum over the thread (R6): its messages
only name the session and end a turn.
"""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Final

from contextgauge.normalise.adapter import FileHead
from contextgauge.normalise.fields import (
    count,
    in_range,
    long_name,
    mapping,
    moment_ms,
    name,
    text,
    uuid7_ms,
    window,
)
from contextgauge.normalise.limit_signals import ModelReport, OwnWindow, TurnModel
from contextgauge.normalise.signals import (
    ROLLED_BACK,
    Body,
    Boundary,
    CompactionStatus,
    Response,
    SessionFacts,
    Signal,
    Thread,
    Timing,
    TurnEnded,
    Twin,
    UserLine,
)
from contextgauge.normalise.usage import read_codex_usage, read_output, summary_cost
from contextgauge.reported_receipt import ReportedReceipt

_TOTALS: Final = (
    ("input_tokens", "inputTokens"),
    ("cached_input_tokens", "cachedInputTokens"),
    ("output_tokens", "outputTokens"),
    ("reasoning_output_tokens", "reasoningOutputTokens"),
    ("total_tokens", "totalTokens"),
)
_COMPACTION: Final = ("ContextCompaction", "contextCompaction")
"""The type of a compaction's item, in a rollout and from the app server."""


def session_meta(body: Body) -> tuple[Signal, ...]:
    """Return the facts of a rollout's head, and its thread."""
    payload = mapping(body, "payload") or {}
    own = long_name(payload, "id")
    facts = SessionFacts(
        "codex",
        name(payload, "cli_version"),
        None,
        long_name(payload, "cwd"),
        long_name(payload, "forked_from_id", "forked_from") or _parent_of(payload),
        only_new=False,
    )
    if own is None:
        return (facts,)
    created_ms = uuid7_ms(own)
    if created_ms is None:
        created_ms = moment_ms(payload.get("timestamp") or body.get("timestamp"))
    base = mapping(payload, "history_base")
    return (
        Thread(
            own,
            created_ms,
            count(payload, "subagent_history_start_ordinal"),
            None if base is None else repr(sorted(base.items())),
        ),
        facts,
    )


def head(body: Body) -> FileHead:
    """Return whose a rollout is by its head (R30).

    A subagent's rollout is a chain of its parent's session: of the session that its head names,
    which all threads of one tree share, else of the parent itself.
    """
    payload = mapping(body, "payload") or {}
    own, parent = text(payload, "id"), _parent_of(payload)
    origin = long_name(payload, "forked_from_id", "forked_from") or parent
    origin = None if origin == own else origin
    if own is None or parent is None or parent == own:
        return FileHead(own, None, origin, _role_of(payload))
    session = long_name(payload, "session_id") or parent
    return FileHead(parent if session == own else session, own, origin, _role_of(payload))


def _role_of(payload: Body) -> str | None:
    return name(payload, "agent_role") or name(_spawn_of(payload), "agent_role")


def _parent_of(payload: Body) -> str | None:
    """Return the thread that started a subagent's; None for one that a user started."""
    return long_name(payload, "parent_thread_id") or long_name(
        _spawn_of(payload), "parent_thread_id"
    )


def _spawn_of(payload: Body) -> Body:
    subagent = mapping(mapping(payload, "source") or {}, "subagent") or {}
    return mapping(subagent, "thread_spawn") or {}


def copy_key(body: Body) -> bytes | None:
    """Return 8 bytes by which a size or a compaction of a rollout is known, in a copy too (R30).

    A copy has another time; the sum over the thread is a response's own.
    """
    payload = mapping(body, "payload") or {}
    info = mapping(payload, "info") or {}
    if body.get("type") == "compacted":
        shown = f"compacted {payload!r}"
    elif payload.get("type") == "token_count" and info:
        shown = f"{info.get('total_token_usage')!r} {info.get('last_token_usage')!r}"
    else:
        return None
    return hashlib.blake2b(shown.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def day_folders(thread_id: str) -> list[str]:
    """Return the folders of days in which a thread's rollout may be, by the time in its id."""
    made_ms = uuid7_ms(thread_id)
    if made_ms is None:
        return []
    day = datetime.fromtimestamp(made_ms / 1_000, UTC)
    # Folders are named in local time.
    return [f"{day + timedelta(days=shift):%Y/%m/%d}" for shift in (0, -1, 1)]


def turn_ms(body: Body) -> int | None:
    """Return when the turn began that a line opens, by its id; None where the id has no time."""
    return uuid7_ms((mapping(body, "payload") or {}).get("turn_id"))


def started_ms(body: Body) -> int | None:
    """Return the same of an event, if it is a turn's beginning."""
    payload = mapping(body, "payload") or {}
    return turn_ms(body) if payload.get("type") == "task_started" else None


def turn_context(body: Body) -> tuple[Signal, ...]:
    """Return the facts of a turn: its model and folder."""
    payload = mapping(body, "payload") or {}
    model = name(payload, "model")
    facts = SessionFacts("codex", None, model, long_name(payload, "cwd"), None, only_new=False)
    return (facts,) if model is None else (facts, TurnModel(model))


def response_item(body: Body) -> tuple[Signal, ...]:
    """Return the user line that a user's message item is."""
    payload = mapping(body, "payload") or {}
    if payload.get("type") != "message" or payload.get("role") != "user":
        return ()
    return (UserLine(counted=True, mark=None, uuid=None, text=None),)


def event_msg(body: Body) -> tuple[Signal, ...]:
    """Return what an event says: a response's size, a turn's window, a compaction's duration."""
    payload = mapping(body, "payload") or {}
    match payload.get("type"):
        case "token_count":
            info = mapping(payload, "info") or {}
            return _usage(
                window(info, "model_context_window"),
                mapping(info, "last_token_usage"),
                mapping(info, "total_token_usage"),
            )
        case "task_started":
            next_window = window(payload, "model_context_window")
            return () if next_window is None else (OwnWindow(next_window, of_next=True),)
        case "thread_rolled_back":
            return (ROLLED_BACK,)
        case "item_completed" if _is_compaction(payload):
            duration_ms = _duration_ms(payload)
            return () if duration_ms is None else (Timing(duration_ms),)
        case _:
            return ()


def _usage(own_window: int | None, last: Body | None, total: Body | None) -> tuple[Signal, ...]:
    """Return the window and the response; the same total again is the same response (R9)."""
    signals: list[Signal] = []
    if own_window is not None:
        signals.append(OwnWindow(own_window))
    if last is not None:
        key = None if total is None else f"total {[count(total, *part) for part in _TOTALS]}"
        usage, output = read_codex_usage(last), read_output(last)
        response = Response(
            key, None, None, usage, output, (), exhausted=False, boundary=None, is_whole=True
        )
        signals.append(response)
    return tuple(signals)


def _is_compaction(holder: Body) -> bool:
    return (mapping(holder, "item") or {}).get("type") in _COMPACTION


def _duration_ms(holder: Body) -> int | None:
    """Return a compaction's duration, from the item's start to its end, if that is later."""
    started = count(holder, "started_at_ms", "startedAtMs")
    completed = count(holder, "completed_at_ms", "completedAtMs")
    if started is None or completed is None or completed <= started:
        return None
    return completed - started


def compacted(body: Body) -> tuple[Signal, ...]:
    """Return the boundary that a `compacted` line is (R29)."""
    payload = mapping(body, "payload") or {}
    boundary = Boundary(None, None, None, None, None, payload, text(payload, "message"))
    return (boundary._replace(receipt=_own_cost(payload)),)


def _own_cost(payload: Body) -> ReportedReceipt | None:
    """Return the cost of the compacting call, if the latest usage that comes along is that one's.

    It may be that of the response before.
    """
    latest = mapping(payload, "latest_token_usage_record") or {}
    response, usage = name(payload, "compaction_response_id"), mapping(latest, "usage")
    if response is None or usage is None or name(latest, "response_id") != response:
        return None
    return summary_cost(read_codex_usage(usage), read_output(usage))


def thread_started(body: Body) -> tuple[Signal, ...]:
    """Return the facts of a thread that `codex exec --json` began."""
    if long_name(body, "thread_id") is None:
        return ()
    return (SessionFacts("codex", None, None, None, None, only_new=False),)


def turn_completed(_: Body) -> tuple[Signal, ...]:
    """Return that a turn of `codex exec --json` ended; its usage is the thread's sum (R6)."""
    return (TurnEnded(),)


def notification(body: Body) -> tuple[Signal, ...]:
    """Return what a notification of the app server says; another object says nothing."""
    params = mapping(body, "params")
    if params is None:
        return ()
    match body.get("method"):
        case "thread/tokenUsage/updated":
            usage = mapping(params, "tokenUsage") or {}
            return _usage(
                window(usage, "modelContextWindow"), mapping(usage, "last"), mapping(usage, "total")
            )
        case "thread/started":
            return _thread_facts(mapping(params, "thread") or {})
        case "item/started" if _is_compaction(params):
            return (CompactionStatus("COMPACTING", is_item=True),)
        case "item/completed" if _is_compaction(params):
            return (_boundary(params, _duration_ms(params), "item"),)
        case "thread/compacted":
            return (_boundary(params, None, "thread"),)
        case "turn/completed":
            return (TurnEnded(),)
        case _:
            return ()


def answer(body: Body) -> tuple[Signal, ...]:
    """Return what the answer to `thread/start` or `thread/resume` says; another says nothing."""
    result = mapping(body, "result") or {}
    thread = mapping(result, "thread")
    if thread is None or long_name(thread, "id") is None:
        return ()
    model = name(result, "model")
    facts = _thread_facts(thread, model)
    return facts if model is None else (*facts, ModelReport(model, is_init=False))


def _thread_facts(thread: Body, model: str | None = None) -> tuple[Signal, ...]:
    version, cwd = name(thread, "cliVersion"), long_name(thread, "cwd")
    forked = long_name(thread, "forkedFromId")
    return (SessionFacts("codex", version, model, cwd, forked, only_new=False),)


def _boundary(params: Body, duration_ms: int | None, form: Twin) -> Boundary:
    metadata = mapping(params, "item") or params
    return Boundary(None, None, None, duration_ms, None, metadata, None, form=form)


def moment(body: Body) -> int | None:
    """Return the time of a notification of the app server, milliseconds since 1970.

    It is when an item began or ended, else when the notification was sent.
    """
    params = mapping(body, "params")
    time_ms = None if params is None else count(params, "completedAtMs", "startedAtMs")
    if time_ms is None:
        time_ms = count(body, "emittedAtMs")
    return None if time_ms is None else in_range(time_ms)


def thread_of(body: Body) -> str | None:
    """Return the thread that a message of the app server or of `codex exec` names."""
    params = mapping(body, "params")
    if params is not None and isinstance(body.get("method"), str):
        return long_name(params, "threadId") or long_name(mapping(params, "thread") or {}, "id")
    if "type" not in body and isinstance(result := body.get("result"), dict):
        return long_name(mapping(result, "thread") or {}, "id")
    return long_name(body, "thread_id") if body.get("type") == "thread.started" else None
