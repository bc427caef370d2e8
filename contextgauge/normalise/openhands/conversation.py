"""What the events of an OpenHands conversation hold of it, in the form of Claude Code's lines."""

from contextgauge.json_codec import loads
from contextgauge.normalise.fields import count, items, mapping, name, text
from contextgauge.normalise.openhands.events import usage_of
from contextgauge.normalise.responses import text_of
from contextgauge.normalise.signals import Body
from contextgauge.normalise.usage import anthropic_usage
from contextgauge.records import Json


def prompt(body: Body) -> Json:
    """Return what a person wrote."""
    is_own = body.get("kind") == "MessageEvent" and body.get("source") == "user"
    return (mapping(body, "llm_message") or {}).get("content") if is_own else None


def event(body: Body) -> dict[str, Json] | None:
    """Reduce an event; of most kinds the model sees nothing.

    With its id: it comes again once it is known what it used.
    """
    made = _reduced(body)
    return None if made is None else {**made, "uuid": body.get("id")}


def _reduced(body: Body) -> dict[str, Json] | None:
    match body.get("kind"):
        case "MessageEvent" if body.get("source") == "user":
            return _of_user(text_of((mapping(body, "llm_message") or {}).get("content")) or "")
        case "MessageEvent":
            words = text_of((mapping(body, "llm_message") or {}).get("content")) or ""
            return _answer(body, [{"type": "text", "text": words}])
        case "ActionEvent":
            return _answer(body, [*_thoughts(body), _call(body)])
        case "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent":
            return _of_user([_result(body)])
        case "Condensation":
            return _boundary(body)
    return None


def _thoughts(body: Body) -> list[Json]:
    return [{"type": "text", "text": text(each, "text") or ""} for each in items(body, "thought")]


def _call(body: Body) -> Json:
    call = mapping(body, "tool_call") or {}
    try:
        given: Json = loads(text(call, "arguments") or "{}")
    except ValueError:
        given = {}
    made: dict[str, Json] = {"type": "tool_use", "id": body.get("tool_call_id")}
    return {
        **made,
        "name": body.get("tool_name"),
        "input": given if isinstance(given, dict) else {},
    }


def _result(body: Body) -> Json:
    observation = mapping(body, "observation") or {}
    words = text_of(observation.get("content")) or text(body, "error", "rejection_reason") or ""
    made: dict[str, Json] = {"type": "tool_result", "tool_use_id": body.get("tool_call_id")}
    return {**made, "content": words, "is_error": body.get("kind") != "ObservationEvent"}


def _answer(body: Body, blocks: list[Json]) -> dict[str, Json]:
    own: dict[str, Json] = {"role": "assistant", "content": blocks}
    if (key := name(body, "llm_response_id")) is not None:
        own["id"] = key
    if (reported := mapping(body, "usage")) is not None:
        own |= anthropic_usage(usage_of(reported), count(reported, "completion_tokens"))
        model = name(reported, "model")
        own |= {} if model is None else {"model": model}
    return {"type": "assistant", "message": own}


def _of_user(content: Json) -> dict[str, Json]:
    return {"type": "user", "message": {"role": "user", "content": content}}


def _boundary(body: Body) -> dict[str, Json]:
    """Reduce a condensation: which messages it kept, at both ends, cannot be words as one part."""
    summary: Json = {"role": "user", "content": text(body, "summary") or ""}
    names = ("head_uuid", "tail_uuid", "anchor_uuid")
    preserved: Json = {"preserved_segment": dict.fromkeys(names, body.get("id"))}
    own: dict[str, Json] = {"type": "system", "subtype": "compact_boundary", "message": summary}
    return {**own, "compact_metadata": preserved}
