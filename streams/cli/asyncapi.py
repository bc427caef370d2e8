"""The AsyncAPI 3 document of the topics: their messages, keys, headers and retention."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from pydantic import TypeAdapter

from contextgauge import __version__
from contextgauge import messages as inbound
from schemas.commands import COMMAND_CLASS_BY_KIND, CommandRequest
from schemas.records import DATA_CLASSES, SPEC_VERSION, RecordData, event_type
from schemas.topics import (
    AGENT_MESSAGES,
    CONTEXT_COMMANDS,
    CONTEXT_EVENTS,
    CONTEXT_STATE,
    DEAD_LETTERS,
    DEFAULT_PARTITIONS,
    TOPICS,
    Topic,
)
from streams.codec.cloudevents import OPTIONAL_FIELDS
from streams.codec.commands import SOURCE, TYPES

_BINDING: Final = "0.5.0"
"""Version of AsyncAPI's binding for Kafka."""

_MESSAGES_OF: Final[Mapping[str, str]] = {
    AGENT_MESSAGES.name: "Messages of agent runtimes, as published: see PUBLISHING.md.",
    CONTEXT_EVENTS.name: "The derived records, CloudEvents in binary mode: see RULES.md.",
    CONTEXT_STATE.name: "State and positions of the derive workers, for them only.",
    DEAD_LETTERS.name: "Messages that cannot be derived: see DEAD_LETTERS.md.",
    CONTEXT_COMMANDS.name: "Requests and steps of the control plane, CloudEvents in binary mode: "
    "see CONTROL.md.",
}

_TEXT: Final = {"type": "string"}
_DIGITS: Final = {"type": "string", "pattern": "^[0-9]+$"}
_SOURCE: Final = {
    "src_topic": {"type": "string", "description": "Topic of the message that caused it."},
    "src_partition": _DIGITS,
    "src_offset": _DIGITS,
    "src_timestamp": {**_DIGITS, "description": "Its Kafka time, in milliseconds since 1970."},
}


def asyncapi_document() -> dict[str, Any]:
    """Return the document, with the default names, partitions and retentions of the topics."""
    schemas = _payloads()
    requests = get_args(CommandRequest)
    messages: dict[str, dict[str, dict[str, Any]]] = {
        AGENT_MESSAGES.name: {"message": _inbound()},
        CONTEXT_EVENTS.name: {cls.kind: _record(cls) for cls in DATA_CLASSES},
        CONTEXT_STATE.name: {"state": {"payload": {}, "description": "No contract: do not read."}},
        DEAD_LETTERS.name: {"dead_letter": _dead_letter()},
        CONTEXT_COMMANDS.name: {
            kind: _command(kind, cls) for kind, cls in COMMAND_CLASS_BY_KIND.items()
        },
    }
    for topic in TOPICS:
        for message in messages[topic.name].values():
            message["bindings"] = {"kafka": {"key": _key(topic), "bindingVersion": _BINDING}}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "contextgauge",
            "version": __version__,
            "description": "Topics of Kafka. Names, partitions and retentions are the defaults: "
            "settings may change them, and put a prefix in front of the names.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {topic.name: _channel(topic, messages[topic.name]) for topic in TOPICS},
        "operations": {
            "readMessages": _operation("receive", AGENT_MESSAGES, "derive", messages),
            "writeRecords": _operation("send", CONTEXT_EVENTS, "derive", messages),
            "writeDeadLetters": _operation("send", DEAD_LETTERS, "derive", messages),
            "keepState": _operation("send", CONTEXT_STATE, "derive", messages),
            "readRequests": _operation(
                "receive", CONTEXT_COMMANDS, "control", messages, [cls.kind for cls in requests]
            ),
            "writeSteps": _operation(
                "send",
                CONTEXT_COMMANDS,
                "control",
                messages,
                [kind for kind, cls in COMMAND_CLASS_BY_KIND.items() if cls not in requests],
            ),
        },
        "components": {"schemas": schemas},
    }


def _channel(topic: Topic, messages: Mapping[str, Any]) -> dict[str, Any]:
    configuration = {
        "cleanup.policy": [topic.cleanup],
        "retention.ms": topic.retention_ms,
        "max.message.bytes": topic.max_message_bytes,
    }
    kafka = {
        "topic": topic.name,
        "partitions": DEFAULT_PARTITIONS,
        "topicConfiguration": configuration,
        "bindingVersion": _BINDING,
    }
    return {
        "address": topic.name,
        "description": _MESSAGES_OF[topic.name],
        "messages": messages,
        "bindings": {"kafka": kafka},
    }


def _operation(
    action: str,
    topic: Topic,
    worker: str,
    messages: Mapping[str, Mapping[str, Any]],
    only: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return what a worker does with a topic, with all of its messages or some."""
    channel = f"#/channels/{topic.name}"
    return {
        "action": action,
        "channel": {"$ref": channel},
        "summary": f"By `contextgauge {worker}`.",
        "messages": [
            {"$ref": f"{channel}/messages/{name}"}
            for name in messages[topic.name]
            if only is None or name in only
        ],
    }


def _key(topic: Topic) -> dict[str, Any]:
    return {"type": "string", "description": topic.key.capitalize()}


def _inbound() -> dict[str, Any]:
    names = (inbound.TASK_ID_HEADER, inbound.AGENT_ID_HEADER, inbound.THREAD_ID_HEADER)
    return {
        "title": "A runtime's message",
        "payload": {"type": "object", "description": "Any: what is not known is ignored (R3)."},
        "headers": _headers(
            {
                inbound.OBSERVED_HEADER: {"const": inbound.OBSERVED_LIVE.decode()},
                **dict.fromkeys(names, _TEXT),
                inbound.INHERITED_HEADER: {"enum": ["true", "false"]},
                inbound.SETTINGS_HEADER: {**_TEXT, "contentMediaType": "application/json"},
                inbound.REDRIVEN_HEADER: {"type": "string", "pattern": "^[0-9]+:[0-9]+$"},
            },
            required=(),
        ),
    }


def _record(cls: type[RecordData]) -> dict[str, Any]:
    own = {
        "ce_source": {"type": "string", "pattern": "^/sessions/"},
        "ce_type": {"const": event_type(cls.kind)},
        "ce_subject": {"type": "string", "description": "The chain."},
        "ce_sequence": {"type": "string", "pattern": "^[1-9][0-9]*$"},
        "ce_rules": _TEXT,
    }
    return {
        "name": event_type(cls.kind),
        "payload": {"$ref": f"#/components/schemas/{cls.__name__}"},
        "headers": _headers({**_EVENT, **own, **_SOURCE}, optional=("ce_time",)),
    }


def _command(kind: str, cls: type[Any]) -> dict[str, Any]:
    own = {"ce_source": {"const": SOURCE}, "ce_type": {"const": TYPES[kind]}}
    return {
        "name": TYPES[kind],
        "payload": {"$ref": f"#/components/schemas/{cls.__name__}"},
        "headers": _headers({**_EVENT, **own}),
    }


def _dead_letter() -> dict[str, Any]:
    reasons = {"enum": list(get_args(inbound.DeadReason))}
    return {
        "title": "A message that cannot be derived, as it was received",
        "payload": {},
        "contentType": "application/octet-stream",
        "headers": _headers({"dead_reason": reasons, "dead_detail": _TEXT, **_SOURCE}),
    }


_EVENT: Final = {
    "ce_specversion": {"const": SPEC_VERSION},
    "ce_id": _TEXT,
    "ce_time": {"type": "string", "format": "date-time"},
    "content-type": {"const": "application/json"},
}


def _headers(
    properties: Mapping[str, Any],
    *,
    required: Sequence[str] | None = None,
    optional: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the schema of headers, all of which are there but for the optional ones."""
    names = [name for name in properties if name not in optional] if required is None else required
    return {"type": "object", "properties": dict(properties), "required": list(names)}


def _payloads() -> dict[str, Any]:
    """Return the schemas of records as they are written, and of commands as they are read."""
    classes: list[type[Any]] = [*DATA_CLASSES, *COMMAND_CLASS_BY_KIND.values()]
    _, named = TypeAdapter.json_schemas(
        [(cls.__name__, "validation", TypeAdapter(cls)) for cls in classes],
        ref_template="#/components/schemas/{model}",
    )
    schemas: dict[str, Any] = named["$defs"]
    for cls in DATA_CLASSES:
        optional = OPTIONAL_FIELDS[cls]
        names = [field.name for field in dataclasses.fields(cls)]
        schemas[cls.__name__]["required"] = [name for name in names if name not in optional]
    return schemas
