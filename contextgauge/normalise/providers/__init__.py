"""Answers of the providers' APIs, published as they are: whole, or the events of a stream.

They are of no runtime; `openai` is the name that an agent on OpenAI's SDK gives itself.
"""

from typing import Final

from contextgauge.normalise.adapter import Adapter, LineType
from contextgauge.normalise.figure_sources import FigureColumn
from contextgauge.normalise.responses import (
    RESPONSE,
    answer_of,
    bare_event,
    bare_message,
    completed_response,
    raw_response,
)
from contextgauge.normalise.signals import Body
from contextgauge.records import Json

_ANSWER_FIELDS: Final = ("object", "role", "content", "id", "choices", "output", "model", "usage")


def _conversation(line: Body) -> dict[str, Json] | None:
    answer = answer_of(line)
    if answer is None:
        return None
    picked: dict[str, Json] = {
        each: answer.body[each] for each in _ANSWER_FIELDS if each in answer.body
    }
    return {"response": picked} if line.get("type") == "response.completed" else picked


_RAW: Final = LineType(raw_response, conversation=_conversation)

_UNKNOWN: Final = (
    "Cache written",
    "Compaction threshold",
    "Folder, version",
    "Start",
    "Heartbeat",
    "Failed attempt",
    "Trigger",
    "Duration",
)
_FIGURES: Final = (
    FigureColumn(
        "OpenAI",
        {
            "reported": ("Model", "Compaction", "Cost of the summary"),
            "reported unless encrypted": ("Summary",),
            "derived": ("Tokens before",),
            "arrival": ("Time",),
            "unknown": _UNKNOWN,
        },
    ),
    FigureColumn(
        "Gemini",
        {
            "reported": ("Model",),
            "arrival": ("Time",),
            "unknown": (
                *_UNKNOWN,
                "Compaction",
                "Tokens before",
                "Tokens after",
                "Summary",
                "Cost of the summary",
            ),
        },
    ),
)

ADAPTERS: Final = (
    Adapter(
        runtime="openai",
        label="OpenAI",
        types={
            "message": LineType(bare_message, conversation=_conversation),
            "message_start": LineType(bare_event),
            "message_delta": LineType(bare_event),
            "response.completed": LineType(completed_response, conversation=_conversation),
        },
        untyped=dict.fromkeys(("object", "usageMetadata", "usage_metadata"), _RAW),
        fields=RESPONSE,
        figure_words=("type", "model", "service_tier", "speed", "trafficType", "traffic_type"),
        figures=_FIGURES,
        without_size=(
            (
                r"response\.",
                (
                    "of a response's stream only `response.completed` has a usage: publish that "
                    "event, or the response itself"
                ),
            ),
            (
                r"chat\.completion\.chunk",
                "chunks have no usage: ask for it with stream_options={'include_usage': True}",
            ),
        ),
    ),
)
