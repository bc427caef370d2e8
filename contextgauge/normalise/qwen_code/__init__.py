"""Qwen Code: the chats that it stores, in a transcript's fields with Gemini's messages (R32).

A line names its own model and window. `chat_compression` is written once a compaction succeeded.
"""

from collections.abc import Mapping
from typing import Final

from contextgauge.normalise.adapter import (
    PRESENT,
    UUID,
    Adapter,
    Folders,
    Inside,
    LineType,
    Meaning,
    Rows,
    TextMark,
    named,
)
from contextgauge.normalise.fields import count, flag, items, mapping, name
from contextgauge.normalise.installation import Installation
from contextgauge.normalise.limit_signals import ModelReport
from contextgauge.normalise.qwen_code import conversation
from contextgauge.normalise.responses import RESPONSE, named_window, read_response, text_of
from contextgauge.normalise.signals import ROLLED_BACK, Body, Boundary, Signal, UserLine
from contextgauge.normalise.tells import Compared, Source, Tells
from contextgauge.record_words import Trigger

_COMPRESSED: Final = 1
"""The `compressionStatus` of a compression that took place; others changed nothing."""

_TRIGGERS: Final[Mapping[str, Trigger]] = {
    "token_limit": "auto",
    "image_overflow": "auto",
    "manual": "manual",
}


def assistant(body: Body) -> tuple[Signal, ...]:
    """Return the response that an `assistant` line is; its model is the line's own."""
    response = read_response(body, body, output_is_final=True)
    response.key = response.response_id = None
    return (*named_window(body, body, response), response)


def user(_: Body) -> tuple[Signal, ...]:
    """Return the user line that a prompt or a tool's result is."""
    return (UserLine(counted=True, mark=None, uuid=None, text=None),)


def system(body: Body) -> tuple[Signal, ...]:
    """Return what a record of the runtime's own says; most subtypes say nothing."""
    payload = mapping(body, "systemPayload") or {}
    match body.get("subtype"):
        case "chat_compression":
            return _compression(payload)
        case "rewind":
            return (ROLLED_BACK,)
        case "session_model" if (model := name(payload, "modelId")) is not None:
            return (ModelReport(model, is_init=False),)
    return ()


def _compression(payload: Body) -> tuple[Signal, ...]:
    """Return the boundary that a `chat_compression` is (R29).

    A size before it that the runtime only estimated, of the history alone, is not the context's.
    """
    info = mapping(payload, "info")
    if info is None:
        return ()
    if info.get("compressionStatus", _COMPRESSED) != _COMPRESSED:
        return ()
    is_estimated = flag(info, "originalTokenCountIsEstimated")
    before = None if is_estimated else count(info, "originalTokenCount")
    boundary = Boundary(
        trigger=_TRIGGERS.get(name(info, "triggerReason") or ""),
        pre_tokens=before,
        post_tokens=count(info, "newTokenCount"),
        duration_ms=None,
        anchor=None,
        metadata=info,
        summary=_summary(payload),
    )
    return (boundary,)


def _summary(payload: Body) -> str | None:
    """Return the text that the compressed history begins with; what follows was kept."""
    for content in items(payload, "compressedHistory"):
        if (summary := text_of(content.get("parts"))) is not None:
            return summary
    return None


_FIGURES: Final = named(
    Meaning.FIGURES,
    "originalTokenCount newTokenCount compressionStatus originalTokenCountIsEstimated "
    "newTokenCountIsEstimated",
)

_LINES: Final = (
    {"sessionId": str, "version": str, "message.parts": PRESENT},
    {"sessionId": str, "version": str, "systemPayload": PRESENT},
    {"sessionId": str, "version": str, "provenance": str},
)
ADAPTERS: Final = (
    Adapter(
        label="Qwen Code",
        signs=(*_LINES, {"type": "system", "subtype": "init", "qwen_code_version": str}),
        line_signs=_LINES,
        types={
            "assistant": LineType(assistant, conversation=conversation.message),
            "user": LineType(user, conversation=conversation.message, prompt=conversation.prompt),
            "tool_result": LineType(user, conversation=conversation.message),
            "system": LineType(system, conversation=conversation.system),
        },
        fields={
            "provenance": Meaning.WORD,
            "systemPayload": Inside(
                {
                    "info": Inside({"triggerReason": Meaning.WORD, **_FIGURES}),
                    "modelId": Meaning.NAME,
                    "compressedHistory": Rows(RESPONSE),
                }
            ),
        },
        versions=("qwen_code_version",),
        is_transcript=True,
        compacts_itself=True,
        tells=Tells(
            version="0.24",
            compared=Compared(4, 104),
            window=Source.MEASURED,
            size=Source.MEASURED,
            end=Source.MEASURED,
            trigger=Source.MEASURED,
            summary=Source.MEASURED,
            composition=Source.DERIVED,
            note="Older versions do not report what triggered a compaction, nor the window: it is "
            "then that of the model's name.",
        ),
        # QwenLM/qwen-code: packages/core/src/utils/environmentContext.ts
        marks=(
            TextMark(r"This is the Qwen Code\. We are setting up the context for our chat\..*"),
        ),
        files=(rf"chats/(?P<session>{UUID})\.jsonl",),
        folders=Folders(("QWEN_RUNTIME_DIR", "QWEN_HOME"), ("~/.qwen",), "projects"),
        installation=Installation(
            hooks_file="settings.json",
            mcp_file="settings.json",
            mcp_table="mcpServers",
            context_events=("UserPromptSubmit", "PostToolUse"),
            compaction_events=("PreCompact", "PostCompact"),
            transcripts_variable="QWEN_RUNTIME_DIR",
        ),
    ),
)
