"""A message without its texts: each is replaced by its length, and derivation stays the same.

What stays is listed here, place by place: ids, types, statuses, models, versions, folders, times,
numbers, flags, and the beginnings by which commands are known (R23, R24, R27). Everything else that
could be words of a human or a model goes: contents, thinking, tools' inputs and outputs, images,
summaries, errors, and the values of unknown fields. A replacement has the type of
what it replaces, so that a reader sees what it saw.

The records are equal but for the texts in them, and for ids: a message without a `uuid` has the
hash of its bytes for its cause, and these are others now. Such a message carries a keyed hash of
its original, so that two that differed in their texts alone still differ (R4), and no one without
the key can try texts against it.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias, cast

from contextgauge import json_codec
from contextgauge.containers import Line
from contextgauge.delivery.blanks import LEFT_OUT, blank, characters, stub
from contextgauge.messages import DeadLetter
from contextgauge.normalise import claude
from contextgauge.normalise.fields import MAX_LONG_NAME, MAX_NAME, name
from contextgauge.normalise.responses import PROVIDER_OBJECTS
from contextgauge.normalise.signals import Body
from contextgauge.records import Json

MARK = "contextgauge_no_text"
"""Field of a message without texts: true, or the keyed hash (hex) where it has no `uuid`."""

_DIGEST_BYTES = 16
"""Of the keyed hash: as much as a UUID has, and no two messages of a session meet."""

_STRUCTURE_DEPTH = 16
"""Objects in objects of a usage or metadata; real ones have four. What is deeper is left out."""

_CONTENT_DEPTH = 3
"""Blocks in blocks: a tool's result holds some. What is deeper is left out."""

_WORD = re.compile(r"[\w.:<>/-]{1,64}", re.ASCII)
"""What a type or a status looks like. One that does not is known to no reader either."""

_KEY = re.compile(r"[A-Za-z_$][\w.$-]{0,63}", re.ASCII)
"""What a field of a runtime is called. Other names may be words of the user."""

_ID = re.compile(
    r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(toolu|srvtoolu|msg|req|resp|call|rs|fc|cmp|item)_[A-Za-z0-9_-]{8,120}"
)
"""Ids as runtimes and providers make them: no person writes such a text."""

_TIME_CHARACTERS = 64
"""Longer than any timestamp that can be read."""

Handler: TypeAlias = Callable[[Json], Json]
Fields: TypeAlias = Mapping[str, Handler]


def without_text(body: Body, raw: bytes, key: bytes) -> dict[str, Json]:
    """Return the message without texts; the original is left alone.

    `raw` are its bytes without the line end. `key` (1 to 64 bytes, secret) must be the same
    whenever the same message may be published again: else it would count twice where it has no
    `uuid`.
    """
    stripped = _object(_FIELDS, body)
    if isinstance(request := body.get("request"), dict):
        stripped["request"] = _request(request)
    if isinstance(payload := body.get("payload"), dict):
        kind = body.get("type")
        fields = _PAYLOADS.get(kind) if isinstance(kind, str) else None
        stripped["payload"] = blank(payload) if fields is None else _object(fields, payload)
    stripped[MARK] = True
    if name(body, "uuid") is None:
        stripped[MARK] = hashlib.blake2b(raw, key=key, digest_size=_DIGEST_BYTES).hexdigest()
    return stripped


def _object(fields: Fields, value: Json) -> dict[str, Json]:
    """Return an object of a known kind: fields that are not known keep their names only."""
    stripped: dict[str, Json] = {}
    left_out: int | None = None
    for key, item in cast("dict[str, Json]", value).items():
        handler = fields.get(key)
        if handler is not None:
            stripped[key] = handler(item)
        elif _KEY.fullmatch(key):
            stripped[key] = blank(item)
        else:
            left_out = (left_out or 0) + len(key) + characters(item)
    return stripped if left_out is None else stripped | {LEFT_OUT: left_out}


def _of(fields: Fields) -> Handler:
    """Return the handler of an object with these fields."""
    return lambda value: _object(fields, value) if isinstance(value, dict) else blank(value)


def _rows(fields: Fields) -> Handler:
    """Return the handler of a list of such objects."""
    row = _of(fields)
    return lambda value: [row(item) for item in value] if isinstance(value, list) else blank(value)


def _word(value: Json) -> Json:
    """Keep a type, a status or the like."""
    return value if isinstance(value, str) and _WORD.fullmatch(value) else blank(value)


def _kept(limit: int) -> Handler:
    """Return the handler that keeps a name; one that is too long to be any stays too long."""

    def keep(value: Json) -> Json:
        if not isinstance(value, str):
            return blank(value)
        return value if len(value) <= limit else "." * (limit + 1)

    return keep


def _provider_object(value: Json) -> Json:
    """Keep by what beginning a provider's bare response is known as one."""
    if not isinstance(value, str) or _WORD.fullmatch(value):
        return value if isinstance(value, str) else blank(value)
    known = next((begin for begin in PROVIDER_OBJECTS if value.startswith(begin)), "")
    return known + stub(value)


def _time(value: Json) -> Json:
    """Keep what can be read as a time."""
    if not isinstance(value, str) or len(value) > _TIME_CHARACTERS:
        return blank(value)
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return blank(value)
    return value


def _text(value: Json) -> Json:
    """Replace a text; the beginning by which a command or its output is known stays."""
    if not isinstance(value, str):
        return blank(value)
    command = claude.COMMAND.match(value)
    tag = next((each for each in claude.UNCOUNTED if value.startswith(each)), "")
    begin = tag if command is None else command[0]
    return begin if value == begin else begin + stub(value)


def _error(value: Json) -> Json:
    """Replace an error; that a hook blocked the compaction stays (R17)."""
    if isinstance(value, str) and claude.names_hook_block(value):
        return f"blocked by a hook {stub(value)}"
    return blank(value)


def _content(value: Json, depth: int = 0) -> Json:
    """Return a text, or blocks of which the kinds and ids stay."""
    if isinstance(value, str):
        return _text(value)
    if not isinstance(value, list) or depth == _CONTENT_DEPTH:
        return blank(value)
    fields: Fields = {**_BLOCK, "content": partial(_content, depth=depth + 1)}
    return [_object(fields, block) if isinstance(block, dict) else blank(block) for block in value]


def _message(value: Json) -> Json:
    return _object(_RESPONSE, value) if isinstance(value, dict) else _content(value)


def _structure(value: Json, depth: int = 0, *, is_word: bool = False) -> Json:
    """Return an object of numbers and ids: a usage, metadata, an edit."""
    match value:
        case str():
            if (is_word and _WORD.fullmatch(value)) or _ID.fullmatch(value):
                return value
            return stub(value)
        case dict() if depth < _STRUCTURE_DEPTH:
            inner: Fields = {
                key: partial(_structure, depth=depth + 1, is_word=key in _STRUCTURE_WORDS)
                for key in value
                if _KEY.fullmatch(key)
            }
            return _object(inner, value)
        case list() if depth < _STRUCTURE_DEPTH:
            return [_structure(item, depth + 1) for item in value]
        case _:
            return blank(value)


def _model_usage(value: Json) -> Json:
    """Return the usages by model, whose names stay; what is too long for one is no model."""
    if not isinstance(value, dict):
        return blank(value)
    inner: Fields = {key: _of(_MODEL_ENTRY) for key in value if len(key) <= MAX_NAME}
    return _object(inner, value)


def _origin(value: Json) -> Json:
    """Return what a fork comes from: a session's id, or an object that holds it."""
    return _object(_SESSION_IDS, value) if isinstance(value, dict) else _kept(MAX_LONG_NAME)(value)


def _tool_result(value: Json) -> Json:
    """Leave out a tool's result but for the model that ran an agent, whose suffix is read."""
    model = claude.resolved_model(value)
    if model is None:
        return blank(value)
    return {claude.RESOLVED_MODEL[0]: model, LEFT_OUT: characters(value)}


def _request(request: dict[str, Json]) -> dict[str, Json]:
    """Return a control request: a hook's input is read, a tool's keeps its session's id only."""
    stripped = _object({"subtype": _word, "request_id": _NAME}, request)
    given = request.get("input")
    if isinstance(given, dict):
        if request.get("subtype") == "hook_callback":
            stripped["input"] = _object(_FIELDS, given)
        else:
            ids = {key: keep(given[key]) for key, keep in _SESSION_IDS.items() if key in given}
            stripped["input"] = {**ids, LEFT_OUT: characters(given)}
    return stripped


def _named(handler: Handler, names: str) -> dict[str, Handler]:
    return dict.fromkeys(names.split(), handler)


_NAME: Final = _kept(MAX_NAME)
_LONG_NAME: Final = _kept(MAX_LONG_NAME)

_STRUCTURE_WORDS = frozenset(
    {"type", "trigger", "service_tier", "model", "canonicalModel", "source"}
)
"""Fields of a usage or of metadata that hold a word, and no text."""

_SESSION_IDS: Final[Fields] = _named(_LONG_NAME, "session_id sessionId")

_BLOCK: Final[Fields] = {
    **_named(_word, "type role status"),
    **_named(_NAME, "id tool_use_id call_id"),
    **_named(_text, "text"),
}

_MODEL_ENTRY: Final[Fields] = _named(_NAME, "canonicalModel canonical_model")

_ANSWER: Final[Fields] = {
    "model": _NAME,
    "categories": _rows(_named(_NAME, "id name kind")),
    **_named(_word, "autocompactSource autocompact_source"),
    **_named(_of(_named(_word, "kind")), "over_limit overLimit"),
    **_named(_structure, "messageBreakdown message_breakdown"),
}
"""A context-usage answer."""

_MANAGEMENT: Final[Fields] = _named(_structure, "applied_edits appliedEdits")

_RESPONSE: Final[Fields] = {
    **_named(_NAME, "id responseId response_id model modelVersion model_version"),
    **_named(_word, "type role status stop_reason"),
    **_named(_structure, "usage usageMetadata usage_metadata"),
    **_named(_of(_MANAGEMENT), "context_management contextManagement"),
    "object": _provider_object,
    "content": _content,
    "output": _content,
    "parts": _content,
}
"""An API response of any provider, bare or in a frame."""

_ITEM: Final = _of(_named(_word, "type") | _named(_NAME, "id"))
"""An item of Codex."""

_THREAD: Final = _of(_named(_LONG_NAME, "id cwd forkedFromId") | _named(_NAME, "cliVersion"))
_SPAWN: Final = _of({"parent_thread_id": _LONG_NAME, "agent_role": _NAME})
_SOURCE: Final = _of({"subagent": _of({"thread_spawn": _SPAWN})})
_DELTA: Final = _of(_named(_word, "type stop_reason"))

_EVENT: Final[Fields] = {
    "type": _word,
    "message": _message,
    "usage": _structure,
    "delta": _DELTA,
    **_named(_of(_MANAGEMENT), "context_management contextManagement"),
}

_FIELDS: Final[Fields] = {
    **_RESPONSE,
    **_SESSION_IDS,
    **_named(
        _NAME,
        "uuid parentUuid parent_uuid logicalParentUuid logical_parent_uuid requestId request_id "
        "agentId agent_id parent_tool_use_id parentToolUseId task_id subagent_type subagentType "
        "boundary_id version claude_code_version claudeCodeVersion qwen_code_version "
        "runtime_version fallback_model fallbackModel $rewindTo",
    ),
    **_named(_LONG_NAME, "cwd thread_id"),
    **_named(
        _word,
        "subtype runtime terminal_reason terminalReason compact_result compactResult trigger "
        "hook_event_name hookEventName hook_event hookEvent hook_name hookName scope method source "
        "provenance",
    ),
    **_named(_error, "compact_error compactError"),
    **_named(_origin, "forked_from forkedFrom"),
    **dict.fromkeys(claude.TOOL_RESULTS, _tool_result),
    **_named(_model_usage, "modelUsage model_usage"),
    **_named(
        _structure,
        "compact_metadata compactMetadata microcompactMetadata microcompact_metadata "
        "autocompact_state autocompactState value tokens",
    ),
    **_named(_of(_ANSWER), "context_usage contextUsage"),
    "timestamp": _time,
    "message": _message,
    "systemPayload": _of({"info": _structure, "compressedHistory": _rows(_RESPONSE)}),
    "event": _of(_EVENT),
    "delta": _DELTA,
    "response": _of({**_RESPONSE, "subtype": _word, "request_id": _NAME, "response": _of(_ANSWER)}),
    "params": _of(
        {
            **_named(_LONG_NAME, "threadId turnId"),
            "tokenUsage": _structure,
            "item": _ITEM,
            "thread": _THREAD,
        }
    ),
    "result": _of({"thread": _THREAD, "model": _NAME}),
}
"""A message's own fields, and those of a hook's input."""

_PAYLOADS: Final[Mapping[str, Fields]] = {
    "session_meta": {
        **_named(_LONG_NAME, "id session_id cwd forked_from_id forked_from parent_thread_id"),
        **_named(_NAME, "cli_version agent_role"),
        "timestamp": _time,
        "source": _SOURCE,
        "history_base": _structure,
    },
    "turn_context": {"cwd": _LONG_NAME, **_named(_NAME, "model turn_id")},
    "response_item": {**_named(_word, "type role status"), "content": _content},
    "event_msg": {"type": _word, "info": _structure, "item": _ITEM, "turn_id": _NAME},
    "compacted": {
        "message": _text,
        "compaction_response_id": _NAME,
        "latest_token_usage_record": _of({"response_id": _NAME, "usage": _structure}),
    },
}
"""Payloads of a Codex rollout by the line's type."""


def strip_text(line: Line, key: bytes) -> Line | DeadLetter:
    """Return the line without texts: what `publish --no-text` sends in its place.

    A pure function. `key` is 1 to 64 secret bytes, the same for every publisher that may send the
    line again (`contextgauge.state_folder.text_key` stores them). A line that cannot be read is a
    dead letter and must not be sent. Tens of megabytes take seconds: an event loop uses a thread.
    """
    if len(line.value) < line.size:
        return DeadLetter("too_large", f"{line.size} bytes: too large to be read")
    body = json_codec.decode(line.value, limit=line.size)
    if isinstance(body, DeadLetter):
        return body
    value = json_codec.dumps(without_text(body, line.value, key))
    return line._replace(value=value, size=len(value))
