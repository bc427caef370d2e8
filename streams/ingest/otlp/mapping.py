"""Log records and spans to messages of our topic. Pure, and total over what an exporter sends."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from streams import codec
from streams.ingest.otlp.model_calls import AGENT, model_call
from streams.ingest.otlp.runtime_events import EVENTS, Attributes, Body, ExportingRuntime
from streams.ingest.otlp.telemetry_item import TelemetryItem, word


@dataclass(slots=True)
class TelemetryMessages:
    """The messages of a request; `nameless` items would be one, but name no session."""

    messages: list[Body] = field(default_factory=list)
    others: int = 0
    """Items that report nothing of a context."""
    nameless: int = 0
    missing: Sequence[str] = ()
    """Where the last of them should have named it."""


def messages_of(items: Iterable[TelemetryItem]) -> TelemetryMessages:
    """Return the messages of a request's items, in their order.

    Before the first of a session comes one with its runtime: an id that follows from what it says
    makes it count once, however often it is sent.
    """
    result = TelemetryMessages()
    named: set[str] = set()
    for item in items:
        exporting, body = _read(item)
        if body is None:
            result.others += 1
            continue
        session = word(item.attributes, *exporting.session)
        if session is None:
            result.nameless += 1
            result.missing = exporting.session
            continue
        facts = _facts(session, exporting, item.attributes)
        if facts["uuid"] not in named:
            named.add(facts["uuid"])
            result.messages.append(facts)
        result.messages.append(_addressed(body, session, item))
    return result


def _read(item: TelemetryItem) -> tuple[ExportingRuntime, Body | None]:
    """Return who exported an item, and its message where it has one."""
    if not item.names:
        return AGENT, model_call(item.attributes)
    for name in item.names:
        if name in EVENTS:
            exporting, read = EVENTS[name]
            return exporting, read(item.attributes)
    return AGENT, None


def _facts(session: str, exporting: ExportingRuntime, attributes: Attributes) -> Body:
    version = word(attributes, *exporting.version)
    identity = "\0".join(("otlp", session, exporting.runtime, version or ""))
    facts = {
        "type": "system",
        "subtype": "init",
        "session_id": session,
        "uuid": hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest(),
        "runtime": exporting.runtime,
    }
    return facts if version is None else {**facts, "runtime_version": version}


def _addressed(body: Body, session: str, item: TelemetryItem) -> Body:
    message = {**body, "session_id": session, "uuid": item.digest}
    moment = word(item.attributes, "event.timestamp")
    if moment is None and item.time_ms is not None:
        moment = codec.rfc3339(item.time_ms)
    return message if moment is None else {**message, "timestamp": moment}
