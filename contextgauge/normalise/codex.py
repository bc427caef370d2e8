"""Codex rollouts: readings come from `token_count`, users from `response_item` (R7, R9, R23)."""

from typing import Final

from contextgauge.normalise.fields import count, long_name, mapping, name, text, window
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    ModelReport,
    OwnWindow,
    Response,
    SessionFacts,
    Signal,
    UserLine,
)
from contextgauge.normalise.usage import read_codex_usage, read_output

_TOTALS: Final = (
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
    "total_tokens",
)


def session_meta(body: Body) -> tuple[Signal, ...]:
    """Return the facts of a rollout's head."""
    payload = mapping(body, "payload") or {}
    return (
        SessionFacts(
            "codex",
            name(payload, "cli_version"),
            None,
            long_name(payload, "cwd"),
            long_name(payload, "forked_from_id", "forked_from"),
            only_new=False,
        ),
    )


def turn_context(body: Body) -> tuple[Signal, ...]:
    """Return the facts of a turn: its model and folder."""
    payload = mapping(body, "payload") or {}
    model = name(payload, "model")
    facts = SessionFacts("codex", None, model, long_name(payload, "cwd"), None, only_new=False)
    return (facts,) if model is None else (facts, ModelReport(model, is_init=False))


def response_item(body: Body) -> tuple[Signal, ...]:
    """Return the user line that a user's message item is."""
    payload = mapping(body, "payload") or {}
    if payload.get("type") != "message" or payload.get("role") != "user":
        return ()
    return (UserLine(counted=True, mark=None, uuid=None, text=None),)


def event_msg(body: Body) -> tuple[Signal, ...]:
    """Return the response of a `token_count`; the same total again is the same response."""
    payload = mapping(body, "payload") or {}
    if payload.get("type") != "token_count":
        return ()
    info = mapping(payload, "info")
    if info is None:
        return ()
    signals: list[Signal] = []
    own_window = window(info, "model_context_window")
    if own_window is not None:
        signals.append(OwnWindow(own_window))
    last = mapping(info, "last_token_usage")
    if last is not None:
        total = mapping(info, "total_token_usage")
        key = None if total is None else f"total {[count(total, part) for part in _TOTALS]}"
        usage, output = read_codex_usage(last), read_output(last)
        signals.append(Response(key, None, None, usage, output, (), exhausted=False, boundary=None))
    return tuple(signals)


def compacted(body: Body) -> tuple[Signal, ...]:
    """Return the boundary that a `compacted` line is (R29)."""
    payload = mapping(body, "payload") or {}
    return (Boundary(None, None, None, None, None, payload, text(payload, "message")),)
