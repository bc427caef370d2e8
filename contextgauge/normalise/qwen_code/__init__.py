"""Qwen Code: the chats that it stores, in a transcript's fields with Gemini's messages (R32).

A line names its own model and window. `chat_compression` is written once a compaction succeeded.
"""

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
    Source,
    Tells,
    TextMark,
)
from contextgauge.normalise.claude_code import conversation
from contextgauge.normalise.fields import count, items, mapping
from contextgauge.normalise.responses import RESPONSE, named_window, read_response, text_of
from contextgauge.normalise.signals import Body, Boundary, Signal, UserLine

_COMPRESSED: Final = 1
"""The `compressionStatus` of a compression that took place; others changed nothing."""


def assistant(body: Body) -> tuple[Signal, ...]:
    """Return the response that an `assistant` line is; its model is the line's own."""
    response = read_response(body, body, output_is_final=True)
    response.key = response.response_id = None
    return (*named_window(body, body, response), response)


def user(_: Body) -> tuple[Signal, ...]:
    """Return the user line that a prompt or a tool's result is."""
    return (UserLine(counted=True, mark=None, uuid=None, text=None),)


def system(body: Body) -> tuple[Signal, ...]:
    """Return the boundary that a `chat_compression` is (R29); other subtypes say nothing."""
    payload = mapping(body, "systemPayload") or {}
    info = mapping(payload, "info")
    if body.get("subtype") != "chat_compression" or info is None:
        return ()
    if info.get("compressionStatus", _COMPRESSED) != _COMPRESSED:
        return ()
    boundary = Boundary(
        trigger=None,
        pre_tokens=count(info, "originalTokenCount"),
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
            "user": LineType(user, conversation=conversation.message),
            "tool_result": LineType(user),
            "system": LineType(system),
        },
        fields={
            "provenance": Meaning.WORD,
            "systemPayload": Inside({"info": Meaning.FIGURES, "compressedHistory": Rows(RESPONSE)}),
        },
        versions=("qwen_code_version",),
        is_transcript=True,
        compacts_itself=True,
        tells=Tells(
            version="0.22.0",
            window=Source.MEASURED,
            size=Source.MEASURED,
            end=Source.MEASURED,
            summary=Source.MEASURED,
            composition=Source.DERIVED,
            note="Older versions do not report the window: it is then that of the model's name.",
        ),
        # QwenLM/qwen-code: packages/core/src/utils/environmentContext.ts
        marks=(
            TextMark(r"This is the Qwen Code\. We are setting up the context for our chat\..*"),
        ),
        files=(rf"chats/(?P<session>{UUID})\.jsonl",),
        folders=Folders(("QWEN_RUNTIME_DIR", "QWEN_HOME"), ("~/.qwen",), "projects"),
    ),
)
