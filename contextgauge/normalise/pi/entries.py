"""What the entries of a pi session say; oh-my-pi and OpenClaw write the same ones.

A session is a tree in one file: entries name the one before them, and going back to an earlier one
begins a branch. A fork begins with its origin's entries, whose times are before its own.
"""

import re
from collections.abc import Mapping
from typing import Final

from contextgauge.normalise.adapter import FileHead
from contextgauge.normalise.fields import (
    count,
    flag,
    in_range,
    long_name,
    mapping,
    moment_ms,
    name,
    text,
)
from contextgauge.normalise.limit_signals import ModelReport
from contextgauge.normalise.served_models import MAKERS, served_model
from contextgauge.normalise.signals import (
    ROLLED_BACK,
    Body,
    Boundary,
    CompactionRefused,
    CompactionStatus,
    Response,
    SessionFacts,
    Signal,
    Thread,
    TriggerHint,
    Usage,
    UserLine,
)
from contextgauge.normalise.usage import summary_cost, without_cached
from contextgauge.record_words import Runtime, Trigger
from contextgauge.records import Json

_FILE: Final = re.compile(r"(?:.*[/\\])?(?:[0-9T.:Z-]*_)?([^/\\]+)\.jsonl\Z", re.DOTALL)
"""A session's file is named by when it began and its id, or by its id alone."""

_FIGURES: Final = (
    "tokensBefore",
    "tokensAfter",
    "estimatedTokensAfter",
    "firstKeptEntryId",
    "firstKeptEntryIndex",
    "fromHook",
    "fromExtension",
    "method",
)
"""What a compaction reports of itself but for texts."""

_TRIGGERS: Final[Mapping[str, Trigger]] = {
    "manual": "manual",
    "threshold": "auto",
    "overflow": "auto",
}

USER_LINE: Final = (UserLine(counted=True, mark=None, uuid=None, text=None),)


def cause_of(body: Body) -> str | None:
    """Return an entry's id: a session is written again when its format changes."""
    return name(body, "id")


def origin_of(header: Body) -> str | None:
    """Return the session that a session goes on from, which is named by its id or its file."""
    parent = long_name(header, "parentSession", "branchedFrom")
    if parent is None:
        return None
    file = _FILE.match(parent)
    return parent if file is None else file[1]


def session_head(body: Body) -> FileHead:
    """Return whose a file is."""
    return FileHead(text(body, "id"), None, origin_of(body))


def session(body: Body) -> tuple[Signal, ...]:
    """Return the facts of a session. Those who write pi's entries do not say here who they are."""
    origin, own = origin_of(body), long_name(body, "id")
    facts = SessionFacts(
        "pi", None, name(body, "modelId"), long_name(body, "cwd"), origin, only_new=True
    )
    if origin is None or own is None:
        return (facts,)
    return (Thread(own, moment_ms(body.get("timestamp"))), facts)


_MAKERS: Final = MAKERS | {"openai"}


def runtime_facts(runtime: Runtime) -> SessionFacts:
    """Return that an entry is one which only this runtime writes."""
    return SessionFacts(runtime, None, None, None, None, only_new=False)


def message(body: Body) -> tuple[Signal, ...]:
    """Return the response that an assistant's message is, else the user line (R23)."""
    own = mapping(body, "message") or {}
    if own.get("role") != "assistant":
        return () if flag(own, "excludeFromContext") else USER_LINE
    usage = mapping(own, "usage") or {}
    response = Response(
        name(body, "id"),
        name(own, "responseId"),
        model_of(name(own, "model"), name(own, "provider")),
        usage_of(usage),
        count(usage, "output"),
        (),
        exhausted=False,
        boundary=None,
        is_whole=True,
    )
    return (response,)


def custom_message(_: Body) -> tuple[Signal, ...]:
    """Return the user line as which the model sees what an extension adds."""
    return USER_LINE


def usage_of(usage: Body) -> Usage | None:
    """Return the counts of a usage, whose cached parts are next to the input.

    Some versions repeat them inside the input, as Gemini reports them: the total shows it.
    """
    sent, read, creation = (count(usage, each) for each in ("input", "cacheRead", "cacheWrite"))
    total, output = count(usage, "totalTokens"), count(usage, "output") or 0
    if sent is not None and read and total == sent + output + (creation or 0):
        return Usage(max(sent - read, 0), creation, read)
    return without_cached(usage.get("input"), read, creation)


def compaction(body: Body) -> tuple[Boundary]:
    """Return the boundary that a `compaction` is (R29)."""
    usage = mapping(body, "usage") or {}
    metadata: dict[str, Json] = {each: body[each] for each in _FIGURES if each in body}
    boundary = Boundary(
        None,
        count(body, "tokensBefore"),
        count(body, "tokensAfter", "estimatedTokensAfter"),
        None,
        None,
        metadata,
        text(body, "summary"),
        receipt=summary_cost(usage_of(usage), count(usage, "output")),
    )
    return (boundary,)


def model_change(body: Body) -> tuple[Signal, ...]:
    """Return the model that a user chose."""
    model = model_of(name(body, "modelId"), name(body, "provider"))
    return () if model is None else (ModelReport(model, is_init=False),)


def model_of(model: str | None, provider: str | None) -> str | None:
    """Return a model by its provider: a subscription has another, such as `openai-codex`."""
    return served_model(model, provider, _MAKERS)


def branch_summary(_: Body) -> tuple[Signal, ...]:
    """Return that an earlier entry is the last one now."""
    return (ROLLED_BACK,)


def compaction_begins(body: Body) -> tuple[Signal, ...]:
    """Return that a compaction began, and what triggered it: the stream alone says it."""
    begun = CompactionStatus("COMPACTING")
    trigger = _TRIGGERS.get(text(body, "reason") or "threshold")
    return (begun,) if trigger is None else (TriggerHint(trigger), begun)


def compaction_ends(body: Body) -> tuple[Signal, ...]:
    """Return the boundary that the end of a compaction is, or that it failed."""
    result = mapping(body, "result")
    if result is None:
        return (CompactionRefused(text(body, "errorMessage"), blocked=False),)
    (boundary,) = compaction(result)
    return (boundary._replace(trigger=_TRIGGERS.get(text(body, "reason") or "threshold")),)


def stream_moment(body: Body) -> int | None:
    """Return the time of a message of a stream, which has none of its own."""
    time_ms = count(mapping(body, "message") or {}, "timestamp")
    return None if time_ms is None else in_range(time_ms)
