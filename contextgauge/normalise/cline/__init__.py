"""Cline: the tasks of its extension, and the sessions of its CLI and of version 4.

Checked against cline/cline: tasks up to version 3 (src/core/task, src/core/api/providers), sessions
of the extension 4.1 and the CLI 3.0 (sdk/packages/core/src/session). A task is a JSON document of
messages that a person sees, which name neither the task nor, in older versions, the model. A
session has documents of what it is, of its messages, and of its last compaction.
"""

from typing import Final

from contextgauge.normalise.adapter import (
    ABSENT,
    PRESENT,
    Adapter,
    Fields,
    Folders,
    Inside,
    Joined,
    LineType,
    Meaning,
    Rows,
    TextMark,
    Words,
    named,
)
from contextgauge.normalise.cline import sessions, tasks
from contextgauge.normalise.responses import CONTENT
from contextgauge.normalise.tells import Compared, Source, Tells

FIELDS: Final[Fields] = {
    "ts": Meaning.FIGURES,
    **named(Meaning.WORD, "say ask"),
    "partial": Meaning.FIGURES,
    "text": Words(tasks.beginning_of),
    "modelInfo": Inside(named(Meaning.NAME, "providerId modelId")),
}
FILES: Final = (r"tasks/(?P<session>[^/]+)/ui_messages\.json",)
OTHER_FILES: Final = (r"tasks/[^/]+/(?:api_conversation_history|task_metadata|history_item)\.json",)

_ASKED: Final = LineType(head=tasks.of_file, moment=tasks.moment)
_SIGNS: Final = (
    {"type": "say", "ts": int, "say": str, "contextCondense": ABSENT, "contextTruncation": ABSENT},
    {"type": "ask", "ts": int, "ask": str},
)


_HEAD: Final = {"version": int, "agent": str, "sessionId": str}
_MESSAGE: Final = {
    "role": frozenset({"user", "assistant"}),
    "ts": int,
    "id": str,
    "content": PRESENT,
}
_SUMMARY: Final = Inside(
    {
        **named(Meaning.WORD, "kind reason"),
        **named(Meaning.FIGURES, "generatedAt messagesRemoved tokensBefore"),
        "summary": Meaning.TEXT,
    }
)


def extension_homes(identifier: str) -> tuple[str, ...]:
    """Return where an extension of VS Code keeps what is its own, on each system."""
    places = (
        "$XDG_CONFIG_HOME/Code",
        "~/Library/Application Support/Code",
        "~/.vscode-server/data",
    )
    return tuple(f"{place}/User/globalStorage/{identifier}" for place in places)


ADAPTERS: Final = (
    Adapter(
        label="Cline 4",
        signs=(_HEAD, _MESSAGE),
        line_signs=(_HEAD, _MESSAGE, {sessions.COVERED: int, "messages": list}),
        untyped={
            "role": LineType(
                sessions.message,
                conversation=sessions.conversation,
                prompt=sessions.prompt,
                moment=sessions.moment,
            ),
            sessions.COVERED: LineType(
                sessions.compaction,
                conversation=sessions.summary,
                moment=sessions.compacted_when,
            ),
            "agent": LineType(sessions.facts),
        },
        fields={
            **named(Meaning.NAME, "id agentId"),
            **named(Meaning.WORD, "role agent"),
            **named(Meaning.LONG_NAME, "sessionId cwd"),
            **named(Meaning.FIGURES, f"ts metrics version {sessions.COVERED}"),
            "content": CONTENT,
            "modelInfo": Inside(named(Meaning.NAME, "id provider")),
            "metadata": _SUMMARY,
            "messages": Rows({"role": Meaning.WORD, "content": CONTENT, "metadata": _SUMMARY}),
        },
        cause=sessions.cause,
        compacts_itself=True,
        joined=Joined(".messages.json", ("{}.json", "{}.compaction.json"), sessions.lines),
        document="messages",
        files=(
            r"sessions/(?P<session>[^/]+)/(?P=session)\.messages\.json",
            r"sessions/(?P<session>[^/]+)/(?P<thread>[^/]+)\.messages\.json",
        ),
        other_files=(r"sessions/(?P<session>[^/]+)/(?P=session)(?:\.compaction)?\.json",),
        # packages/shared/src/prompt/format.ts
        marks=(
            TextMark(
                r"(?:<mode_notice>[^<]*+</mode_notice>\s*)?+<user_input mode=\"\w{1,8}\">"
                r"(.*)</user_input>"
            ),
        ),
        folders=Folders(("CLINE_DATA_DIR",), ("~/.cline/data",), "sessions"),
        prompt_words=("role",),
        tells=Tells(
            version="4.1",
            window=Source.DERIVED,
            size=Source.MEASURED,
            end=Source.MEASURED,
            summary=Source.MEASURED,
            composition=Source.DERIVED,
            subagents=Source.MEASURED,
            note="Sessions of its CLI too. Only the last compaction of a session is in its files; "
            "what asked for it is known of one without a summary.",
        ),
    ),
    Adapter(
        label="Cline",
        signs=_SIGNS,
        line_signs=_SIGNS,
        types={
            "say": LineType(
                tasks.say, prompt=tasks.prompt, head=tasks.of_file, moment=tasks.moment
            ),
            "ask": _ASKED,
        },
        fields=FIELDS,
        cause=tasks.cause,
        compacts_itself=True,
        files=FILES,
        other_files=OTHER_FILES,
        folders=Folders((), (*extension_homes("saoudrizwan.claude-dev"), "~/.cline/data"), "tasks"),
        prompt_words=("say",),
        tells=Tells(
            version="3.72",
            compared=Compared(
                4,
                196,
                sources=(
                    "CoreGems/Cline-Xray: task_sample/ui_messages.json",
                    "Jeehunter/mcp-vscode-server: ui_messages.json",
                    "haram-333/fineye: ui_messages.json",
                ),
            ),
            window=Source.DERIVED,
            size=Source.MEASURED,
            end=Source.MEASURED,
            summary=Source.MEASURED,
            note="The model is in tasks of newer versions only, and the size is unknown where it "
            "cannot be known whether cached tokens are part of the input. Truncations and `/smol` "
            "are not written as such.",
        ),
    ),
)
