"""Log records and spans to messages of our topic. Pure, and total over what an exporter sends."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from schemas.records import Runtime
from streams import codec
from streams.ingest.otlp.model_calls import AGENT, model_call
from streams.ingest.otlp.runtime_events import EVENTS, Body, ExportingRuntime
from streams.ingest.otlp.telemetry_item import TelemetryItem, word

_MARK: Final[Body] = {"contextgauge": {"telemetry": True}}
"""So that what a session's own messages report as well counts once (R34)."""


@dataclass(slots=True)
class WithoutMessage:
    """The items of a request that give no message; `nameless` ones would, but name no session."""

    others: int = 0
    """Items that report nothing of a context."""
    nameless: int = 0
    missing: Sequence[str] = ()
    """Where the last of them should have named it."""


def messages_of(items: Iterable[TelemetryItem], without: WithoutMessage) -> Iterator[Body]:
    """Yield the messages of a request's items, in their order, and count those without one.

    Before the first of a session comes one with its runtime: an id that follows from what it says
    makes it count once, however often it is sent.
    """
    named: set[tuple[str, Runtime, str | None]] = set()
    for item in items:
        exporting, body = _read(item)
        if body is None:
            without.others += 1
            continue
        session = word(item.attributes, *exporting.session)
        if session is None:
            without.nameless += 1
            without.missing = exporting.session
            continue
        identity = (session, exporting.runtime, word(item.attributes, *exporting.version))
        if identity not in named:
            named.add(identity)
            yield _facts(*identity)
        yield _addressed(body, session, item)


def _read(item: TelemetryItem) -> tuple[ExportingRuntime, Body | None]:
    """Return who exported an item, and its message where it has one."""
    if not item.names:
        return AGENT, model_call(item.attributes)
    for name in item.names:
        if name in EVENTS:
            exporting, read = EVENTS[name]
            return exporting, read(item.attributes)
    return AGENT, None


def _facts(session: str, runtime: Runtime, version: str | None) -> Body:
    identity = "\0".join(("otlp", session, runtime, version or ""))
    facts: Body = {
        "type": "system",
        **_MARK,
        "subtype": "init",
        "session_id": session,
        "uuid": hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest(),
        "runtime": runtime,
    }
    return facts if version is None else {**facts, "runtime_version": version}


def _addressed(body: Body, session: str, item: TelemetryItem) -> Body:
    message = {**body, **_MARK, "session_id": session, "uuid": item.digest()}
    moment = word(item.attributes, "event.timestamp")
    if moment is None and item.time_ms is not None:
        moment = codec.rfc3339(item.time_ms)
    return message if moment is None else {**message, "timestamp": moment}
