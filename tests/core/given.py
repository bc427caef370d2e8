"""Given, when, then for the derivation: messages of every spelling in, records by class out.

    session = Given()
    session.take(assistant("msg_1", read=90_000))              # what happened before
    records = session.take(compacting(at=30))                  # what happens now
    assert one(records, CompactionStart).used_tokens == 90_000

A message is a plain object as a runtime sends it. Each builder gives a `uuid` of its own, so
that a message is never taken for a known one unless a test wants that.
"""

import itertools
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, TypeVar

from contextgauge.normalise.signals import InputMessage
from contextgauge.windows import Catalog
from schemas.messages import DeadReason
from schemas.records import CompactBoundary, ContextLimits, Record, RecordData
from streams.core.derivation.rules_config import Rules
from streams.core.derivation.state import Chain, Session
from streams.flow.derive.deriver import Deriver, settings_of

Body: TypeAlias = dict[str, Any]
Data = TypeVar("Data", bound=RecordData)

SESSION = "5b1f0c2e-0000-4000-8000-000000000001"
MODEL = "claude-sonnet-5"
WINDOW = 200_000
OTHER_MODEL = "gpt-4"
OTHER_WINDOW = 8_192
START = datetime(2026, 11, 1, 12, tzinfo=UTC)
START_MS = 1_793_534_400_000
HOUR = 3600
MILLION = 1_000_000
LARGE = f"{MODEL}[1m]"
AUTO = {"trigger": "auto", "pre_tokens": 167_412, "post_tokens": 5_210, "duration_ms": 24_100}
"""A boundary's metadata."""

CATALOG = Catalog.from_rows(
    [
        {"prefix": MODEL, "context": WINDOW, "source": "test"},
        {"prefix": OTHER_MODEL, "context": OTHER_WINDOW, "source": "test"},
    ]
)
RULES = Rules(CATALOG)

_numbers = itertools.count(1)


def uuid() -> str:
    """Return an id that no other message has."""
    return f"00000000-0000-4000-8000-{next(_numbers):012d}"


def moment(at: float) -> str:
    """Return the timestamp `at` seconds after noon of the first of November 2026."""
    return (START + timedelta(seconds=at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(body: Body, at: float | None, extra: Body) -> Body:
    stamped = body | {"uuid": uuid(), "session_id": SESSION}
    if at is not None:
        stamped["timestamp"] = moment(at)
    return stamped | extra


def usage(fresh: int = 0, creation: int = 0, read: int = 0, output: int = 1) -> Body:
    """Return an Anthropic usage."""
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": creation,
        "cache_read_input_tokens": read,
        "output_tokens": output,
    }


def assistant(
    response: str | None = "msg_1",
    fresh: int = 0,
    creation: int = 0,
    read: int = 0,
    *,
    output: int = 1,
    model: str | None = MODEL,
    at: float | None = None,
    inside: Body | None = None,
    **extra: object,
) -> Body:
    """Return an assistant frame; `inside` overrides fields of its `message`."""
    message: Body = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "ok"}],
        "stop_reason": None,
        "usage": usage(fresh, creation, read, output),
    }
    message |= {"id": response} if response is not None else {}
    message |= {"model": model} if model is not None else {}
    return _message({"type": "assistant", "message": message | (inside or {})}, at, extra)


def plain(expected: Body, *, response: str = "msg_1", model: str = MODEL, **extra: object) -> Body:
    """Return an assistant frame with any provider's usage object."""
    message = {"id": response, "model": model, "usage": expected}
    return _message({"type": "assistant", "message": message}, None, extra)


def user(content: object = "go on", *, at: float | None = None, **extra: object) -> Body:
    """Return a user frame."""
    message = {"role": "user", "content": content}
    return _message({"type": "user", "message": message}, at, extra)


def summary(text: str = "What was done.", *, at: float | None = None, **extra: object) -> Body:
    """Return the user frame that carries a compaction's summary in a stream."""
    return user(text, at=at, isSynthetic=True, **extra)


def init(model: str | None = MODEL, *, at: float | None = None, **extra: object) -> Body:
    """Return a `system/init`."""
    body = {
        "type": "system",
        "subtype": "init",
        "cwd": "/repo",
        "claude_code_version": "2.1.329",
        "tools": ["Bash"],
    }
    return _message(body | ({"model": model} if model else {}), at, extra)


def status(value: object, *, at: float | None = None, **extra: object) -> Body:
    """Return a `system/status`."""
    return _message({"type": "system", "subtype": "status", "status": value}, at, extra)


def compacting(at: float | None = None, **extra: object) -> Body:
    """Return the status that opens an attempt, or keeps it alive."""
    return status("compacting", at=at, **extra)


def succeeded(at: float | None = None) -> Body:
    """Return the status that notes success."""
    return status(None, at=at, compact_result="success")


def cleared(at: float | None = None) -> Body:
    """Return the bare null status of older runtimes."""
    return status(None, at=at)


def failed(error: str | None = "too_few_groups", at: float | None = None) -> Body:
    """Return the status that notes a failure."""
    fields = {} if error is None else {"compact_error": error}
    return status(None, at=at, compact_result="failed", **fields)


def boundary(metadata: Body | None = None, *, at: float | None = None, **extra: object) -> Body:
    """Return a `compact_boundary`; None leaves the metadata out."""
    fields = {} if metadata is None else {"compact_metadata": metadata}
    return _message({"type": "system", "subtype": "compact_boundary", **fields}, at, extra)


def result(model_usage: Body | None = None, *, at: float | None = None, **extra: object) -> Body:
    """Return a turn's `result`, with the turn's summed usage as the runtime has it."""
    body = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "num_turns": 1,
        "usage": usage(7, 900, 1_900_000, 400),
        "modelUsage": model_usage or {},
    }
    return _message(body, at, extra)


def model_window(window: object, canonical: str | None = None) -> Body:
    """Return one entry of `modelUsage`."""
    entry = {"inputTokens": 2, "outputTokens": 12, "contextWindow": window}
    return entry | ({"canonicalModel": canonical} if canonical else {})


def reset(trigger: str | None = "clear", *, at: float | None = None, **extra: object) -> Body:
    """Return a `conversation_reset`."""
    fields = {"trigger": trigger} if trigger else {}
    return _message({"type": "conversation_reset", **fields}, at, extra)


def clear(at: float | None = None, **extra: object) -> Body:
    """Return the user line that `/clear` leaves."""
    return user(
        "<command-name>/clear</command-name>\n<command-args></command-args>", at=at, **extra
    )


def system(subtype: str, *, at: float | None = None, **extra: object) -> Body:
    """Return any `system` message."""
    return _message({"type": "system", "subtype": subtype}, at, extra)


def any_message(kind: str, *, at: float | None = None, **extra: object) -> Body:
    """Return a message of any type."""
    return _message({"type": kind}, at, extra)


def stream_event(event: Body, *, at: float | None = None, **extra: object) -> Body:
    """Return a partial-message frame."""
    return _message({"type": "stream_event", "event": event}, at, extra)


def message_start(response: str = "msg_1", read: int = 0, **extra: object) -> Body:
    """Return the frame with which a streamed response starts."""
    message = {"id": response, "model": MODEL, "content": [], "usage": usage(2, 0, read)}
    return stream_event({"type": "message_start", "message": message}, **extra)  # type: ignore[arg-type]


def message_delta(output: int | None, **event: object) -> Body:
    """Return the frame with which a streamed response ends; its usage is cumulative."""
    fields = {} if output is None else {"usage": usage(2, 5_000, 5_000, output)}
    return stream_event(
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, **fields, **event}
    )


def line(body: Body, at: float = 0, **extra: object) -> Body:
    """Return a stream's message as a line of a transcript has it: other names, always a time."""
    fields = {
        key: value for key, value in body.items() if key not in ("session_id", "compact_metadata")
    }
    dressed: Body = {
        "parentUuid": None,
        "isSidechain": False,
        "cwd": "/repo",
        "sessionId": body["session_id"],
        "version": "2.1.329",
        "timestamp": moment(at),
    }
    if "compact_metadata" in body:
        fields["compactMetadata"] = {
            _camel(key): entry for key, entry in body["compact_metadata"].items()
        }
        fields["content"] = "Conversation compacted"
    return dressed | fields | extra


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def side(body: Body, agent: str | None = "a1b2", at: float = 0, **extra: object) -> Body:
    """Return a subagent's line of a transcript."""
    named = {} if agent is None else {"agentId": agent}
    return line(body, at, isSidechain=True, **named, **extra)


def rollout(kind: str, payload: Body, at: float = 0) -> Body:
    """Return a line of a Codex rollout: it names no session and has no id."""
    return {"timestamp": moment(at), "type": kind, "payload": payload}


def token_count(
    last: Body | None, total: int, *, window: int | None = 272_000, at: float = 0
) -> Body:
    """Return a rollout's `token_count`; `total` stands for the session's running total."""
    info: Body | None = None
    if last is not None:
        info = {
            "total_token_usage": {"input_tokens": total, "total_tokens": total},
            "last_token_usage": last,
            "model_context_window": window,
        }
    return rollout("event_msg", {"type": "token_count", "info": info}, at)


class Given:
    """Sessions in whatever state their messages brought them to."""

    def __init__(self, rules: Rules = RULES) -> None:
        self.deriver = Deriver(rules)
        self.records: list[Record] = []

    def take(
        self,
        *bodies: Body,
        hint: str | None = None,
        received_ms: int | None = None,
        task_id: str | None = None,
        agent_id: str | None = None,
        **more: Any,
    ) -> list[Record]:
        """Derive the messages one by one, and return their records; `more` are other headers."""
        records: list[Record] = []
        for body in bodies:
            value = json.dumps(body).encode()
            headers = {**more, "settings": settings_of(more.get("settings"))}
            message = InputMessage(value, hint, received_ms, task_id, agent_id, **headers)
            taken = self.deriver.derive(message)
            assert taken.dead is None, taken.dead
            records.extend(taken.records)
        self.records.extend(records)
        return records

    def dead(self, body: Body | bytes, hint: str | None = None) -> DeadReason | None:
        """Return why a message is a dead letter, None where it is none."""
        value = body if isinstance(body, bytes) else json.dumps(body).encode()
        taken = self.deriver.derive(InputMessage(value, hint))
        return None if taken.dead is None else taken.dead.reason

    def session(self, session_id: str = SESSION) -> Session:
        """Return a session's state."""
        return self.sessions()[session_id]

    def sessions(self) -> dict[str, Session]:
        """Return the states of all sessions."""
        self.deriver.end_steps()
        return self.deriver.sessions

    def chain(self, name: str = "main", session_id: str = SESSION) -> Chain:
        """Return a chain's state."""
        return self.session(session_id).chains[name]


def kinds(records: Iterable[Record]) -> list[str]:
    """Return the records' kinds, in order."""
    return [record.kind for record in records]


def every(records: Iterable[Record], wanted: type[Data]) -> list[Data]:
    """Return the data of all records of a class."""
    return [record.data for record in records if isinstance(record.data, wanted)]


def one(records: Iterable[Record], wanted: type[Data]) -> Data:
    """Return the data of the only record of a class."""
    matching = every(records, wanted)
    assert len(matching) == 1, f"{len(matching)} records of {wanted.__name__}"
    return matching[0]


def record_of(records: Iterable[Record], wanted: type[RecordData]) -> Record:
    """Return the only record of a class, with its envelope."""
    matching = [record for record in records if isinstance(record.data, wanted)]
    assert len(matching) == 1, f"{len(matching)} records of {wanted.__name__}"
    return matching[0]


def session(*bodies: Body, rules: Rules = RULES) -> Given:
    """Return a session that took these messages."""
    given = Given(rules)
    given.take(*bodies)
    return given


def bound(*bodies: Body) -> tuple[Given, str]:
    """Return a session that has just been compacted, with the boundary's id."""
    given = session(*bodies, boundary(AUTO))
    return given, record_of(given.records[-1:], CompactBoundary).id


def limits(record: ContextLimits) -> tuple[int | None, str]:
    """Return the window that a record tells, and its source."""
    return record.window, record.window_source


def nested(depth: int, inner: bytes = b"1") -> bytes:
    """Return objects nested so deep, with JSON inside."""
    return b'{"a":' * depth + inner + b"}" * depth


def depth_of(value: object) -> int:
    """Return how deep a value is nested."""
    depth = 0
    while isinstance(value, dict | list):
        depth += 1
        value = next(iter(value.values() if isinstance(value, dict) else value), None)
    return depth


ROWS = [{"id": "messages", "name": "Messages", "kind": "used", "tokens": 113_400, "color": "x"}]
ANSWER: Body = {
    "categories": ROWS,
    "totalTokens": 122_300,
    "maxTokens": 167_000,
    "rawMaxTokens": 180_000,
    "autoCompactThreshold": 167_000,
    "isAutoCompactEnabled": True,
    "model": MODEL,
}
"""What a runtime answers to `get_context_usage`."""


def usage_answer(**answer: object) -> Body:
    """The answer to `get_context_usage`: it names no session."""
    response = {"subtype": "success", "request_id": "r", "response": answer}
    return {"type": "control_response", "response": response}
