"""What the events of OpenHands before 1.0 say, which it keeps in a file each.

An answer of the model is in the action that it asks for, with its usage; several actions may be of
one. An answer in words alone has only sums of all calls, of the condenser's too: it has no size.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from contextgauge.normalise.adapter import FileHead
from contextgauge.normalise.fields import count, in_range, mapping, name, text
from contextgauge.normalise.openhands.events import zone_of, zoned
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    CompactionStatus,
    Response,
    SessionFacts,
    Signal,
    UserLine,
)
from contextgauge.normalise.usage import find_usage, read_output, read_usage
from contextgauge.records import Json

_FACTS: Final = SessionFacts("openhands", None, None, None, None, only_new=True)
_USER_LINE: Final = (_FACTS, UserLine(counted=True, mark=None, uuid=None, text=None))
_BY_NAME: Final = FileHead(None, is_by_name=True)


def lines(_: Body, others: Sequence[Sequence[Body]]) -> Iterator[Body]:
    """Yield the events, which are in order, with the zone of their times."""
    (events,) = others
    zone = zone_of((text(each, "timestamp"), _made_s(each)) for each in reversed(events))
    for event in events:
        yield {**event, "timestamp": zoned(text(event, "timestamp") or "", zone)}


def of_file(_: Body) -> FileHead:
    """Return that the folder of a file names its session."""
    return _BY_NAME


def moment(body: Body) -> int | None:
    """Return when an action's answer was made, where the zone of its own time is not known."""
    made_s = _made_s(body)
    return None if made_s is None else in_range(made_s * 1_000)


def cause(body: Body) -> str | None:
    """Return what identifies an event: its number."""
    number = count(body, "id")
    return None if number is None else f"event {number}"


def action(body: Body) -> tuple[Signal, ...]:
    """Return the user line, the response or the compaction that an action is."""
    arguments = mapping(body, "args") or {}
    match body.get("action"):
        case "message" if body.get("source") == "user":
            return _USER_LINE
        case "condensation":
            return (_FACTS, _condensation(arguments))
        case "condensation_request":
            return (_FACTS, CompactionStatus("COMPACTING"))
    answer = _answer(body)
    usage = find_usage(answer)
    if body.get("source") != "agent" or usage is None:
        return ()
    key, model = name(answer, "id"), name(answer, "model")
    counts, output = read_usage(usage), read_output(usage)
    response = Response(key, key, model, counts, output, (), exhausted=False, boundary=None)
    return (_FACTS, response)


def observation(body: Body) -> tuple[Signal, ...]:
    """Return the user line as which the model sees the result of a call."""
    return _USER_LINE if "tool_call_metadata" in body else ()


def prompt(body: Body) -> Json:
    """Return what a person wrote."""
    is_own = body.get("action") == "message" and body.get("source") == "user"
    return (mapping(body, "args") or {}).get("content") if is_own else None


def _answer(body: Body) -> Body:
    return mapping(mapping(body, "tool_call_metadata") or {}, "model_response") or {}


def _made_s(body: Body) -> int | None:
    return count(_answer(body), "created")


def _condensation(arguments: Body) -> Boundary:
    """Return the boundary; what is forgotten is a list, or a range with both of its ends."""
    forgotten = arguments.get("forgotten_event_ids")
    first = count(arguments, "forgotten_events_start_id")
    last = count(arguments, "forgotten_events_end_id")
    metadata: dict[str, Json] = {}
    if isinstance(forgotten, list):
        metadata["forgotten_events"] = len(forgotten)
    elif first is not None and last is not None:
        metadata["forgotten_events"] = max(last - first + 1, 0)
    return Boundary(None, None, None, None, None, metadata, text(arguments, "summary"))
