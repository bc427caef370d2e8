"""Gemini CLI: the chats that it stores, as JSON documents or as lines (R32).

A chat begins with its session's id. Its messages name no session, and one that changes is written
again with the same id. `$rewindTo` removes the messages from one on: the size is unknown then.

A compaction is not written as such. The history that the model sees after it begins with a message
in the user's role that holds the snapshot of what was before; it is a line of its own, or stands in
a `$set` of all messages, and comes again with each later one.
"""

import hashlib
from typing import Final

from contextgauge.normalise.adapter import (
    ABSENT,
    NO_TEXT,
    PRESENT,
    Adapter,
    Fields,
    Folders,
    Inside,
    LineType,
    Meaning,
    Rows,
    TextMark,
    tagged,
)
from contextgauge.normalise.fields import items, mapping, moment_ms, name
from contextgauge.normalise.installation import Installation
from contextgauge.normalise.responses import CONTENT, text_of
from contextgauge.normalise.signals import (
    ROLLED_BACK,
    Body,
    Boundary,
    Response,
    Signal,
    UserLine,
)
from contextgauge.normalise.tells import Compared, Source, Tells
from contextgauge.normalise.usage import read_gemini_tokens
from contextgauge.records import Json

_SNAPSHOT: Final = "<state_snapshot>"
_BEGINNINGS: Final = (_SNAPSHOT, "<scratchpad>")
"""The model reasons before the snapshot, in some versions."""


def message(body: Body) -> tuple[Signal, ...]:
    """Return the response that a message of the model is; one without counts is none yet."""
    tokens = mapping(body, "tokens")
    if tokens is None:
        return ()
    key = name(body, "id")
    usage, output = read_gemini_tokens(tokens)
    model = name(body, "model")
    return (Response(key, key, model, usage, output, (), exhausted=False, boundary=None),)


def user(body: Body) -> tuple[Signal, ...]:
    """Return the user line that a message is, or the boundary whose summary it is (R29)."""
    snapshot = _snapshot_of(body)
    if snapshot is None:
        return (UserLine(counted=True, mark=None, uuid=None, text=None),)
    return (Boundary(None, None, None, None, None, {}, snapshot),)


def rewind(body: Body) -> tuple[Signal, ...]:
    """Return that the last messages were removed."""
    return () if name(body, "$rewindTo") is None else (ROLLED_BACK,)


def update(body: Body) -> tuple[Signal, ...]:
    """Return the boundary after which a history is, that is written as a whole."""
    snapshot = _snapshot_of(body)
    return () if snapshot is None else (Boundary(None, None, None, None, None, {}, snapshot),)


def moment(body: Body) -> int | None:
    """Return when a history was written."""
    return moment_ms((mapping(body, "$set") or {}).get("lastUpdated"))


def cause(body: Body) -> str | None:
    """Return what identifies a message, or a compaction: its snapshot comes again and again.

    Of one without its texts only the publisher's mark says which it is.
    """
    snapshot = _snapshot_of(body)
    if snapshot is None:
        return name(body, "id")
    if (mark := name(body, NO_TEXT)) is not None:
        return f"{_SNAPSHOT} {mark}"
    digest = hashlib.sha256(snapshot.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{_SNAPSHOT} {digest}"


def prompt(body: Body) -> Json:
    """Return the content of a person's message: what was shown of it, where that differs."""
    return None if _snapshot_of(body) else body.get("displayContent") or body.get("content")


def beginning_of(text: str) -> str:
    """Return what is read of a text: that it is a snapshot."""
    return _SNAPSHOT if _is_snapshot(text) else ""


def _snapshot_of(body: Body) -> str | None:
    """Return the snapshot that a message is, or with which a history begins."""
    update = mapping(body, "$set")
    for each in [body] if update is None else items(update, "messages"):
        text = text_of(each.get("content")) if each.get("type") == "user" else None
        if text is not None and _is_snapshot(text):
            return text
    return None


def _is_snapshot(text: str) -> bool:
    return text.lstrip().startswith(_BEGINNINGS) and _SNAPSHOT in text


_MESSAGE: Final[Fields] = {
    "id": Meaning.NAME,
    "type": Meaning.WORD,
    "content": CONTENT,
    "displayContent": CONTENT,
}

ADAPTERS: Final = (
    Adapter(
        label="Gemini CLI",
        signs=(
            {"sessionId": str, "projectHash": str},
            {"type": "gemini", "id": str, "timestamp": str},
        ),
        line_signs=(
            {"type": "gemini", "id": str},
            {"type": "user", "id": str, "content": PRESENT, "message": ABSENT},
            {"$set": PRESENT},
            {"$rewindTo": PRESENT},
        ),
        types={"gemini": LineType(message), "user": LineType(user, prompt=prompt)},
        untyped={"$rewindTo": LineType(rewind), "$set": LineType(update, moment=moment)},
        fields={
            **_MESSAGE,
            "$rewindTo": Meaning.NAME,
            "$set": Inside({"lastUpdated": Meaning.TIME, "messages": Rows(_MESSAGE)}),
            "tokens": Meaning.FIGURES,
        },
        cause=cause,
        is_transcript=True,
        compacts_itself=True,
        tells=Tells(
            version="0.56",
            compared=Compared(
                31,
                314,
                sources=(
                    "entireio/cli: entire/checkpoints/v1",
                    "wingorithm/Vibe-Coding-Comparison-Project: .gemini/tmp",
                ),
            ),
            window=Source.DERIVED,
            size=Source.MEASURED,
            end=Source.DERIVED,
            summary=Source.MEASURED,
            note="A compaction shows in chats that are lines, by the snapshot that follows it. A "
            "chat of a subagent is a session of its own.",
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
        # It has a hook for the start of a compaction, but nothing says that it ended.
        installation=Installation(
            hooks_file=".gemini/settings.json",
            mcp_file=".gemini/settings.json",
            mcp_table="mcpServers",
            # Its PreCompress comes before each turn, before it is known whether one is needed.
            context_events=("BeforeAgent", "AfterTool"),
        ),
        prompt_words=("user",),
        beginning=beginning_of,
    ),
)
