"""What the events of an OpenHands conversation say, each with the usage of its response."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from contextgauge.normalise.fields import count, items, long_name, mapping, name, text, window
from contextgauge.normalise.limit_signals import OwnWindow
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    CompactionStatus,
    Response,
    SessionFacts,
    Signal,
    Usage,
    UserLine,
)
from contextgauge.normalise.usage import read_inside, summary_cost
from contextgauge.records import Json

_STATE: Final = "ConversationState"
"""The `kind` of the head that is made of the state."""

_ZONE_S: Final = 900
_MOST_S: Final = 14 * 3_600
"""All zones are whole quarters of an hour from UTC, and no more than so far."""

_RESULTS: Final = ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent")
_USER_LINE: Final = (UserLine(counted=True, mark=None, uuid=None, text=None),)


def lines(state: Body, others: Sequence[Sequence[Body]]) -> Iterator[Body]:
    """Yield the head of a conversation and its events, in the order in which they came."""
    (events,) = others
    usages, paid_s = _reported(state)
    own: Body = {"sessionId": (text(state, "id") or "").replace("-", "")}
    zone = zone_of(
        (text(event, "timestamp"), paid_s.get(text(event, "llm_response_id") or ""))
        for event in reversed(events)
    )
    folder = long_name(mapping(state, "workspace") or {}, "working_dir")
    head: Body = {"kind": _STATE, "id": state.get("id"), "source": "environment", **own}
    first = text(events[0], "timestamp") if events else None
    yield {**head, "timestamp": zoned(first or "", zone), "cwd": folder}
    for event in events:
        made = {**event, **own, "timestamp": zoned(text(event, "timestamp") or "", zone)}
        # Several calls of tools may be of one response.
        usage = usages.pop(text(event, "llm_response_id") or "", None)
        yield made if usage is None else {**made, "usage": usage}


def _reported(state: Body) -> tuple[dict[str, Body], dict[str, float]]:
    """Return what each response used, and when it was paid, in seconds since 1970."""
    usages: dict[str, Body] = {}
    paid_s: dict[str, float] = {}
    stats = mapping(mapping(state, "stats") or {}, "usage_to_metrics") or {}
    for metrics in stats.values():
        body = metrics if isinstance(metrics, dict) else {}
        listed, costs = items(body, "token_usages"), items(body, "costs")
        for place, usage in enumerate(listed):
            response = text(usage, "response_id") or ""
            usages[response] = usage
            cost_s = costs[place].get("timestamp") if len(costs) == len(listed) else None
            if isinstance(cost_s, int | float):
                paid_s[response] = float(cost_s)
    return usages, paid_s


def zone_of(known: Iterable[tuple[str | None, float | None]]) -> timezone | None:
    """Return the zone of events' times, which name none, by the first whose response has another.

    That is in seconds since 1970: of when it was paid, or made.
    """
    for written, made_s in known:
        shown = _time_in(written or "")
        if made_s is not None and shown is not None and shown.tzinfo is None:
            passed_s = shown.replace(tzinfo=UTC).timestamp() - made_s
            offset_s = round(passed_s / _ZONE_S) * _ZONE_S
            return timezone(timedelta(seconds=offset_s)) if abs(offset_s) <= _MOST_S else None
    return None


def _time_in(value: str) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def zoned(value: str, zone: timezone | None) -> str:
    """Return a time with its zone, where that is known."""
    shown = _time_in(value)
    if shown is None or shown.tzinfo is not None or zone is None:
        return value
    return shown.replace(tzinfo=zone).isoformat()


def cause(body: Body) -> str | None:
    """Return an event's id. What a response used may be known later: that says more."""
    is_measured = "usage" in body and body.get("kind") != "Condensation"
    return None if is_measured else name(body, "id")


def event(body: Body) -> tuple[Signal, ...]:
    """Return what an event says."""
    match body.get("kind"):
        case "ConversationState":
            folder = long_name(body, "cwd")
            return (SessionFacts("openhands", None, None, folder, None, only_new=True),)
        case "MessageEvent" if body.get("source") == "user":
            return _USER_LINE
        case kind if kind in _RESULTS:
            return _USER_LINE
        case "CondensationRequest":
            return (CompactionStatus("COMPACTING"),)
        case "Condensation":
            return (_condensation(body),)
        case "ActionEvent" | "MessageEvent" if (key := name(body, "llm_response_id")) is not None:
            return _response(body, key)
    return ()


def _response(body: Body, key: str) -> tuple[Signal, ...]:
    reported = mapping(body, "usage") or {}
    usage, output = usage_of(reported), count(reported, "completion_tokens")
    model = name(reported, "model")
    response = Response(key, key, model, usage, output, (), exhausted=False, boundary=None)
    limit = window(reported, "context_window")
    return (response,) if limit is None else (OwnWindow(limit), response)


def usage_of(reported: Body) -> Usage | None:
    """Return the counts of a usage, whose prompt includes what was cached; another agent's not."""
    sent = count(reported, "prompt_tokens")
    read, creation = count(reported, "cache_read_tokens"), count(reported, "cache_write_tokens")
    if not any((sent, read, creation)):
        return None
    if (read or 0) + (creation or 0) > (sent or 0):
        return Usage(sent, creation, read)
    return read_inside(sent, read, creation)


def _condensation(body: Body) -> Boundary:
    forgotten = body.get("forgotten_event_ids")
    metadata: dict[str, Json] = {}
    if isinstance(forgotten, list):
        metadata["forgotten_events"] = len(forgotten)
    reported = mapping(body, "usage") or {}
    cost = summary_cost(usage_of(reported), count(reported, "completion_tokens"))
    return Boundary(None, None, None, None, None, metadata, text(body, "summary"), receipt=cost)
