"""OpenHands: the conversations of its SDK, which its CLI and its server keep: one file per event.

Before 1.0 it had other events, one file each, too, or all in one trajectory. Checked against
OpenHands/OpenHands 0.62 (openhands/events, llm/metrics.py, storage/locations.py).

Checked against OpenHands/software-agent-sdk 1.43 (openhands-sdk/openhands/sdk: event, conversation,
llm/utils/metrics.py) and OpenHands/OpenHands-CLI. Events name the model's response that they are
of; what it cost, and the window, are in the state next to them, which is written again.
"""

from typing import Final

from contextgauge.normalise.adapter import (
    PRESENT,
    Adapter,
    Fields,
    Folders,
    Inside,
    Joined,
    LineType,
    Meaning,
    Sign,
    named,
)
from contextgauge.normalise.openhands import conversation, events, old_events
from contextgauge.normalise.responses import CONTENT
from contextgauge.normalise.tells import Compared, Source, Tells

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

_OLD: Final = {
    "id": PRESENT,
    "timestamp": str,
    "source": frozenset({"agent", "user", "environment"}),
}
_OLD_SIGNS: Final[tuple[Sign, ...]] = (
    {**_OLD, "action": str, "args": dict},
    {**_OLD, "observation": str, "extras": dict},
)
_ANSWER: Final[Fields] = {
    **named(Meaning.NAME, "id model"),
    **named(Meaning.FIGURES, "created usage"),
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
    Adapter(
        label="OpenHands before 1.0",
        signs=_OLD_SIGNS,
        line_signs=_OLD_SIGNS,
        untyped={
            "action": LineType(
                old_events.action,
                prompt=old_events.prompt,
                head=old_events.of_file,
                moment=old_events.moment,
            ),
            "observation": LineType(old_events.observation, head=old_events.of_file),
        },
        fields={
            "id": Meaning.FIGURES,
            "timestamp": Meaning.TIME,
            **named(Meaning.WORD, "source action observation"),
            "args": Inside(
                {
                    **named(Meaning.TEXT, "content summary"),
                    **named(
                        Meaning.FIGURES,
                        "forgotten_event_ids forgotten_events_start_id forgotten_events_end_id",
                    ),
                }
            ),
            "extras": Inside({}),
            "tool_call_metadata": Inside({"model_response": Inside(_ANSWER)}),
        },
        cause=old_events.cause,
        has_own_windows=True,
        compacts_itself=True,
        joined=Joined("/0.json", ("*.json",), old_events.lines),
        files=(r"(?:sessions|conversations)/(?P<session>[^/]+)/events/0\.json",),
        other_files=tuple(
            rf"(?:sessions|conversations)/[^/]+/{each}\.json"
            for each in (
                *(r"events/[1-9]\d*", r"event_cache/\d+-\d+"),
                "(?:metadata|init|llm_registry|exp_config)",
            )
        ),
        folders=Folders((), ("~/.openhands",), "sessions"),
        prompt_words=("user",),
        tells=Tells(
            version="0.62",
            compared=Compared(
                5,
                99,
                3,
                mended=102,
                sources=(
                    "OpenHands/OpenHands: trajs of its tests",
                    "thefaftek-git/tls_scanner: trajectory.json",
                ),
            ),
            size=Source.MEASURED,
            end=Source.MEASURED,
            summary=Source.MEASURED,
            note="Answers without a call of a tool have no size, and the window is the largest of "
            "all models that took part: it is not shown. A trajectory that was saved as one file "
            "is read, too.",
        ),
    ),
)
