"""OpenHands: the conversations of its SDK, which its CLI and its server keep: one file per event.

Checked against OpenHands/software-agent-sdk 1.43 (openhands-sdk/openhands/sdk: event, conversation,
llm/utils/metrics.py) and OpenHands/OpenHands-CLI. Events name the model's response that they are
of; what it cost, and the window, are in the state next to them, which is written again.
"""

from typing import Final

from contextgauge.normalise.adapter import (
    Adapter,
    Fields,
    Folders,
    Inside,
    Joined,
    LineType,
    Meaning,
    named,
)
from contextgauge.normalise.openhands import conversation, events
from contextgauge.normalise.responses import CONTENT
from contextgauge.normalise.tells import Source, Tells

_STATE: Final = {"id": str, "agent": dict, "stats.usage_to_metrics": dict}
_EVENT: Final = {"kind": str, "id": str, "timestamp": str, "source": str}
_USAGE: Final[Fields] = {
    "model": Meaning.NAME,
    **named(
        Meaning.FIGURES,
        "prompt_tokens completion_tokens cache_read_tokens cache_write_tokens reasoning_tokens "
        "context_window per_turn_token",
    ),
}

ADAPTERS: Final = (
    Adapter(
        label="OpenHands",
        signs=(_STATE, _EVENT),
        line_signs=(_EVENT,),
        untyped={
            "kind": LineType(
                events.event, conversation=conversation.event, prompt=conversation.prompt
            )
        },
        fields={
            **named(Meaning.NAME, "id llm_response_id tool_name tool_call_id"),
            **named(Meaning.LONG_NAME, "sessionId cwd"),
            **named(Meaning.WORD, "kind source"),
            "timestamp": Meaning.TIME,
            "llm_message": Inside({"role": Meaning.WORD, "content": CONTENT}),
            **named(Meaning.FIGURES, "forgotten_event_ids summary_offset"),
            "summary": Meaning.TEXT,
            "usage": Inside(_USAGE),
        },
        cause=events.cause,
        has_own_windows=True,
        compacts_itself=True,
        joined=Joined("base_state.json", ("events/event-*.json",), events.lines),
        files=(r"conversations/(?P<session>[0-9a-f]{32})/base_state\.json",),
        other_files=(r"conversations/[^/]+/events/event-[^/]+\.json",),
        folders=Folders((), ("~/.openhands",), "conversations"),
        prompt_words=("user",),
        tells=Tells(
            version="1.43",
            window=Source.MEASURED,
            size=Source.MEASURED,
            end=Source.MEASURED,
            summary=Source.MEASURED,
            own_cost=Source.MEASURED,
            note="The start is known of a condensation that was asked for, by a person or since "
            "the window was full. Times have no zone: the costs next to them show it, and they are "
            "unknown where a model has no price.",
        ),
    ),
)
