"""Gemini CLI: the chats that it stores, as JSON documents or as lines (R32).

A chat begins with its session's id. Its messages name no session, and one that changes is written
again with the same id. `$rewindTo` removes the messages from one on: the size is unknown then.
"""

from typing import Final

from contextgauge.normalise.adapter import (
    Adapter,
    Folders,
    LineType,
    Meaning,
    Source,
    Tells,
    TextMark,
    tagged,
)
from contextgauge.normalise.fields import count, mapping, name
from contextgauge.normalise.signals import ROLLED_BACK, Body, Response, Signal
from contextgauge.normalise.usage import read_gemini_tokens


def message(body: Body) -> tuple[Signal, ...]:
    """Return the response that a message of the model is; one without counts is none yet."""
    tokens = mapping(body, "tokens")
    if tokens is None:
        return ()
    key = name(body, "id")
    usage, output = read_gemini_tokens(tokens), count(tokens, "output")
    model = name(body, "model")
    return (Response(key, key, model, usage, output, (), exhausted=False, boundary=None),)


def rewind(body: Body) -> tuple[Signal, ...]:
    """Return that the last messages were removed."""
    return () if name(body, "$rewindTo") is None else (ROLLED_BACK,)


ADAPTERS: Final = (
    Adapter(
        label="Gemini CLI",
        signs=(
            {"sessionId": str, "projectHash": str},
            {"type": "gemini", "id": str, "timestamp": str},
        ),
        types={"gemini": LineType(message)},
        untyped={"$rewindTo": LineType(rewind)},
        fields={"$rewindTo": Meaning.NAME, "tokens": Meaning.FIGURES},
        is_transcript=True,
        compacts_itself=True,
        tells=Tells(
            version="0.56",
            window=Source.DERIVED,
            size=Source.MEASURED,
            note="A chat does not show its compactions: the size just becomes smaller. A chat of "
            "a subagent is a session of its own.",
        ),
        document="messages",
        files=(r"chats/session-[^/]*\.jsonl?",),
        marks=(
            # google-gemini/gemini-cli, packages/core/src: core/client.ts, utils/environment*.ts
            TextMark(tagged("hook_context")),
            TextMark(
                r"(?:<session_context>\s*)?This is the Gemini CLI\. We are setting up the context "
                r"for our chat\..*"
            ),
            TextMark(r"Here is the user's editor context as a JSON object\b.*"),
        ),
        folders=Folders(("GEMINI_CLI_HOME",), ("~",), ".gemini/tmp"),
    ),
)
